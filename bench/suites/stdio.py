"""Servers and clients over stdio. Each contender has its own process, with pipes to and from it."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench.plan import Measure, Plan, log, measure_restarting
from bench.results import Table
from bench.suites.processes import (
    CONTENDERS,
    EXACT,
    LEGACY,
    MODERN,
    NODE_WARM_UP_CALLS,
    OFFICIAL,
    OFFICIAL_CLIENT,
    TEXT,
    Contender,
    Process,
    format_depth,
    is_echo,
    list_programs,
    make_call,
    make_handshake,
    make_python_command,
    make_rows,
    make_typescript_command,
    measure_clients,
    send_request,
    start_process,
    warm_up,
)

__all__ = ["measure_tables"]

FLOOR = "blocking loop"
DEPTH = 64
CALLS = 32
LARGE = 1 << 20
TELEMETRY = {
    "api": "spans and metrics that go nowhere, without an SDK of OpenTelemetry",
    "unsampled": "metrics, and spans that are not sampled",
    "sampled": "metrics, and spans that are recorded and not exported",
}
"""The kinds of telemetry that contenders have, with descriptions."""
PROBE_REQUESTS = 64
"""Requests of a first measurement, which determines how many requests a turn has."""
MIN_WINDOWS = 5
"""Requests of a turn, at least, as a multiple of the concurrent ones. At its ends the pipe is not full."""


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield all tables over stdio."""
    for revision in (MODERN,) if plan.quick else (LEGACY, MODERN):
        yield measure_echo(plan, revision)
    if not plan.quick:
        yield measure_large(plan)
    for revision in (MODERN,) if plan.quick else (LEGACY, MODERN):
        yield measure_client_table(plan, revision)


def list_servers(plan: Plan, revision: str) -> Iterator[Contender]:
    """List the servers. Quick runs leave out those that start slowly."""
    folder = CONTENDERS / "stdio"
    yield Contender(
        FLOOR, make_python_command(folder / "blocking_loop.py", revision), "the floor: no server, no checks"
    )
    yield Contender("typedmcp", make_python_command(folder / "typedmcp_handler.py"))
    yield Contender(EXACT, make_python_command(folder / "typedmcp_handler.py", "--exact"), "results of the exact types")
    yield Contender(
        "typedmcp, Server", make_python_command(folder / "typedmcp_server.py"), "tools from functions, by decorators"
    )
    if not plan.quick:
        yield Contender("typedmcp, plain asyncio", make_python_command(folder / "typedmcp_handler.py", "--asyncio"))
        for telemetry, about in TELEMETRY.items():
            command = make_python_command(folder / "typedmcp_handler.py", f"--telemetry={telemetry}")
            yield Contender(f"typedmcp, telemetry: {telemetry}", command, about)
    yield Contender(OFFICIAL, make_python_command(folder / "official_lowlevel.py"))
    if not plan.quick:
        yield Contender("official Python, MCPServer", make_python_command(folder / "official_mcpserver.py"))
        yield Contender("fastmcp", make_python_command(folder / "fastmcp_server.py"))
    yield Contender(
        "official TypeScript, low level",
        make_typescript_command(folder / "official_typescript.mjs"),
        warm_up_calls=NODE_WARM_UP_CALLS,
    )
    yield from list_programs(plan, revision, "echo")


def list_clients(plan: Plan, revision: str) -> Iterator[Contender]:
    """List the clients. Each starts the server itself."""
    folder, given = CONTENDERS / "clients", (str(CONTENDERS / "clients" / "echo_stdio.py"), revision)
    yield Contender(
        FLOOR,
        make_python_command(folder / "blocking_loop.py", *given),
        "the floor: lines encoded, written, read and decoded",
    )
    yield Contender("typedmcp", make_python_command(folder / "typedmcp_client.py", *given))
    if not plan.quick:
        yield Contender(
            "typedmcp, plain asyncio", make_python_command(folder / "typedmcp_client.py", *given, "--asyncio")
        )
        for telemetry, about in TELEMETRY.items():
            command = make_python_command(folder / "typedmcp_client.py", *given, f"--telemetry={telemetry}")
            yield Contender(f"typedmcp, telemetry: {telemetry}", command, about)
    yield Contender(
        "typedmcp, blocking",
        make_python_command(folder / "typedmcp_blocking_client.py", *given),
        "a thread for each concurrent call",
    )
    yield Contender(OFFICIAL_CLIENT, make_python_command(folder / "official_client.py", *given))
    if not plan.quick:
        yield Contender("fastmcp", make_python_command(folder / "fastmcp_client.py", *given))
    if not plan.quick:  # it takes seconds to warm up
        node = [*make_typescript_command(folder / "official_typescript.mjs"), *given, sys.executable]
        yield Contender("official TypeScript", node, warm_up_calls=NODE_WARM_UP_CALLS)
    yield from list_programs(plan, revision, "call", *given, sys.executable)


def measure_echo(plan: Plan, revision: str) -> Table:
    """Measure small calls, one at a time and many."""
    log(f"stdio: echo, {revision}")
    same = " All calls have the same `_meta`, like most calls of a client." if revision == MODERN else ""
    found = list(list_servers(plan, revision))
    measured = measure_restarting({one.name: partial(_run_echo, one, revision, plan) for one in found}, plan, max)
    return Table(
        name=f"stdio/echo-{revision}",
        title=f"Servers over stdio, {revision}",
        about=f"Calls of a tool that echoes 20 bytes, one at a time or {DEPTH} at a time: each response lets the next "
        f"call go out.{same} Python servers run on uvloop unless noted.",
        unit="requests/s",
        better="higher",
        reference=OFFICIAL,
        columns=[format_depth(1), format_depth(DEPTH)],
        rows=make_rows(measured, found),
    )


def measure_large(plan: Plan) -> Table:
    """Measure large results, one at a time."""
    log("stdio: large results")
    found = list(list_servers(plan, LEGACY))
    measured = measure_restarting({one.name: partial(_run_large, one, plan) for one in found}, plan, max)
    return Table(
        name="stdio/large",
        title="Large results over stdio",
        about=f"Calls of a tool whose result is 1 MB of text, one at a time, on {LEGACY}.",
        unit="MB/s",
        better="higher",
        reference=OFFICIAL,
        columns=["1 MB"],
        rows=make_rows(measured, found),
    )


def measure_client_table(plan: Plan, revision: str) -> Table:
    """Measure all clients, which call the same server."""
    log(f"stdio: clients, {revision}")
    found = list(list_clients(plan, revision))
    return Table(
        name=f"stdio/client-{revision}",
        title=f"Clients over stdio, {revision}",
        about="Calls of a tool that echoes 20 bytes, to the same minimal server: one at a time, or "
        f"{CALLS} concurrent ones. Python clients run on uvloop unless noted.",
        unit="calls/s",
        better="higher",
        reference=OFFICIAL_CLIENT,
        columns=[format_depth(1), format_depth(CALLS)],
        rows=make_rows(measure_clients(found, (1, CALLS), plan), found),
    )


@contextmanager
def _run_echo(contender: Contender, revision: str, plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """Run a server, warm it up, and yield measures of requests per second."""
    with run_server(contender, revision) as server:
        warm_up(contender, partial(server.rate, DEPTH), plan)
        yield [partial(server.measure, depth, plan.seconds) for depth in (1, DEPTH)]


@contextmanager
def _run_large(contender: Contender, plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """Run a server, warm it up, and yield a measure of megabytes per second."""
    with run_server(contender, LEGACY) as server:
        warm_up(contender, server.rate_large, plan)
        yield [lambda: {"1 MB": server.rate_large(plan.seconds)}]


@contextmanager
def run_server(contender: Contender, revision: str) -> Generator[StdioServerRun]:
    """Run a server that is initialized and has answered correctly."""
    with start_process(contender.name, contender.command, timeout=contender.timeout) as process:
        server = StdioServerRun(process, revision)
        server.open()
        yield server


class StdioServerRun:
    """A running server, with the rates of its last measurements."""

    def __init__(self, process: Process, revision: str) -> None:
        self.process = process
        self.revision = revision
        self.ids = itertools.count(1)
        self.rates: dict[int, float] = {}

    def open(self) -> None:
        """Initialize the server if the revision requires it, and check the responses of both tools."""
        self.initialize()
        for arguments, text in (({"text": TEXT}, TEXT), ({"size": 100}, "x" * 100)):
            id = next(self.ids)
            tool = "echo" if "text" in arguments else "large"
            found = send_request(self.process, make_call(id, self.revision, tool, arguments))
            if not is_echo(found, id, text):
                raise self.process.make_failure(f"responded {found}")

    def initialize(self) -> None:
        """Initialize the server if the revision requires it."""
        if self.revision == LEGACY:
            first, second = make_handshake()
            found = send_request(self.process, first)
            result: Any = found.get("result") or {}
            if result.get("protocolVersion") != LEGACY:
                raise self.process.make_failure(f"expected a handshake, got {found}")
            self.process.write(f"{second}\n".encode())

    def measure(self, depth: int, seconds: float) -> Mapping[str, float]:
        """Return requests per second, by column."""
        return {format_depth(depth): self.rate(depth, seconds)}

    def rate(self, depth: int, seconds: float) -> float:
        """Return requests per second with `depth` concurrent ones, measured for about `seconds`."""
        if depth not in self.rates:
            self.rates[depth] = self.time_requests(PROBE_REQUESTS, depth)
        count = max(MIN_WINDOWS * depth, int(self.rates[depth] * seconds))
        self.time_requests(max(depth, count // 5), depth)  # warm up the machine, which may have been idle
        self.rates[depth] = self.time_requests(count, depth)
        return self.rates[depth]

    def time_requests(self, count: int, depth: int) -> float:
        """Send `count` requests, `depth` at a time, and return requests per second."""
        before, after = make_call(0, self.revision, "echo", {"text": TEXT}).encode().split(b'"id":0', 1)
        lines = [b'%b"id":%d%b\n' % (before, id, after) for id in itertools.islice(self.ids, count)]
        parts: list[bytes] = []
        sent, received = depth, 0
        with self.process.deadline(10):
            start = time.perf_counter()
            self.process.write(b"".join(lines[:depth]))
            while received < count:
                parts.append(self.process.read())
                done = parts[-1].count(b"\n")
                received += done
                if sent < count:
                    self.process.write(b"".join(lines[sent : sent + done]))
                    sent += done
            took = time.perf_counter() - start
        if (data := b"".join(parts)).count(f'"{TEXT}"'.encode()) != count:
            raise self.process.make_failure(f"not every response is an echo: {data[:300]!r}")
        return count / took

    def rate_large(self, seconds: float) -> float:
        """Return megabytes per second. Each large result has one."""
        took, count = 0.0, 0
        with self.process.deadline(seconds):
            while took < seconds:
                took += self.time_large()
                count += 1
        return count / took

    def time_large(self) -> float:
        """Return the seconds that a large result takes."""
        line = make_call(next(self.ids), self.revision, "large", {"size": LARGE}).encode() + b"\n"
        start = time.perf_counter()
        self.process.write(line)
        line = self.process.read_line()
        took = time.perf_counter() - start
        if b'"%b"' % (b"x" * LARGE) not in line:
            raise self.process.make_failure("not the expected result")
        return took

    def leave_waiting(self, count: int) -> None:
        """Send calls that get no response yet, and wait until the server has read them all."""
        with self.process.deadline():
            for id in itertools.islice(self.ids, count):
                self.process.write(make_call(id, self.revision, "wait", {}).encode() + b"\n")
        last = next(self.ids)
        found = send_request(self.process, make_call(last, self.revision, "echo", {"text": TEXT}))
        if not is_echo(found, last, TEXT):
            raise self.process.make_failure(f"responded {found} while other requests wait")
