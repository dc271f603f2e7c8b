"""Importing and starting: time and memory in fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from bench.plan import Plan, in_turns, say
from bench.results import Row, Table

__all__ = ["tables"]

SERVERS = Path(__file__).resolve().parents[1] / "contenders" / "stdio"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
NEWEST = "mcpspec.v2026_07_28"
MODULES = {
    "msgspec": "msgspec",
    "pydantic": "pydantic",
    "typedmcp structs (msgspec)": f"{NEWEST}.structs",
    "typedmcp models (Pydantic)": f"{NEWEST}.models",
    "official mcp_types": "mcp_types",
    "typedmcp, a server": "typedmcp.serving",
    "official mcp, low-level server": "mcp.server.lowlevel",
    "official mcp, MCPServer": "mcp.server.mcpserver",
    "fastmcp": "fastmcp",
}
OFFICIAL_SERVER = "official Python, low level"
STARTED = {
    "typedmcp": "ours.py",
    OFFICIAL_SERVER: "official_lowlevel.py",
    "official Python, MCPServer": "official_mcpserver.py",
    "fastmcp": "with_fastmcp.py",
}
SLOW = ("official mcp, MCPServer", "official Python, MCPServer", "fastmcp")
"""Those that are left out in a hurry."""
PATIENCE = 60

_IMPORT = """
import json, os, resource, sys, time

def memory():
    if os.path.exists("/proc/self/statm"):
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes where there is no /proc

before, begun = memory(), time.perf_counter()
import {module}
took = time.perf_counter() - begun
print(json.dumps({{"ms": took * 1e3, "MB": (memory() - before) / 1e6}}))
"""


def tables(plan: Plan) -> Iterator[Table]:
    """What importing costs, and how soon a server answers."""
    say("import: modules")
    rounds = 2 if plan.quick else plan.rounds
    modules = {who: module for who, module in MODULES.items() if not (plan.quick and who in SLOW)}
    imported = in_turns({who: partial(_import, module) for who, module in modules.items()}, rounds)
    for column, unit, what in (("ms", "ms", "Time"), ("MB", "MB", "Memory")):
        yield Table(
            name=f"import/{'time' if column == 'ms' else 'memory'}",
            title=f"{what} of an import",
            about=f"{what} that importing a module costs in a fresh process whose bytecode is cached already, with all "
            "that it imports in turn.",
            unit=unit,
            better="lower",
            reference="official mcp_types",
            columns=["import"],
            rows=[Row(who, {"import": figures[column]}) for who, figures in imported.items()],
        )
    say("import: first answer")
    scripts = {who: script for who, script in STARTED.items() if not (plan.quick and who in SLOW)}
    started = in_turns({who: partial(_first_answer, script) for who, script in scripts.items()}, rounds)
    yield Table(
        name="import/first-answer",
        title="From a server's start to its first answer",
        about="How long after its process was started a server over stdio answers `initialize`.",
        unit="ms",
        better="lower",
        reference=OFFICIAL_SERVER,
        columns=["first answer"],
        rows=[Row(who, figures) for who, figures in started.items()],
    )


def _import(module: str) -> Mapping[str, float]:
    command = [sys.executable, "-c", _IMPORT.format(module=module)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)  # noqa: S603
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _first_answer(script: str) -> Mapping[str, float]:
    begun = time.perf_counter()
    command = [sys.executable, str(SERVERS / script)]
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        took = time.perf_counter() - begun
        server.stdin.close()
        server.terminate()
    if "result" not in answer:
        raise RuntimeError(f"{script} answered {answer}")
    return {"first answer": took * 1e3}
