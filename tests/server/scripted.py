"""A client that sends exactly the lines of a test to a real connection, in memory or over a socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import typedmcp
from mcpspec.support.objects import is_object
from tests.spoken import LEGACY, MODERN_REVISION, SUPPORTED
from typedmcp.server.connection import ServerConnection
from typedmcp.transports import Transport
from typedmcp.transports.streams import StreamTransport

__all__ = ["CARRIERS", "LEGACY", "MODERN_REVISION", "SUPPORTED", "Client", "Json", "run", "served"]

Json: TypeAlias = dict[str, Any]

T = TypeVar("T")

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = "io.modelcontextprotocol/clientInfo"
_PATIENCE = 60.0
"""Seconds after which a waiting test fails. No test waits for them to pass."""

EVERYTHING: Json = {"sampling": {}, "elicitation": {}, "roots": {}}


class Client:
    """Sends messages, and keeps the received ones in order."""

    def __init__(self, transport: Transport, connection: ServerConnection, reports: list[typedmcp.Diagnostic]) -> None:
        self.connection = connection
        self.session = connection.session
        self.reports = reports
        self.revision = MODERN_REVISION
        self.capabilities: Json = {}
        self.opened: Json = {}
        self._transport = transport
        self._rest = b""
        self._received: list[Any] = []
        self._id = 0

    @property
    def is_modern(self) -> bool:
        return self.revision == MODERN_REVISION

    async def open(self, revision: str, **capabilities: Any) -> None:
        """Become a client of a revision: by a handshake, or by the `_meta` of every request."""
        self.revision = revision
        self.capabilities = capabilities
        if self.is_modern:
            return
        info = {"name": "scripted", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info}
        self.opened = await self.result("initialize", params)
        self.send({"method": "notifications/initialized"})

    def meta(self) -> Json:
        return {VERSION: self.revision, CAPABILITIES: self.capabilities, INFO: {"name": "scripted", "version": "1"}}

    def send(self, message: Any) -> None:
        """Send one message. `jsonrpc` may be left out."""
        whole: Any = {"jsonrpc": "2.0", **message} if is_object(message) else message
        self.send_bytes(json.dumps(whole, ensure_ascii=False).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        self._transport.write(data)

    def start(self, method: str, params: Json | None = None, *, meta: Json | None = None) -> int:
        """Send a request, and return its id."""
        self._id += 1
        own = {**(self.meta() if self.is_modern and method != "initialize" else {}), **(meta or {})}
        whole = {**(params or {}), **({"_meta": own} if own else {})}
        self.send({"id": self._id, "method": method, **({"params": whole} if whole else {})})
        return self._id

    async def receive(self) -> Any:
        """Return the next message."""
        while not self._received:
            async with asyncio.timeout(_PATIENCE):
                data = await self._transport.read()
            assert data, "the server ended the connection"
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._received += [json.loads(line) for line in lines]
        return self._received.pop(0)

    async def answer_to(self, id: int) -> Any:
        """Wait for the response to a request. Keep other messages for `receive`."""
        others: list[Any] = []
        while True:
            message: Any = await self.receive()
            if is_object(message) and message.get("id") == id and "method" not in message:
                self._received[:0] = others
                return message
            others.append(message)

    async def request(self, method: str, params: Json | None = None, *, meta: Json | None = None) -> Any:
        """Send a request, and return its response."""
        return await self.answer_to(self.start(method, params, meta=meta))

    async def result(self, method: str, params: Json | None = None, *, meta: Json | None = None) -> Json:
        """Send a request that must succeed, and return its result."""
        answer = await self.request(method, params, meta=meta)
        assert "error" not in answer, answer
        result: Json = answer["result"]
        return result

    async def error(self, method: str, params: Json | None = None, *, meta: Json | None = None) -> Json:
        """Send a request that must fail, and return its error."""
        answer = await self.request(method, params, meta=meta)
        assert "result" not in answer, answer
        error: Json = answer["error"]
        return error

    async def call(self, name: str, meta: Json | None = None, **arguments: Any) -> Json:
        """Call a tool, and return the result."""
        return await self.result("tools/call", {"name": name, "arguments": arguments}, meta=meta)

    async def settled(self) -> None:
        """Wait until the server has read everything sent so far, by a further request."""
        await self.request("ping" if not self.is_modern else "server/discover")

    def unread(self) -> list[Any]:
        return list(self._received)

    def of_kind(self, kind: typedmcp.DiagnosticKind) -> list[typedmcp.Diagnostic]:
        return [report for report in self.reports if report.kind is kind]


def socket_pair() -> tuple[Transport, Transport]:
    """Return two connected transports that pass on what arrives at once, like those of standard input and output."""
    with ExitStack() as ends:
        near, far = (ends.enter_context(end).fileno() for end in socket.socketpair())
        return StreamTransport(near, near), StreamTransport(far, far)


CARRIERS: dict[str, Callable[[], tuple[Transport, Transport]]] = {
    "memory": typedmcp.memory_pair,
    "socket": socket_pair,
}


@asynccontextmanager
async def served(handler: object, *, over: str = "memory", **options: Any) -> AsyncGenerator[Client]:
    """Serve a handler over one of `CARRIERS`, and return a client of it."""
    reports: list[typedmcp.Diagnostic] = []
    mine, theirs = CARRIERS[over]()
    options = {"name": "under test", "version": "1", "on_diagnostic": reports.append, "grace": 2.0, **options}
    connection = ServerConnection(typedmcp.ServerConfig(handler, **options), theirs)
    serving = asyncio.create_task(connection.run())
    try:
        yield Client(mine, connection, reports)
    finally:
        await mine.close()
        async with asyncio.timeout(_PATIENCE):
            await serving
    assert connection.session.in_flight == {}
    assert connection.session.questions.pending.calls == {}


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a test in a new event loop, and return what it returns. Fail if it leaves a task behind."""

    async def checked() -> T:
        returned = await main()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []
        return returned

    return asyncio.run(checked())
