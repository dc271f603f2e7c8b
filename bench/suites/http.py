"""Servers and clients over HTTP: on Linux the servers have one core, and the load generator or the clients another."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from bench.plan import Measure, Plan, say, started_anew
from bench.results import Table
from bench.suites._processes import (
    CONTENDERS,
    LEGACY,
    MODERN,
    OFFICIAL,
    OFFICIAL_CLIENT,
    PATIENCE,
    TEXT,
    WARM_NODE,
    Contender,
    Process,
    at_a_time,
    call,
    clients_in_turns,
    get_warm,
    is_answer,
    opening,
    pinned,
    python,
    rows,
    started,
    typescript,
)

__all__ = ["tables"]

FLOOR = "bare ASGI application"
OURS = "typedmcp"
CLIENT_FLOOR = "blocking loop"
FOLDER = CONTENDERS / "http"
CALLS = 16
PLACE = 100_000_000
"""An id, in the place of which `calls.lua` puts others."""
IDS = 10_000_000
"""How many ids each turn has."""
SLOW = 500.0
"""Requests a second of a server, until something is known of it."""
ANSWERS, LONGEST = 5, 4.0
"""How many answers each connection should have in a turn, and how many seconds that may take."""
STEADY = 32
"""With how many connections a turn need not be longer than a part."""
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def tables(plan: Plan) -> Iterator[Table]:
    """All tables over HTTP, one after the other."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise RuntimeError(
            "the load generator is not installed: `apt install wrk`, `brew install wrk`, or https://github.com/wg/wrk"
        )
    revisions = (MODERN,) if plan.quick else (MODERN, LEGACY)
    for revision in revisions:
        yield echo(plan, wrk, revision)
    if not plan.quick:
        for revision in revisions:
            yield streams(plan, wrk, revision)
    yield from clients(plan, revisions)


def servers(plan: Plan, kind: str) -> Iterator[Contender]:
    """The servers; their commands lack a port. The kind is `app` or `streams`. The high-level ones start slowly."""
    yield Contender(FLOOR, uvicorn(FOLDER, f"floor:{kind}"), "the floor: no protocol, and a constant for an answer")
    yield Contender(OURS, uvicorn(FOLDER, f"ours:{kind}"))
    yield Contender(OFFICIAL, uvicorn(FOLDER, f"official_lowlevel:{kind}"))
    if not plan.quick:
        yield Contender("official Python, MCPServer", uvicorn(FOLDER, f"official_mcpserver:{kind}"))
        yield Contender("fastmcp", uvicorn(FOLDER, f"with_fastmcp:{kind}"))
    if not plan.quick:  # it takes seconds to get warm
        node = [*typescript(FOLDER / "official.mjs"), kind]
        yield Contender("official TypeScript, low level", node, "on the HTTP server of Node.js", WARM_NODE)


def uvicorn(folder: Path, app: str) -> list[str]:
    """The command that serves an application on a port that is still to be added."""
    fast = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    place = ["--host", "127.0.0.1", "--timeout-keep-alive", "300", "--app-dir", str(folder)]
    return [sys.executable, "-m", "uvicorn", *fast, *place, app, "--port"]


def over(connections: int) -> str:
    """The name of a column."""
    return "1 connection" if connections == 1 else f"{connections} connections"


def echo(plan: Plan, wrk: str, revision: str) -> Table:
    """Small requests, answered in JSON."""
    return compare(
        plan,
        Load(wrk, revision, "echo"),
        (32,) if plan.quick else (1, 32, 256),
        name=f"http/echo-{revision}",
        title=f"Servers over HTTP, {revision}",
        about="Calls of a tool that echoes 20 bytes, answered in JSON, over so many connections, each of which sends "
        "the next when the last is answered.",
    )


def streams(plan: Plan, wrk: str, revision: str) -> Table:
    """Small requests, answered in streams of events."""
    return compare(
        plan,
        Load(wrk, revision, "report"),
        (1, 32),
        name=f"http/sse-{revision}",
        title=f"Servers over HTTP that answer in streams, {revision}",
        about="Calls of a tool that reports progress once and then echoes 20 bytes: both come as server-sent events. "
        "Over so many connections, each of which sends the next when the last is answered.",
    )


def compare(plan: Plan, load: Load, connections: tuple[int, ...], *, name: str, title: str, about: str) -> Table:
    """A table of servers under a load, with so many connections a column."""
    say(name.replace("/", ": "))
    found = list(servers(plan, load.kind))
    measured = started_anew({one.name: partial(_serving, one, load, connections, plan) for one in found}, plan, max)
    same = (
        " Each has the same `_meta` and the same headers, as most of a client's calls do." if load.kind == "app" else ""
    )
    sessions = " There are as many sessions as connections, and they take turns." if load.revision == LEGACY else same
    worker = " One worker each, and on Linux one core; the Python servers run in uvicorn, with uvloop and httptools."
    return Table(
        name=name,
        title=title,
        about=about + sessions + worker,
        unit="requests/s",
        better="higher",
        reference=OFFICIAL,
        columns=[over(count) for count in connections],
        headline=over(32),
        rows=rows(measured, found),
    )


@contextmanager
def _serving(
    contender: Contender, load: Load, connections: tuple[int, ...], plan: Plan
) -> Generator[Sequence[Measure[str]]]:
    """A server that is warm; requests a second, with so many connections."""
    with running(contender, load, max(connections)) as server:
        get_warm(contender, lambda seconds: server.rate(seconds, max(connections)), plan)
        yield [partial(server.measure, plan.seconds, count) for count in connections]


@dataclass(frozen=True)
class Load:
    """What servers are asked."""

    wrk: str
    revision: str
    tool: str

    @property
    def kind(self) -> str:
        """Which application of a contender it is for."""
        return "app" if self.tool == "echo" else "streams"

    @property
    def expected(self) -> str:
        """What is in the body of each right answer, in lines."""
        return f'"{TEXT}"' if self.tool == "echo" else f'"notifications/progress"\n"{TEXT}"'

    @property
    def headers(self) -> dict[str, str]:
        """What each request has."""
        found = {**HEADERS, "MCP-Protocol-Version": self.revision}
        return found if self.revision == LEGACY else {**found, "Mcp-Method": "tools/call", "Mcp-Name": self.tool}

    @property
    def line(self) -> str:
        """The call, with an id in whose place others are put."""
        meta = {} if self.tool == "echo" else {"progressToken": PLACE}
        return call(PLACE, self.revision, self.tool, {"text": TEXT}, **meta)


@dataclass(frozen=True)
class Reply:
    """What came of a message."""

    session: str | None
    """The session that it opened."""
    is_stream: bool
    messages: list[Any]


@dataclass
class Server:
    """A server that listens, and the sessions that were opened with it."""

    process: Process
    load: Load
    port: int
    sessions: list[str] = field(default_factory=list[str])
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(PLACE, IDS))
    last_rate: float = SLOW
    """How fast it was last time."""

    def open(self, sessions: int) -> None:
        """Open so many sessions."""
        for _ in range(sessions):
            first, second = opening()
            session = self.post(first).session
            if session is None:
                raise self.process.failure("it opened no session")
            self.post(second, session)
            self.sessions.append(session)

    def post(self, body: str, session: str | None = None) -> Reply:
        """Send a message."""
        of_session = {} if session is None else {"Mcp-Session-Id": session}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/mcp", body, {**self.load.headers, **of_session})
            response = connection.getresponse()
            data = response.read()
        except (OSError, HTTPException) as error:
            raise self.process.failure(f"no answer: {error!r}") from error
        finally:
            connection.close()
        if response.status not in (200, 202):
            raise self.process.failure(f"{response.status} {data[:300]!r}")
        is_stream = (response.headers["Content-Type"] or "").startswith("text/event-stream")
        try:
            messages = events(data) if is_stream else [json.loads(data)] if data else []
        except ValueError as error:
            raise self.process.failure(f"no message, but {data[:300]!r}: {error}") from error
        return Reply(response.headers["Mcp-Session-Id"], is_stream, messages)

    def check(self) -> None:
        """Raise unless a call is answered as it should be: in JSON, or where it reports in a stream, after progress."""
        reply = self.post(self.load.line, self.sessions[0] if self.sessions else None)
        *before, last = reply.messages or [{}]
        methods = [message.get("method") for message in before]
        is_as_meant = methods == ["notifications/progress"] if self.load.tool == "report" else not methods
        if not is_as_meant or reply.is_stream != bool(methods) or not is_answer(last, PLACE, TEXT):
            raise self.process.failure(f"answered {reply}")

    def measure(self, seconds: float, connections: int) -> Mapping[str, float]:
        """Requests a second, by column: from longer the more connections there are, whose opening is counted, too."""
        if connections == 1:
            self.rate(seconds / 5, 1)  # or it would depend on whether the machine was idle before
        steady = seconds * max(1, connections / STEADY)
        several = min(ANSWERS * connections / self.last_rate, LONGEST)
        return {over(connections): self.rate(max(steady, several), connections)}

    def rate(self, seconds: float, connections: int) -> float:
        """Requests a second. Raises if any was refused, or answered without what is expected, or was cut off."""
        found = self.loaded(seconds, connections)
        if not found["requests"] and seconds < LONGEST:  # something else had the machine
            return self.rate(LONGEST, connections)
        if not found["requests"] or found["not_2xx"] or found["wrong"] or found["broken"]:
            raise self.process.failure(f"under load: {found}")
        self.check()  # answered once it has nothing left to do that would take time from the next contender
        self.last_rate = found["requests"] / found["seconds"]
        return self.last_rate

    def loaded(self, seconds: float, connections: int) -> dict[str, float]:
        """What the load generator has counted."""
        body = self.load.line.replace(str(PLACE), "000000000")
        headers = [part for name, value in self.load.headers.items() for part in ("--header", f"{name}: {value}")]
        options = ["--threads", "1", "--connections", str(connections), "--timeout", f"{PATIENCE:.0f}s", *headers]
        script = ["--script", str(FOLDER / "calls.lua"), f"http://127.0.0.1:{self.port}/mcp"]
        given = ["--", body, self.load.expected, str(next(self.ids)), *self.sessions[:connections]]
        try:
            return loaded([self.load.wrk, *options, *script, *given], seconds)
        except (RuntimeError, ValueError, LookupError, subprocess.TimeoutExpired) as error:
            raise self.process.failure(f"under load: {error}") from error


def events(data: bytes) -> list[Any]:
    """The messages in a stream."""
    return [json.loads(line[5:]) for line in data.splitlines() if line.startswith(b"data:") and line[5:].strip()]


def loaded(command: list[str], seconds: float) -> dict[str, float]:
    """What wrk counted. It only knows whole seconds, so it is interrupted earlier; then it ends in good order."""
    longest = ["--duration", f"{math.ceil(seconds) + 1}s"]
    with (
        subprocess.Popen(  # noqa: S603
            pinned(1, [command[0], *longest, *command[1:]]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as wrk
    ):
        assert wrk.stderr is not None
        wrk.stderr.readline()
        time.sleep(max(seconds, 0.1))
        wrk.send_signal(signal.SIGINT)
        try:
            printed, complaints = wrk.communicate(timeout=PATIENCE)
        finally:
            wrk.kill()
    if wrk.returncode != 0:
        raise RuntimeError(f"wrk: exit status {wrk.returncode}\n{complaints[-2000:]}")
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


@contextmanager
def running(contender: Contender, load: Load, sessions: int) -> Generator[Server]:
    """A server, ready to be called."""
    with listening(contender) as (process, port):
        server = Server(process, load, port)
        if load.revision == LEGACY and contender.name != FLOOR:
            server.open(sessions)
        server.check()
        yield server


@contextmanager
def listening(contender: Contender) -> Generator[tuple[Process, int]]:
    """A server's process, once it listens, and its port."""
    port = free_port()
    with started(contender.name, pinned(0, [*contender.command, str(port)]), pipes=False) as process:
        until = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.popen.poll() is not None or time.monotonic() > until:
                raise process.failure("it does not listen")
            time.sleep(0.02)
        yield process, port


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def clients(plan: Plan, revisions: tuple[str, ...]) -> Iterator[Table]:
    """Tables of clients, which all call the same server."""
    server = Contender("the server of the clients", uvicorn(CONTENDERS / "clients", "echo_http:app"))
    with listening(server) as (_, port):
        for revision in revisions:
            yield client(plan, f"http://127.0.0.1:{port}/mcp", revision)


def callers(plan: Plan, url: str, revision: str) -> Iterator[Contender]:
    """The clients."""
    folder = CONTENDERS / "clients"
    yield Contender(CLIENT_FLOOR, python(folder / "floor.py", url, revision), "the floor: a blocking loop on sockets")
    yield Contender(OURS, python(folder / "ours.py", url, revision))
    yield Contender(OFFICIAL_CLIENT, python(folder / "official.py", url, revision))
    if not plan.quick:
        yield Contender("fastmcp", python(folder / "with_fastmcp.py", url, revision))
    if not plan.quick:
        yield Contender("official TypeScript", [*typescript(folder / "official.mjs"), url, revision], warm=WARM_NODE)


def client(plan: Plan, url: str, revision: str) -> Table:
    """A table of clients."""
    say(f"http: clients, {revision}")
    found = [replace(one, command=pinned(1, one.command)) for one in callers(plan, url, revision)]
    return Table(
        name=f"http/client-{revision}",
        title=f"Clients over HTTP, {revision}",
        about="Calls of a tool that echoes 20 bytes, on one and the same server, an ASGI application that does nothing "
        f"else: each when the last has returned, or {CALLS} side by side. The Python clients run on uvloop.",
        unit="calls/s",
        better="higher",
        reference=OFFICIAL_CLIENT,
        columns=[at_a_time(1), at_a_time(CALLS)],
        rows=rows(clients_in_turns(found, (1, CALLS), plan), found),
    )
