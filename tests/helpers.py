"""Helpers for the tests of the runtime: a handler, and a client that sends bytes and receives lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tests.generated.backends import is_object
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp import Diagnostic, ServerConfig, memory_pair
from typedmcp.dialect import structs
from typedmcp.protocol.framing import Framer, OversizeMessage, RequestId
from typedmcp.server.connection import ServerConnection

__all__ = [
    "CLIENT",
    "LEGACY",
    "META",
    "MODERN_REVISION",
    "STATES",
    "Handler",
    "Line",
    "call",
    "chunked",
    "frame",
    "is_answer",
    "listing",
    "opened",
    "run",
]  # fmt: skip

T = TypeVar("T")

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
CLIENT: dict[str, Any] = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
STATES = ("fresh", *LEGACY, MODERN_REVISION)
"""The states of a connection that matter for frames: new, or with a revision."""


class Handler:
    """Tools: `echo` returns at once, `wait` once `go` is set, `fail` fails, `stubborn` cannot be cancelled."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.entered = asyncio.Event()

    async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[], ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Any) -> structs.CallToolResult:
        if params.name == "fail":
            raise RuntimeError("this tool fails")
        if params.name == "yield":
            await asyncio.sleep(0)
        if params.name in ("wait", "stubborn"):
            self.entered.set()
            await self._wait(params.name == "stubborn")
        content = structs.TextContent(text=params.name)
        return structs.CallToolResult(content=[content], result_type="complete")

    async def _wait(self, stubborn: bool) -> None:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            if not stubborn:
                raise
            await self.go.wait()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine. Fail if it hangs."""

    async def timed() -> T:
        return await asyncio.wait_for(main, 60)

    return asyncio.run(timed())


def frame(**members: Any) -> bytes:
    """Encode a message, without a newline."""
    return json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False, separators=(",", ":")).encode()


def call(state: str, id: Any, method: str = "tools/call", **params: Any) -> bytes:
    """Encode a request of a revision."""
    meta = {"_meta": META} if state in ("fresh", MODERN_REVISION) else {}
    return frame(id=id, method=method, params={**meta, **params})


def listing(state: str, id: Any) -> bytes:
    """Encode a request that has a result on every revision."""
    return call(state, id, "tools/list")


def chunked(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    """Cut bytes into pieces of these sizes. The rest is the last piece."""
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in (*pieces, data) if piece]


def is_answer(reply: Any, id: RequestId) -> bool:
    """Return whether a message is the response to the request with this id."""
    return is_object(reply) and reply.get("id") == id


class Line:
    """A client that sends bytes and receives lines, with the connection that serves it."""

    def __init__(self, service: ServerConfig, handler: Handler, reports: list[Diagnostic]) -> None:
        self.handler = handler
        self.reports = reports
        self._far, near = memory_pair()
        connection = ServerConnection(service, near)
        self.session = connection.session
        self._serving = asyncio.ensure_future(connection.run())
        self._framer = Framer()
        self._lines: list[bytes] = []
        self._marks = 0

    def send(self, data: bytes) -> None:
        """Send a line."""
        self._far.write(data + b"\n")

    async def send_raw(self, data: bytes, size: int | None = None) -> None:
        """Send bytes. With a size, send them in pieces, each after the server has read the last."""
        if size is None:
            self._far.write(data)
            return
        for piece in chunked(data, [size] * (len(data) // size)):
            self._far.write(piece)
            await self._settled()

    async def _settled(self) -> None:
        # The worker of the connection reads them in its next step, or in the one after that.
        for _ in range(3):
            await asyncio.sleep(0)

    async def reply(self) -> Any:
        """Return the next message. Fail at the end of the stream."""
        while not self._lines:
            data = await self._far.read()
            assert data, "the server ended the connection"
            self._take(data)
        return json.loads(self._lines.pop(0))

    async def ask(self, data: bytes) -> Any:
        """Send a line, and return the next message."""
        self.send(data)
        return await self.reply()

    async def replies(self) -> list[Any]:
        """Return the messages that have arrived, up to the response to a further request."""
        self._marks += 1
        mark = f"mark {self._marks}"
        self.send(frame(id=mark, method="server/discover", params={"_meta": META}))
        found: list[Any] = []
        while not is_answer(reply := await self.reply(), mark):
            found.append(reply)
        return found

    async def close(self) -> list[Any]:
        """End the connection as a client does, and return the remaining messages. Fail if the connection failed."""
        self._far._outgoing.end()  # pyright: ignore[reportPrivateUsage]  # ends one direction alone
        while data := await self._far.read():
            self._take(data)
        await self._serving
        lines, self._lines = self._lines, []
        return [json.loads(line) for line in lines]

    def kinds(self) -> list[str]:
        """Return the kinds of the diagnostics so far."""
        return [str(report.kind) for report in self.reports]

    def _take(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            assert not isinstance(line, OversizeMessage)
            self._lines.append(line)


@asynccontextmanager
async def opened(state: str = "fresh", **options: Any) -> AsyncGenerator[Line]:
    """Open a connection in a state: "fresh", or ready for requests of a revision."""
    handler, reports = Handler(), list[Diagnostic]()
    line = Line(ServerConfig(handler, on_diagnostic=reports.append, **options), handler, reports)
    if state in LEGACY:
        answer = await line.ask(frame(id="shake", method="initialize", params={**CLIENT, "protocolVersion": state}))
        assert answer["result"]["protocolVersion"] == state
        line.send(frame(method="notifications/initialized"))
        assert await line.replies() == []
        reports.clear()
    yield line
    handler.go.set()
    await line.close()
