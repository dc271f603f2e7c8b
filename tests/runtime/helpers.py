"""What the tests of the runtime share: a handler, and a client that speaks in bytes and lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tests.generated.backends import is_object
from typedmcp import Report, Service, memory_pair
from typedmcp.dialect import structs
from typedmcp.edge.revisions import DIALECT, LEGACY
from typedmcp.session import ServerSession
from typedmcp.wire import Framer, Oversize, RequestId

__all__ = [
    "CLIENT", "DIALECT", "LEGACY", "META", "WIRES", "Handler", "Line", "call", "chunked", "frame",
    "is_answer", "listing", "opened", "run",
]  # fmt: skip

T = TypeVar("T")

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": DIALECT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
CLIENT: dict[str, Any] = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
WIRES = ("fresh", *LEGACY, DIALECT)
"""What a connection can be, as far as a frame is concerned: new, or of a revision."""


class Handler:
    """Tools: `echo` answers at once, `wait` when it is told, `fail` fails, `stubborn` is not to be cancelled."""

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
    """Run a test's coroutine; one that hangs fails."""

    async def timed() -> T:
        return await asyncio.wait_for(main, 20)

    return asyncio.run(timed())


def frame(**members: Any) -> bytes:
    """A message as a line without its newline."""
    return json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=False, separators=(",", ":")).encode()


def call(wire: str, id: Any, method: str = "tools/call", **params: Any) -> bytes:
    """A request as a wire has it."""
    meta = {"_meta": META} if wire in ("fresh", DIALECT) else {}
    return frame(id=id, method=method, params={**meta, **params})


def listing(wire: str, id: Any) -> bytes:
    """A request that every wire answers with a result."""
    return call(wire, id, "tools/list")


def chunked(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    """Bytes cut into pieces of these sizes; what is left is the last."""
    pieces: list[bytes] = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in (*pieces, data) if piece]


def is_answer(reply: Any, id: RequestId) -> bool:
    """Whether a line answers the request with this id."""
    return is_object(reply) and reply.get("id") == id


class Line:
    """A client that sends bytes and takes lines, beside the session that serves it."""

    def __init__(self, service: Service, handler: Handler, reports: list[Report]) -> None:
        self.handler = handler
        self.reports = reports
        self._far, near = memory_pair()
        self.session = ServerSession(service, near)
        self._serving = asyncio.ensure_future(self.session.run())
        self._framer = Framer()
        self._lines: list[bytes] = []
        self._marks = 0

    def send(self, data: bytes) -> None:
        """Send a line."""
        self._far.write(data + b"\n")

    async def send_raw(self, data: bytes, size: int | None = None) -> None:
        """Send bytes; with a size, in pieces of which each is read before the next is sent."""
        if size is None:
            self._far.write(data)
            return
        for piece in chunked(data, [size] * (len(data) // size)):
            self._far.write(piece)
            await self._settled()

    async def _settled(self) -> None:
        # What was written is read in the next step of the session's worker, or the one after that.
        for _ in range(3):
            await asyncio.sleep(0)

    async def reply(self) -> Any:
        """The next line, parsed. Fails at the end of the stream."""
        while not self._lines:
            data = await self._far.read()
            assert data, "the server ended the connection"
            self._take(data)
        return json.loads(self._lines.pop(0))

    async def ask(self, data: bytes) -> Any:
        """Send a line and take the one that comes back."""
        self.send(data)
        return await self.reply()

    async def replies(self) -> list[Any]:
        """What has come up to now: everything before the answer to a ping of ours."""
        self._marks += 1
        mark = f"mark {self._marks}"
        self.send(frame(id=mark, method="server/discover", params={"_meta": META}))
        found: list[Any] = []
        while not is_answer(reply := await self.reply(), mark):
            found.append(reply)
        return found

    async def close(self) -> list[Any]:
        """End the connection as a client does; the rest of what comes. Fails if the session failed."""
        self._far._outgoing.end()  # pyright: ignore[reportPrivateUsage]  # this end's writing alone
        while data := await self._far.read():
            self._take(data)
        await self._serving
        lines, self._lines = self._lines, []
        return [json.loads(line) for line in lines]

    def kinds(self) -> list[str]:
        """The kinds of the reports up to now."""
        return [str(report.kind) for report in self.reports]

    def _take(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            assert not isinstance(line, Oversize)
            self._lines.append(line)


@asynccontextmanager
async def opened(wire: str = "fresh", **options: Any) -> AsyncGenerator[Line]:
    """A connection in a state: "fresh", or ready for requests of a revision."""
    handler, reports = Handler(), list[Report]()
    line = Line(Service(handler, on_report=reports.append, **options), handler, reports)
    if wire in LEGACY:
        answer = await line.ask(frame(id="shake", method="initialize", params={**CLIENT, "protocolVersion": wire}))
        assert answer["result"]["protocolVersion"] == wire
        line.send(frame(method="notifications/initialized"))
        assert await line.replies() == []
        reports.clear()
    yield line
    handler.go.set()
    await line.close()
