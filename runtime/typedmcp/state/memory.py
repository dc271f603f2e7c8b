"""State of one process, in its memory."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from typedmcp.errors import UsageError
from typedmcp.state import Event, Gone, Hear, TooMany

__all__ = ["Limits", "MemoryStore", "heard"]

_LOG = logging.getLogger("typedmcp")
_NOBODY: set[asyncio.Future[None]] = set()


@dataclass(frozen=True)
class Limits:
    """What a store keeps at most. Raises `UsageError` for what is not positive."""

    ttl: float = 1800.0
    """How many seconds a session is kept without use."""
    sessions: int = 65_536
    """How many sessions there may be at once."""
    events: int = 1000
    """How many events of a stream are kept: the newest."""
    event_bytes: int = 4 << 20
    """How many bytes of events of a stream are kept. The newest event is kept even if it is larger."""
    keep: float = 300.0
    """How many seconds a stream that has ended can still be followed."""
    backlog: int = 1000
    """How many published news are kept."""
    ended_bytes: int = 64 << 20
    """In memory: how many bytes of events of streams that have ended are kept, of all of them."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise UsageError(f"{field.name} must be positive, not {getattr(self, field.name):g}")


class MemoryStore:
    """A `Store` of one process alone. The options are those of `Limits`; `clock` counts seconds.

    Nothing has a timer of its own: what is over is found when it is asked for, and by a sweep now and then.
    """

    is_shared: bool = False

    def __init__(
        self,
        *,
        ttl: float = Limits.ttl,
        sessions: int = Limits.sessions,
        events: int = Limits.events,
        event_bytes: int = Limits.event_bytes,
        keep: float = Limits.keep,
        backlog: int = Limits.backlog,
        ended_bytes: int = Limits.ended_bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.worker: str = secrets.token_hex(5)
        self._limits = Limits(ttl, sessions, events, event_bytes, keep, backlog, ended_bytes)
        self._ended_size = 0
        self._ttl = ttl
        self._clock = clock
        self._sessions: dict[str, _Session] = {}  # in the order of their last use
        self._ended: dict[tuple[str, str], float] = {}  # streams, and when they are dropped: in that order
        self._news: deque[Event] = deque(maxlen=backlog)
        self._number = 0
        self._hear: Hear | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    async def open(self, hear: Hear) -> None:
        """Begin."""
        self._hear = hear

    async def close(self) -> None:
        """End the streams that are open with their wills."""
        self._hear = None
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for session, found in self._sessions.items():
            for name, stream in found.opened():
                stream.add([stream.will], self._limits)
                self._finish(session, name, stream)

    async def create(self, session: str, fields: Mapping[str, str]) -> None:
        """Begin a session. Raises `TooMany`."""
        now = self._clock()
        self._drop(session)
        if len(self._sessions) >= self._limits.sessions:
            self._sweep(now)
        if len(self._sessions) >= self._limits.sessions:
            raise TooMany(f"there are {self._limits.sessions} sessions")
        self._sessions[session] = _Session(dict(fields), now + self._ttl)
        self._sweep_later()

    async def load(self, session: str) -> dict[str, str] | None:
        """A copy of what is kept of a session."""
        found = self._use(session)
        return None if found is None else found.fields.copy()

    async def change(self, session: str, fields: Mapping[str, str | None]) -> bool:
        """Set and drop fields."""
        found = self._use(session)
        if found is None:
            return False
        for name, value in fields.items():
            if value is None:
                found.fields.pop(name, None)
            else:
                found.fields[name] = value
        return True

    async def delete(self, session: str) -> bool:
        """End a session, with its streams."""
        is_there = self._use(session) is not None
        self._drop(session)
        return is_there

    async def begin(self, session: str, stream: str, will: bytes) -> None:
        """Begin a stream. Raises `Gone` where the session is over."""
        found = self._used(session)
        found.drop(stream)
        self._ended.pop((session, stream), None)
        if found.streams is None:
            found.streams = {}
        found.streams[stream] = _Stream(will)

    async def append(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        """Add events to a stream. Raises `Gone`."""
        found = self._used(session).stream(stream)
        if found.has_ended:
            raise Gone("the stream has ended")
        number = found.add(events, self._limits)
        if last:
            self._finish(session, stream, found)
        else:
            found.wake()
        return number

    async def follow(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[Event]]:
        """The events after a number. Raises `Gone`."""
        is_first = True
        while True:
            found = self._alive(session).stream(stream)
            events = found.after(after)
            has_ended = found.has_ended
            if events or is_first:
                after = events[-1].number if events else after
                is_first = False
                yield events
            elif not has_ended:
                await found.changed()
            if has_ended:
                return

    async def tell(self, worker: str, news: bytes) -> None:
        """Have this worker hear something; there is no other."""
        if worker == self.worker and self._hear is not None:
            heard(self._hear, None, news)

    async def publish(self, news: bytes) -> int:
        """Have this worker hear something, and keep it."""
        self._number = number = self._number + 1
        self._news.append(Event(number, news))
        if self._hear is not None:
            heard(self._hear, number, news)
        return number

    async def published(self, after: int) -> list[Event] | None:
        """What was published after a number; None for a number that is unknown or too old."""
        if not self._number - len(self._news) <= after <= self._number:
            return None
        return [event for event in self._news if event.number > after]

    # What is over

    def _use(self, session: str) -> _Session | None:
        # Taken out and put in again, the last one used is the last one in the dictionary.
        found = self._sessions.pop(session, None)
        if found is None:
            return None
        now = self._clock()
        if found.expires <= now:
            self._forget(session, found)
            return None
        found.expires = now + self._ttl
        self._sessions[session] = found
        return found

    def _used(self, session: str) -> _Session:
        found = self._use(session)
        if found is None:
            raise Gone("the session is over")
        return found

    def _alive(self, session: str) -> _Session:
        # To follow a stream is not to use its session.
        now = self._clock()
        self._drop_ended(now)
        found = self._sessions.get(session)
        if found is None or found.expires <= now:
            self._drop(session)
            raise Gone("the session is over")
        return found

    def _finish(self, session: str, name: str, stream: _Stream) -> None:
        stream.will = b""
        stream.has_ended = True
        stream.wake()
        self._ended[session, name] = self._clock() + self._limits.keep
        self._ended_size += stream.size
        while self._ended_size > self._limits.ended_bytes and len(self._ended) > 1:
            self._drop_stream(*next(iter(self._ended)))

    def _drop(self, session: str) -> None:
        found = self._sessions.pop(session, None)
        if found is not None:
            self._forget(session, found)

    def _forget(self, session: str, found: _Session) -> None:
        for name, stream in (found.streams or {}).items():
            if self._ended.pop((session, name), None) is not None:
                self._ended_size -= stream.size
            stream.wake()

    def _sweep(self, now: float) -> None:
        expired: list[str] = []
        for session, found in self._sessions.items():
            if found.expires > now:
                break
            expired.append(session)
        for session in expired:
            self._drop(session)
        self._drop_ended(now)

    def _drop_ended(self, now: float) -> None:
        due: list[tuple[str, str]] = []
        for key, until in self._ended.items():
            if until > now:
                break
            due.append(key)
        for session, stream in due:
            self._drop_stream(session, stream)

    def _drop_stream(self, session: str, stream: str) -> None:
        """Drop a stream that has ended."""
        del self._ended[session, stream]
        self._ended_size -= self._sessions[session].stream(stream).size
        self._sessions[session].drop(stream)

    def _sweep_later(self) -> None:
        # One timer for all, and only while there is a session: a quiet store is quiet.
        if self._sweeping is None:
            pause = min(self._ttl, self._limits.keep) / 8
            self._sweeping = asyncio.get_running_loop().call_later(pause, self._sweep_now)

    def _sweep_now(self) -> None:
        self._sweeping = None
        self._sweep(self._clock())
        if self._sessions:
            self._sweep_later()


def heard(hear: Hear, number: int | None, news: bytes) -> None:
    """Have news heard. What `hear` raises is logged: it is no fault of who told."""
    try:
        hear(number, news)
    except Exception:
        _LOG.exception("news could not be taken in")


class _Session:
    __slots__ = ("expires", "fields", "streams")

    def __init__(self, fields: dict[str, str], expires: float) -> None:
        self.fields = fields
        self.expires = expires
        self.streams: dict[str, _Stream] | None = None  # most sessions have none at most times

    def stream(self, name: str) -> _Stream:
        found = self.streams.get(name) if self.streams else None
        if found is None:
            raise Gone("the stream is not kept")
        return found

    def opened(self) -> list[tuple[str, _Stream]]:
        return [(name, stream) for name, stream in (self.streams or {}).items() if not stream.has_ended]

    def drop(self, name: str) -> None:
        if self.streams is not None and (stream := self.streams.pop(name, None)):
            stream.wake()
            self.streams = self.streams or None


class _Stream:
    __slots__ = ("events", "first", "has_ended", "size", "waiters", "will")

    def __init__(self, will: bytes) -> None:
        self.will = will
        self.events: list[bytes] = []
        self.first = 1  # the number of the first event that is kept
        self.size = 0
        self.has_ended = False
        self.waiters: set[asyncio.Future[None]] = _NOBODY

    def add(self, events: Sequence[bytes], limits: Limits) -> int:
        """Add events and drop the oldest that are too many. The number of the last event."""
        kept = self.events
        kept.extend(events)
        self.size += sum(map(len, events))
        if len(kept) > limits.events or self.size > limits.event_bytes:
            self._trim(limits)
        return self.first + len(kept) - 1

    def _trim(self, limits: Limits) -> None:
        kept = self.events
        surplus, size = 0, self.size
        while surplus < len(kept) - 1 and (len(kept) - surplus > limits.events or size > limits.event_bytes):
            size -= len(kept[surplus])
            surplus += 1
        del kept[:surplus]
        self.first += surplus
        self.size = size

    def after(self, number: int) -> list[Event]:
        """The events after a number. Raises `Gone` where not all are kept, and for a number that is not reached yet."""
        start = number + 1 - self.first
        if not 0 <= start <= len(self.events):
            raise Gone(f"not all events after {number} are kept")
        return [Event(at, data) for at, data in enumerate(self.events[start:], number + 1)]

    def wake(self) -> None:
        """Have those who wait for a change look."""
        waiters, self.waiters = self.waiters, _NOBODY
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def changed(self) -> None:
        """Wait for a change."""
        waiter = asyncio.get_running_loop().create_future()
        if self.waiters is _NOBODY:
            self.waiters = set()
        waiters = self.waiters
        waiters.add(waiter)
        try:
            await waiter
        finally:
            waiters.discard(waiter)
