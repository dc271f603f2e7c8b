"""Importing and starting: time and memory in fresh processes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from bench.plan import ContenderFailed, Plan, in_turns, say
from bench.results import Row, Table
from bench.suites import stdio
from bench.suites._processes import (
    CONTENDERS,
    LEGACY,
    OFFICIAL,
    PATIENCE,
    TEXT,
    Contender,
    Process,
    answer,
    ask,
    call,
    environ,
    is_answer,
    note,
    opening,
    python,
    rows,
    started,
)

__all__ = ["first_answer", "imported", "tables"]

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
MANY, LISTS = 1000, 10
LATER, FIRST_LIST, NEXT_LIST = "later", "first list", "next list"
SLOW = ("official mcp, MCPServer", "fastmcp")
"""Those that are left out in a hurry."""

# Nothing is imported beforehand that a process does not have anyway, lest it be missing in what is measured.
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


def tables(plan: Plan) -> Iterator[Table]:
    """What importing costs, and how soon a server answers."""
    say("import: modules")
    modules = {who: module for who, module in MODULES.items() if not (plan.quick and who in SLOW)}
    costs = in_turns({who: partial(imported, module) for who, module in modules.items()}, plan.rounds)
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
            rows=[
                Row(who, {"import": figures[column]} if figures else {}, note(costs, who))
                for who, figures in costs.items()
            ],
        )
    say("import: first answer")
    servers = list(stdio.servers(plan, LEGACY))
    answers = in_turns({one.name: partial(_first_answers, one) for one in servers}, plan.rounds)
    yield Table(
        name="import/first-answer",
        title="From a server's start to its first answers",
        about="How long after its process was started a server over stdio answers `initialize`, and then the first "
        "call of a tool.",
        unit="ms",
        better="lower",
        reference=OFFICIAL,
        columns=["first answer", "first call"],
        rows=rows(answers, servers),
    )
    if not plan.quick:
        yield many_tools(plan)


def imported(modules: str) -> Mapping[str, float]:
    """What importing some modules costs in a fresh process: `ms`, and `MB`."""
    command = [sys.executable, "-c", _IMPORT.format(modules=modules)]
    try:
        done = subprocess.run(  # noqa: S603
            command, check=True, capture_output=True, text=True, timeout=PATIENCE, env=environ()
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise ContenderFailed(f"{modules} cannot be imported: {error}") from error
    took, memory = done.stdout.split()
    return {"ms": float(took), "MB": float(memory)}


@contextmanager
def _opened(command: list[str], name: str) -> Generator[tuple[Process, float, float]]:
    """A server that has answered `initialize`: its process, when it was started, and how many seconds that took."""
    begun = time.perf_counter()
    with started(name, command) as process:
        found = answer(process, opening()[0])
        took = time.perf_counter() - begun
        if "result" not in found:
            raise process.failure(f"answered {found}")
        yield process, begun, took


def first_answer(command: list[str], name: str = "") -> float:
    """Milliseconds from the start of a server's process to its answer to `initialize`."""
    with _opened(command, name or command[-1]) as (_, _, took):
        return took * 1e3


def _first_answers(server: Contender) -> Mapping[str, float]:
    """The same, and to its answer to the first call of a tool, made at once."""
    with _opened(server.command, server.name) as (process, begun, opened):
        process.write(opening()[1].encode() + b"\n")
        found = answer(process, call(1, LEGACY, "echo", {"text": TEXT}))
        called = time.perf_counter() - begun
        if not is_answer(found, 1, TEXT):
            raise process.failure(f"answered {found}")
    return {"first answer": opened * 1e3, "first call": called * 1e3}


def many_tools(plan: Plan) -> Table:
    """What many tools cost at the start, and how fast they are listed."""
    say("import: many tools")
    folder = CONTENDERS / "stdio"
    found = [
        Contender(stdio.FLOOR, python(folder / "floor_many.py"), "the floor: constants for answers"),
        Contender("typedmcp, Server", python(folder / "ours_many.py")),
        Contender("official Python, MCPServer", python(folder / "official_many.py")),
        Contender("fastmcp", python(folder / "fastmcp_many.py")),
    ]
    measured = in_turns({one.name: partial(_many, one) for one in found}, plan.rounds)
    return Table(
        name="import/many-tools",
        title=f"A server with {MANY:,} tools",
        about=f"How much later than one with one tool a server with {MANY:,}, of three described parameters each, "
        "answers `initialize`, and how long it then takes to list them all: the first time, and again.",
        unit="ms",
        better="lower",
        reference="official Python, MCPServer",
        columns=[LATER, FIRST_LIST, NEXT_LIST],
        rows=rows(measured, found),
    )


def _many(server: Contender) -> Mapping[str, float]:
    alone, all_of_them = [*server.command, "1"], [*server.command, str(MANY)]
    found: dict[str, float] = {}
    if server.name != stdio.FLOOR:  # which has none
        took, base = (min(first_answer(each, server.name) for _ in range(2)) for each in (all_of_them, alone))
        found[LATER] = took - base
    with started(server.name, all_of_them) as process:
        first, second = opening()
        ask(process, first)
        process.write(second.encode() + b"\n")
        lists = [_listed(process) for _ in range(LISTS)]
    return {**found, FIRST_LIST: lists[0], NEXT_LIST: statistics.median(lists[1:])}


def _listed(process: Process) -> float:
    """How many milliseconds it takes to list all tools."""
    with process.deadline():
        begun = time.perf_counter()
        process.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        answer = process.read_line()
        took = time.perf_counter() - begun
    if len(json.loads(answer).get("result", {}).get("tools", [])) != MANY:
        raise process.failure(f"answered {answer[:300]!r}")
    return took * 1e3
