"""Servers and clients over stdio: each contender is a process of its own, which is called by lines through pipes."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench.plan import Measure, Plan, say, started_anew
from bench.results import Table
from bench.suites._processes import (
    CONTENDERS,
    LEGACY,
    MODERN,
    OFFICIAL,
    OFFICIAL_CLIENT,
    TEXT,
    WARM_NODE,
    Contender,
    Process,
    answer,
    at_a_time,
    call,
    clients_in_turns,
    get_warm,
    is_answer,
    opening,
    python,
    rows,
    started,
    typescript,
)

__all__ = ["tables"]

FLOOR = "blocking loop"
DEPTH = 64
CALLS = 32
LARGE = 1 << 20
FIRST = 64
"""How many requests tell how fast a server is, and so how many it gets in a turn."""
WINDOWS = 5
"""How often as many as are on their way at once it gets at least: first and last the pipe is not full."""


def tables(plan: Plan) -> Iterator[Table]:
    """All tables over stdio, one after the other."""
    for revision in (MODERN,) if plan.quick else (LEGACY, MODERN):
        yield echo(plan, revision)
    if not plan.quick:
        yield large(plan)
    for revision in (MODERN,) if plan.quick else (LEGACY, MODERN):
        yield client(plan, revision)


def servers(plan: Plan, revision: str) -> Iterator[Contender]:
    """The servers. The high-level ones of others are slow to start."""
    folder = CONTENDERS / "stdio"
    yield Contender(FLOOR, python(folder / "floor.py", revision), "the floor: no server, no checks")
    yield Contender("typedmcp", python(folder / "ours.py"))
    yield Contender("typedmcp, Server", python(folder / "ours_decorated.py"), "tools from functions, by decorators")
    if not plan.quick:
        yield Contender("typedmcp, plain asyncio", python(folder / "ours.py", "--asyncio"))
    yield Contender(OFFICIAL, python(folder / "official_lowlevel.py"))
    if not plan.quick:
        yield Contender("official Python, MCPServer", python(folder / "official_mcpserver.py"))
        yield Contender("fastmcp", python(folder / "with_fastmcp.py"))
    yield Contender("official TypeScript, low level", typescript(folder / "official.mjs"), warm=WARM_NODE)


def clients(plan: Plan, revision: str) -> Iterator[Contender]:
    """The clients; each starts the server itself."""
    folder, given = CONTENDERS / "clients", (str(CONTENDERS / "clients" / "echo_stdio.py"), revision)
    yield Contender(FLOOR, python(folder / "floor.py", *given), "the floor: lines encoded, written, read and decoded")
    yield Contender("typedmcp", python(folder / "ours.py", *given))
    if not plan.quick:
        yield Contender("typedmcp, plain asyncio", python(folder / "ours.py", *given, "--asyncio"))
    yield Contender("typedmcp, blocking", python(folder / "ours_blocking.py", *given), "several calls: several threads")
    yield Contender(OFFICIAL_CLIENT, python(folder / "official.py", *given))
    if not plan.quick:
        yield Contender("fastmcp", python(folder / "with_fastmcp.py", *given))
    if not plan.quick:  # it takes seconds to get warm
        node = [*typescript(folder / "official.mjs"), *given, sys.executable]
        yield Contender("official TypeScript", node, warm=WARM_NODE)


def echo(plan: Plan, revision: str) -> Table:
    """Small requests, one at a time and many."""
    say(f"stdio: echo, {revision}")
    same = " All have the same `_meta`, as most of a client's calls do." if revision == MODERN else ""
    found = list(servers(plan, revision))
    measured = started_anew({one.name: partial(_echoing, one, revision, plan) for one in found}, plan, max)
    return Table(
        name=f"stdio/echo-{revision}",
        title=f"Servers over stdio, {revision}",
        about="Calls of a tool that echoes 20 bytes: the next is sent when the last is answered, or as many as have "
        f"been answered, with {DEPTH} on their way.{same} Python servers run on uvloop, if not said otherwise.",
        unit="requests/s",
        better="higher",
        reference=OFFICIAL,
        columns=[at_a_time(1), at_a_time(DEPTH)],
        rows=rows(measured, found),
    )


def large(plan: Plan) -> Table:
    """Large results, one at a time."""
    say("stdio: large results")
    found = list(servers(plan, LEGACY))
    measured = started_anew({one.name: partial(_giving, one, plan) for one in found}, plan, max)
    return Table(
        name="stdio/large",
        title="Large results over stdio",
        about=f"Calls of a tool whose result is 1 MB of text, one at a time, on {LEGACY}.",
        unit="MB/s",
        better="higher",
        reference=OFFICIAL,
        columns=["1 MB"],
        rows=rows(measured, found),
    )


def client(plan: Plan, revision: str) -> Table:
    """Clients, which all call the same server."""
    say(f"stdio: clients, {revision}")
    found = list(clients(plan, revision))
    return Table(
        name=f"stdio/client-{revision}",
        title=f"Clients over stdio, {revision}",
        about="Calls of a tool that echoes 20 bytes, on one and the same server, a blocking loop: each when the last "
        f"has returned, or {CALLS} side by side. Python clients run on uvloop, if not said otherwise.",
        unit="calls/s",
        better="higher",
        reference=OFFICIAL_CLIENT,
        columns=[at_a_time(1), at_a_time(CALLS)],
        rows=rows(clients_in_turns(found, (1, CALLS), plan), found),
    )


@contextmanager
def _echoing(contender: Contender, revision: str, plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """A server that is warm; requests a second."""
    with running(contender, revision) as server:
        get_warm(contender, partial(server.rate, DEPTH), plan)
        yield [partial(server.measure, depth, plan.seconds) for depth in (1, DEPTH)]


@contextmanager
def _giving(contender: Contender, plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """A server that is warm; megabytes a second."""
    with running(contender, LEGACY) as server:
        get_warm(contender, server.large, plan)
        yield [lambda: {"1 MB": server.large(plan.seconds)}]


@contextmanager
def running(contender: Contender, revision: str) -> Generator[Server]:
    """A server, ready to be asked."""
    with started(contender.name, contender.command) as process:
        server = Server(process, revision)
        server.open()
        yield server


class Server:
    """A server that runs, and how fast it was last time."""

    def __init__(self, process: Process, revision: str) -> None:
        self.process = process
        self.revision = revision
        self.ids = itertools.count(1)
        self.rates: dict[int, float] = {}

    def open(self) -> None:
        """Make the handshake, where there is one, and see that both tools answer rightly."""
        if self.revision == LEGACY:
            first, second = opening()
            found = answer(self.process, first)
            result: Any = found.get("result") or {}
            if result.get("protocolVersion") != LEGACY:
                raise self.process.failure(f"no handshake, but {found}")
            self.process.write(f"{second}\n".encode())
        for arguments, text in (({"text": TEXT}, TEXT), ({"size": 100}, "x" * 100)):
            id = next(self.ids)
            tool = "echo" if "text" in arguments else "large"
            found = answer(self.process, call(id, self.revision, tool, arguments))
            if not is_answer(found, id, text):
                raise self.process.failure(f"answered {found}")

    def measure(self, depth: int, seconds: float) -> Mapping[str, float]:
        """Requests a second, by column."""
        return {at_a_time(depth): self.rate(depth, seconds)}

    def rate(self, depth: int, seconds: float) -> float:
        """Requests a second with so many on their way. There are as many as take about that long."""
        if depth not in self.rates:
            self.rates[depth] = self.timed(FIRST, depth)
        count = max(WINDOWS * depth, int(self.rates[depth] * seconds))
        self.timed(max(depth, count // 5), depth)  # or it would depend on whether the machine was idle before
        self.rates[depth] = self.timed(count, depth)
        return self.rates[depth]

    def timed(self, count: int, depth: int) -> float:
        """Requests a second of so many requests: as many are sent as have been answered."""
        before, after = call(0, self.revision, "echo", {"text": TEXT}).encode().split(b'"id":0', 1)
        lines = [b'%b"id":%d%b\n' % (before, id, after) for id in itertools.islice(self.ids, count)]
        parts: list[bytes] = []
        sent, answered = depth, 0
        with self.process.deadline(10):
            start = time.perf_counter()
            self.process.write(b"".join(lines[:depth]))
            while answered < count:
                parts.append(self.process.read())
                done = parts[-1].count(b"\n")
                answered += done
                if sent < count:
                    self.process.write(b"".join(lines[sent : sent + done]))
                    sent += done
            took = time.perf_counter() - start
        if (data := b"".join(parts)).count(f'"{TEXT}"'.encode()) != count:
            raise self.process.failure(f"not every answer is an echo: {data[:300]!r}")
        return count / took

    def large(self, seconds: float) -> float:
        """Megabytes a second: each large result is one."""
        took, count = 0.0, 0
        with self.process.deadline(seconds):
            while took < seconds:
                took += self.one_large()
                count += 1
        return count / took

    def one_large(self) -> float:
        """How many seconds a large result takes."""
        line = call(next(self.ids), self.revision, "large", {"size": LARGE}).encode() + b"\n"
        start = time.perf_counter()
        self.process.write(line)
        line = self.process.read_line()
        took = time.perf_counter() - start
        if b'"%b"' % (b"x" * LARGE) not in line:
            raise self.process.failure("not the result that was asked for")
        return took

    def leave_waiting(self, count: int) -> None:
        """Send calls that are not answered, and see by one that is that the server has taken them all."""
        with self.process.deadline():
            for id in itertools.islice(self.ids, count):
                self.process.write(call(id, self.revision, "wait", {}).encode() + b"\n")
        last = next(self.ids)
        found = answer(self.process, call(last, self.revision, "echo", {"text": TEXT}))
        if not is_answer(found, last, TEXT):
            raise self.process.failure(f"answered {found} while others wait")
