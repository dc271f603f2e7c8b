"""Messages on their way to a client as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from typedmcp.http.sse import event_bytes
from typedmcp.state import Gone, Store

__all__ = ["EVENT_STREAM", "EventStream", "Kept", "Send"]

Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

EVENT_STREAM: list[tuple[bytes, bytes]] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

_COMMENT = b":\n\n"
_MOST = 1 << 16
"""How many bytes of events are handed over at once."""


class Kept:
    """Where the events of a stream are kept, so that a client can come back for them.

    `will` is what the stream ends with if this process dies.
    """

    __slots__ = ("_begun", "_session", "_store", "_will", "has_ended", "name")

    def __init__(self, store: Store, session: str, name: str, will: bytes) -> None:
        self.name: str = name
        self.has_ended: bool = False
        self._store = store
        self._session = session
        self._will = will
        self._begun = False

    async def begin(self) -> None:
        """Begin, once."""
        if not self._begun:
            self._begun = True
            await self._store.begin(self._session, self.name, self._will)

    async def add(self, events: list[bytes], *, last: bool) -> list[str]:
        """Keep some events. Their ids."""
        number = await self._store.append(self._session, self.name, events, last=last)
        self.has_ended = last
        return [f"{self.name}.{at}" for at in range(number - len(events) + 1, number + 1)]


class EventStream:
    """One response that is a stream of events.

    What is put here waits until `pump` has sent it. With `kept`, it is kept before it is sent, and the stream goes on
    without a client; otherwise it is dropped once the client has left. `high_water` is how many bytes may wait before
    the stream is congested.
    """

    __slots__ = (
        "_asked", "_data", "_detached", "_drained", "_ended", "_ids", "_kept", "_send", "_sent_start", "_waiter",
        "hear_drained", "hear_end", "high_water", "size",
    )  # fmt: skip

    def __init__(self, send: Send, high_water: int, kept: Kept | None = None) -> None:
        self.size: int = 0
        """How many bytes wait."""
        self.high_water: int = high_water
        self.hear_drained: Callable[[], None] | None = None
        """Told when the client has caught up."""
        self.hear_end: Callable[[EventStream], None] | None = None
        """Told when nothing more is sent."""
        self._send = send
        self._kept = kept
        self._data: list[bytes] = []
        self._ids: list[str | None] = []
        self._ended = False
        self._detached = False
        self._sent_start = False
        self._asked: int | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None

    # Putting in

    def put(self, data: bytes, id: str | None = None, *, last: bool = False) -> None:
        """Send a message. With `last` the stream ends after it."""
        if self._ended or (self._detached and self._kept is None):
            return
        self._data.append(data)
        self._ids.append(id)
        self.size += len(data)
        self._ended = last
        self._wake()

    def end(self) -> None:
        """End the stream; what waits is sent."""
        self._ended = True
        self._wake()

    def ping(self) -> None:
        """Show that the stream is alive, if nothing else does."""
        if not self._data:
            self._wake()

    def detach(self) -> None:
        """The client has left."""
        self._detached = True
        if self._kept is None:
            self._drop()
        self._wake()

    def hang_up(self, retry: int) -> None:
        """Let the client go, who comes back after so many milliseconds. Nothing happens where nothing is kept."""
        if self._kept is not None and not self._detached:
            self._asked = retry
            self._wake()

    @property
    def is_detached(self) -> bool:
        """Whether nobody reads."""
        return self._detached

    @property
    def is_congested(self) -> bool:
        """Whether too much waits."""
        return self.size > self.high_water and not self._detached

    async def drain(self) -> None:
        """Wait until less does."""
        while self.is_congested:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    # Taking out

    async def pump(self, first: bytes = b"") -> None:
        """Send what is put in, after `first`, until the stream ends or, where nothing is kept, the client leaves."""
        try:
            if self._kept is not None:
                await self._begin_kept()
            await self._out(first or (b"" if self._data else _COMMENT))
            while not self._is_over():
                if self._data:
                    await self._forward()
                elif self._asked is not None:
                    await self._let_go()
                else:
                    await self._out(_COMMENT) if await self._woken() else None
            await self._end_kept()
            await self._out(b"", more=False)
        finally:
            self._detached = True
            self._drop()
            if self.hear_end is not None:
                self.hear_end(self)

    def _is_over(self) -> bool:
        return not self._data and (self._ended or (self._detached and self._kept is None))

    async def _woken(self) -> bool:
        """Wait. True if nothing happened but that it was time to show a sign of life."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return not (self._data or self._ended or self._detached or self._asked is not None)

    async def _begin_kept(self) -> None:
        assert self._kept is not None
        try:
            await self._kept.begin()
        except (Gone, ConnectionError):
            self._kept = None

    async def _forward(self) -> None:
        data, ids, size = self._data, self._ids, self.size
        self._data, self._ids = [], []
        if self._kept is not None:
            ids = await self._keep(data)
        chunk = bytearray()
        for one, id in zip(data, ids, strict=True):
            chunk += event_bytes(one, id=id)
            if len(chunk) > _MOST:
                await self._out(bytes(chunk))
                chunk.clear()
        if chunk:
            await self._out(bytes(chunk))
        self.size -= size
        self._caught_up()

    async def _keep(self, data: list[bytes]) -> list[Any]:
        assert self._kept is not None
        try:
            return await self._kept.add(data, last=self._ended and not self._data)
        except (Gone, ConnectionError):  # the session is over, or nothing can be kept: who reads should still get it
            self._kept = None
            return [None] * len(data)

    async def _end_kept(self) -> None:
        """A call that was cancelled has no answer: whoever follows its stream should not wait for one."""
        if self._kept is not None and not self._kept.has_ended:
            await self._keep([])

    async def _let_go(self) -> None:
        """End the response, but not the stream."""
        assert self._asked is not None
        retry, self._asked = self._asked, None
        await self._out(b"retry: %d\n\n" % retry, more=False)
        self._detached = True

    async def _out(self, chunk: bytes, *, more: bool = True) -> None:
        if self._detached:
            return
        try:
            if not self._sent_start:
                self._sent_start = True
                await self._send({"type": "http.response.start", "status": 200, "headers": EVENT_STREAM})
            await self._send({"type": "http.response.body", "body": chunk, "more_body": more})
        except OSError:  # the client has left meanwhile
            self.detach()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _drop(self) -> None:
        self._data.clear()
        self._ids.clear()
        self.size = 0
        self._caught_up()

    def _caught_up(self) -> None:
        if self.is_congested:
            return
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self.hear_drained is not None:
            self.hear_drained()
