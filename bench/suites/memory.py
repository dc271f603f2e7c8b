"""Memory of servers for sessions, streams, pending requests and large messages. Needs `/proc`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from bench.plan import Plan, log, measure_in_turns
from bench.results import Table
from bench.suites import http, stdio
from bench.suites.processes import (
    LEGACY,
    OFFICIAL,
    PROGRAMS,
    TIMEOUT,
    Contender,
    Process,
    is_echo,
    make_call,
    make_rows,
)

__all__ = ["clear_peak", "measure_tables", "open_stream", "read_memory"]

ROUNDS = 3
"""Few rounds are enough: memory hardly varies."""
SESSIONS = 500
STREAMS = 200
WARM_UP = 20
"""Sessions or streams that are opened before the measurement. The first ones load shared data."""
PENDING = 1000
MEGABYTES = (1, 4, 16)
_LARGEST_SECONDS = 60
"""About how long the slowest contender takes for the largest message."""
SETTLE_SECONDS = 0.5
"""Time until a server has finished its work."""


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield all tables of memory."""
    if not Path("/proc/self/status").exists():
        log("memory: not measured, because this system has no /proc")
        return
    log("memory: sessions and streams")
    left_out = (http.FLOOR, http.VERIFIED, PROGRAMS["java"])  # Java sends no headers of a stream before an event
    found = [one for one in http.list_servers(plan, LEGACY, "app") if one.name not in left_out]
    divisor = 5 if plan.quick else 1
    turns = {one.name: partial(_measure_open, one, SESSIONS // divisor, STREAMS // divisor) for one in found}
    measured = measure_in_turns(turns, 1 if plan.quick else ROUNDS, warm=False)
    yield Table(
        name="memory/open",
        title="Open sessions, streams and connections",
        about=f"Memory of a server over HTTP for each idle session of {LEGACY}, for each open stream of such a "
        "session, and for each connection that stays open after a call: the growth of its process, divided by their "
        "number.",
        unit="KB",
        better="lower",
        reference=OFFICIAL,
        columns=["a session", "a stream", "a connection"],
        rows=make_rows(measured, found),
    )
    log("memory: pending requests")
    yield _measure_pending_table(plan)
    log("memory: large messages")
    yield _measure_large_table(plan)


def _measure_open(contender: Contender, sessions: int, streams: int) -> Mapping[str, float]:
    with http.run_server(contender, http.Load("", LEGACY, "echo"), WARM_UP + streams) as server, ExitStack() as stack:

        def add_stream(session: str) -> None:
            stack.enter_context(closing(open_stream(server, session)))

        def add_connections(count: int) -> None:
            for _ in range(count):
                stack.enter_context(closing(server.call_and_stay(server.sessions[0])))

        before = read_memory(server.process, "VmRSS")
        server.open(sessions)
        a_session = (read_memory(server.process, "VmRSS") - before) / sessions
        for session in server.sessions[:WARM_UP]:
            add_stream(session)
        before = read_memory(server.process, "VmRSS")
        for session in server.sessions[WARM_UP : WARM_UP + streams]:
            add_stream(session)
        a_stream = (read_memory(server.process, "VmRSS") - before) / streams
        add_connections(WARM_UP)
        before = read_memory(server.process, "VmRSS")
        add_connections(streams)
        a_connection = (read_memory(server.process, "VmRSS") - before) / streams
        return {"a session": a_session, "a stream": a_stream, "a connection": a_connection}


def open_stream(server: http.HttpServerRun, session: str) -> HTTPConnection:
    """Open the stream of a session, and return its connection."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    try:
        connection.request("GET", "/mcp", headers=headers)
        response = connection.getresponse()
    except (OSError, HTTPException) as error:
        raise server.process.make_failure(f"no stream: {error!r}") from error
    if response.status != 200:
        raise server.process.make_failure(f"no stream: {response.status} {response.read()[:300]!r}")
    return connection


def read_memory(process: Process, field: str) -> float:
    """Return the memory of a process in KB, now (`VmRSS`) or at most (`VmHWM`), after it has settled."""
    time.sleep(SETTLE_SECONDS)
    status = Path(f"/proc/{process.popen.pid}/status").read_text(encoding="utf-8")
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise process.make_failure(f"/proc has no {field} of it")
    return int(found[1]) * 1.024


def clear_peak(process: Process) -> None:
    """Let the peak memory of a process begin at its present memory, if the system allows it."""
    with suppress(OSError):  # then the peak is that of the whole process
        Path(f"/proc/{process.popen.pid}/clear_refs").write_text("5", encoding="utf-8")


def _measure_pending_table(plan: Plan) -> Table:
    left_out = (stdio.FLOOR, PROGRAMS["java"])  # Java handles no message while 256 calls are pending
    found = [one for one in stdio.list_servers(plan, LEGACY) if one.name not in left_out]
    turns = {one.name: partial(_measure_pending, one, PENDING) for one in found}
    return Table(
        name="memory/pending",
        title="Pending requests",
        about="Memory of a server over stdio for each pending call of a tool that waits: the growth of its process, "
        "divided by the number of calls.",
        unit="KB",
        better="lower",
        reference=OFFICIAL,
        columns=["a request"],
        rows=make_rows(measure_in_turns(turns, 1 if plan.quick else ROUNDS, warm=False), found),
    )


def _measure_pending(contender: Contender, count: int) -> Mapping[str, float]:
    with stdio.run_server(contender, LEGACY) as server:
        server.leave_waiting(WARM_UP)
        before = read_memory(server.process, "VmRSS")
        server.leave_waiting(count)
        return {"a request": (read_memory(server.process, "VmRSS") - before) / count}


def _measure_large_table(plan: Plan) -> Table:
    found = list(stdio.list_servers(plan, LEGACY))
    sizes = MEGABYTES[:1] if plan.quick else MEGABYTES
    measured = measure_in_turns(
        {one.name: partial(_measure_peaks, one, sizes) for one in found}, 1 if plan.quick else ROUNDS, warm=False
    )
    return Table(
        name="memory/large",
        title="Large messages",
        about="Peak memory of a server over stdio for a call with megabytes of text, which it echoes, minus its memory "
        "before. The grey lines show growth in proportion to the size.",
        unit="MB",
        better="lower",
        reference=OFFICIAL,
        columns=[str(size) for size in sizes],
        rows=make_rows(measured, found),
    )


def _measure_peaks(contender: Contender, sizes: tuple[int, ...]) -> Mapping[str, float]:
    """Return the peaks of one process, for messages of growing size."""
    with stdio.run_server(contender, LEGACY) as server:
        _measure_peak(server.process, 1)
        before = read_memory(server.process, "VmRSS")
        return {str(size): _measure_peak(server.process, size << 20) - before / 1e3 for size in sizes}


def _measure_peak(process: Process, size: int) -> float:
    """Let the server echo a text, and return its peak memory in MB."""
    text = "x" * size
    clear_peak(process)
    with process.deadline(_LARGEST_SECONDS):
        process.write(make_call(1, LEGACY, "echo", {"text": text}).encode() + b"\n")
        response = process.read_line()
    if not is_echo(json.loads(response), 1, text):
        raise process.make_failure("the response is not an echo")
    return read_memory(process, "VmHWM") / 1e3
