"""HTTP with SSE, the transport of 2024-11-05: an event stream brings all messages, and gives the URL to post to.

https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from typedmcp.client.http.bodies import accept_coding
from typedmcp.client.http.endpoint import Endpoint
from typedmcp.errors import Error, ProtocolError
from typedmcp.protocol.framing import OversizeMessage
from typedmcp.protocol.sse import EventParser
from typedmcp.protocol.text import visible
from typedmcp.transports.descriptors import QueueingTransport
from typedmcp.transports.http1 import HttpResponse

__all__ = ["LegacySseTransport"]

_GET = b"accept: text/event-stream\r\n"
_POST = b"content-type: application/json\r\n"


class LegacySseTransport(QueueingTransport):
    """A `Transport` that posts each written line, and reads messages from the event stream."""

    network: Final = "http"

    def __init__(self, endpoint: Endpoint, stream: HttpResponse) -> None:
        super().__init__()
        self._endpoint = endpoint
        self.url: str = endpoint.url
        self._stream = stream
        self._parser = EventParser(endpoint.limits.message_bytes, endpoint.limits.message_depth)
        self._post_endpoint: Endpoint | None = None
        self._received: list[bytes] = []
        self._queue: deque[bytes] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._end_reason: str = ""

    @classmethod
    async def open(cls, endpoint: Endpoint, tolerate: Callable[[str], bool]) -> LegacySseTransport:
        """Open the event stream, and wait for the URL to post to.

        `tolerate` is asked about a compressed stream. Raises `ConnectionLostError`, and `ProtocolError` if the server
        announces no URL, or one of another origin.
        """
        try:
            response = await endpoint.send("GET", _GET)
            if response.status != 200 or not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise await endpoint.error_of(response)
            accept_coding(response, tolerate)
            transport = cls(endpoint, response)
            try:
                await transport._wait_for_post_endpoint()
            except BaseException:
                response.close()
                raise
        except OSError as error:
            raise endpoint.connection_error(error) from error
        return transport

    async def _wait_for_post_endpoint(self) -> None:
        while self._post_endpoint is None:
            data = await self._stream.read()
            if not data:
                raise ProtocolError(f"{self._endpoint.url}: the stream ended before it named the URL to post to")
            self._feed(data)
            if self._received:
                raise ProtocolError(f"{self._endpoint.url}: a message came before the event `endpoint`")

    def _feed(self, data: bytes) -> None:
        for event in self._parser.feed(data):
            if isinstance(event.data, OversizeMessage):
                self._received.append(event.data.head.replace(b"\n", b" "))  # still with its id, and rejected again
            elif event.event == "endpoint":
                self._set_post_endpoint(event.data)
            elif event.event == "message" and event.data:
                if self._endpoint.on_frame is not None:
                    self._endpoint.on_frame("server", event.data)
                self._received.append(event.data.replace(b"\n", b" "))

    def _set_post_endpoint(self, data: bytes) -> None:
        if self._post_endpoint is not None:
            return
        try:
            self._post_endpoint = self._endpoint.resolve(data.decode())
        except (ValueError, Error) as error:
            raise ProtocolError(f"{self._endpoint.url}: invalid URL to post to: {visible(str(error))}") from None

    # The transport

    async def read(self) -> bytes:
        """Return the next messages, one per line. Raises `OSError` if the stream broke or a message was rejected."""
        while not self._received:
            try:
                data = await self._stream.read()
            except OSError as error:
                if self._end_reason:
                    return b""
                raise error from None
            if not data or self._closed:
                return b""
            self._feed(data)
        lines, self._received = self._received, []
        return b"".join([line + b"\n" for line in lines])

    def write(self, data: bytes) -> None:
        """Post these lines, one after the other."""
        if self._closed:
            return
        for line in data.splitlines():
            if line:  # not the newline of a large message, which comes by itself
                self._queue.append(line)
                self._count_queued(len(line))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        assert self._post_endpoint is not None
        try:
            while self._queue:
                line = self._queue.popleft()
                await self._post_endpoint.post(_POST, line)
                self._count_sent(len(line))
        except (Error, OSError) as error:
            self._end_reason = f"{error}; the event `endpoint` of {self._endpoint.url} names where to post"
            self._stream.close()  # ends the task that reads
        finally:
            self._sending = None
            self._end_congestion()

    def describe_end(self) -> str:
        """Return why the connection ended, if that is known."""
        return self._end_reason

    async def close(self) -> None:
        """Close the event stream, which ends the session."""
        self._closed = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])
        self._stream.close()
        if self._post_endpoint is not None:
            self._post_endpoint.pool.close()
