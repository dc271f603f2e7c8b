"""A client over HTTP/1.1 that reads responses in pieces, for servers in processes of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.server.http.asgi_driver import ACCEPT, MODERN, message, messages
from tests.spoken import MODERN_REVISION
from typedmcp.protocol.sse import EventParser, ServerSentEvent

__all__ = ["StreamingConnection", "begin_session", "calling", "connections", "entered", "handler_endings"]


class StreamingConnection:
    """A connection for requests one after the other, whose responses can be read in pieces."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host
        self._parser = EventParser()
        self._events: list[ServerSentEvent] = []
        self._left: int | None = 0
        self._is_chunked = False
        self.status = 0
        self.headers: dict[str, str] = {}

    async def send(self, method: str, headers: dict[str, str], body: bytes | None = b"", path: str = "/mcp") -> None:
        """Send a request, and read the head of the response."""
        given = {"host": self._host, "accept": ACCEPT, "content-type": "application/json", **headers}
        if body is not None:
            given.setdefault("content-length", str(len(body)))
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b""))
        await self._read_head(method)

    async def _read_head(self, method: str) -> None:
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        self.status = int(status.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._parser, self._events = EventParser(), []
        self._is_chunked = self.headers.get("transfer-encoding") == "chunked"
        length = self.headers.get("content-length")
        self._left = None if self._is_chunked else int(length or 0)
        if method == "HEAD" or self.status == 204:
            self._left = 0

    async def piece(self) -> bytes:
        """Return the next piece of the body, empty at its end."""
        if not self._is_chunked:
            assert self._left is not None
            data = await self._reader.readexactly(self._left)
            self._left = 0
            return data
        if self._left == 0:
            return b""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        data = (await self._reader.readexactly(size + 2))[:-2]
        if not size:
            self._left = 0
        return data

    async def body(self) -> bytes:
        """Return the rest of the body."""
        parts: list[bytes] = []
        while piece := await self.piece():
            parts.append(piece)
        return b"".join(parts)

    async def event(self) -> ServerSentEvent:
        """Return the next event."""
        while not self._events:
            piece = await self.piece()
            assert piece, "the stream ended"
            self._events += self._parser.feed(piece)
        return self._events.pop(0)

    async def next_message(self) -> Any:
        """Return the next message."""
        while not (event := await self.event()).data:
            pass
        assert isinstance(event.data, bytes)
        return json.loads(event.data)

    async def rest(self) -> list[Any]:
        """Return all further messages."""
        events = [*self._events, *self._parser.feed(await self.body())]
        return messages(events)

    async def read_to_close(self) -> None:
        """Read until the server ends the response, or the connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self.body()

    async def call(self, name: str, *, id: Any = 1, path: str = "/mcp", meta: Any = None, **arguments: Any) -> None:
        """Send a call on the newest revision."""
        params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": {**MODERN, **(meta or {})}}
        headers = {"mcp-protocol-version": MODERN_REVISION, "mcp-method": "tools/call", "mcp-name": name}
        await self.send("POST", headers, message(id=id, method="tools/call", params=params), path)

    async def listen(self, path: str = "/mcp") -> None:
        """Open a subscription."""
        params = {"notifications": {"toolsListChanged": True}, "_meta": MODERN}
        headers = {"mcp-protocol-version": MODERN_REVISION, "mcp-method": "subscriptions/listen"}
        await self.send("POST", headers, message(id="l", method="subscriptions/listen", params=params), path)

    async def text(self) -> str:
        """Return the text of a tool's result in a JSON response."""
        answer = json.loads(await self.body())
        return str(answer["result"]["content"][0]["text"])

    def close(self) -> None:
        """Close the connection."""
        self._writer.transport.abort()


@asynccontextmanager
async def connections(port: int, count: int = 2) -> AsyncGenerator[list[StreamingConnection]]:
    """Open connections, and close them at the end."""
    made = [
        StreamingConnection(*await asyncio.open_connection("127.0.0.1", port), f"127.0.0.1:{port}")
        for _ in range(count)
    ]
    try:
        yield made
    finally:
        for each in made:
            each.close()


async def begin_session(connection: StreamingConnection, capabilities: dict[str, Any] | None = None) -> dict[str, str]:
    """Begin a session, and return the headers for its requests."""
    client: dict[str, Any] = {"capabilities": capabilities or {}, "clientInfo": {"name": "test", "version": "1"}}
    params = {**client, "protocolVersion": "2025-11-25"}
    await connection.send("POST", {}, message(id=0, method="initialize", params=params))
    assert connection.status == 200, await connection.body()
    headers = {"mcp-session-id": connection.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    assert json.loads(await connection.body())["result"]["protocolVersion"] == "2025-11-25"
    await connection.send("POST", headers, message(method="notifications/initialized"))
    assert (connection.status, await connection.body()) == (202, b"")
    return headers


def calling(name: str, id: Any = 1, **arguments: Any) -> bytes:
    return message(id=id, method="tools/call", params={"name": name, "arguments": arguments})


async def handler_endings(connection: StreamingConnection) -> list[str]:
    """Return how the calls that waited have ended."""
    await connection.call("handler_endings")
    return [each for each in (await connection.text()).split() if each]


async def entered(connection: StreamingConnection) -> None:
    """Wait until a handler waits."""
    await connection.call("reached")
    assert await connection.text() == "reached"
