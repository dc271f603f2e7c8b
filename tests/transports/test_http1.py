"""Heads of responses that a connection has read before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from tests.cases import each
from typedmcp.transports.http1 import BrokenConnectionError, HttpConnection

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n"
RESPONSES = {
    "a body of the declared length": PLAIN + b"hello",
    "the same head with another body": PLAIN + b"there",
    "a body that is too long": PLAIN + b"hello, you",
    "a second response": 2 * (PLAIN + b"hello"),
    "a head and nothing else": PLAIN,
    "a part of a body": PLAIN + b"he",
    "a head without its last byte": PLAIN[:-1],
    "no body": PLAIN.replace(b"5", b"0"),
    "two lengths": PLAIN.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + b"hello",
    "chunks": PLAIN.replace(b"Content-Length: 5", b"Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
    "the last response of a connection": PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + b"hello",
    "an interim response before it": b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + PLAIN + b"hello",
    "an interim response alone": b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n",
    "an error": PLAIN.replace(b"200 OK", b"404 Not Found") + b"hello",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "no HTTP": b"HTTP 200\r\n\r\nhello",
}


def _ignore(*_: object) -> None: ...


class _Pipe:
    """A transport that nobody reads."""

    def __getattr__(self, name: str) -> Any:
        return _ignore


def _receive(connection: HttpConnection, parts: Sequence[bytes]) -> object:
    """Return what a connection makes of a response, and whether it can be used again; None for a failure."""
    connection.send_request(b"")
    for part in parts:
        connection.data_received(part)

    async def read() -> object:
        try:
            while not connection.has_head:
                await asyncio.wait_for(connection.progress(), 0)
            body = connection.take_all()
        except (BrokenConnectionError, TimeoutError) as error:
            return type(error)
        return connection.status, dict(connection.headers), body, connection.finish_response()

    return connection.loop.run_until_complete(read())


def _connect(loop: asyncio.AbstractEventLoop) -> HttpConnection:
    async def make() -> HttpConnection:
        connection = HttpConnection(1000)
        connection.connection_made(_Pipe())
        return connection

    return loop.run_until_complete(make())


@each("first", RESPONSES)
def test_a_head_that_was_read_before_means_the_same_as_on_a_new_connection(first: str) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        for name, response in RESPONSES.items():
            for split in sorted({len(response), len(PLAIN), 10}):
                parts = [part for part in (response[:split], response[split:]) if part]
                used = _connect(loop)
                kept = _receive(used, [RESPONSES[first]])
                if isinstance(kept, tuple) and kept[-1]:
                    assert _receive(used, parts) == _receive(_connect(loop), parts), (name, split)


def test_a_connection_reads_any_number_of_different_heads() -> None:
    with asyncio.Runner() as runner:
        connection = _connect(runner.get_loop())
        for number in (*range(100), *range(100)):
            head = PLAIN.replace(b"\r\n\r\n", b"\r\nX-Number: %d\r\n\r\n" % number)
            headers = {"content-type": "application/json", "content-length": "5", "x-number": str(number)}
            assert _receive(connection, [head + b"hello"]) == (200, headers, b"hello", True)
