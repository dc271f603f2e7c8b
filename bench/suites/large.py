"""Calls with large results and large arguments: their speed, and the peak memory of servers and clients.

Servers are called by a blocking client, and clients call a minimal server. So the other side is the same for all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Literal, TypeAlias

from bench.plan import Measure, Plan, log, measure_in_turns, measure_restarting
from bench.results import Table
from bench.suites import http, stdio
from bench.suites.memory import clear_peak, read_memory
from bench.suites.processes import (
    CONTENDERS,
    LEGACY,
    MODERN,
    OFFICIAL,
    OFFICIAL_CLIENT,
    TIMEOUT,
    Contender,
    Process,
    exchange_line,
    is_echo,
    make_call,
    make_handshake,
    make_python_command,
    make_rows,
    pin_to_core,
    start_process,
)

__all__ = [
    "FOLDER",
    "TITLES",
    "Open",
    "list_clients",
    "list_columns",
    "list_servers",
    "measure_peaks",
    "measure_speeds",
    "measure_tables",
    "open_client",
    "open_http_server",
    "open_stdio_server",
]

Kind: TypeAlias = Literal["result", "argument"]
Transport: TypeAlias = Literal["stdio", "http"]
Open: TypeAlias = Callable[[], AbstractContextManager[tuple[Process, "Call"]]]
"""Starts a contender that has made a small call of each kind."""
Call: TypeAlias = Callable[[Kind, int, float], float]
"""Makes calls of a kind and size for some seconds, at least one, and returns the seconds of the fastest."""

FOLDER = CONTENDERS / "large"
OURS = "typedmcp"
MEGABYTES = (1, 16)
SMALL = 100_000
"""Bytes of the calls that warm up a process before its idle memory is read."""
PEAK_CALLS = 3
"""Calls within which the peak memory is looked for."""
ROUNDS = PARTS = 3
TITLES: Mapping[Transport, str] = {"stdio": "over stdio", "http": "over HTTP"}


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield two tables for servers and two for clients, for each transport and revision: speed and peak memory."""
    plan = plan if plan.quick else replace(plan, rounds=ROUNDS, parts=PARTS)
    for revision in (MODERN,) if plan.quick else (MODERN, LEGACY):
        for transport in TITLES:
            yield from measure_servers(plan, transport, revision)
            yield from measure_clients(plan, transport, revision)


def list_columns(plan: Plan) -> dict[str, tuple[Kind, int]]:
    """Return the kind and the bytes of the calls by column."""
    kinds: tuple[Kind, ...] = ("result", "argument")
    sizes = MEGABYTES[:1] if plan.quick else MEGABYTES
    return {f"{kind} of {size} MB": (kind, size << 20) for size in sizes for kind in kinds}


# Servers


def list_servers(transport: Transport, plan: Plan) -> Iterator[Contender]:
    """List the servers. Over HTTP, their commands need a port in addition."""

    def make_command(name: str) -> list[str]:
        if transport == "stdio":
            return make_python_command(FOLDER / f"{name}.py")
        return http.make_uvicorn_command(FOLDER, f"{name}:app")

    yield Contender(OURS, make_command("typedmcp_handler"))
    yield Contender("typedmcp, Server", make_command("typedmcp_server"), "tools from functions, by decorators")
    yield Contender(OFFICIAL, make_command("official_lowlevel"))
    if not plan.quick:
        yield Contender("official Python, MCPServer", make_command("official_mcpserver"))


def measure_servers(plan: Plan, transport: Transport, revision: str) -> Iterator[Table]:
    """Yield the tables of servers over a transport."""
    log(f"large: servers, {transport}, {revision}")
    found = list(list_servers(transport, plan))
    open_server = open_stdio_server if transport == "stdio" else open_http_server
    opened: dict[str, Open] = {one.name: partial(open_server, one, revision) for one in found}
    about = f"Calls of tools {TITLES[transport]}, one at a time, whose result or argument is a text of some megabytes"
    yield from _measure(plan, f"servers-{transport}-{revision}", about, OFFICIAL, opened, found)


@contextmanager
def open_stdio_server(contender: Contender, revision: str) -> Generator[tuple[Process, Call]]:
    """Run a server over stdio."""
    with start_process(contender.name, contender.command, timeout=contender.timeout) as process:
        server = stdio.StdioServerRun(process, revision)
        server.initialize()

        def exchange(tool: str, line: bytes) -> list[bytes]:  # noqa: ARG001  # as over HTTP
            process.write(line)
            process.write(b"\n")
            parts = [process.read()]
            while not parts[-1].endswith(b"\n"):
                parts.append(process.read())
            return parts

        yield process, warm_up(process, partial(_call_server, process, revision, exchange))


@contextmanager
def open_http_server(contender: Contender, revision: str) -> Generator[tuple[Process, Call]]:
    """Run a server over HTTP, and open a session if the revision has them."""
    with http.start_listening(contender) as (process, port):
        headers = {**http.HEADERS, "MCP-Protocol-Version": revision}
        with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)) as connection:
            if revision == LEGACY:
                for message in make_handshake():
                    headers |= _post(process, connection, headers, message.encode())[1]

            def exchange(tool: str, line: bytes) -> list[bytes]:
                mirrored = {} if revision == LEGACY else {"Mcp-Method": "tools/call", "Mcp-Name": tool}
                return [_post(process, connection, {**headers, **mirrored}, line)[0]]

            yield process, warm_up(process, partial(_call_server, process, revision, exchange))


def _post(
    process: Process, connection: HTTPConnection, headers: Mapping[str, str], body: bytes
) -> tuple[bytes, dict[str, str]]:
    """Return the body of the response, and the header with the id of a session that it begins."""
    try:
        connection.request("POST", "/mcp", body, dict(headers))
        response = connection.getresponse()
        data = response.read()
    except (OSError, HTTPException) as error:
        raise process.make_failure(f"no response: {error!r}") from error
    if response.status not in (200, 202):
        raise process.make_failure(f"{response.status} {data[:300]!r}")
    session = response.headers["Mcp-Session-Id"]
    return data, {} if session is None else {"Mcp-Session-Id": session}


def _call_server(
    process: Process,
    revision: str,
    exchange: Callable[[str, bytes], list[bytes]],
    kind: Kind,
    size: int,
    seconds: float,
) -> float:
    """Call a server for some seconds, and return the seconds of the fastest call."""
    is_result = kind == "result"
    tool, text = ("large", "x" * size) if is_result else ("length", str(size))
    line = make_call(1, revision, tool, {"size": size} if is_result else {"text": "x" * size}).encode()
    best, until = float("inf"), time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < until:
        start = time.perf_counter()
        parts = exchange(tool, line)
        best = min(best, time.perf_counter() - start)
        response = b"".join(parts)
        if not is_echo(json.loads(response), 1, text):
            raise process.make_failure(f"the response to a call with {size} bytes is wrong: {response[:300]!r}")
    return best


# Clients


def list_clients(target: str, revision: str) -> Iterator[Contender]:
    """List the clients."""
    for name, script in ((OURS, "typedmcp_client.py"), (OFFICIAL_CLIENT, "official_client.py")):
        command = make_python_command(FOLDER / script, target, revision)
        yield Contender(name, pin_to_core(1, command) if target.startswith("http") else command)


def measure_clients(plan: Plan, transport: Transport, revision: str) -> Iterator[Table]:
    """Yield the tables of clients over a transport."""
    log(f"large: clients, {transport}, {revision}")
    if transport == "http":
        with http.serve_clients() as url:
            yield from _measure_clients(plan, transport, revision, url)
    else:
        yield from _measure_clients(plan, transport, revision, str(CONTENDERS / "clients" / "echo_stdio.py"))


def _measure_clients(plan: Plan, transport: Transport, revision: str, target: str) -> Iterator[Table]:
    found = list(list_clients(target, revision))
    opened: dict[str, Open] = {one.name: partial(open_client, one) for one in found}
    about = f"Calls {TITLES[transport]} to a minimal server, one at a time, with a large result or argument"
    yield from _measure(plan, f"clients-{transport}-{revision}", about, OFFICIAL_CLIENT, opened, found)


@contextmanager
def open_client(contender: Contender) -> Generator[tuple[Process, Call]]:
    """Run a client that uses `turns.py`."""
    with start_process(contender.name, contender.command, timeout=contender.timeout) as client:

        def call(kind: Kind, size: int, seconds: float) -> float:
            line = exchange_line(client, f"{kind} {size} {seconds}", seconds)
            try:
                return float(line)
            except ValueError:
                raise client.make_failure(f"expected seconds, got {line[:300]!r}") from None

        exchange_line(client)  # wait until it has received a correct response
        yield client, warm_up(client, call)


# Both


def warm_up(process: Process, call: Call) -> Call:
    """Make a small call of each kind, so that everything is loaded, and return the function that makes calls."""
    with process.deadline(TIMEOUT):
        for kind in ("result", "argument"):
            call(kind, SMALL, 0)
    return call


def measure_peaks(open_contender: Open, plan: Plan) -> Mapping[str, float]:
    """Return the peaks beyond the idle memory, as multiples of the size of a message, by column.

    Each is that of a process of its own, since freed memory is not always returned to the system.
    """
    peaks: dict[str, float] = {}
    for column, (kind, size) in list_columns(plan).items():
        with open_contender() as (process, call), process.deadline(TIMEOUT):
            idle = read_memory(process, "VmRSS")
            clear_peak(process)
            for _ in range(PEAK_CALLS):
                call(kind, size, 0)
            peaks[column] = (read_memory(process, "VmHWM") - idle) * 1000 / size
    return peaks


@contextmanager
def measure_speeds(open_contender: Open, plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """Run a contender, and yield measures of megabytes per second, one for each column."""
    columns = list_columns(plan)
    with open_contender() as (process, call):

        def measure(column: str) -> Mapping[str, float]:
            kind, size = columns[column]
            with process.deadline(plan.seconds):
                return {column: size / 1e6 / call(kind, size, plan.seconds)}

        yield [partial(measure, column) for column in columns]


def _measure(
    plan: Plan, name: str, about: str, reference: str, opened: Mapping[str, Open], found: Sequence[Contender]
) -> Iterator[Table]:
    """Yield the table of speeds, and on systems that tell the memory of a process, that of peaks."""
    sides, transport, revision = name.split("-", 2)
    title = f"{sides.capitalize()} {TITLES['stdio' if transport == 'stdio' else 'http']}, {revision}"
    measured = measure_restarting(
        {name: partial(measure_speeds, open_contender, plan) for name, open_contender in opened.items()}, plan, max
    )
    yield Table(
        name=f"large/{name}",
        title=f"{title}: large messages",
        about=f"{about}. The fastest call counts.",
        unit="MB/s",
        better="higher",
        reference=reference,
        columns=[*list_columns(plan)],
        rows=make_rows(measured, found),
    )
    if not Path("/proc/self/clear_refs").exists():
        log("large: memory is not measured, because this system has no /proc/PID/clear_refs")
        return
    peaks = measure_in_turns(
        {name: partial(measure_peaks, open_contender, plan) for name, open_contender in opened.items()}, 1, warm=False
    )
    yield Table(
        name=f"large/{name}-memory",
        title=f"{title}: memory of large messages",
        about=f"{about}. Peak memory within {PEAK_CALLS} calls, minus the memory before, as a multiple of the size of "
        "the text.",
        unit="× the message",
        better="lower",
        reference=reference,
        columns=[*list_columns(plan)],
        rows=make_rows(peaks, found),
    )
