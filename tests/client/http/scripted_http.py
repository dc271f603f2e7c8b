"""An HTTP server on plain sockets that sends exactly what a test demands."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcpspec.support.objects import is_object
from tests import spoken
from typedmcp.client import Client, connect

__all__ = [
    "MODERN",
    "OLDER",
    "PATIENCE",
    "Handle",
    "Request",
    "Script",
    "Wire",
    "connected",
    "notification",
    "pool_of",
    "result",
    "serving",
]

OLDER, MODERN = spoken.LEGACY[0], spoken.MODERN_REVISION

PATIENCE = 10.0
"""Seconds after which a waiting test fails."""

Json: TypeAlias = dict[str, Any]


@dataclass
class Request:
    """A request of the client."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}

    @property
    def what(self) -> str:
        """The method of the message, or the HTTP method of a request without one."""
        return str(self.json.get("method", "answer")) if self.method == "POST" else self.method


class Wire:
    """The connection of a request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.ended = asyncio.Event()
        """Set once the client has closed its side while the test waited for that."""

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def head(self, status: int = 200, **headers: Any) -> None:
        lines = [
            f"HTTP/1.1 {status} Status",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        self.raw("".join(f"{line}\r\n" for line in [*lines, ""]).encode())

    def reply(self, status: int = 200, body: bytes = b"", **headers: Any) -> None:
        """Send a complete response."""
        self.head(status, content_length=len(body), **headers)
        self.raw(body)

    def json(self, message: Any, status: int = 200, **headers: Any) -> None:
        self.reply(status, json.dumps(message).encode(), content_type="application/json", **headers)

    def result(self, request: Request, value: Json, **headers: Any) -> None:
        self.json({"jsonrpc": "2.0", "id": request.json["id"], "result": value}, **headers)

    def error(self, request: Request, code: int, message: str = "no", data: Any = None, status: int = 200) -> None:
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.json({"jsonrpc": "2.0", "id": request.json["id"], "error": error}, status)

    def events(self, **headers: Any) -> None:
        """Start an event stream."""
        self.head(content_type="text/event-stream", transfer_encoding="chunked", **headers)

    def chunk(self, data: bytes) -> None:
        self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    def event(self, message: Any = None, *, id: str | None = None, retry: int | None = None, type: str = "") -> None:
        fields = [f"event: {type}"] if type else []
        fields += [] if id is None else [f"id: {id}"]
        fields += [] if retry is None else [f"retry: {retry}"]
        fields += [f"data: {'' if message is None else message if isinstance(message, str) else json.dumps(message)}"]
        self.chunk("".join(f"{field}\n" for field in [*fields, ""]).encode())

    def end(self) -> None:
        """End an event stream."""
        self.chunk(b"")

    def close(self) -> None:
        self.writer.close()

    async def closed(self) -> None:
        """Wait until the client has closed the connection."""
        while await self.reader.read(1 << 16):
            pass
        self.ended.set()


Handle: TypeAlias = Callable[[Request, Wire], "Awaitable[None] | None"]

COMPLETE: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def result(text: str = "done", **more: Any) -> Json:
    """Return the result of a tool."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], **more}


def notification(method: str, **params: Any) -> Json:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


class Script:
    """The responses of a server, by the method of the message or of HTTP. Other requests get valid responses."""

    def __init__(self, revision: str = MODERN, **handlers: Handle) -> None:
        self.revision = revision
        self.handlers: dict[str, Handle] = {name.replace("__", "/"): handle for name, handle in handlers.items()}
        self.requests: list[Request] = []
        self.came = asyncio.Condition()
        self.sessions = 0
        self.tools: list[Json] = []

    def of(self, what: str) -> list[Request]:
        """Return the received requests of a kind."""
        return [request for request in self.requests if request.what == what]

    async def until(self, what: str, count: int = 1) -> Request:
        """Wait for a number of requests of a kind, and return the last."""
        async with self.came:
            await asyncio.wait_for(self.came.wait_for(lambda: len(self.of(what)) >= count), PATIENCE)
        return self.of(what)[count - 1]

    async def answer(self, request: Request, wire: Wire) -> None:
        async with self.came:
            self.requests.append(request)
            self.came.notify_all()
        usual: Handle = getattr(self, f"_{request.what.replace('/', '_')}", self._other)
        waits = self.handlers.get(request.what, usual)(request, wire)
        if waits is not None:
            await waits

    def _server_discover(self, request: Request, wire: Wire) -> None:
        if self.revision != MODERN:
            wire.reply(400, b"Bad Request: what is this?", content_type="text/plain")
            return
        capabilities: Json = {name: {} for name in ("tools", "prompts", "resources", "completions")}
        members: Json = {"supportedVersions": [MODERN], "capabilities": capabilities}
        wire.result(request, {**COMPLETE, **members})

    def _initialize(self, request: Request, wire: Wire) -> None:
        self.sessions += 1
        members: Json = {"capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}
        wire.result(request, {"protocolVersion": self.revision, **members}, mcp_session_id=f"session-{self.sessions}")

    def _tools_list(self, request: Request, wire: Wire) -> None:
        wire.result(request, {**COMPLETE, "tools": self.tools})

    def _tools_call(self, request: Request, wire: Wire) -> None:
        wire.result(request, result(request.json["params"]["name"]))

    def _GET(self, _request: Request, wire: Wire) -> None:  # noqa: N802
        wire.reply(405)

    def _DELETE(self, _request: Request, wire: Wire) -> None:  # noqa: N802
        wire.reply(200)

    def _other(self, request: Request, wire: Wire) -> None:
        message = request.json
        if is_object(message) and "id" in message and "method" in message:
            wire.error(request, -32601, "Method not found", status=404)
        else:
            wire.reply(202)


@asynccontextmanager
async def serving(script: Any, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """Run a server that follows a script, and give its URL. Fails if the script fails."""
    tasks: set[asyncio.Task[None]] = set()
    failed: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while (request := await read_request(reader)) is not None:
                await script.answer(request, Wire(reader, writer))
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:
            failed.append(error)
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20, ssl=tls)
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
    if failed:
        raise failed[0]


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return Request(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))


@asynccontextmanager
async def connected(script: Any, **options: Any) -> AsyncGenerator[Client]:
    """Connect a client to a server that follows a script. Fails if the client leaves a connection open."""
    async with serving(script) as url:
        options = {"timeout": PATIENCE, "on_diagnostic": print, **options}
        async with connect(url, **options) as opened:
            yield opened
        pool = pool_of(opened)
        assert (pool._busy, pool._idle) == (set(), [])


def pool_of(client: Client) -> Any:
    """Return the connection pool of a client."""
    endpoint: Any = client._connection._opener.endpoint  # pyright: ignore[reportPrivateUsage]
    return endpoint.pool
