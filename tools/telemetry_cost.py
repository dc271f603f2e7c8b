"""Count the instructions of a request, without and with telemetry: `python -m tools.telemetry_cost`.

Each count is that of valgrind's callgrind for a thousand requests, after a few hundred. With `--runtime` the code of
another checkout runs, such as one before telemetry.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

FIRST, COUNTED = 200, 1000
"""Requests that are not counted, since they compile converters, and requests that are."""

SERVER = (
    f"FIRST, COUNTED = {FIRST}, {COUNTED}"
    + """
import asyncio, gc, os, sys
import typedmcp
from typedmcp.dialect.structs import CallToolResult, TextContent

KIND, options = sys.argv[1], {}
if KIND != "off":
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
    from typedmcp.telemetry import Telemetry

    providers = {}
    if KIND != "api":
        sampler = {"sampler": ALWAYS_OFF} if KIND == "unsampled" else {}
        meters = MeterProvider([InMemoryMetricReader()])
        providers = {"tracer_provider": TracerProvider(**sampler), "meter_provider": meters}
    options = {"telemetry": Telemetry(**providers)}


class Handler:
    requests = 0

    async def call_tool(self, params, ctx):
        self.requests += 1
        if self.requests in (FIRST, FIRST + COUNTED):
            os.getppid()  # callgrind begins a new count here
        return CallToolResult(content=[TextContent(text="hello")])


gc.disable()
"""
)
SERVE = SERVER + "typedmcp.serve(Handler(), **options)\n"
CALL = (
    SERVER
    + """
async def main():
    async with typedmcp.connect(typedmcp.ServerConfig(Handler()), **options) as client:
        for _ in range(FIRST + COUNTED):
            await client.call_tool("echo", {"text": "hello"})

asyncio.run(main())
"""
)

KINDS = {
    "off": "without telemetry",
    "api": "with telemetry, without an SDK",
    "unsampled": "with an SDK, no span sampled",
    "sampled": "with an SDK, every span recorded, none exported",
}


def requests(count: int, *, traced: bool) -> str:
    """Return lines with calls of a tool, each in a trace of its own if they are traced."""
    lines: list[str] = []
    for id in range(1, count + 1):
        meta: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "cost", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        if traced:
            meta["traceparent"] = f"00-{id:032x}-{id:016x}-01"
        params = {"name": "echo", "arguments": {"text": "hello"}, "_meta": meta}
        lines.append(json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    return "\n".join(lines) + "\n"


def count(code: str, kind: str, environment: dict[str, str], *, traced: bool = False) -> int:
    """Return the instructions of one request that a process handles, or makes and handles."""
    with tempfile.TemporaryDirectory() as folder:
        script, lines = Path(folder) / "script.py", Path(folder) / "lines"
        script.write_text(code, encoding="utf-8")
        lines.write_text(requests(FIRST + COUNTED, traced=traced), encoding="utf-8")
        command = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={folder}/out"]
        with lines.open() as given:
            subprocess.run(  # noqa: S603
                [*command, sys.executable, str(script), kind], env=environment, stdin=given, capture_output=True,
                check=True,
            )  # fmt: skip
        found = re.search(r"^(?:summary|totals): (\d+)", (Path(folder) / "out.2").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) // COUNTED


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runtime", type=Path, help="a checkout whose code runs in place of this one; without telemetry"
    )
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=[*KINDS])
    given = parser.parse_args()
    root: Path = given.runtime or ROOT
    path = os.pathsep.join(str(root / folder) for folder in ("runtime", "generated"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    for kind in ["off"] if given.runtime else given.kinds:
        print(f"{KINDS[kind]}:", flush=True)
        print(f"  a server {count(SERVE, kind, environment):,}", flush=True)
        print(f"  a server whose client has a trace {count(SERVE, kind, environment, traced=True):,}", flush=True)
        print(f"  a client and its server in one process {count(CALL, kind, environment):,}", flush=True)


if __name__ == "__main__":
    main()
