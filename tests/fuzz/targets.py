"""What is fuzzed: each target takes bytes, and fails with an exception if a promise is broken.

Targets are plain functions, so that the kept corpus runs in every test run, and a finding can be repeated with
`python -m tests.fuzz TARGET FILE`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import mcpspec
from mcpspec.support.errors import ConversionError, DecodeError
from tests.generated.backends import is_list, is_object
from tests.helpers import LEGACY, MODERN_REVISION, chunked, opened
from tests.server.http.asgi_driver import serving
from typedmcp import Limits
from typedmcp.protocol.framing import Framer, OversizeMessage, classify
from typedmcp.protocol.headers import header_params, mirror_arguments
from typedmcp.protocol.sse import EventParser
from typedmcp.transports.http1 import BrokenConnectionError, HttpConnection
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
            await connection.wait_for_head()
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
