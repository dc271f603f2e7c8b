"""What is fuzzed: each target takes bytes, and fails with an exception if a promise is broken.

Targets are plain functions, so that the kept corpus runs in every test run, and a finding can be repeated with
`python -m tests.fuzz TARGET FILE`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import mcpspec
import typedmcp
from mcpspec.support.errors import ConversionError, DecodeError
from tests.generated.backends import is_list, is_object
from tests.helpers import LEGACY, MODERN_REVISION, chunked, opened
from tests.server.http import http_wire
from tests.server.http.asgi_driver import ToolHandler, serving
from tests.typedmcp_http.two_protocols import Pipe, Side, ignore, known_ids
from typedmcp import Limits
from typedmcp.protocol.framing import Framer, OversizeMessage, classify
from typedmcp.protocol.headers import header_params, mirror_arguments
from typedmcp.protocol.sse import EventParser
from typedmcp.transports.http1 import BrokenConnectionError, HttpConnection
from typedmcp_http import HttpProtocol
from typedmcp_schemas.nesting import decode_json
from typedmcp_schemas.validate import SchemaRejectedError, compile_schema

__all__ = ["TARGETS", "Target"]

Target: TypeAlias = Callable[[bytes], None]

TARGETS: dict[str, Target] = {}
"""The targets by name."""

_INTERNAL_ERROR: Final = -32603
_LIMIT: Final = 1 << 12
"""Bytes of a message, so that the fuzzer reaches the limit."""
_HEAD_LIMIT: Final = 1 << 10
_loop = asyncio.new_event_loop()


def _target(function: Target) -> Target:
    TARGETS[function.__name__] = function
    return function


def _run(main: Coroutine[Any, Any, Any]) -> Any:
    async def timed() -> Any:
        async with asyncio.timeout(20):
            return await main

    return _loop.run_until_complete(timed())


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Return the first line and the rest."""
    head, _, rest = data.partition(b"\n")
    return head, rest


def _pieces(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return bytes whole, and in pieces whose sizes the first byte chooses."""
    size = 1 + (data[0] % 16 if data else 0)
    return data[1:], chunked(data[1:], [size] * (len(data) // size))


@_target
def frames(data: bytes) -> None:
    """A stream of lines is split the same in any chunking, and every line is classified."""
    whole, pieces = _pieces(data)

    def read(parts: Sequence[bytes]) -> list[bytes | None]:
        framer = Framer(_LIMIT)
        lines = [line for part in parts for line in framer.feed(part)] + framer.end()
        for line in lines:
            classify(line)
        return [None if isinstance(line, OversizeMessage) else line for line in lines]

    assert read(pieces) == read([whole])


@_target
def connections(data: bytes) -> None:
    """A server answers any lines with messages, each id at most once, and never with an internal error."""
    state = ("fresh", MODERN_REVISION, *LEGACY)[data[0] % (2 + len(LEGACY))] if data else "fresh"

    async def main() -> None:
        async with opened(state, limits=Limits(message_bytes=_LIMIT)) as line:
            await line.send_raw(data[1:])
            line.handler.go.set()
            for reply in await line.close():
                for each in reply if is_list(reply) else [reply]:
                    assert each["jsonrpc"] == "2.0"
                    assert each.get("error", {}).get("code") != _INTERNAL_ERROR, each
            assert "internal error" not in line.kinds(), line.reports

    _run(main())


@_target
def requests(data: bytes) -> None:
    """The ASGI application answers any headers and body with a status below 500, and keeps nothing of the request.

    The first line has the headers, with `|` between them.
    """
    head, body = _split(data)
    pairs = [each.split(b":", 1) for each in head.replace(b"\r", b"").split(b"|") if b":" in each]
    headers = [(name.strip().lower(), value.strip()) for name, value in pairs]

    async def main() -> None:
        async with serving() as served:
            request = served.open("POST", headers, body)
            with suppress(TimeoutError):  # a tool that waits
                async with asyncio.timeout(0.5):
                    await request.head()
            assert request.status is None or request.status < 500, (request.status, request.body)

    _run(main())


@_target
def responses(data: bytes) -> None:
    """A client reads any bytes as an HTTP response, or raises `BrokenConnectionError`, the same in any chunking."""
    whole, pieces = _pieces(data)

    async def read(parts: Sequence[bytes]) -> tuple[int, bytes] | None:
        connection = HttpConnection(_HEAD_LIMIT)
        connection.connection_made(_Pipe())
        connection.send_request(b"")
        for part in parts:
            connection.data_received(part)
        connection.connection_lost(None)
        try:
            while not connection.has_head:
                await connection.progress()
            body = b""
            while chunk := b"".join(await connection.read_chunks()):
                body += chunk
        except BrokenConnectionError:
            return None
        return connection.status, body

    assert _run(read(pieces)) == _run(read([whole]))


class _Pipe:
    """The transport of a connection whose bytes the fuzzer chooses."""

    def write(self, data: bytes) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def get_extra_info(self, _name: str) -> None: ...


@_target
def events(data: bytes) -> None:
    """A stream of server-sent events is parsed the same in any chunking, and no event exceeds the limit."""
    whole, pieces = _pieces(data)

    def parse(parts: Sequence[bytes]) -> list[Any]:
        parser = EventParser(_LIMIT)
        return [event for part in parts for event in parser.feed(part)]

    def plain(event: Any) -> tuple[Any, ...]:
        is_kept = not isinstance(event.data, OversizeMessage)
        assert not is_kept or len(event.data or b"") <= _LIMIT
        return (is_kept and event.data, event.event, event.id, event.retry)

    assert list(map(plain, parse(pieces))) == list(map(plain, parse([whole])))


@_target
def schemas(data: bytes) -> None:
    """A schema is compiled or rejected, and a value is checked, within bounds; headers are found or not."""
    head, rest = _split(data)
    try:
        schema, value = decode_json(head), decode_json(rest)
    except ValueError:
        return
    if not is_object(schema):
        return
    with suppress(SchemaRejectedError):
        error = compile_schema(schema).find_error(value, "value")
        assert error is None or (error.isprintable() and len(error) < 10_000), error
    with suppress(ValueError):
        mirror_arguments(header_params(schema), value if is_object(value) else {})


_NAMES: Final = (
    "CallToolResult",
    "Tool",
    "CreateMessageResult",
    "CallToolRequest",
    "ElicitRequest",
    "InitializeRequest",
)


@_target
def conversion(data: bytes) -> None:
    """A value of one revision becomes a value of another one, of which all that was lost is named, or an error."""
    if len(data) < 3:
        return
    versions = mcpspec.VERSIONS
    source, target = versions[data[0] % len(versions)], versions[data[1] % len(versions)]
    types = mcpspec.revision(source).exact.structs
    kind = getattr(types, _NAMES[data[2] % len(_NAMES)], None)
    if kind is None:
        return
    try:
        value = types.decode(data[3:], kind)
    except DecodeError:
        return
    with suppress(ConversionError):
        converted = mcpspec.convert(value, target)
        sent = mcpspec.revision(target).exact.structs.to_builtins(converted.value)
        again = json.loads(json.dumps(sent))
        mcpspec.revision(target).exact.structs.from_builtins(again, type(converted.value))


def _tool(name: str, **meta: Any) -> bytes:
    params = {"name": name, "arguments": {}, "_meta": {**http_wire.META, **meta}}
    return http_wire.call({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def _in_session(**members: Any) -> bytes:
    headers = {"MCP-Protocol-Version": http_wire.LEGACY, "Mcp-Session-Id": f"{1:024d}"}  # the second id of `known_ids`
    return http_wire.post({"jsonrpc": "2.0", **members}, headers)


_REQUESTS: Final = (
    _tool("echo"),
    _tool("turn"),
    _tool("report", progressToken=1),
    _tool("no"),
    http_wire.call({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    http_wire.opening()[0],
    _in_session(id=1, method="ping"),
    _in_session(id=1, method="tools/call", params={"name": "echo"}),
    http_wire.call(b"{}", {"Connection": "keep-alive", "Mcp-Method": "ping"}),
    http_wire.request("GET", "/mcp"),
)


@_target
def protocols(data: bytes) -> None:
    """uvicorn's protocol class and that of this library write the same, whatever arrives in whatever pieces.

    The bytes are steps: a letter, and numbers of one byte. `r` sends a request, `e` one with edits, `c` one in two
    pieces, `p` two in one piece, `s` the end of one and another one, `t` bytes as they are. In lower case, the server
    works until it is at rest. `w` and `W` stop and resume writing, `n` opens a new connection.
    """
    logging.disable()
    try:
        theirs, ours = (_run(_written(kind, data)) for kind in (HttpToolsProtocol, HttpProtocol))
    finally:
        logging.disable(logging.NOTSET)
    assert ours == theirs, (theirs, ours)


async def _written(kind: type[HttpToolsProtocol], data: bytes) -> list[tuple[bytes, bool]]:
    """Serve the steps with a protocol class. Return what each connection got, and whether it was closed."""
    loop = asyncio.get_running_loop()
    vars(loop)["time"] = lambda: 0.0  # no timer ends
    with known_ids():
        handler = ToolHandler()
        app = typedmcp.asgi(handler, on_diagnostic=ignore, limits=Limits(http_body_bytes=_LIMIT))
        side = Side(kind, app, handler)
        pipes = [side.open_pipe()]
        try:
            for sent, settles in _Steps(data):
                pipes = await _send(side, pipes, sent)
                if settles:
                    await pipes[-1].settle()
                else:  # an event loop reads once in a turn
                    await asyncio.sleep(0)
            await pipes[-1].settle()
            return [(pipe.output, pipe.is_closed) for pipe in pipes]
        finally:
            del vars(loop)["time"]
            await side.close()


async def _send(side: Side, pipes: list[Pipe], sent: bytes | str) -> list[Pipe]:
    """Send bytes over the last connection, or a new one if that is closed, or take another step."""
    last = pipes[-1]
    if sent == "n" or (last.is_closed and isinstance(sent, bytes)):
        await last.settle()
        pipes = [*pipes, side.open_pipe()]
        last = pipes[-1]
    if sent == "w":
        last.watched.pause_writing()
    elif sent == "W":
        last.watched.resume_writing()
    elif isinstance(sent, bytes):
        last.send(sent)
    return pipes


class _Steps:
    """Reads steps, and makes the pieces that they send."""

    def __init__(self, data: bytes) -> None:
        self._rest = iter(data)

    def __iter__(self) -> Iterator[tuple[bytes | str, bool]]:
        """Yield each piece or other step, and whether the server then works until it is at rest."""
        makers = {"r": self._whole, "c": self._cut, "p": self._two, "s": self._end, "e": self._edited, "t": self._text}
        for step in self._rest:
            letter = chr(step)
            if letter in "nwW":
                yield letter, letter == "n"
            elif (make := makers.get(letter.lower())) is not None:
                for piece in make():
                    yield piece, letter.islower()

    def _number(self) -> int:
        return next(self._rest, 0)

    def _request(self) -> bytes:
        return _REQUESTS[self._number() % len(_REQUESTS)]

    def _place(self, within: bytes) -> int:
        return (self._number() << 8 | self._number()) % (len(within) + 1)

    def _whole(self) -> list[bytes]:
        return [self._request()]

    def _cut(self) -> list[bytes]:
        whole = self._request()
        at = self._place(whole)
        return [whole[:at], whole[at:]]

    def _two(self) -> list[bytes]:
        return [self._request() + self._request()]

    def _end(self) -> list[bytes]:
        whole = self._request()
        return [whole[self._place(whole) :] + self._request()]

    def _edited(self) -> list[bytes]:
        data = self._request()
        for _ in range(1 + self._number() % 3):
            at = self._place(data)
            removed, added = self._number() % 32, self._number() % 32
            data = data[:at] + bytes([self._number() for _ in range(added)]) + data[at + removed :]
        return [data]

    def _text(self) -> list[bytes]:
        return [bytes([self._number() for _ in range(self._number() % 64)])]
