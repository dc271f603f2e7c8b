"""HTTP as it was in 2024-11-05: a stream of events brings all messages, and names where to post them.

https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
"""

from __future__ import annotations

import asyncio
from collections import deque

from typedmcp.client.endpoint import Endpoint
from typedmcp.client.http1 import Response
from typedmcp.errors import Error, ProtocolError
from typedmcp.http.sse import EventParser
from typedmcp.transports import HIGH_WATER
from typedmcp.wire import Oversize

__all__ = ["TwoEndpoints"]

_GET = b"accept: text/event-stream\r\n"
_POST = b"content-type: application/json\r\n"


class TwoEndpoints:
    """A transport: what is written is posted line by line, what is read comes from the stream of events."""

    def __init__(self, endpoint: Endpoint, stream: Response, limit: int) -> None:
        self._endpoint = endpoint
        self._stream = stream
        self._parser = EventParser(limit)
        self._post: Endpoint | None = None
        self._read: list[bytes] = []
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._sending: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._end: str = ""
        self._closed = False

    @classmethod
    async def open(cls, endpoint: Endpoint, limit: int) -> TwoEndpoints:
        """Open the stream, and learn where to post.

        Raises `ConnectionLost`, and `ProtocolError` where the server does not say, or names another origin.
        """
        try:
            response = await endpoint.send("GET", _GET, again=True)
            if response.status != 200 or not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise await endpoint.refusal(response)
            transport = cls(endpoint, response, limit)
            try:
                await transport._find_post()
            except BaseException:
                response.close()
                raise
        except OSError as error:
            raise endpoint.lost(error) from error
        return transport

    async def _find_post(self) -> None:
        while self._post is None:
            data = await self._stream.read()
            if not data:
                raise ProtocolError(f"{self._endpoint.url}: the stream ended before it said where to post")
            self._take(data)
            if self._read:
                raise ProtocolError(f"{self._endpoint.url}: a message came before the event that says where to post")

    def _take(self, data: bytes) -> None:
        for event in self._parser.feed(data):
            if isinstance(event.data, Oversize):
                self._read.append(event.data.head.replace(b"\n", b" "))  # junk now, but with its id in it
            elif event.event == "endpoint":
                self._found(event.data)
            elif event.event == "message" and event.data:
                self._read.append(event.data.replace(b"\n", b" "))

    def _found(self, data: bytes) -> None:
        if self._post is not None:
            return
        try:
            self._post = self._endpoint.near(data.decode())
        except (ValueError, Error) as error:
            raise ProtocolError(f"{self._endpoint.url} names no URL to post to: {error}") from None

    # What a transport does

    async def read(self) -> bytes:
        """The next messages, one a line. Raises `OSError` where the stream broke, or nothing can be posted any more."""
        while not self._read:
            try:
                data = await self._stream.read()
            except OSError as error:
                if self._end:
                    return b""
                raise error from None
            if not data or self._closed:
                return b""
            self._take(data)
        lines, self._read = self._read, []
        return b"".join([line + b"\n" for line in lines])

    def write(self, data: bytes) -> None:
        """Post these lines, one after the other."""
        if self._closed:
            return
        for line in data.splitlines():
            self._queue.append(line)
            self._queued += len(line)
        if self._queued > HIGH_WATER:
            self._drained.clear()
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._queue:
                line = self._queue.popleft()
                await self._send_one(line)
                self._queued -= len(line)
                if self._queued <= HIGH_WATER // 2:
                    self._drained.set()
        except (Error, OSError) as error:
            self._end = str(error)
            self._stream.close()  # whoever reads learns that it is over
        finally:
            self._sending = None
            self._drained.set()

    async def _send_one(self, line: bytes) -> None:
        assert self._post is not None
        response = await self._post.send("POST", _POST, line)
        if response.status >= 300:
            raise await self._post.refusal(response)
        try:
            await response.body(1 << 16)
        except ValueError:
            pass
        finally:
            response.close()

    @property
    def congested(self) -> bool:
        """Whether the server does not take what is posted."""
        return not self._drained.is_set()

    async def drain(self) -> None:
        """Wait until it does."""
        await self._drained.wait()

    def describe_end(self) -> str:
        """Why it ended, if that is known."""
        return self._end

    async def close(self) -> None:
        """End the stream, which ends the session."""
        self._closed = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])
        self._stream.close()
        if self._post is not None:
            self._post.close()
