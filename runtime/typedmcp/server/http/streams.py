"""Event streams, which send messages to a client as server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from typedmcp.frames import OnFrame
from typedmcp.protocol.budgets import Hold
from typedmcp.protocol.sse import encode_event
from typedmcp.server.channel import Channel
from typedmcp.server.http.messages import PIECE_BYTES, Send, WriteNow
from typedmcp.server.store import Store, StreamNotFoundError
from typedmcp.server.store.memory import MemoryStore

__all__ = [
    "STREAM_HEADERS", "EventStream", "ResumableStream", "StreamChannel", "StreamLog", "WaitingStream", "whole_stream",
]  # fmt: skip

STREAM_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
"""The headers of a response that is a stream of events."""
_COMMENT: Final = b":\n\n"
_EVENT_TYPE: Final = b"event: message\n"
"""The type that an event has anyway. Some clients do not know that, and read only events that name it."""
_CHUNK_BYTES: Final = 1 << 16
"""Bytes of events that are sent at once."""
_UNCOUNTED_BYTES: Final = 4 << 10
"""Bytes of a queue that count with the stream itself."""

_FIRST_RETRY_PAUSE, _MAX_RETRY_PAUSE = 0.1, 10.0
"""Seconds between two attempts to store events for a client that is not connected. The pause doubles each time."""
_FINAL_EVENT_ATTEMPTS, _MAX_FINAL_EVENT_PAUSE = 100, 10.0
"""Attempts to store a final event, and the maximum number of seconds between two attempts."""


def whole_stream(data: bytes) -> bytes:
    """Return the stream of events that has one message."""
    return _EVENT_TYPE + encode_event(data)


class EventStream:
    """One response that is a stream of events.

    `put` queues messages, and `pump` sends them. They are dropped once the client has disconnected. The stream is
    congested while more than `buffer` bytes are queued. A queue that grows counts in `hold`, which the caller
    closes.
    """

    __slots__ = (
        "_counted", "_data", "_drained", "_ended", "_has_started", "_ids", "_is_complete", "_is_detached", "_last",
        "_send", "_waiter", "buffer", "first", "hold", "on_drained", "on_ended", "on_frame", "size", "write",
    )  # fmt: skip

    def __init__(self, send: Send, buffer: int, hold: Hold) -> None:
        self.size: int = 0
        """Bytes of the queued messages."""
        self.buffer: int = buffer
        self.hold: Hold = hold
        self.first: bytes = b""
        """The bytes that it begins with."""
        self._counted = _UNCOUNTED_BYTES
        """Bytes of the queue that are counted, and those that an open stream counts anyway."""
        self.on_drained: Callable[[], None] | None = None
        """Called each time the stream is no longer congested."""
        self.on_ended: Callable[[EventStream], None] | None = None
        """Called once nothing more is sent."""
        self.on_frame: OnFrame | None = None
        """Called with each message that is sent, if there is a sink for them."""
        self.write: WriteNow | None = None
        """Sends parts of the stream, if the server has a short way for that."""
        self._send = send
        self._data: list[bytes] = []
        self._ids: list[str | None] = []
        self._last = b""
        self._ended = False
        self._is_detached = False
        """True once the connection is closed, or must no longer be used."""
        self._has_started = False
        self._is_complete = False
        """True once the end of the response has been sent."""
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None

    # Producers

    def put(self, data: bytes, id: str | None = None, *, last: bool = False) -> bool:
        """Queue a message; `last` ends the stream after it. False if the client has disconnected."""
        if self._ended or self._is_detached:
            return False
        self._data.append(data)
        self._ids.append(id)
        self.size += len(data)
        if self.size > self._counted:
            self._count(self.size)
        self._ended = last
        self._wake()
        return True

    def end(self, last: bytes = b"") -> None:
        """End the stream after the queued messages, with the bytes `last`."""
        if not self._ended:
            self._last = last
            self._ended = True
            self._wake()

    def ping(self) -> None:
        """Send a comment, unless messages are queued."""
        if not self._data:
            self._wake()

    def detach(self) -> None:
        """Stop sending: the client has disconnected, or has resumed the stream on another connection."""
        self._is_detached = True
        self._drop_queue()
        self._wake()

    def hang_up(self, retry: int) -> None:
        """Do nothing: the events are not stored, so a client that reconnects could not get the rest."""

    def _count(self, size: int) -> None:
        """Count a queue of this size, in steps, so that short queues cost nothing."""
        counted = size + _UNCOUNTED_BYTES if size > _UNCOUNTED_BYTES else size
        self.hold.add(counted - self._counted)
        self._counted = counted

    def _uncount(self, size: int) -> None:
        """Count a queue that has become shorter."""
        if self._counted > _UNCOUNTED_BYTES:
            self._count(max(size, _UNCOUNTED_BYTES))

    @property
    def is_congested(self) -> bool:
        """True while more than `buffer` bytes are queued, or fewer if the client holds its share in all streams."""
        return self._exceeds(self.size, self.buffer) and not self._is_detached

    @property
    def is_overfull(self) -> bool:
        """True while more than twice `buffer` is queued: messages that can be dropped should not be added."""
        return self._exceeds(self.size, 2 * self.buffer)

    def _exceeds(self, size: int, buffer: int) -> bool:
        return size > buffer or (size > _UNCOUNTED_BYTES and self.hold.is_full)

    async def drain(self) -> None:
        """Wait until the stream is not congested."""
        while self.is_congested:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    # The sender

    async def pump(self) -> None:
        """Send `first` and then the messages, until the stream ends or the client disconnects."""
        first = self.first
        try:
            if not self._data:
                await self._send_chunk(first or _COMMENT)
                first = b""
            while not self._is_detached and (self._data or not self._ended):
                if self._data:
                    await self._send_queue(first)
                    first = b""
                elif await self._wait():
                    await self._send_chunk(_COMMENT)
            if not self._is_complete:
                await self._send_chunk(self._last, more=False)
        finally:
            self._finish()

    def _finish(self) -> None:
        """Send nothing more, and say so. May be called again."""
        self._is_detached = True
        if self.size or self._drained is not None:
            self._drop_queue()
        if self.on_ended is not None:
            self.on_ended(self)
            self.on_ended = None

    async def _wait(self) -> bool:
        """Wait for data to send. Return True if that is a comment."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return not (self._data or self._ended or self._is_detached)

    async def _send_queue(self, first: bytes) -> None:
        """Send `first` and the queued messages, and with the last ones the end of the stream."""
        data, ids, size = self._data, self._ids, self.size
        self._data, self._ids = [], []
        chunk = bytearray(first)
        for at, id in enumerate(ids):
            if self.on_frame is not None:
                self.on_frame("server", data[at])
            event, data[at] = encode_event(data[at], id=id), b""  # a large message is not kept twice while it is sent
            chunk += _EVENT_TYPE
            chunk += await self._send_pieces(chunk, event) if len(event) > PIECE_BYTES else event
            if len(chunk) > _CHUNK_BYTES:
                await self._send_chunk(bytes(chunk))
                chunk.clear()
        if chunk:
            is_end = self._ended and not self._data
            await self._send_chunk(bytes(chunk + self._last) if is_end else bytes(chunk), more=not is_end)
        self.size = max(0, self.size - size)
        self._uncount(self.size)
        self._notify_drained()

    async def _send_pieces(self, chunk: bytearray, event: bytes) -> bytes:
        """Send all of a large event but its last piece, after `chunk`, and return that. Others get turns in between."""
        last = (len(event) - 1) // PIECE_BYTES * PIECE_BYTES
        for start in range(0, last, PIECE_BYTES):
            chunk += event[start : start + PIECE_BYTES]
            await self._send_chunk(bytes(chunk))
            chunk.clear()
            await asyncio.sleep(0)
        return event[last:]

    async def _send_chunk(self, chunk: bytes, *, more: bool = True) -> None:
        if self._is_detached:
            return
        try:
            has_started, self._has_started, self._is_complete = self._has_started, True, not more
            if self.write is not None and self.write(chunk, is_stream=True, more=more):
                return
            if not has_started:
                await self._send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
            await self._send({"type": "http.response.body", "body": chunk, "more_body": more})
        except OSError:  # the client has disconnected
            self.detach()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _drop_queue(self) -> None:
        self._data.clear()
        self._ids.clear()
        self.size = 0
        self._uncount(0)
        self._notify_drained()

    def _notify_drained(self) -> None:
        if self.is_congested:
            return
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if self.on_drained is not None:
            self.on_drained()


class StreamChannel(Channel):
    """A channel whose messages go to an event stream, if there is one."""

    __slots__ = ()

    stream: EventStream | None

    @property
    def is_congested(self) -> bool:
        """True while the client reads the stream too slowly."""
        return self.stream is not None and self.stream.is_congested

    async def drain(self) -> None:
        """Wait until the client has caught up."""
        if self.stream is not None:
            await self.stream.drain()

    def call_when_drained(self, resume: Callable[[], None]) -> None:
        """Call a function each time the client has caught up."""
        if self.stream is not None:
            self.stream.on_drained = resume


class StreamLog:
    """The stored events of one stream, with which a client can resume it.

    `final_event` returns the last event of the stream if this process dies. `spawn` runs a coroutine in a task.
    """

    __slots__ = ("_final_event", "_session", "_store", "exists", "has_ended", "is_immediate", "name", "spawn")

    def __init__(
        self, store: Store, session: str, name: str, final_event: Callable[[], bytes], spawn: Callable[..., Any]
    ) -> None:
        self.name: str = name
        self.spawn: Callable[..., Any] = spawn
        self.exists: bool = False
        """True once the stream is in the store."""
        self.has_ended: bool = False
        self.is_immediate: bool = type(store) is MemoryStore
        """True if the store never waits."""
        self._store = store
        self._session = session
        self._final_event = final_event

    async def append(self, events: Sequence[bytes], *, last: bool) -> list[str]:
        """Store events, the first ones with their stream. Return their ids.

        Raises `StreamNotFoundError` or `ConnectionError`.
        """
        if self.exists:
            number = await self._store.append_events(self._session, self.name, events, last=last)
        else:
            final_event = b"" if last else self._final_event()
            number = await self._store.create_stream(self._session, self.name, final_event, events, last=last)
            self.exists = True
        self.has_ended = last
        return [f"{self.name}.{at}" for at in range(number - len(events) + 1, number + 1)]

    async def append_final_event(self) -> None:
        """End the stream as soon as the store can be reached: the store lacks events that the client may have seen."""
        for pause in range(1, _FINAL_EVENT_ATTEMPTS):
            try:
                await self._store.append_events(self._session, self.name, [self._final_event()], last=True)
            except StreamNotFoundError:
                return
            except ConnectionError:
                await asyncio.sleep(min(pause, _MAX_FINAL_EVENT_PAUSE))
            else:
                return


class ResumableStream(EventStream):
    """An event stream that stores its events when they are sent, in a store that does not wait.

    Once the client can know the stream, events are stored at once, and need no connected client.
    A client that reads slowly slows the stream down. If it still falls too far behind, its connection is closed, and
    the client reconnects for the rest after `retry` milliseconds. Events that cannot be stored are sent without ids.
    """

    __slots__ = ("_is_over", "_log", "_retry", "name")

    def __init__(self, send: Send, buffer: int, hold: Hold, log: StreamLog, retry: int) -> None:
        super().__init__(send, buffer, hold)
        self.name: str = log.name
        """The part before the number in the ids of its events."""
        self._log: StreamLog | None = log
        """The stored events; None once events cannot be stored."""
        self._retry = retry
        self._is_over = False
        """True once no more messages are added."""

    async def pump(self) -> None:
        """Store and send messages, until the stream ends or the client disconnects."""
        self._store_queued()
        await super().pump()

    def _store_queued(self) -> None:
        """Store the messages that have been queued so far, with the stream."""
        if self._log is not None and not self._log.exists:
            self._ids = self._try(self._log.append(self._data, last=self._is_over)) or self._ids

    def put(self, data: bytes, id: str | None = None, *, last: bool = False) -> bool:  # noqa: ARG002  # the log gives ids
        """Store a message, and queue it to be sent. False if it can reach no client."""
        if self._is_over:
            return False
        self._is_over = last
        if self._log is not None and not self._log.exists:
            return EventStream.put(self, data, last=last)
        ids = None if self._log is None else self._try(self._log.append([data], last=last))
        return self._send_stored(data, ids[0] if ids else None, last=last) or bool(ids)

    def _send_stored(self, data: bytes, id: str | None, *, last: bool = False) -> bool:
        """Queue a message. Close the connection of a client that has not read a large part of the stored ones."""
        is_queued = EventStream.put(self, data, id, last=last)
        if self.size > 2 * self.buffer and self._is_slow and self._log is not None:
            self._drop_queue()
            EventStream.end(self, b"retry: %d\n\n" % self._retry)
        return is_queued

    def end(self, last: bytes = b"") -> None:
        """End the stream after the queued messages. A cancelled call has no response that a client could wait for."""
        if not self._is_over and self._log is not None and self._log.exists:
            self._try(self._log.append([], last=True))
        self._is_over = True
        super().end(last)

    def hang_up(self, retry: int) -> None:
        """Close the connection after the queued messages. The client reconnects after `retry` milliseconds."""
        if self._log is not None:
            self._store_queued()
            super().end(b"retry: %d\n\n" % retry)

    @property
    def is_overfull(self) -> bool:
        """True while more than twice `buffer` is queued, and the client has had no chance to read it."""
        return not self._is_slow and super().is_overfull

    @property
    def _is_slow(self) -> bool:
        """True while the client has not read what has been sent."""
        return self._has_started and self._waiter is None

    def _try(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run an operation of a store that does not wait. None if the session has ended."""
        try:
            work.send(None)
        except StopIteration as stop:
            return stop.value
        except StreamNotFoundError:
            self._log = None
        return None


class WaitingStream(ResumableStream):
    """A resumable stream whose store waits: one task stores messages, and another one sends those that are stored."""

    __slots__ = ("_hang_up_retry", "_has_news", "_new", "_new_size")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._new: list[bytes] = []
        """The messages that wait to be stored."""
        self._new_size = 0
        self._hang_up_retry: int | None = None
        self._has_news = asyncio.Event()
        """Set when there is something to store, or nothing more."""

    def put(self, data: bytes, id: str | None = None, *, last: bool = False) -> bool:  # noqa: ARG002  # the log gives ids
        """Queue a message to be stored and sent. False if it can reach no client."""
        if self._is_over:
            return False
        self._is_over = last
        self._has_news.set()
        if self._is_detached and self._log is None:
            return False
        self._new.append(data)
        self._new_size += len(data)
        if self._new_size + self.size > self._counted:
            self._count(self._new_size + self.size)
        return True

    def end(self, last: bytes = b"") -> None:  # noqa: ARG002
        """End the stream after the queued messages."""
        self._is_over = True
        self._has_news.set()

    def hang_up(self, retry: int) -> None:
        """Close the connection after the queued messages. The client reconnects after `retry` milliseconds."""
        if self._log is not None:
            self._hang_up_retry = retry
            self._has_news.set()

    @property
    def is_congested(self) -> bool:
        """True while more than `buffer` bytes wait to be stored or sent, or fewer if the client holds its share."""
        return self._exceeds(self._new_size + self.size, self.buffer)

    @property
    def is_overfull(self) -> bool:
        """True while more than twice `buffer` waits to be stored."""
        return self._exceeds(self._new_size, 2 * self.buffer)

    async def pump(self) -> None:
        """Store and send messages until the stream ends, with or without a client."""
        try:
            if self._is_over:  # the client gets nothing before all of it is stored
                await self._store()
                await EventStream.pump(self)
            else:
                sending = asyncio.get_running_loop().create_task(EventStream.pump(self))
                try:
                    await self._store()
                    await sending
                finally:
                    sending.cancel()
        finally:
            self._is_over = True
            self._new, self._new_size = [], 0  # nobody waits for messages to be stored
            self._finish()

    async def _store(self) -> None:
        """Store messages until the stream ends, and queue them to be sent."""
        await self._append([], last=False)  # the client can resume the stream from its start
        while self._new or not self._is_over:
            if self._new:
                await self._store_new()
            elif self._hang_up_retry is not None:
                EventStream.end(self, b"retry: %d\n\n" % self._hang_up_retry)
                self._hang_up_retry = None
            else:
                self._has_news.clear()
                await self._has_news.wait()
        if self._log is not None and not self._log.has_ended:  # no response, for which a client could wait
            await self._append([], last=True)
        EventStream.end(self)

    async def _store_new(self) -> None:
        data, size, self._new = self._new, self._new_size, []
        for each, id in zip(data, await self._append(data, last=self._is_over), strict=True):
            self._send_stored(each, id)
        self._new_size -= size
        self._uncount(self._new_size + self.size)
        self._notify_drained()

    async def _append(self, data: list[bytes], *, last: bool) -> Sequence[str | None]:
        """Store messages and return their ids; None for each that cannot be stored."""
        pause = _FIRST_RETRY_PAUSE
        while self._log is not None:
            try:
                return await self._log.append(data, last=last)
            except StreamNotFoundError:
                self._log = None
            except ConnectionError:
                # A connected client gets the messages now; for one that has to come back, the store is tried again.
                if not self._is_detached or pause > _MAX_RETRY_PAUSE:
                    self._log.spawn(self._log.append_final_event())
                    self._log = None
                else:
                    await asyncio.sleep(pause)
                    pause *= 2
        return [None] * len(data)
