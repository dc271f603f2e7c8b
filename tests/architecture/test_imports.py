"""The arrows between modules: no circles, and only the core is loaded for a server over stdio."""

from __future__ import annotations

import json
import subprocess
import sys
from graphlib import TopologicalSorter
from typing import Any

import grimp

from tests.cases import each
from tests.paths import ROOT
from tools.dist import SATELLITES, SCHEMAS


@each("package", ["mcpspec_codegen", "typedmcp", *(each.package.name for each in (SCHEMAS, *SATELLITES))])
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    """Imports inside functions and for type checkers count."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}).prepare()


CORE = {
    "": "dialect errors frames limits observers protocol revisions server transports",
    "dialect": "methods structs",
    "protocol": "backends budgets codec diagnostics framing meta notifications nulls "
    "option_checks pending repairs text",
    "revisions": "capabilities conversions features input_requests notifications",
    "server": "attempts batches built_in call_states calls changes channel config connection context engine "
    "handlers handshake home input_requests lifespan line_channel line_workers metadata principal run service "
    "session slow_path state_token subscriptions",
    "transports": "concurrency descriptors eager files stdio streams",
}
"""The modules of the runtime that a server over stdio needs, by room."""

SCHEMA_MODULES = ("annotations", "integers", "json_types", "lazy", "nesting")
"""What it needs of `typedmcp_schemas`: how JSON is read, and options."""

SERVER = """
import json, sys
import typedmcp
from mcpspec.v2026_07_28.exact.structs import CallToolResult, TextContent

class Handler:
    def call_tool(self, params, ctx):
        return CallToolResult(result_type="complete", content=[TextContent(text=json.dumps([*sys.modules]))])

typedmcp.serve(Handler())
"""


def test_serving_a_handler_over_stdio_loads_only_the_core() -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    request: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "modules", "_meta": meta},
    }
    done = subprocess.run(
        [sys.executable, "-c", SERVER], input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=30,
        cwd=ROOT, check=True,
    )  # fmt: skip
    loaded = json.loads(json.loads(done.stdout)["result"]["content"][0]["text"])
    core = {".".join(filter(None, ("typedmcp", room, module))) for room, all in CORE.items() for module in all.split()}
    assert {name for name in loaded if name.startswith("typedmcp.")} == core
    schemas = {"typedmcp_schemas", *(f"typedmcp_schemas.{name}" for name in SCHEMA_MODULES)}
    assert {name for name in loaded if name.startswith("typedmcp_")} == schemas
    assert not {"httptools", "jsonschema_rs", "pydantic", "redis", "rich", "uvicorn"} & {*loaded}
