"""The table of docs/clients.md on lost connections: what a client and others do, by the way in which one is lost.

`python -m tests.docs.recovery` writes it; a test compares it. Each cell is a client, a pool, a group or a gateway, and
a real server: a process, or one on a socket that does what the row says.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import typedmcp
from tests.client.http.scripted_http import MODERN, OLDER, Handle, Request, Script, Wire, serving
from tests.docs.markdown import replace_block
from tests.paths import ROOT
from typedmcp.client import Target
from typedmcp_gateway import ClientPool, Gateway
from typedmcp_hosts import connect_all

__all__ = ["HOSTS", "PAGE", "STAYS_LOST", "WAYS", "Outcome", "cell_of", "find_outcomes", "render"]

PAGE: Final = ROOT / "docs" / "clients.md"
ANSWERED, FAILS_ONCE, STAYS_LOST = "answered", "fails once", "stays lost"

_SERVER: Final = ROOT / "tests" / "servers" / "mortal.py"
_TIMEOUT: Final = 2.5
"""Seconds for a call to a server that is silent."""
_SLEEP: Final = 3600.0
_NEW_TOOL: Final = "made by another server"

MakeRequest: TypeAlias = Callable[[], Awaitable[Any]]


# Servers


class HttpServer(Script):
    """A server on a socket. `lose` makes it do what a row of the table says."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.tools = [{"name": "x", "inputSchema": {"type": "object"}}]
        self.known: set[str] = set()
        """The sessions that the server has not forgotten."""
        self.status = 404
        """The answer to requests in others."""
        self.next: Handle | None = None
        """What the next request for tools meets."""
        self.dead: set[asyncio.StreamWriter] = set()
        """The connections that lead nowhere."""
        self.open: set[asyncio.StreamWriter] = set()
        self.effects = 0
        """The calls that have, or may have, taken effect."""

    async def answer(self, request: Request, wire: Wire) -> None:
        self.open.add(wire.writer)
        if wire.writer in self.dead:
            await wire.closed()
            return
        is_for_tools = request.what in ("tools/list", "tools/call")
        refusal = self.find_refusal(request)
        if request.what == "tools/call" and (refusal is None or self.status >= 500):
            self.effects += 1
        if is_for_tools and self.next is not None:
            handle, self.next = self.next, None
            if (waits := handle(request, wire)) is not None:
                await waits
        elif refusal is not None:
            refusal(request, wire)
        else:
            await super().answer(request, wire)

    def find_refusal(self, request: Request) -> Handle | None:
        """Return what refuses a request; None for one that is answered."""
        id = request.headers.get("mcp-session-id")
        if self.revision == MODERN:
            data = {"supported": [MODERN], "requested": OLDER}
            is_older = request.headers.get("mcp-protocol-version") != MODERN
            return (lambda request, wire: wire.error(request, -32022, "no", data, 400)) if is_older else None
        if request.what in ("initialize", "server/discover") or id in self.known:
            return None
        return lambda _, wire: wire.reply(self.status if id is not None else 400)

    def _initialize(self, request: Request, wire: Wire) -> None:
        super()._initialize(request, wire)
        self.known.add(f"session-{self.sessions}")

    def _ping(self, request: Request, wire: Wire) -> None:
        wire.result(request, {})


class Process:
    """A server as a process, in a folder of its own."""

    def __init__(self, revision: str, folder: Path) -> None:
        self.target = [sys.executable, "-S", "-E", str(_SERVER), revision, str(folder)]
        self._folder = folder

    @property
    def effects(self) -> int:
        calls = self._folder / "calls"
        return len(calls.read_bytes()) if calls.exists() else 0

    def end(self) -> None:
        """End the process at its next request for tools."""
        (self._folder / "end").touch()


async def _reset(_: Request, wire: Wire) -> None:
    """Cut the connection, as a firewall does that has forgotten it."""
    connection: socket.socket = wire.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.writer.transport.abort()


def _forget(status: int) -> Callable[[HttpServer], None]:
    def forget(server: HttpServer) -> None:
        server.known, server.status = set(), status

    return forget


def _replace(server: HttpServer) -> None:
    _forget(404)(server)
    server.tools.append({"name": _NEW_TOOL, "inputSchema": {"type": "object"}})


def _change_to(revision: str) -> Callable[[HttpServer], None]:
    def change(server: HttpServer) -> None:
        server.revision, server.status, server.known = revision, 400, set()

    return change


def _be_silent(server: HttpServer) -> None:
    server.next = lambda _, wire: wire.closed()


def _cut(server: HttpServer) -> None:
    server.next = _reset


def _drop_connections(server: HttpServer) -> None:
    server.dead |= server.open


# The rows and the columns


@dataclass(frozen=True)
class Way:
    """A way in which a connection or a session is lost."""

    text: str
    revision: str
    lose: Callable[[HttpServer], None] | None = None
    """Makes a server on a socket lose the connection. None: the server is a process, which ends."""
    is_silent: bool = False
    sleeps: bool = False
    """True if the computer sleeps, so that the clock jumps."""


WAYS: Final = (
    Way(f"the process ends during the request, {OLDER}", OLDER),
    Way(f"the process ends during the request, {MODERN}", MODERN),
    *(Way(f"the session is answered with {status}", OLDER, _forget(status)) for status in (404, 400, 401, 503)),
    Way("another server, which does not know the session, has replaced it", OLDER, _replace),
    Way(f"a server of {MODERN} has replaced one of {OLDER}", OLDER, _change_to(MODERN)),
    Way(f"a server of {OLDER} has replaced one of {MODERN}", MODERN, _change_to(OLDER)),
    Way("the network cuts the connection during the request", OLDER, _cut),
    Way("the server is silent", OLDER, _be_silent, is_silent=True),
    Way("the computer has slept for an hour, and the connection is dead", OLDER, _drop_connections, True, True),
)


@asynccontextmanager
async def _client(target: Target, options: Any) -> AsyncGenerator[tuple[MakeRequest, MakeRequest]]:
    async with typedmcp.connect(target, **options) as client:
        yield client.list_tools, lambda: client.call_tool("x", {})


@asynccontextmanager
async def _restarting(target: Target, options: Any) -> AsyncGenerator[tuple[MakeRequest, MakeRequest]]:
    async with _client(target, {**options, "restart": True}) as requests:
        yield requests


@asynccontextmanager
async def _pool(target: Target, options: Any) -> AsyncGenerator[tuple[MakeRequest, MakeRequest]]:
    async with ClientPool(max_clients=2) as pool:

        async def list_tools() -> Any:
            async with pool.lease(target, **options) as client:
                return await client.list_tools()

        async def call() -> Any:
            async with pool.lease(target, **options) as client:
                return await client.call_tool("x", {})

        yield list_tools, call


@asynccontextmanager
async def _group(target: Target, options: Any) -> AsyncGenerator[tuple[MakeRequest, MakeRequest]]:
    async with connect_all({"one": target}, **options) as group:
        yield group.list_tools, lambda: group.call_tool("x", {})


@asynccontextmanager
async def _gateway(target: Target, options: Any) -> AsyncGenerator[tuple[MakeRequest, MakeRequest]]:
    gateway = Gateway(target, connect={"timeout": options["timeout"]})
    async with typedmcp.connect(gateway, on_diagnostic=options["on_diagnostic"]) as client:
        yield client.list_tools, lambda: client.call_tool("x", {})


HOSTS: Final = {
    "`connect`": _client,
    "`connect`, `restart=True`": _restarting,
    "`ClientPool`": _pool,
    "`connect_all`": _group,
    "`Gateway`": _gateway,
}


# The cells


@dataclass(frozen=True)
class Outcome:
    """What becomes of a request that meets the loss, and of those that follow."""

    way: str
    host: str
    is_call: bool
    text: str
    made: int
    """The requests that were made, until one was answered."""
    effects: int
    """The tool calls that have, or may have, taken effect."""


def find_outcomes() -> list[Outcome]:
    """Run all cells, those in which the computer sleeps apart, since they have another clock."""
    awake = asyncio.run(_run_all([way for way in WAYS if not way.sleeps]))
    return [*awake, *asyncio.run(_run_all([way for way in WAYS if way.sleeps]))]


async def _run_all(ways: Sequence[Way]) -> list[Outcome]:
    clock, loop = _Clock(), asyncio.get_running_loop()
    loop.time = clock.time  # type: ignore[method-assign]
    cells = [(way, host, is_call) for way in ways for host in HOSTS for is_call in (False, True)]
    ready = asyncio.Barrier(len(cells))

    async def run(way: Way, host: str, is_call: bool) -> Outcome:
        async with _opened(way, host) as (requests, lose, effects):
            list_tools, call = requests
            await list_tools()
            await ready.wait()
            lose()
            clock.ahead = _SLEEP if way.sleeps else 0.0
            expected = "x" if way.lose is not _replace else _NEW_TOOL
            made, text = await (_retry(call) if is_call else _retry(list_tools, expected))
            return Outcome(way.text, host, is_call, text, made, effects())

    return await asyncio.gather(*(run(*cell) for cell in cells))


class _Clock:
    ahead = 0.0

    def time(self) -> float:
        return time.monotonic() + self.ahead


def _ignore(_: object) -> None: ...


@asynccontextmanager
async def _opened(
    way: Way, host: str
) -> AsyncGenerator[tuple[tuple[MakeRequest, MakeRequest], Callable[[], None], Callable[[], int]]]:
    options: dict[str, Any] = {"timeout": _TIMEOUT if way.is_silent else 30.0, "on_diagnostic": _ignore}
    if way.lose is None:
        with tempfile.TemporaryDirectory() as folder:
            process = Process(way.revision, Path(folder))
            async with HOSTS[host](process.target, options) as requests:
                yield requests, process.end, lambda: process.effects
        return
    server, lose = HttpServer(way.revision), way.lose
    async with serving(server) as url, HOSTS[host](url, options) as requests:
        yield requests, lambda: lose(server), lambda: server.effects


async def _retry(request: MakeRequest, expected: str | None = None) -> tuple[int, str]:
    """Make a request until it is answered, three times at most. Return how many were made, and the outcome.

    A list without the `expected` tool is none: a group leaves out a server that fails.
    """
    for made in (1, 2, 3):
        try:
            found: Any = await request()
        except typedmcp.Error:
            continue
        tools: Any = getattr(found, "tools", found)
        if expected is None or expected in [tool.name for tool in tools]:
            return made, ANSWERED if made == 1 else FAILS_ONCE if made == 2 else f"fails {made - 1} times"
    return 3, STAYS_LOST


def render(outcomes: Sequence[Outcome]) -> str:
    """Render the table."""
    lines = [f"| how the connection is lost | {' | '.join(HOSTS)} |", "|---" * (len(HOSTS) + 1) + "|"]
    for way in WAYS:
        cells = [cell_of(outcomes, way.text, host) for host in HOSTS]
        lines.append(f"| {way.text} | {' | '.join(cells)} |")
    return "\n".join(["", *lines, ""])


def cell_of(outcomes: Sequence[Outcome], way: str, host: str) -> str:
    """Return the text of a cell: one outcome, or two if a list and a call differ."""
    listing, call = [each.text for each in outcomes if (each.way, each.host) == (way, host)]
    return listing if listing == call else f"list {listing}, call {call}"


if __name__ == "__main__":
    made = render(find_outcomes())
    PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), "recovery", made), encoding="utf-8")
