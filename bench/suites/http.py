"""Servers and clients over HTTP. On Linux, servers have one core, and the load generator and clients another."""

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
    TIMEOUT,
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
    pin_to_core,
    start_process,
    warm_up,
)

__all__ = [
    "FOLDER", "MOUNTED", "OURS", "OWN", "Load", "make_uvicorn_command", "measure_contenders", "measure_tables",
    "start_listening",
]  # fmt: skip

FLOOR = "bare ASGI application"
OURS = "typedmcp"
MOUNTED = "typedmcp, as an ASGI application"
VERIFIED = "typedmcp, verified token"
CLIENT_FLOOR = "blocking loop"
OWN = "typedmcp_http:HttpProtocol"
"""The protocol class of `serve(…, "http")`."""
FOLDER = CONTENDERS / "http"
CALLS = 16
ID_PLACEHOLDER = 100_000_000
"""An id that `calls.lua` replaces."""
IDS_PER_TURN = 1_000_000
INITIAL_RATE = 500.0
"""Requests per second of a server before its first measurement."""
MIN_RESPONSES, MAX_SECONDS = 5, 4.0
"""Responses that each connection should receive in a turn, and the seconds that this may take."""
STEADY_CONNECTIONS = 32
"""Up to so many connections, the usual time of a part is enough."""
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def measure_tables(plan: Plan) -> Iterator[Table]:
    """Yield all tables over HTTP."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise RuntimeError(
            "wrk, the load generator, is not installed: `apt install wrk`, `brew install wrk`, or https://github.com/wg/wrk"
        )
    revisions = (MODERN,) if plan.quick else (MODERN, LEGACY)
    for revision in revisions:
        yield measure_echo(plan, wrk, revision)
    if not plan.quick:
        for revision in revisions:
            yield measure_streams(plan, wrk, revision)
    yield from measure_client_tables(plan, revisions)


def list_servers(plan: Plan, revision: str, kind: str) -> Iterator[Contender]:
    """List the servers for `kind`, `app` or `streams`. Their commands need a port in addition."""
    yield Contender(
        FLOOR, make_uvicorn_command(FOLDER, f"bare_asgi:{kind}"), "the floor: no protocol, a constant response"
    )
    yield Contender(OURS, make_uvicorn_command(FOLDER, f"typedmcp_handler:{kind}", OWN), 'as `serve(…, "http")` does')
    yield Contender(MOUNTED, make_uvicorn_command(FOLDER, f"typedmcp_handler:{kind}"), "with uvicorn's protocol class")
    exact = make_uvicorn_command(FOLDER, f"typedmcp_handler:exact_{kind}", OWN)
    yield Contender(EXACT, exact, "results of the exact types")
    note = "with an access token in each request, which has been verified before"
    yield Contender(VERIFIED, make_uvicorn_command(FOLDER, f"typedmcp_verified:{kind}", OWN), note)
    yield Contender(OFFICIAL, make_uvicorn_command(FOLDER, f"official_lowlevel:{kind}"))
    if not plan.quick:
        yield Contender("official Python, MCPServer", make_uvicorn_command(FOLDER, f"official_mcpserver:{kind}"))
        yield Contender("fastmcp", make_uvicorn_command(FOLDER, f"fastmcp_server:{kind}"))
    if not plan.quick:  # it takes seconds to warm up
        node = [*make_typescript_command(FOLDER / "official_typescript.mjs"), kind]
        yield Contender("official TypeScript, low level", node, "on the HTTP server of Node.js", NODE_WARM_UP_CALLS)
    yield from list_programs(plan, revision, "echo-http", kind, note="on an HTTP server of its own")


def make_uvicorn_command(folder: Path, app: str, protocol: str = "httptools") -> list[str]:
    """Return the command that serves an application with a protocol class, without the port at its end."""
    fast = ["--loop", "uvloop", "--http", protocol, "--no-access-log", "--log-level", "warning"]
    place = ["--host", "127.0.0.1", "--timeout-keep-alive", "300", "--app-dir", str(folder)]
    return [sys.executable, "-m", "uvicorn", *fast, *place, app, "--port"]


def format_connections(connections: int) -> str:
    """Return the name of the column for a number of connections."""
    return "1 connection" if connections == 1 else f"{connections} connections"


def measure_echo(plan: Plan, wrk: str, revision: str) -> Table:
    """Measure small calls with JSON responses."""
    return measure_load(
        plan,
        Load(wrk, revision, "echo"),
        (32,) if plan.quick else (1, 32, 256),
        name=f"http/echo-{revision}",
        title=f"Servers over HTTP, {revision}",
        about="Calls of a tool that echoes 20 bytes, with JSON responses. Each connection sends the next call after "
        "the response to the last.",
    )


def measure_streams(plan: Plan, wrk: str, revision: str) -> Table:
    """Measure small calls with event streams as responses."""
    return measure_load(
        plan,
        Load(wrk, revision, "report"),
        (1, 32),
        name=f"http/sse-{revision}",
        title=f"Servers over HTTP with event streams, {revision}",
        about="Calls of a tool that reports progress once and then echoes 20 bytes, both as server-sent events. Each "
        "connection sends the next call after the response to the last.",
    )


def measure_load(plan: Plan, load: Load, connections: tuple[int, ...], *, name: str, title: str, about: str) -> Table:
    """Measure all servers under a load, with a column for each number of connections."""
    same = " All calls have the same `_meta` and headers, like most calls of a client." if load.kind == "app" else ""
    sessions = " There are as many sessions as connections; they take turns." if load.revision == LEGACY else same
    worker = (
        " Each server has one worker, and on Linux one core. Python servers run in uvicorn with uvloop and httptools."
    )
    found = list(list_servers(plan, load.revision, load.kind))
    about += sessions + worker
    return measure_contenders(plan, load, connections, found, name=name, title=title, about=about, reference=OFFICIAL)


def measure_contenders(
    plan: Plan,
    load: Load,
    connections: tuple[int, ...],
    found: Sequence[Contender],
    *,
    name: str,
    title: str,
    about: str,
    reference: str,
) -> Table:
    """Measure some servers under a load, with a column for each number of connections."""
    log(name.replace("/", ": "))
    measured = measure_restarting(
        {one.name: partial(_run_measures, one, load, connections, plan) for one in found}, plan, max
    )
    return Table(
        name=name,
        title=title,
        about=about,
        unit="requests/s",
        better="higher",
        reference=reference,
        columns=[format_connections(count) for count in connections],
        rows=make_rows(measured, found),
    )


@contextmanager
def _run_measures(
    contender: Contender, load: Load, connections: tuple[int, ...], plan: Plan
) -> Generator[Sequence[Measure[str]]]:
    """Run a server, warm it up, and yield measures of requests per second, one for each number of connections."""
    with run_server(contender, load, max(connections)) as server:
        warm_up(contender, lambda seconds: server.rate(seconds, max(connections)), plan)
        yield [partial(server.measure, plan.seconds, count) for count in connections]


@dataclass(frozen=True)
class Load:
    """The calls that servers receive."""

    wrk: str
    revision: str
    tool: str
    token: str | None = None
    """The access token of each request."""
    may_stream: bool = False
    """True if a response may be a stream of events although it has one message only."""

    def adapt_to(self, contender: Contender) -> Load:
        """Return the load for a contender, with a token if it needs one."""
        if contender.name != VERIFIED:
            return replace(self, may_stream=self.may_stream or contender.may_stream)
        command = [sys.executable, str(FOLDER / "typedmcp_verified.py")]
        return replace(self, token=subprocess.check_output(command, text=True, timeout=TIMEOUT).strip())  # noqa: S603

    @property
    def kind(self) -> str:
        """The application of a contender that receives the calls: `app` or `streams`."""
        return "app" if self.tool == "echo" else "streams"

    @property
    def expected(self) -> str:
        """Lines with texts that each correct response contains."""
        return f'"{TEXT}"' if self.tool == "echo" else f'"notifications/progress"\n"{TEXT}"'

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request."""
        found = {**HEADERS, "MCP-Protocol-Version": self.revision}
        if self.token is not None:
            found["Authorization"] = f"Bearer {self.token}"
        return found if self.revision == LEGACY else {**found, "Mcp-Method": "tools/call", "Mcp-Name": self.tool}

    @property
    def line(self) -> str:
        """The call, with a placeholder for the id."""
        meta = {} if self.tool == "echo" else {"progressToken": ID_PLACEHOLDER}
        return make_call(ID_PLACEHOLDER, self.revision, self.tool, {"text": TEXT}, **meta)


@dataclass(frozen=True)
class Reply:
    """The response to a POST."""

    session: str | None
    """The session id that the response sets."""
    is_stream: bool
    messages: list[Any]


@dataclass
class HttpServerRun:
    """A running server with its open sessions."""

    process: Process
    load: Load
    port: int
    sessions: list[str] = field(default_factory=list[str])
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(ID_PLACEHOLDER, IDS_PER_TURN))
    last_rate: float = INITIAL_RATE
    """Requests per second of the last measurement."""

    def open(self, sessions: int) -> None:
        """Open a number of sessions."""
        for _ in range(sessions):
            first, second = make_handshake()
            session = self.post(first).session
            if session is None:
                raise self.process.make_failure("it did not open a session")
            self.post(second, session)
            self.sessions.append(session)

    def post(self, body: str, session: str | None = None) -> Reply:
        """POST a message, over a connection of its own."""
        connection, reply = self._exchange(body, session)
        connection.close()
        return reply

    def call_and_stay(self, session: str | None = None) -> HTTPConnection:
        """Call the tool, and return the connection, which is open."""
        connection, _ = self._exchange(self.load.line, session)
        return connection

    def _exchange(self, body: str, session: str | None) -> tuple[HTTPConnection, Reply]:
        of_session = {} if session is None else {"Mcp-Session-Id": session}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request("POST", "/mcp", body, {**self.load.headers, **of_session})
            response = connection.getresponse()
            data = response.read()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self.process.make_failure(f"no response: {error!r}") from error
        if response.status not in (200, 202):
            raise self.process.make_failure(f"{response.status} {data[:300]!r}")
        is_stream = (response.headers["Content-Type"] or "").startswith("text/event-stream")
        try:
            messages = parse_events(data) if is_stream else [json.loads(data)] if data else []
        except ValueError as error:
            raise self.process.make_failure(f"expected a message, got {data[:300]!r}: {error}") from error
        return connection, Reply(response.headers["Mcp-Session-Id"], is_stream, messages)

    def check(self) -> None:
        """Raise unless a call gets a correct response: JSON, or a stream with progress for `report`."""
        reply = self.post(self.load.line, self.sessions[0] if self.sessions else None)
        *before, last = reply.messages or [{}]
        methods = [message.get("method") for message in before]
        has_expected_progress = methods == ["notifications/progress"] if self.load.tool == "report" else not methods
        is_expected_kind = reply.is_stream == bool(methods) or self.load.may_stream
        if not has_expected_progress or not is_expected_kind or not is_echo(last, ID_PLACEHOLDER, TEXT):
            raise self.process.make_failure(f"responded {reply}")

    def measure(self, seconds: float, connections: int) -> Mapping[str, float]:
        """Return requests per second, by column. More connections take longer, because opening them counts, too."""
        if connections == 1:
            self.rate(seconds / 5, 1)  # warm up the machine, which may have been idle
        steady = seconds * max(1, connections / STEADY_CONNECTIONS)
        several = min(MIN_RESPONSES * connections / self.last_rate, MAX_SECONDS)
        return {format_connections(connections): self.rate(max(steady, several), connections)}

    def rate(self, seconds: float, connections: int) -> float:
        """Return requests per second. Raises if any request fails, is cut off, or gets an incorrect response."""
        found = self.generate_load(seconds, connections)
        self.last_rate = found["requests"] / found["seconds"]
        return self.last_rate

    def generate_load(self, seconds: float, connections: int, pause: float = 0) -> dict[str, float]:
        """Run the load generator, with a pause in milliseconds before each call, and return its counts.

        Raises if any request fails, is cut off, or gets an incorrect response.
        """
        found = self._run_generator(seconds, connections, pause)
        if not found["requests"] and seconds < MAX_SECONDS:  # the machine was busy
            return self.generate_load(MAX_SECONDS, connections, pause)
        if not found["requests"] or found["not_2xx"] or found["wrong"] or found["broken"]:
            raise self.process.make_failure(f"under load: {found}")
        self.check()  # wait until it has nothing left to do that would slow down the next contender
        return found

    def _run_generator(self, seconds: float, connections: int, pause: float) -> dict[str, float]:
        body = self.load.line.replace(str(ID_PLACEHOLDER), "000000000")
        headers = [part for name, value in self.load.headers.items() for part in ("--header", f"{name}: {value}")]
        options = ["--threads", "1", "--connections", str(connections), "--timeout", f"{TIMEOUT:.0f}s", *headers]
        script = ["--script", str(FOLDER / "calls.lua"), f"http://127.0.0.1:{self.port}/mcp"]
        numbers = [str(next(self.ids)), f"{pause:f}"]
        arguments = ["--", body, self.load.expected, *numbers, *self.sessions[:connections]]
        try:
            return run_wrk([self.load.wrk, *options, *script, *arguments], seconds)
        except (RuntimeError, ValueError, LookupError, subprocess.TimeoutExpired) as error:
            raise self.process.make_failure(f"under load: {error}") from error


def parse_events(data: bytes) -> list[Any]:
    """Parse the messages of an event stream."""
    return [json.loads(line[5:]) for line in data.splitlines() if line.startswith(b"data:") and line[5:].strip()]


def run_wrk(command: list[str], seconds: float) -> dict[str, float]:
    """Run wrk and return its counts. It takes only whole seconds, so an interrupt ends it earlier."""
    duration = ["--duration", f"{math.ceil(seconds) + 1}s"]
    with (
        subprocess.Popen(  # noqa: S603
            pin_to_core(1, [command[0], *duration, *command[1:]]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as wrk
    ):
        assert wrk.stderr is not None
        wrk.stderr.readline()
        time.sleep(max(seconds, 0.1))
        wrk.send_signal(signal.SIGINT)
        try:
            output, errors = wrk.communicate(timeout=TIMEOUT)
        finally:
            wrk.kill()
    if wrk.returncode != 0:
        raise RuntimeError(f"wrk: exit status {wrk.returncode}\n{errors[-2000:]}")
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


@contextmanager
def run_server(contender: Contender, load: Load, sessions: int) -> Generator[HttpServerRun]:
    """Run a server, open its sessions, and check that it responds."""
    with start_listening(contender) as (process, port):
        server = HttpServerRun(process, load.adapt_to(contender), port)
        if load.revision == LEGACY and contender.name != FLOOR:
            server.open(sessions)
        server.check()
        yield server


@contextmanager
def start_listening(contender: Contender, core: int = 0) -> Generator[tuple[Process, int]]:
    """Start the process of a server on a core, and yield it with its port once it listens."""
    port = find_free_port()
    command = pin_to_core(core, [*contender.command, str(port)])
    with start_process(contender.name, command, pipes=False, timeout=contender.timeout) as process:
        until = time.monotonic() + contender.timeout
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.popen.poll() is not None or time.monotonic() > until:
                raise process.make_failure("it does not listen on its port")
            time.sleep(0.02)
        yield process, port


def find_free_port() -> int:
    """Find a port that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def measure_client_tables(plan: Plan, revisions: tuple[str, ...]) -> Iterator[Table]:
    """Yield the tables of clients, which all call the same server."""
    with serve_clients() as url:
        for revision in revisions:
            yield measure_client_table(plan, url, revision)


@contextmanager
def serve_clients() -> Generator[str]:
    """Run the server that clients call, and yield its URL."""
    server = Contender("the server of the clients", make_uvicorn_command(CONTENDERS / "clients", "echo_http:app"))
    with start_listening(server) as (_, port):
        yield f"http://127.0.0.1:{port}/mcp"


def list_clients(plan: Plan, url: str, revision: str) -> Iterator[Contender]:
    """List the clients."""
    folder = CONTENDERS / "clients"
    yield Contender(
        CLIENT_FLOOR,
        make_python_command(folder / "blocking_loop.py", url, revision),
        "the floor: a blocking loop on sockets",
    )
    yield Contender(OURS, make_python_command(folder / "typedmcp_client.py", url, revision))
    yield Contender(OFFICIAL_CLIENT, make_python_command(folder / "official_client.py", url, revision))
    if not plan.quick:
        yield Contender("fastmcp", make_python_command(folder / "fastmcp_client.py", url, revision))
    if not plan.quick:
        yield Contender(
            "official TypeScript",
            [*make_typescript_command(folder / "official_typescript.mjs"), url, revision],
            warm_up_calls=NODE_WARM_UP_CALLS,
        )
    yield from list_programs(plan, revision, "call", url, revision, sys.executable)


def measure_client_table(plan: Plan, url: str, revision: str) -> Table:
    """Measure all clients in a revision."""
    log(f"http: clients, {revision}")
    found = [replace(one, command=pin_to_core(1, one.command)) for one in list_clients(plan, url, revision)]
    return Table(
        name=f"http/client-{revision}",
        title=f"Clients over HTTP, {revision}",
        about="Calls of a tool that echoes 20 bytes, to the same minimal ASGI application: one at a time, or "
        f"{CALLS} concurrent ones. Python clients run on uvloop.",
        unit="calls/s",
        better="higher",
        reference=OFFICIAL_CLIENT,
        columns=[format_depth(1), format_depth(CALLS)],
        rows=make_rows(measure_clients(found, (1, CALLS), plan), found),
    )
