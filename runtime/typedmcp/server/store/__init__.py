"""The store: state that outlives an HTTP request, namely sessions, their event streams, and messages to workers.

A worker is one process that serves. `MemoryStore`, the default, serves one worker. A store in a database,
such as `RedisStore` of `typedmcp-redis`, is shared by workers on any number of machines, so any of them can serve any
request of a session.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from typedmcp.protocol.text import log_failure

__all__ = [
    "MessageCallback", "Store", "StoredEvent", "StreamNotFoundError", "TooManySessionsError",
    "TooManySubscriptionsError", "deliver",
]  # fmt: skip


class StoredEvent(NamedTuple):
    """An event of a stream, or a published message, with its number."""

    number: int
    """The place of an event in its stream, from 1 on. For a published message, a number that only grows."""
    data: bytes


class StreamNotFoundError(LookupError):
    """The session or the stream does not exist, has ended, or no longer has all requested events."""


class TooManySessionsError(Exception):
    """The store holds as many sessions as its limits allow."""


class TooManySubscriptionsError(Exception):
    """A session has as many subscriptions as the limits allow."""


MessageCallback: TypeAlias = Callable[[int | None, bytes], None]
"""Called in the event loop with a message of a worker.

The first argument is the message's number if it was published to all workers, and None if it was sent to this one.
"""


class Store(Protocol):
    """The storage of an HTTP application: sessions, streams of events, and messages between workers.

    All times are in seconds. The operations of one task take effect in order. Every operation raises
    `ConnectionError` if the store cannot be reached.

    The limits are those of `StoreLimits`. Every operation on a session is a use, which restarts its idle time, except
    `follow_stream`: `unused_ttl` counts until the first use, `ttl` from then on. What has expired is deleted soon, even
    if nobody asks for it, and does not count towards a limit.
    """

    worker: str
    """The name of this worker: letters and digits that no other worker of the store has."""
    is_shared: bool
    """True if other workers can use the same data."""

    async def open(self, on_message: MessageCallback) -> None:
        """Open the store, and call `on_message` with messages to this worker and with published messages."""
        ...

    async def close(self) -> None:
        """Close the store, and end each stream that this worker has left open with its final event."""
        ...

    # Sessions: named texts, deleted once they have not been used for a time

    async def create_session(self, session: str, fields: Mapping[str, str], client: str | None = None) -> None:
        """Create a session, in place of one with the same id. Raises `TooManySessionsError`.

        The bytes of the session (`session_size`), of its subscriptions and of its streams count for a client, if it is
        known. A client that is not known has no share.
        """
        ...

    async def load_session(self, session: str) -> dict[str, str] | None:
        """Return a copy of the fields of a session. None if the session does not exist."""
        ...

    async def update_session(self, session: str, fields: Mapping[str, str | None]) -> bool:
        """Set fields of a session, or delete those that are None. False if the session does not exist."""
        ...

    async def delete_session(self, session: str) -> bool:
        """Delete a session and its streams. False if the session does not exist."""
        ...

    # Names that may be used once, such as those of signed states

    async def use_once(self, name: str, seconds: float) -> bool:
        """Record the use of a name for some seconds. Return False if it was used already, on any worker.

        Raises `ConnectionError` if no further name can be kept.
        """
        ...

    # Subscriptions: URIs that belong to a session. They are apart from its fields, which every request loads

    async def load_subscriptions(self, session: str) -> set[str]:
        """Return the URIs that a session is subscribed to; none if the session does not exist."""
        ...

    async def subscribe(self, session: str, uri: str, limit: int) -> bool:
        """Subscribe a session to a URI, to at most `limit` URIs. False if the session does not exist.

        Raises `TooManySubscriptionsError`.
        """
        ...

    async def unsubscribe(self, session: str, uri: str) -> bool:
        """End a subscription of a session to a URI, if there is one. False if the session does not exist."""
        ...

    # Streams: the events of one response, which a client can resume

    async def create_stream(
        self, session: str, stream: str, final_event: bytes, events: Sequence[bytes] = (), *, last: bool = False
    ) -> int:
        """Create a stream that this worker writes, and append events as `append_events` does.

        If the worker dies before the stream has ended, it ends with `final_event`. Return the number of the newest
        event; 0 if there is none yet.

        Raises `StreamNotFoundError` if the session does not exist.
        """
        ...

    async def append_events(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        """Append events to a stream, and end it if `last`. Return the number of its newest event.

        Raises `StreamNotFoundError` for a stream that does not exist or has ended.
        """
        ...

    def follow_stream(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[StoredEvent]]:
        """Yield the events after number `after` as they are appended, on any worker, until the stream ends.

        The first item is yielded at once and may be empty. If the worker that writes the stream has died, the last
        event is the stream's final event, for every follower.

        Raises `StreamNotFoundError` for a stream that does not exist, or if an event after `after` is no longer kept.
        """
        ...

    # Messages between workers

    async def send(self, worker: str, message: bytes) -> None:
        """Send a message to one worker, possibly this one. A message to a dead worker is dropped."""
        ...

    async def publish(self, message: bytes) -> int:
        """Send a message to every worker, this one included, in the same order for all. Return the message's number."""
        ...

    async def messages_after(self, after: int) -> list[StoredEvent] | None:
        """Return the messages published after number `after`; 0 is before the first.

        None if one of them is no longer kept, or if the store does not know the number.
        """
        ...


def deliver(on_message: MessageCallback, number: int | None, message: bytes) -> None:
    """Call `on_message`, and log its exceptions, so that they do not reach the sender."""
    try:
        on_message(number, message)
    except Exception as error:
        log_failure(logging.ERROR, "a worker message could not be handled", error)
