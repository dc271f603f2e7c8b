"""Imports and starts: time and memory in fresh processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from bench.plan import ContenderError, Measurements, Plan, log, measure_in_turns
from bench.results import Row, Table
from bench.suites import stdio
from bench.suites.processes import (
    CONTENDERS,
    LEGACY,
    OFFICIAL,
    TEXT,
    TIMEOUT,
    Contender,
    Process,
    describe_failure,
    exchange_line,
    is_echo,
    make_call,
    make_environment,
    make_handshake,
    make_python_command,
    make_rows,
    send_request,
    start_process,
)

__all__ = ["ASYNCIO_ALONE", "DECORATED", "measure_import", "measure_tables", "time_first_response"]

NEWEST = "mcpspec.v2026_07_28"
MODULES = {
    "msgspec": "msgspec",
    "pydantic": "pydantic",
    "typedmcp structs (msgspec)": f"{NEWEST}.structs",
    "typedmcp models (Pydantic)": f"{NEWEST}.models",
    "official mcp_types": "mcp_types",
    "typedmcp, a server": "typedmcp.server.run",
    "official mcp, low-level server": "mcp.server.lowlevel",
    "official mcp, MCPServer": "mcp.server.mcpserver",
    "fastmcp": "fastmcp",
}
MANY, LISTS = 1000, 10
LATER, FIRST_LIST, NEXT_LIST = "later", "first list", "next list"
ASYNCIO_ALONE = Contender(
    "asyncio alone",
    make_python_command(CONTENDERS / "stdio" / "asyncio_constants.py"),
    "the floor for a start: an event loop and constant responses",
)
DECORATED = Contender("typedmcp, Server", make_python_command(CONTENDERS / "stdio" / "typedmcp_server.py"))
"""A server with tools from functions, by decorators."""
SLOW_MODULES = ("official mcp, MCPServer", "fastmcp")
"""Modules that quick runs leave out."""

# Only modules that every process has are imported before, because an import of others would be missing in the figure.
_IMPORT = """
import os, sys, time

def memory():
    if os.path.exists("/proc/self/statm"):
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes where there is no /proc

before, begun = memory(), time.perf_counter()
import {modules}
took = time.perf_counter() - begun
print(took * 1e3, (memory() - before) / 1e6)
"""


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield the tables of imports and of first responses."""
    log("import: modules")
    modules = {name: module for name, module in MODULES.items() if not (plan.quick and name in SLOW_MODULES)}
    costs = measure_in_turns({name: partial(measure_import, module) for name, module in modules.items()}, plan.rounds)
    yield _import_table(costs, "import/time", "Time", "ms")
    yield _import_table(costs, "import/memory", "Memory", "MB")
    yield measure_first_responses(plan)
    if not plan.quick:
        yield measure_many_tools(plan)


def _import_table(costs: Measurements[str, str], name: str, quantity: str, unit: str) -> Table:
    """Make the table of one quantity. Its unit is also the name of its figures."""
    return Table(
        name=name,
        title=f"{quantity} of an import",
        about=f"{quantity} that an import takes in a fresh process with cached bytecode, including the imports of the "
        "module itself.",
        unit=unit,
        better="lower",
        reference="official mcp_types",
        columns=["import"],
        rows=[
            Row(contender, {"import": figures[unit]} if figures else {}, describe_failure(costs, contender))
            for contender, figures in costs.items()
        ],
    )


def measure_first_responses(plan: Plan) -> Table:
    """Measure how soon servers respond."""
    log("import: first response")
    servers = [ASYNCIO_ALONE, *stdio.list_servers(plan, LEGACY)]
    times = measure_in_turns({one.name: partial(_time_first_responses, one) for one in servers}, plan.rounds)
    return Table(
        name="import/first-answer",
        title="From the start of a server to its first responses",
        about="How long after the start of its process a server over stdio responds to `initialize`, and then to the "
        "first tool call.",
        unit="ms",
        better="lower",
        reference=OFFICIAL,
        columns=["first answer", "first call"],
        rows=make_rows(times, servers),
    )


def measure_import(modules: str) -> Mapping[str, float]:
    """Import modules in a fresh process; return the time as `ms` and the memory as `MB`."""
    command = [sys.executable, "-c", _IMPORT.format(modules=modules)]
    try:
        done = subprocess.run(  # noqa: S603
            command, check=True, capture_output=True, text=True, timeout=TIMEOUT, env=make_environment()
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise ContenderError(f"{modules} cannot be imported: {error}") from error
    took, memory = done.stdout.split()
    return {"ms": float(took), "MB": float(memory)}


@contextmanager
def _start_initialized(command: list[str], name: str) -> Generator[tuple[Process, float, float]]:
    """Start a server; yield its process, the time of its start, and the seconds until it responded to `initialize`."""
    begun = time.perf_counter()
    with start_process(name, command) as process:
        found = send_request(process, make_handshake()[0])
        took = time.perf_counter() - begun
        if "result" not in found:
            raise process.make_failure(f"responded {found}")
        yield process, begun, took


def time_first_response(command: list[str], name: str = "") -> float:
    """Return the milliseconds from the start of a server to its response to `initialize`."""
    with _start_initialized(command, name or command[-1]) as (_, _, took):
        return took * 1e3


def _time_first_responses(server: Contender) -> Mapping[str, float]:
    """Return the milliseconds to the response to `initialize`, and to the response to a first tool call right after."""
    with _start_initialized(server.command, server.name) as (process, begun, opened):
        process.write(make_handshake()[1].encode() + b"\n")
        found = send_request(process, make_call(1, LEGACY, "echo", {"text": TEXT}))
        called = time.perf_counter() - begun
        if not is_echo(found, 1, TEXT):
            raise process.make_failure(f"responded {found}")
    return {"first answer": opened * 1e3, "first call": called * 1e3}


def measure_many_tools(plan: Plan) -> Table:
    """Measure what many tools add to the start, and how long listing them takes."""
    log("import: many tools")
    folder = CONTENDERS / "stdio"
    found = [
        Contender(
            stdio.FLOOR, make_python_command(folder / "constants_many_tools.py"), "the floor: constant responses"
        ),
        Contender("typedmcp, Server", make_python_command(folder / "typedmcp_many_tools.py")),
        Contender("official Python, MCPServer", make_python_command(folder / "official_many_tools.py")),
        Contender("fastmcp", make_python_command(folder / "fastmcp_many_tools.py")),
    ]
    measured = measure_in_turns({one.name: partial(_measure_many_tools, one) for one in found}, plan.rounds)
    return Table(
        name="import/many-tools",
        title=f"A server with {MANY:,} tools",
        about=f"How much later a server with {MANY:,} tools responds to `initialize` than a server with one tool, and "
        "how long it takes to list all tools, the first time and later. Each tool has three described parameters.",
        unit="ms",
        better="lower",
        reference="official Python, MCPServer",
        columns=[LATER, FIRST_LIST, NEXT_LIST],
        rows=make_rows(measured, found),
    )


def _measure_many_tools(server: Contender) -> Mapping[str, float]:
    one_tool, all_tools = [*server.command, "1"], [*server.command, str(MANY)]
    found: dict[str, float] = {}
    if server.name != stdio.FLOOR:  # it has no real tools
        took, base = (min(time_first_response(each, server.name) for _ in range(2)) for each in (all_tools, one_tool))
        found[LATER] = took - base
    with start_process(server.name, all_tools) as process:
        first, second = make_handshake()
        exchange_line(process, first)
        process.write(second.encode() + b"\n")
        lists = [_time_list(process) for _ in range(LISTS)]
    return {**found, FIRST_LIST: lists[0], NEXT_LIST: statistics.median(lists[1:])}


def _time_list(process: Process) -> float:
    """Return the milliseconds that listing all tools takes."""
    with process.deadline():
        begun = time.perf_counter()
        process.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        response = process.read_line()
        took = time.perf_counter() - begun
    if len(json.loads(response).get("result", {}).get("tools", [])) != MANY:
        raise process.make_failure(f"responded {response[:300]!r}")
    return took * 1e3
