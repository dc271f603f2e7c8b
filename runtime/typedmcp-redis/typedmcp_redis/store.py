"""A store in Redis 6.2 or newer, shared by workers on any number of machines.

Every operation is one script of `store_scripts`: it is atomic, and takes one round trip. Each worker has one more
connection, on which it waits for messages in two Redis streams: its own inbox, and the bus that all workers read. It
reads both from the last number that it has seen, so nothing is lost while it reconnects.

A worker renews its lease from time to time. The others treat a worker whose lease has run out as dead: the script that
notices it also appends the final events of the worker's streams, so every follower sees the same end. A worker that was
only slow finds its streams ended.

Redis Cluster is not supported, since a script uses keys of many names. Redis must not evict keys (`noeviction`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress

from redis.asyncio import Redis

from typedmcp.errors import UsageError
from typedmcp.stores import (
    EVENT_STREAM_BYTES,
    MessageCallback,
    StoredEvent,
    StoreLimits,
    StreamNotFoundError,
    TooManySessionsError,
    TooManySubscriptionsError,
    deliver,
    session_size,
    subscription_size,
)
from typedmcp_redis import store_scripts as scripts
from typedmcp_redis.link import MAX_PAUSE, READ_BATCH, RedisLink, RetryLoop, StreamEntry, cancel_all

__all__ = ["RedisStore"]

_log = logging.getLogger("typedmcp")

_RENEWALS_PER_LEASE = 3
_LEASES_BETWEEN_CHECKS = 3
"""Leases after which a follower reads its stream even if no worker has announced an event."""


class RedisStore:
    """A `Store` in Redis. All workers of one service need the same `prefix`, limits and lease.

    `url` is the URL of a Redis server, or a client of `redis.asyncio`, which the store does not close. A worker that is
    silent for `lease` seconds counts as dead. Operations use at most `connections` connections; receiving messages and
    renewing the lease use two more. An operation that takes longer than `timeout` seconds raises `ConnectionError`; it
    may still have taken effect.
    """

    is_shared: bool = True

    def __init__(
        self,
        url: str | Redis = "redis://127.0.0.1:6379",
        *,
        prefix: str = "typedmcp:",
        lease: float = 10.0,
        limits: StoreLimits | None = None,
        connections: int = 8,
        timeout: float = 5.0,
    ) -> None:
        for name, value in {"lease": lease, "connections": connections, "timeout": timeout}.items():
            if not value > 0:
                raise UsageError(f"{name} must be positive, not {value:g}")
        self.worker: str = secrets.token_hex(5)
        self._limits = limits = limits or StoreLimits()
        self._byte_limits = limits.session_bytes, limits.share_of(limits.session_bytes)
        self._kept_limits = limits.kept_bytes, limits.share_of(limits.kept_bytes)
        self._lease = lease
        self._timeout = timeout
        times = (max(1, int(seconds * 1000)) for seconds in (limits.ttl, lease, limits.keep))
        self._link = RedisLink(
            url, (prefix, self.worker, *times, limits.events, limits.event_bytes), connections, timeout
        )
        self._inbox, self._bus = f"{prefix}inbox:{self.worker}", f"{prefix}bus"
        self._followers = _Followers()
        self._last_read = 0
        """The number of the last message that was read, of both kinds."""
        self._last_published = 0
        """The number of the last published message that was read."""
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, on_message: MessageCallback) -> None:
        """Open the store: take a lease, and begin to read messages."""
        self._last_read, self._last_published = map(int, await self._link.run(scripts.OPEN_WORKER))
        await self._renew_lease()
        self._tasks = [
            asyncio.ensure_future(self._receive(on_message)),
            asyncio.ensure_future(self._keep_lease()),
        ]

    async def close(self) -> None:
        """Close the store, and end each open stream with its final event, or with the lease if Redis is unreachable."""
        if self._link.is_closed:
            return
        await cancel_all(self._tasks)
        try:
            await self._append_final_events(self.worker, is_closing=True)
        except ConnectionError as error:
            _log.warning("the streams of this worker end with its lease: %s", error)
        for _ in range(2):  # followers of this process read once more, after the read that may be under way
            self._followers.wake_all()
            await self._link.wait_idle()
        await self._link.close()
        self._followers.wake_all()

    # Sessions

    async def create_session(self, session: str, fields: Mapping[str, str], client: str | None = None) -> None:
        """Create a session. Raises `TooManySessionsError`."""
        limits, counted = self._limits, (_to_bytes(client or ""), session_size(fields))
        unused_ms = max(1, int(limits.unused_ttl * 1000))
        options = (session, limits.sessions, *self._byte_limits, unused_ms, *counted, *_flat(fields))
        answer = await self._link.run(scripts.CREATE_SESSION, *options)
        if answer == scripts.TOO_MANY:
            raise TooManySessionsError(f"there are {limits.sessions} sessions, which is the limit")
        if answer == scripts.TOO_MANY_BYTES:
            raise TooManySessionsError("the sessions hold as many bytes as their limit allows")

    async def load_session(self, session: str) -> dict[str, str] | None:
        """Return the fields of a session; none for a session whose fields are not text."""
        answer = await self._link.run(scripts.LOAD_SESSION, session)
        if answer is None:
            return None
        try:
            texts = [_to_text(each) for each in answer]
        except UnicodeDecodeError:
            return {}
        return dict(zip(texts[::2], texts[1::2], strict=True))

    async def update_session(self, session: str, fields: Mapping[str, str | None]) -> bool:
        """Set and delete fields of a session."""
        deleted = [_to_bytes(name) for name, value in fields.items() if value is None]
        changed = {name: value for name, value in fields.items() if value is not None}
        return bool(await self._link.run(scripts.UPDATE_SESSION, session, len(deleted), *deleted, *_flat(changed)))

    async def delete_session(self, session: str) -> bool:
        """Delete a session and its streams."""
        return bool(await self._link.run(scripts.DELETE_SESSION, session))

    # Names

    async def use_once(self, name: str, seconds: float) -> bool:
        """Record the use of a name. False if it was used already. Raises `ConnectionError` at the limit."""
        answer = await self._link.run(scripts.USE_ONCE, name, max(1, int(seconds * 1000)), self._limits.used_states)
        if answer == scripts.TOO_MANY:
            raise ConnectionError(f"{self._limits.used_states} states were used that have not expired: the limit")
        return bool(answer)

    # Subscriptions

    async def load_subscriptions(self, session: str) -> set[str]:
        """Return the URIs that a session is subscribed to."""
        return {_to_text(uri) for uri in await self._link.run(scripts.LOAD_SUBSCRIPTIONS, session)}

    async def subscribe(self, session: str, uri: str, limit: int) -> bool:
        """Subscribe a session to a URI. Raises `TooManySubscriptionsError`."""
        options = (session, _to_bytes(uri), subscription_size(uri), limit, *self._byte_limits)
        answer = await self._link.run(scripts.SUBSCRIBE, *options)
        if answer == scripts.TOO_MANY:
            raise TooManySubscriptionsError(f"more than {limit} subscriptions; unsubscribe first")
        if answer == scripts.TOO_MANY_BYTES:
            raise TooManySubscriptionsError("the subscriptions hold as many bytes as their limit allows")
        return bool(answer)

    async def unsubscribe(self, session: str, uri: str) -> bool:
        """End a subscription of a session to a URI."""
        return bool(await self._link.run(scripts.UNSUBSCRIBE, session, _to_bytes(uri), subscription_size(uri)))

    # Streams

    async def create_stream(
        self, session: str, stream: str, final_event: bytes, events: Sequence[bytes] = (), *, last: bool = False
    ) -> int:
        """Create a stream with its first events. Raises `StreamNotFoundError` if the session does not exist."""
        answer = await self._link.run(scripts.CREATE_STREAM, session, stream, final_event, EVENT_STREAM_BYTES)
        if answer == scripts.NOT_FOUND:
            raise StreamNotFoundError("the session does not exist, or has ended")
        return await self.append_events(session, stream, events, last=last) if events or last else 0

    async def append_events(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        """Append events to a stream. Raises `StreamNotFoundError`."""
        options = (session, stream, int(last), *self._kept_limits)
        number: int = await self._link.run(scripts.APPEND_EVENTS, *options, *events)
        if number == scripts.NOT_FOUND:
            raise StreamNotFoundError("the stream does not exist, or has ended")
        return number

    async def follow_stream(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[StoredEvent]]:
        """Yield the events after a number. Raises `StreamNotFoundError`.

        After the first item, it waits while Redis cannot be reached.
        """
        has_begun = False
        while True:
            with self._followers.waiting(f"{session}/{stream}") as woken:
                pause = self._lease * _LEASES_BETWEEN_CHECKS
                try:
                    has_ended, events = await self._read_events(session, stream, after)
                except ConnectionError:
                    if not has_begun or self._link.is_closed:
                        raise
                    pause, has_ended, events = MAX_PAUSE, False, []
                if events or not has_begun:
                    after = events[-1].number if events else after
                    has_begun = True
                    yield events
                if has_ended:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await woken

    async def _read_events(self, session: str, stream: str, after: int) -> tuple[bool, list[StoredEvent]]:
        status, *data = await self._link.run(scripts.READ_EVENTS, session, stream, after)
        if status == scripts.NOT_FOUND:
            raise StreamNotFoundError(f"the stream does not exist, or not all of its events after {after} are kept")
        return bool(status), [StoredEvent(number, each) for number, each in enumerate(data, after + 1)]

    # Messages

    async def send(self, worker: str, message: bytes) -> None:
        """Send a message to one worker."""
        await self._link.run(scripts.SEND, worker, message)

    async def publish(self, message: bytes) -> int:
        """Send a message to every worker."""
        number: int = await self._link.run(scripts.PUBLISH, self._limits.backlog, message)
        return number

    async def messages_after(self, after: int) -> list[StoredEvent] | None:
        """Return the messages published after a number; None if the number is unknown or too old."""
        answer = None if after < 0 else await self._link.run(scripts.MESSAGES_AFTER, after)
        if answer is None:
            return None
        return [StoredEvent(int(number), message) for number, message in zip(answer[::2], answer[1::2], strict=True)]

    async def _receive(self, on_message: MessageCallback) -> None:
        """Read messages until cancelled."""
        attempts = RetryLoop("worker messages cannot be read")
        while True:
            await asyncio.sleep(attempts.pause)
            with attempts.attempt():
                self._handle(await self._link.read((self._inbox, self._bus), self._last_read), on_message)

    def _handle(self, batches: Iterable[Sequence[StreamEntry]], on_message: MessageCallback) -> None:
        # The numbers of inbox and bus come from one counter, so sorting by number restores the order of sending. A full
        # batch may have been cut off: entries of the other batch with larger numbers have to wait for the next read.
        full = [batch[-1][0] for batch in batches if len(batch) == READ_BATCH]
        until = min(full, default=None)
        for number, entry in sorted((entry for batch in batches for entry in batch), key=lambda entry: entry[0]):
            if until is not None and number > until:
                break
            self._last_read = number
            if b"wake" in entry:
                self._followers.wake(entry[b"wake"].decode())
            elif b"before" in entry:
                self._check_gap(number, int(entry[b"before"]))
                deliver(on_message, number, entry[b"d"])
            else:
                deliver(on_message, None, entry[b"d"])

    def _check_gap(self, number: int, before: int) -> None:
        """Warn if published messages between the last one read and this one are missing."""
        if before != self._last_published:
            _log.warning(
                "worker messages after number %d were dropped before this worker could read them", self._last_published
            )
        self._last_published = number

    # The lease

    async def _keep_lease(self) -> None:
        """Renew the lease until cancelled."""
        attempts = RetryLoop("the lease of this worker cannot be renewed")
        while True:
            await asyncio.sleep(attempts.pause or self._lease / _RENEWALS_PER_LEASE)
            with attempts.attempt():
                await self._renew_lease()

    async def _renew_lease(self) -> None:
        was_known, *dead = await self._link.run(scripts.RENEW_LEASE, f"{self._last_read}-0", is_urgent=True)
        if not was_known:
            self._followers.wake_all()  # what was sent to wake them is lost
        for worker in dead:
            await self._append_final_events(worker)

    async def _append_final_events(self, worker: str | bytes, *, is_closing: bool = False) -> None:
        """End the open streams of a worker that is dead or closing, in batches."""
        while await self._link.run(scripts.END_STREAMS, worker, int(is_closing), is_urgent=True):
            pass


class _Followers:
    """The followers of streams in this process, which wait for the next event."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    @contextmanager
    def waiting(self, id: str) -> Generator[asyncio.Future[None]]:
        """Yield a future that completes when the stream changes."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, set()).add(woken)
        try:
            yield woken
        finally:
            others = self._waiting[id]
            others.discard(woken)
            if not others:
                del self._waiting[id]

    def wake(self, id: str) -> None:
        """Wake the followers of a stream."""
        for woken in self._waiting.get(id, ()):
            if not woken.done():
                woken.set_result(None)

    def wake_all(self) -> None:
        """Wake the followers of all streams."""
        for id in self._waiting:
            self.wake(id)


def _flat(fields: Mapping[str, str]) -> list[bytes]:
    return [_to_bytes(each) for item in fields.items() for each in item]


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
