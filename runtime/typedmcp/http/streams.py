"""Messages on their way to a client as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from typedmcp.http.sse import event_bytes
from typedmcp.state import Gone, Store

__all__ = ["EVENT_STREAM", "EventStream", "Kept", "KeptStream", "Send"]

Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

EVENT_STREAM: list[tuple[bytes, bytes]] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

_FIRST_PAUSE, _LAST_PAUSE = 0.1, 10.0
"""Seconds between two attempts to keep something for a client that is not there."""
_ATTEMPTS, _LONGEST_PAUSE = 100, 10.0
"""How often, and after how many seconds at most, a stream that could not be kept is tried to be ended."""
_COMMENT = b":\n\n"
_MOST = 1 << 16
"""How many bytes of events are handed over at once."""


class EventStream:
    """One response that is a stream of events.

    What is put here waits until `pump` has sent it, and is dropped once the client has left. `high_water` is how many
    bytes may wait before the stream is congested.
    """

    __slots__ = (
        "_data", "_detached", "_drained", "_ended", "_ids", "_last", "_send", "_sent_start", "_waiter", "hear_drained",
        "hear_end", "high_water", "size",
    )  # fmt: skip

    def __init__(self, send: Send, high_water: int) -> None:
        self.size: int = 0
        """How many bytes wait."""
        self.high_water: int = high_water
        self.hear_drained: Callable[[], None] | None = None
        """Told when the client has caught up."""
        self.hear_end: Callable[[EventStream], None] | None = None
        """Told when nothing more is sent."""
        self._send = send
        self._data: list[bytes] = []
        self._ids: list[str | None] = []
        self._last = b""
        self._ended = False
        self._detached = False
        self._sent_start = False
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None

    # Putting in

    def put(self, data: bytes, id: str | None = None, *, last: bool = False) -> bool:
        """Send a message. With `last` the stream ends after it. False if nobody is there any more."""
        if self._ended or self._detached:
            return False
        self._data.append(data)
        self._ids.append(id)
        self.size += len(data)
        self._ended = last
        self._wake()
        return True

    def end(self, last: bytes = b"") -> None:
        """End the stream after what waits. `last` are bytes to send at its end."""
        if not self._ended:
            self._last = last
            self._ended = True
            self._wake()

    def ping(self) -> None:
        """Show that the stream is alive, if nothing else does."""
        if not self._data:
            self._wake()

    def detach(self) -> None:
        """The client has left, or is left."""
        self._detached = True
        self._drop()
        self._wake()

    def hang_up(self, retry: int) -> None:
        """Without anything that is kept, the client would have nothing to come back for."""

    @property
    def is_congested(self) -> bool:
        """Whether too much waits."""
        return self.size > self.high_water and not self._detached

    @property
    def is_overfull(self) -> bool:
        """Whether so much waits that nothing should be added that can be done without."""
        return self.size > 2 * self.high_water

    async def drain(self) -> None:
        """Wait until less does."""
        while self.is_congested:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    # Taking out

    async def pump(self, first: bytes = b"") -> None:
        """Send `first`, and what is put in, until the stream ends or the client leaves."""
        try:
            await self._out(first or (b"" if self._data else _COMMENT))
            while not self._detached and (self._data or not self._ended):
                if self._data:
                    await self._forward()
                elif await self._woken():
                    await self._out(_COMMENT)
            await self._out(self._last, more=False)
        finally:
            self._detached = True
            self._drop()
            if self.hear_end is not None:
                self.hear_end(self)

    async def _woken(self) -> bool:
        """Wait. True if nothing happened but that it was time to show a sign of life."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return not (self._data or self._ended or self._detached)

    async def _forward(self) -> None:
        data, ids, size = self._data, self._ids, self.size
        self._data, self._ids = [], []
        chunk = bytearray()
        for one, id in zip(data, ids, strict=True):
            chunk += event_bytes(one, id=id)
            if len(chunk) > _MOST:
                await self._out(bytes(chunk))
                chunk.clear()
        if chunk:
            await self._out(bytes(chunk))
        self.size = max(0, self.size - size)
        self._caught_up()

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


class Kept:
    """Where the events of a stream are kept, so that a client can come back for them.

    `will` is what the stream ends with if this process dies.
    """

    __slots__ = ("_session", "_store", "_will", "has_ended", "name")

    def __init__(self, store: Store, session: str, name: str, will: bytes) -> None:
        self.name: str = name
        self.has_ended: bool = False
        self._store = store
        self._session = session
        self._will = will

    async def begin(self) -> None:
        """Begin. Raises `Gone` or `ConnectionError`."""
        await self._store.begin(self._session, self.name, self._will)

    async def bury(self) -> None:
        """End the stream with its will, as soon as the store can be reached: it can say no more what was said."""
        for pause in range(1, _ATTEMPTS):
            try:
                await self._store.append(self._session, self.name, [self._will], last=True)
            except Gone:
                return
            except ConnectionError:
                await asyncio.sleep(min(pause, _LONGEST_PAUSE))
            else:
                return

    async def add(self, events: list[bytes], *, last: bool) -> list[str]:
        """Keep some events. Their ids. Raises `Gone` or `ConnectionError`."""
        number = await self._store.append(self._session, self.name, events, last=last)
        self.has_ended = last
        return [f"{self.name}.{at}" for at in range(number - len(events) + 1, number + 1)]


class KeptStream(EventStream):
    """One whose events are kept before they are sent, so that it does not need a client.

    While there is one, a slow one slows it down like any stream. A client that falls too far behind all the same has to
    come back for the rest, after `retry` milliseconds. Where nothing can be kept (any more), the events are sent.
    """

    __slots__ = ("_asked", "_keeping", "_kept", "_later", "_new", "_new_size", "_over", "_retry", "name")

    def __init__(
        self, send: Send, high_water: int, kept: Kept, retry: int, later: Callable[[Coroutine[Any, Any, None]], Any]
    ) -> None:
        super().__init__(send, high_water)
        self._later = later
        self.name: str = kept.name
        """What its ids begin with."""
        self._kept: Kept | None = kept
        self._retry = retry
        self._new: list[bytes] = []
        self._new_size = 0
        self._over = False
        self._asked: int | None = None
        self._keeping: asyncio.Future[None] | None = None

    def put(self, data: bytes, id: str | None = None, *, last: bool = False) -> bool:  # noqa: ARG002  # it gets one
        """Keep a message, and send it."""
        if self._over:
            return False
        if self._detached and self._kept is None:  # neither is anybody there, nor can it be kept
            self._over = last
            self._stir()
            return False
        self._new.append(data)
        self._new_size += len(data)
        self._over = last
        self._stir()
        return True

    def end(self, last: bytes = b"") -> None:  # noqa: ARG002
        """Nothing more is going to come."""
        self._over = True
        self._stir()

    def hang_up(self, retry: int) -> None:
        """Let the client go, who comes back after so many milliseconds."""
        if self._kept is not None:
            self._asked = retry
            self._stir()

    @property
    def is_congested(self) -> bool:
        """Whether too much waits to be kept, or to be sent."""
        return self._new_size + self.size > self.high_water

    @property
    def is_overfull(self) -> bool:
        """Whether far too much does."""
        return self._new_size > 2 * self.high_water

    async def pump(self, first: bytes = b"") -> None:
        """Keep and send until the stream ends."""
        await self._begin()
        sending = asyncio.get_running_loop().create_task(super().pump(first))
        try:
            while self._new or not self._over:
                if self._new:
                    await self._keep()
                elif self._asked is not None:
                    super().end(b"retry: %d\n\n" % self._asked)
                    self._asked = None
                else:
                    await self._stirred()
            await self._close()
            super().end()
            await sending
        finally:
            sending.cancel()

    async def _begin(self) -> None:
        assert self._kept is not None
        try:
            await self._kept.begin()
        except (Gone, ConnectionError):
            self._kept = None

    async def _keep(self) -> None:
        data, size, self._new = self._new, self._new_size, []
        for one, id in zip(data, await self._add(data, last=self._over), strict=True):
            super().put(one, id)
        self._new_size -= size
        self._caught_up()
        await asyncio.sleep(0)  # the client has a chance to take it, however much it is
        if self._data and self.size > 2 * self.high_water and self._kept is not None:
            self._drop()
            super().end(b"retry: %d\n\n" % self._retry)

    async def _close(self) -> None:
        """A call that was cancelled has no answer: whoever follows its stream should not wait for one."""
        if self._kept is not None and not self._kept.has_ended:
            await self._add([], last=True)

    async def _add(self, data: list[bytes], *, last: bool) -> list[Any]:
        pause = _FIRST_PAUSE
        while self._kept is not None:
            try:
                return await self._kept.add(data, last=last)
            except Gone:
                self._kept = None
            except ConnectionError:
                if not self._detached or pause > _LAST_PAUSE:  # who reads gets it now
                    self._later(self._kept.bury())
                    self._kept = None
                else:
                    await asyncio.sleep(pause)
                    pause *= 2
        return [None] * len(data)

    async def _stirred(self) -> None:
        self._keeping = asyncio.get_running_loop().create_future()
        try:
            await self._keeping
        finally:
            self._keeping = None

    def _stir(self) -> None:
        if self._keeping is not None and not self._keeping.done():
            self._keeping.set_result(None)
