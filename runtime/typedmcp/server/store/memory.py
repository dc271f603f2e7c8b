"""A store in the memory of one process."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from typedmcp.server.store import (
    MessageCallback,
    StoredEvent,
    StreamNotFoundError,
    TooManySessionsError,
    deliver,
)
from typedmcp.server.store.limits import StoreLimits

__all__ = ["MemoryStore"]

_NO_WAITERS: set[asyncio.Future[None]] = set()


class MemoryStore:
    """A `Store` for a single process. The options are the limits of `StoreLimits`; `clock` returns seconds.

    Sessions and streams have no timers of their own: expired ones are dropped on access, and by a periodic sweep.
    """

    is_shared: bool = False

    def __init__(
        self,
        *,
        ttl: float = StoreLimits.ttl,
        sessions: int = StoreLimits.sessions,
        events: int = StoreLimits.events,
        event_bytes: int = StoreLimits.event_bytes,
        keep: float = StoreLimits.keep,
        backlog: int = StoreLimits.backlog,
        ended_bytes: int = StoreLimits.ended_bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.worker: str = secrets.token_hex(5)
        self._limits = StoreLimits(ttl, sessions, events, event_bytes, keep, backlog, ended_bytes)
        self._clock = clock
        self._sessions: dict[str, _MemorySession] = {}
        """The sessions by their ids, in the order of their last use."""
        self._ended: dict[tuple[str, str], float] = {}
        """The time at which each stream that has ended is dropped, by session and stream, in that order."""
        self._ended_bytes = 0
        self._published: deque[StoredEvent] = deque(maxlen=backlog)
        self._last_number = 0
        self._on_message: MessageCallback | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None

    async def open(self, on_message: MessageCallback) -> None:
        """Open the store."""
        self._on_message = on_message

    async def close(self) -> None:
        """Close the store, and end each open stream with its final event."""
        self._on_message = None
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        for id, session in self._sessions.items():
            for name, stream in session.open_streams():
                stream.append([stream.final_event], self._limits)
                self._end_stream(id, name, stream)

    # Sessions

    async def create_session(self, session: str, fields: Mapping[str, str]) -> None:
        """Create a session. Raises `TooManySessionsError`."""
        now = self._clock()
        self._drop_session(session)
        if len(self._sessions) >= self._limits.sessions:
            self._sweep(now)
        if len(self._sessions) >= self._limits.sessions:
            raise TooManySessionsError(f"there are {self._limits.sessions} sessions, which is the limit")
        self._sessions[session] = _MemorySession(dict(fields), now + self._limits.ttl)
        self._schedule_sweep()

    async def load_session(self, session: str) -> dict[str, str] | None:
        """Return a copy of the fields of a session."""
        used = self._use(session)
        return None if used is None else used.fields.copy()

    async def update_session(self, session: str, fields: Mapping[str, str | None]) -> bool:
        """Set and delete fields of a session."""
        used = self._use(session)
        if used is None:
            return False
        for name, value in fields.items():
            if value is None:
                used.fields.pop(name, None)
            else:
                used.fields[name] = value
        return True

    async def delete_session(self, session: str) -> bool:
        """Delete a session and its streams."""
        exists = self._use(session) is not None
        self._drop_session(session)
        return exists

    # Streams

    async def create_stream(self, session: str, stream: str, final_event: bytes) -> None:
        """Create a stream. Raises `StreamNotFoundError` if the session does not exist."""
        used = self._use_existing(session)
        used.drop_stream(stream)
        self._ended.pop((session, stream), None)
        if used.streams is None:
            used.streams = {}
        used.streams[stream] = _MemoryStream(final_event)

    async def append_events(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        """Append events to a stream. Raises `StreamNotFoundError`."""
        target = self._use_existing(session).stream(stream)
        if target.has_ended:
            raise StreamNotFoundError("the stream has ended")
        number = target.append(events, self._limits)
        if last:
            self._end_stream(session, stream, target)
        else:
            target.notify()
        return number

    async def follow_stream(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[StoredEvent]]:
        """Yield the events after a number. Raises `StreamNotFoundError`."""
        is_first = True
        while True:
            source = self._existing(session).stream(stream)
            events = source.events_after(after)
            has_ended = source.has_ended
            if events or is_first:
                after = events[-1].number if events else after
                is_first = False
                yield events
            elif not has_ended:
                await source.wait()
            if has_ended:
                return

    # Messages

    async def send(self, worker: str, message: bytes) -> None:
        """Deliver a message to this worker; there is no other."""
        if worker == self.worker and self._on_message is not None:
            deliver(self._on_message, None, message)

    async def publish(self, message: bytes) -> int:
        """Keep a message, and deliver it to this worker."""
        self._last_number = number = self._last_number + 1
        self._published.append(StoredEvent(number, message))
        if self._on_message is not None:
            deliver(self._on_message, number, message)
        return number

    async def messages_after(self, after: int) -> list[StoredEvent] | None:
        """Return the messages published after a number; None if the number is unknown or too old."""
        if not self._last_number - len(self._published) <= after <= self._last_number:
            return None
        return [message for message in self._published if message.number > after]

    # Expiry

    def _use(self, session: str) -> _MemorySession | None:
        """Return a session and restart its idle time. None if it does not exist."""
        # Removed and inserted again, the session used last is the last one in the dictionary.
        used = self._sessions.pop(session, None)
        if used is None:
            return None
        now = self._clock()
        if used.expires <= now:
            self._discard(session, used)
            return None
        used.expires = now + self._limits.ttl
        self._sessions[session] = used
        return used

    def _use_existing(self, session: str) -> _MemorySession:
        used = self._use(session)
        if used is None:
            raise StreamNotFoundError("the session does not exist, or has ended")
        return used

    def _existing(self, session: str) -> _MemorySession:
        """Return a session without restarting its idle time: following a stream does not keep its session alive."""
        now = self._clock()
        self._drop_due_streams(now)
        existing = self._sessions.get(session)
        if existing is None or existing.expires <= now:
            self._drop_session(session)
            raise StreamNotFoundError("the session does not exist, or has ended")
        return existing

    def _end_stream(self, session: str, name: str, stream: _MemoryStream) -> None:
        stream.final_event = b""
        stream.has_ended = True
        stream.notify()
        self._ended[session, name] = self._clock() + self._limits.keep
        self._ended_bytes += stream.size
        while self._ended_bytes > self._limits.ended_bytes and len(self._ended) > 1:
            self._drop_ended_stream(*next(iter(self._ended)))

    def _drop_session(self, session: str) -> None:
        dropped = self._sessions.pop(session, None)
        if dropped is not None:
            self._discard(session, dropped)

    def _discard(self, id: str, session: _MemorySession) -> None:
        """Clean up after a session that is no longer in the dictionary."""
        for name, stream in (session.streams or {}).items():
            if self._ended.pop((id, name), None) is not None:
                self._ended_bytes -= stream.size
            stream.notify()

    def _sweep(self, now: float) -> None:
        expired: list[str] = []
        for id, session in self._sessions.items():
            if session.expires > now:
                break
            expired.append(id)
        for id in expired:
            self._drop_session(id)
        self._drop_due_streams(now)

    def _drop_due_streams(self, now: float) -> None:
        due: list[tuple[str, str]] = []
        for key, expires in self._ended.items():
            if expires > now:
                break
            due.append(key)
        for session, stream in due:
            self._drop_ended_stream(session, stream)

    def _drop_ended_stream(self, session: str, stream: str) -> None:
        del self._ended[session, stream]
        self._ended_bytes -= self._sessions[session].stream(stream).size
        self._sessions[session].drop_stream(stream)

    def _schedule_sweep(self) -> None:
        # One timer for all sessions, and only while there is a session: an idle store does nothing.
        if self._sweep_timer is None:
            pause = min(self._limits.ttl, self._limits.keep) / 8
            self._sweep_timer = asyncio.get_running_loop().call_later(pause, self._on_sweep_timer)

    def _on_sweep_timer(self) -> None:
        self._sweep_timer = None
        self._sweep(self._clock())
        if self._sessions:
            self._schedule_sweep()


class _MemorySession:
    __slots__ = ("expires", "fields", "streams")

    def __init__(self, fields: dict[str, str], expires: float) -> None:
        self.fields = fields
        self.expires = expires
        self.streams: dict[str, _MemoryStream] | None = None
        """The streams by their names. Most sessions have no streams most of the time, and then no dictionary."""

    def stream(self, name: str) -> _MemoryStream:
        """Return a stream. Raises `StreamNotFoundError`."""
        stream = self.streams.get(name) if self.streams else None
        if stream is None:
            raise StreamNotFoundError("the stream does not exist, or is no longer kept")
        return stream

    def open_streams(self) -> list[tuple[str, _MemoryStream]]:
        """Return the streams that have not ended, with their names."""
        return [(name, stream) for name, stream in (self.streams or {}).items() if not stream.has_ended]

    def drop_stream(self, name: str) -> None:
        """Drop a stream, if there is one."""
        if self.streams is not None and (stream := self.streams.pop(name, None)):
            stream.notify()
            self.streams = self.streams or None


class _MemoryStream:
    __slots__ = ("events", "final_event", "first", "has_ended", "size", "waiters")

    def __init__(self, final_event: bytes) -> None:
        self.final_event = final_event
        self.events: list[bytes] = []
        self.first = 1
        """The number of the first event that is kept."""
        self.size = 0
        """Bytes of the events that are kept."""
        self.has_ended = False
        self.waiters: set[asyncio.Future[None]] = _NO_WAITERS

    def append(self, events: Sequence[bytes], limits: StoreLimits) -> int:
        """Append events, and drop the oldest ones beyond the limits. Return the number of the newest event."""
        self.events.extend(events)
        self.size += sum(map(len, events))
        if len(self.events) > limits.events or self.size > limits.event_bytes:
            self._trim(limits)
        return self.first + len(self.events) - 1

    def _trim(self, limits: StoreLimits) -> None:
        kept = self.events
        surplus, size = 0, self.size
        while surplus < len(kept) - 1 and (len(kept) - surplus > limits.events or size > limits.event_bytes):
            size -= len(kept[surplus])
            surplus += 1
        del kept[:surplus]
        self.first += surplus
        self.size = size

    def events_after(self, number: int) -> list[StoredEvent]:
        """Return the events after a number.

        Raises `StreamNotFoundError` if not all of them are kept, or if the stream has not reached the number.
        """
        start = number + 1 - self.first
        if not 0 <= start <= len(self.events):
            raise StreamNotFoundError(f"not all events after {number} are kept")
        return [StoredEvent(at, data) for at, data in enumerate(self.events[start:], number + 1)]

    def notify(self) -> None:
        """Wake the followers that wait for a change."""
        waiters, self.waiters = self.waiters, _NO_WAITERS
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Wait for a change."""
        waiter = asyncio.get_running_loop().create_future()
        if self.waiters is _NO_WAITERS:
            self.waiters = set()
        waiters = self.waiters
        waiters.add(waiter)
        try:
            await waiter
        finally:
            waiters.discard(waiter)
