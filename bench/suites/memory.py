"""Memory of servers: for each session, for each open stream, and for large messages, as the system counts it.

Only where there is `/proc`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from bench.plan import Plan, in_turns, say
from bench.results import Table
from bench.suites import http, stdio
from bench.suites._processes import LEGACY, OFFICIAL, PATIENCE, Contender, Process, call, is_answer, rows

__all__ = ["tables"]

ROUNDS = 3
"""Each server starts anew for each round, and memory hardly varies."""
SESSIONS = 500
STREAMS = 200
WARM = 20
"""Sessions, or streams, before counting begins: the first ones load what all need."""
PENDING = 1000
MEGABYTES = (1, 4, 16)
_SLOW = 60
"""About how many seconds the slowest contender may take for the largest message."""
SETTLES = 0.5
"""Seconds until a server has done what it was last asked for."""


def tables(plan: Plan) -> Iterator[Table]:
    """What each session, each stream and each megabyte of a message takes."""
    if not Path("/proc/self/status").exists():
        say("memory: not measured, since this system has no /proc")
        return
    say("memory: sessions and streams")
    found = [one for one in http.servers(plan, "app") if one.name != http.FLOOR]
    part = 5 if plan.quick else 1
    turns = {one.name: partial(_open, one, SESSIONS // part, STREAMS // part) for one in found}
    measured = in_turns(turns, 1 if plan.quick else ROUNDS, warm=False)
    yield Table(
        name="memory/open",
        title="Sessions and streams that are open",
        about=f"Memory that a server over HTTP takes for each idle session of {LEGACY}, and for each stream that such "
        "a session has open: what its process grew by, divided by how many were opened.",
        unit="KB",
        better="lower",
        reference=OFFICIAL,
        columns=["a session", "a stream"],
        rows=rows(measured, found),
    )
    say("memory: pending requests")
    yield _pending(plan)
    say("memory: large messages")
    yield _large(plan)


def _open(contender: Contender, sessions: int, streams: int) -> Mapping[str, float]:
    with http.running(contender, http.Load("", LEGACY, "echo"), WARM + streams) as server, ExitStack() as stack:

        def stream(session: str) -> None:
            stack.enter_context(closing(_stream(server, session)))

        before = _memory(server.process, "VmRSS")
        server.open(sessions)
        a_session = (_memory(server.process, "VmRSS") - before) / sessions
        for session in server.sessions[:WARM]:
            stream(session)
        before = _memory(server.process, "VmRSS")
        for session in server.sessions[WARM : WARM + streams]:
            stream(session)
        return {"a session": a_session, "a stream": (_memory(server.process, "VmRSS") - before) / streams}


def _stream(server: http.Server, session: str) -> HTTPConnection:
    """Open the stream of a session; its connection."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {"Accept": "text/event-stream", "Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    try:
        connection.request("GET", "/mcp", headers=headers)
        response = connection.getresponse()
    except (OSError, HTTPException) as error:
        raise server.process.failure(f"no stream: {error!r}") from error
    if response.status != 200:
        raise server.process.failure(f"no stream: {response.status} {response.read()[:300]!r}")
    return connection


def _memory(process: Process, what: str) -> float:
    """KB that a process has now (`VmRSS`) or had at most (`VmHWM`), once it has settled."""
    time.sleep(SETTLES)
    status = Path(f"/proc/{process.popen.pid}/status").read_text(encoding="utf-8")
    found = re.search(rf"^{what}:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise process.failure(f"nothing is known of its {what}")
    return int(found[1]) * 1.024


def _pending(plan: Plan) -> Table:
    found = [one for one in stdio.servers(plan, LEGACY) if one.name != stdio.FLOOR]
    turns = {one.name: partial(_waits, one, PENDING) for one in found}
    return Table(
        name="memory/pending",
        title="Requests that wait",
        about="Memory that a server over stdio takes for each call that it has not answered yet, of a tool that waits: "
        "what its process grew by, divided by how many were sent.",
        unit="KB",
        better="lower",
        reference=OFFICIAL,
        columns=["a request"],
        rows=rows(in_turns(turns, 1 if plan.quick else ROUNDS, warm=False), found),
    )


def _waits(contender: Contender, count: int) -> Mapping[str, float]:
    with stdio.running(contender, LEGACY) as server:
        server.leave_waiting(WARM)
        before = _memory(server.process, "VmRSS")
        server.leave_waiting(count)
        return {"a request": (_memory(server.process, "VmRSS") - before) / count}


def _large(plan: Plan) -> Table:
    found = list(stdio.servers(plan, LEGACY))
    sizes = MEGABYTES[:1] if plan.quick else MEGABYTES
    measured = in_turns(
        {one.name: partial(_peaks, one, sizes) for one in found}, 1 if plan.quick else ROUNDS, warm=False
    )
    return Table(
        name="memory/large",
        title="Large messages",
        about="Memory that a server over stdio takes at most for a call with so many megabytes of text, which it "
        "echoes: the peak, less what it had before. As steep as the grey line is in proportion to the size.",
        unit="MB",
        better="lower",
        reference=OFFICIAL,
        columns=[str(size) for size in sizes],
        rows=rows(measured, found),
        kind="bars" if plan.quick else "lines",
    )


def _peaks(contender: Contender, sizes: tuple[int, ...]) -> Mapping[str, float]:
    """The peaks of one process, for larger and larger messages."""
    with stdio.running(contender, LEGACY) as server:
        _echo(server.process, 1)
        before = _memory(server.process, "VmRSS")
        return {str(size): _echo(server.process, size << 20) - before / 1e3 for size in sizes}


def _echo(process: Process, size: int) -> float:
    """Have a text echoed; the MB that the process has had at most by then."""
    text = "x" * size
    with suppress(OSError):  # where this is not to be had, the peak is that of its whole life
        Path(f"/proc/{process.popen.pid}/clear_refs").write_text("5", encoding="utf-8")
    with process.deadline(_SLOW):
        process.write(call(1, LEGACY, "echo", {"text": text}).encode() + b"\n")
        answer = process.read_line()
    if not is_answer(json.loads(answer), 1, text):
        raise process.failure("it did not echo")
    return _memory(process, "VmHWM") / 1e3
