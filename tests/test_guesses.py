"""Names that people expect, from other libraries or by guessing: the error says what to use."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import mcpspec
import typedmcp
from mcpspec.v2026_07_28 import structs
from mcpspec.v2026_07_28.exact import structs as exact
from tests.cases import each
from typedmcp.types import CallToolResult, TextContent

anything: Any = typedmcp.Server("guessed")
result: Any = CallToolResult(content=[TextContent(text="a")])
package: Any = mcpspec
client: Any = typedmcp.connect(anything)
blocking: Any = typedmcp.sync.SyncClient
runtime: Any = typedmcp


@each(
    "guess, meant",
    {
        "mcpspec.Tool": (lambda: package.Tool, "mcpspec.v2026_07_28.structs (msgspec)"),
        "mcpspec.latest": (lambda: package.latest, "mcpspec.v2026_07_28.models (Pydantic)"),
        "mcpspec.types": (lambda: package.types, "mcpspec.v2026_07_28.structs"),
        "mcpspec.v2026_07_28.Tool": (lambda: package.v2026_07_28.Tool, "mcpspec.v2026_07_28.structs"),
        "mcpspec.v2026_07_28.exact.Tool": (lambda: package.v2026_07_28.exact.Tool, "mcpspec.v2026_07_28.exact.structs"),
        "structs.PingRequest": (lambda: package.v2026_07_28.structs.PingRequest, "2025-06-18, 2025-11-25"),
        "models.PingRequest": (lambda: package.v2026_07_28.models.PingRequest, "that have it: 2024-11-05, 2025-03-26"),
        "exact.structs.PingRequest": (lambda: package.v2026_07_28.exact.structs.PingRequest, "2025-11-25"),
        "methods.PING": (lambda: package.v2026_07_28.methods.PING, "2025-11-25"),
        "structs.JSONRPCError": (lambda: package.v2026_07_28.structs.JSONRPCError, "2025-06-18"),
        "older.DiscoverRequest": (lambda: package.v2025_06_18.structs.DiscoverRequest, "have it: 2026-07-28"),
        "typedmcp.types.PingRequest": (lambda: runtime.types.PingRequest, "2025-11-25"),
        "typedmcp.TextContent": (lambda: runtime.TextContent, "from typedmcp.types import TextContent"),
        "typedmcp.Tool": (lambda: runtime.Tool, "from typedmcp.types import Tool"),
        "typedmcp.FastMCP": (lambda: runtime.FastMCP, "Server"),
        'Client("x")': (lambda: runtime.Client("x"), "typedmcp.connect(…)"),
        "Server(auth=…)": (lambda: runtime.Server("x", auth=1), "typedmcp.asgi(server, auth=…)"),
        "Server(host=…)": (lambda: runtime.Server("x", host="a"), "server.run"),
        "Server(lifspan=…)": (lambda: runtime.Server("x", lifspan=1), "did you mean 'lifespan'"),
        ".http_app": (lambda: anything.http_app(), "typedmcp.asgi(server)"),
        ".run_async": (lambda: anything.run_async(), "typedmcp.serve_async(server)"),
        ".add_middleware": (lambda: anything.add_middleware(print), "server.middleware(function)"),
        "tags= of a tool": (lambda: anything.tool(tags={"a"})(print), "meta={…}"),
        "ctx.session": (lambda: runtime.Context.session, "ctx has its methods: ctx.progress"),
        "ctx.request_context": (lambda: runtime.Context.request_context, "ctx.lifespan, ctx.meta, ctx.id"),
        "ctx.set_state": (lambda: runtime.Context.set_state, "vars(ctx)"),
        "client.tools_for": (lambda: client.tools_for, "typedmcp_hosts.tools_for(client, api)"),
        "client.call_for": (lambda: client.call_for, "pip install 'typedmcp[hosts]'"),
        "client.tasks": (lambda: client.tasks, "client.extension(typedmcp_extensions.tasks.TaskCalls)"),
        "sync client.tools_for": (lambda: blocking.tools_for, "client.run(typedmcp_hosts.tools_for, api)"),
        "sync client.call_for": (lambda: blocking.call_for, "client.run(typedmcp_hosts.call_for, api, part)"),
        "sync client.tasks": (lambda: blocking.tasks, "typedmcp_extensions.tasks.SyncTaskCalls(client)"),
        "result.data": (lambda: result.data, "`structured_content`"),
    }.values(),
)
def test_an_error_about_a_name_that_people_expect_says_what_to_use(guess: Callable[[], object], meant: str) -> None:
    with pytest.raises((AttributeError, ImportError, typedmcp.UsageError), match=re.escape(meant)):
        guess()


@each("guess, meant", [("isError", "is_error"), ("structuredContent", "structured_content")])
def test_python_suggests_the_attribute_for_a_name_on_the_wire(guess: str, meant: str) -> None:
    code = f"from typedmcp.types import CallToolResult; CallToolResult(content=[]).{guess}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"Did you mean: '{meant}'?" in done.stderr


@each(
    "make, guess, meant",
    [
        (structs.CallToolResult, {"isError": True, "content": []}, "'isError'; did you mean 'is_error'?"),
        (structs.ImageContent, {"type": "image", "data": "", "mimeType": "a/b"}, "did you mean 'mime_type'?"),
        (exact.CallToolResult, {"isError": True, "content": []}, "'isError'; did you mean 'is_error'?"),
        (structs.ImageContent, {"data": "", "mime": "a/b"}, "Unexpected keyword argument 'mime'"),
    ],
)
def test_a_constructor_names_the_attribute_for_a_name_on_the_wire(make: Any, guess: dict[str, Any], meant: str) -> None:
    with pytest.raises(TypeError, match=re.escape(meant)):
        make(**guess)


def test_a_look_for_a_name_that_may_be_missing_loads_no_other_revision() -> None:
    code = "import sys; from mcpspec.v2026_07_28 import structs; assert not hasattr(structs, 'PingRequest')"
    check = "assert not any('v2025' in name for name in sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}; {check}"], check=True)


def test_an_attribute_that_nobody_guesses_has_the_usual_error() -> None:
    for value in (anything, result, package, runtime, structs, package.v2026_07_28.models, package.ext.tasks.structs):
        with pytest.raises(AttributeError, match=r"has no attribute 'xyz'$"):
            _ = value.xyz


def test_the_types_of_the_runtime_are_those_of_the_newest_revision() -> None:
    newest: Any = mcpspec.revision(mcpspec.LATEST).structs
    assert all(getattr(typedmcp.types, name) is getattr(newest, name) for name in newest.__all__)
