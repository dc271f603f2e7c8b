"""A store in the memory of one process."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import takewhile

from typedmcp.protocol.budgets import ByteBudget
from typedmcp.server.state_token import UsedStates
from typedmcp.server.store import (
    MessageCallback,
    StoredEvent,
    StreamNotFoundError,
    TooManySessionsError,
    TooManySubscriptionsError,
    deliver,
)
from typedmcp.server.store.limits import EVENT_STREAM_BYTES, StoreLimits, session_size, subscription_size

__all__ = ["MemoryStore"]

_NO_WAITERS: set[asyncio.Future[None]] = set()


def _report_nothing(_name: str, _text: str) -> None:
    """Leave it to the application to report what the store refuses."""


class MemoryStore:
    """A `Store` for a single process. `clock` returns seconds.

    Sessions and streams have no timers of their own: expired ones are dropped on access, and by a periodic sweep.
    """

    is_shared: bool = False

    def __init__(self, *, limits: StoreLimits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.worker: str = secrets.token_hex(5)
        self._limits = limits = limits or StoreLimits()
        self._clock = clock
        self._used_states = UsedStates(limits.used_states, clock)
        self._sessions: dict[str, _MemorySession] = {}
        """The sessions by their ids, in the order of their last use."""
        self._unused: dict[str, _MemorySession] = {}
        """The sessions that were created and not used yet, in this order."""
        share = limits.client_share_percent
        self._session_bytes = ByteBudget("session_bytes", limits.session_bytes, share, _report_nothing)
        self._kept_bytes = ByteBudget("kept_bytes", limits.kept_bytes, share, _report_nothing)
        self._ended = _EndedStreams()
        self._published: deque[StoredEvent] = deque(maxlen=limits.backlog)
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
        for id, session in [*self._sessions.items(), *self._unused.items()]:
            for name, stream in list((session.streams or {}).items()):
                if not stream.has_ended:
                    self._append((id, name), session, stream, [stream.final_event], last=True)

    # Sessions

    async def create_session(self, session: str, fields: Mapping[str, str], client: str | None = None) -> None:
        """Create a session. Raises `TooManySessionsError`."""
        now = self._clock()
        self._drop_session(session)
        if self._refusal(client) is not None:
            self._sweep(now)
        if (refusal := self._refusal(client)) is not None:
            raise TooManySessionsError(refusal)
        size = session_size(fields)
        self._session_bytes.count(client, size)
        self._unused[session] = _MemorySession(dict(fields), now + self._limits.unused_ttl, client, size)
        self._schedule_sweep()

    def _refusal(self, client: str | None) -> str | None:
        """Return why there can be no further session, if so."""
        if len(self._sessions) + len(self._unused) >= self._limits.sessions:
            return f"there are {self._limits.sessions} sessions, which is the limit"
        return None if self._session_bytes.admits(client) else "the sessions hold as many bytes as their limit allows"

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

    # Names

    async def use_once(self, name: str, seconds: float) -> bool:
        """Record the use of a name. False if it was used already. Raises `ConnectionError` at the limit."""
        return await self._used_states.use_once(name, seconds)

    # Subscriptions

    async def load_subscriptions(self, session: str) -> set[str]:
        """Return a copy of the URIs that a session is subscribed to."""
        used = self._use(session)
        return set() if used is None or used.uris is None else used.uris.copy()

    async def subscribe(self, session: str, uri: str, limit: int) -> bool:
        """Subscribe a session to a URI. Raises `TooManySubscriptionsError`."""
        used = self._use(session)
        if used is None:
            return False
        used.uris = used.uris or set()
        if uri in used.uris:
            return True
        if len(used.uris) >= limit:
            raise TooManySubscriptionsError(f"more than {limit} subscriptions; unsubscribe first")
        size = subscription_size(uri)
        if not self._session_bytes.take(used.client, size):
            raise TooManySubscriptionsError("the subscriptions hold as many bytes as their limit allows")
        used.uris.add(uri)
        used.size += size
        return True

    async def unsubscribe(self, session: str, uri: str) -> bool:
        """End a subscription of a session to a URI."""
        used = self._use(session)
        if used is not None and used.uris and uri in used.uris:
            used.uris.remove(uri)
            used.size -= subscription_size(uri)
            self._session_bytes.count(used.client, -subscription_size(uri))
        return used is not None

    # Streams

    async def create_stream(
        self, session: str, stream: str, final_event: bytes, events: Sequence[bytes] = (), *, last: bool = False
    ) -> int:
        """Create a stream with its first events. Raises `StreamNotFoundError` if the session does not exist."""
        used = self._use_existing(session)
        self._drop_stream(session, used, stream)
        used.streams = used.streams or {}
        target = used.streams[stream] = _MemoryStream(final_event)
        self._kept_bytes.count(used.client, EVENT_STREAM_BYTES)
        return self._append((session, stream), used, target, events, last=last)

    async def append_events(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        """Append events to a stream. Raises `StreamNotFoundError`."""
        used = self._use_existing(session)
        target = used.stream(stream)
        if target.has_ended:
            raise StreamNotFoundError("the stream has ended")
        return self._append((session, stream), used, target, events, last=last)

    def _append(
        self,
        key: tuple[str, str],
        session: _MemorySession,
        stream: _MemoryStream,
        events: Sequence[bytes],
        *,
        last: bool,
    ) -> int:
        """Append events, and drop older ones beyond the limits. Return the number of the newest event."""
        kept, client, size = self._kept_bytes, session.client, stream.size
        number = stream.append(events, self._limits)
        kept.add(kept.uses.get(client) or kept.use_of(client), stream.size - size)
        if kept.full and (client in kept.full or None in kept.full):
            self._make_room(client, stream)
        stream.notify()
        if last:
            stream.final_event, stream.has_ended = b"", True
            self._ended.add(key, client, self._clock() + self._limits.keep)
        return number

    def _make_room(self, client: str | None, stream: _MemoryStream) -> None:
        """Drop the oldest streams that have ended, of this client or of all, and then older events of a stream."""
        kept = self._kept_bytes
        while client in kept.full and (oldest := self._ended.oldest_of(client)):
            self._drop_ended_stream(*oldest)
        while None in kept.full and (oldest := self._ended.oldest()):
            self._drop_ended_stream(*oldest)
        if client in kept.full or None in kept.full:
            size = stream.size
            stream.trim(1, 0)  # the newest event stays
            self._kept_bytes.count(client, stream.size - size)

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
        used = self._sessions.pop(session, None) or self._unused.pop(session, None)
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
        if (used := self._use(session)) is None:
            raise StreamNotFoundError("the session does not exist, or has ended")
        return used

    def _existing(self, session: str) -> _MemorySession:
        """Return a session without restarting its idle time: following a stream does not keep its session alive."""
        now = self._clock()
        self._drop_due_streams(now)
        existing = self._sessions.get(session) or self._unused.get(session)
        if existing is None or existing.expires <= now:
            self._drop_session(session)
            raise StreamNotFoundError("the session does not exist, or has ended")
        return existing

    def _drop_session(self, session: str) -> None:
        dropped = self._sessions.pop(session, None) or self._unused.pop(session, None)
        if dropped is not None:
            self._discard(session, dropped)

    def _discard(self, id: str, session: _MemorySession) -> None:
        """Clean up after a session that is no longer in the dictionary."""
        self._session_bytes.count(session.client, -session.size)
        for name in list(session.streams or ()):
            self._drop_stream(id, session, name)

    def _drop_stream(self, id: str, session: _MemorySession, name: str) -> None:
        """Drop a stream, if there is one."""
        stream = None if session.streams is None else session.streams.pop(name, None)
        if stream is not None:
            session.streams = session.streams or None
            stream.notify()
            self._ended.discard((id, name), session.client)
            self._kept_bytes.count(session.client, -EVENT_STREAM_BYTES - stream.size)

    def _drop_ended_stream(self, session: str, name: str) -> None:
        self._drop_stream(session, self._sessions.get(session) or self._unused[session], name)

    def _sweep(self, now: float) -> None:
        for sessions in (self._sessions, self._unused):
            for id, _ in list(takewhile(lambda item: item[1].expires <= now, sessions.items())):
                self._drop_session(id)
        self._drop_due_streams(now)

    def _drop_due_streams(self, now: float) -> None:
        for session, stream in self._ended.due(now):
            self._drop_ended_stream(session, stream)

    def _schedule_sweep(self) -> None:
        # One timer for all sessions, and only while there is a session: an idle store does nothing.
        if self._sweep_timer is None:
            pause = min(self._limits.unused_ttl, self._limits.keep) / 8
            self._sweep_timer = asyncio.get_running_loop().call_later(pause, self._on_sweep_timer)

    def _on_sweep_timer(self) -> None:
        self._sweep_timer = None
        self._sweep(self._clock())
        if self._sessions or self._unused:
            self._schedule_sweep()


class _MemorySession:
    __slots__ = ("client", "expires", "fields", "size", "streams", "uris")

    def __init__(self, fields: dict[str, str], expires: float, client: str | None, size: int) -> None:
        self.fields = fields
        self.expires = expires
        self.client = client
        self.size = size
        """Bytes that the session counts."""
        self.uris: set[str] | None = None
        """The URIs that it is subscribed to."""
        self.streams: dict[str, _MemoryStream] | None = None
        """The streams by their names. Most sessions have no streams most of the time, and then no dictionary."""

    def stream(self, name: str) -> _MemoryStream:
        """Return a stream. Raises `StreamNotFoundError`."""
        stream = self.streams.get(name) if self.streams else None
        if stream is None:
            raise StreamNotFoundError("the stream does not exist, or is no longer kept")
        return stream


class _EndedStreams:
    """The streams that have ended, each a session and a name, by the time at which they are dropped."""

    def __init__(self) -> None:
        self._expires: dict[tuple[str, str], float] = {}
        self._by_client: dict[str | None, dict[tuple[str, str], None]] = {}

    def add(self, key: tuple[str, str], client: str | None, expires: float) -> None:
        self._expires[key] = expires
        self._by_client.setdefault(client, {})[key] = None

    def discard(self, key: tuple[str, str], client: str | None) -> None:
        if self._expires.pop(key, None) is not None:
            own = self._by_client[client]
            del own[key]
            if not own:
                del self._by_client[client]

    def oldest(self) -> tuple[str, str] | None:
        return next(iter(self._expires), None)

    def oldest_of(self, client: str | None) -> tuple[str, str] | None:
        return next(iter(self._by_client.get(client, ())), None)

    def due(self, now: float) -> list[tuple[str, str]]:
        return [key for key, _ in takewhile(lambda item: item[1] <= now, self._expires.items())]


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
            self.trim(limits.events, limits.event_bytes)
        return self.first + len(self.events) - 1

    def trim(self, most_events: int, most_bytes: int) -> None:
        """Drop the oldest events beyond these limits, but never the newest."""
        kept = self.events
        surplus, size = 0, self.size
        while surplus < len(kept) - 1 and (len(kept) - surplus > most_events or size > most_bytes):
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
