"""What outlives a request of HTTP, behind one Protocol: sessions, the events of streams, news between workers.

A worker is one process that serves. With `MemoryStore`, the default, it is alone. With `RedisStore`, workers on any
number of machines serve each other's sessions: none of them has to see the same client twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

__all__ = ["Event", "Gone", "Hear", "Store", "TooMany"]


class Event(NamedTuple):
    """One event of a stream. The first that a stream has is number 1."""

    number: int
    data: bytes


class Gone(LookupError):  # noqa: N818  # named for the state
    """The session or stream is not there (any more), or not all events after the given one are kept."""


class TooMany(Exception):  # noqa: N818
    """There are as many sessions as there may be."""


Hear: TypeAlias = Callable[[int | None, bytes], None]
"""Called in the event loop with news: the number that they have if they were published to all, None otherwise."""


class Store(Protocol):
    """Where it is kept. All times are in seconds.

    Everything is done in the order in which it was asked for by one task. A store that cannot be reached raises
    `ConnectionError`.
    """

    worker: str
    """The name of this worker: a few letters and digits that no other has."""
    is_shared: bool
    """Whether other workers may use the same store."""

    async def open(self, hear: Hear) -> None:
        """Begin: from now on `hear` is called with what `tell` sends to this worker and with all that is published."""
        ...

    async def close(self) -> None:
        """End. Streams that this worker has left open end with their wills, for whoever follows them."""
        ...

    # Sessions: a few named texts each, dropped after a time without use

    async def create(self, session: str, fields: Mapping[str, str]) -> None:
        """Begin a session. Raises `TooMany`."""
        ...

    async def load(self, session: str) -> dict[str, str] | None:
        """What is kept of a session, whose time begins anew; None for one that is over."""
        ...

    async def change(self, session: str, fields: Mapping[str, str | None]) -> bool:
        """Set some fields, or drop those that are None. False for a session that is over."""
        ...

    async def delete(self, session: str) -> bool:
        """End a session, with its streams. False where there was none."""
        ...

    # Streams: the events of one response, which a client can resume

    async def begin(self, session: str, stream: str, will: bytes) -> None:
        """Begin a stream that this worker writes. If the worker dies, `will` is what the stream ends with.

        Raises `Gone` for a session that is over.
        """
        ...

    async def append(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        """Add events to a stream, and end it with `last`. The number of the last one that was added.

        Raises `Gone` for a stream that has ended or was deleted.
        """
        ...

    def follow(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[Event]]:
        """The events after that number, as they come, up to the last one; on whatever worker.

        The first item comes at once, if only to say that there are no events yet.

        Where the worker that writes the stream has died, its will is the last event, and everybody who follows sees
        the same. Raises `Gone` for a stream that is not kept, or of which events after `after` are not kept any more.
        """
        ...

    # Between workers

    async def tell(self, worker: str, news: bytes) -> None:
        """Have one worker hear something; it may be this one. What a dead worker is told is dropped."""
        ...

    async def publish(self, news: bytes) -> int:
        """Have every worker hear something, this one too, all in the same order. Its number, which only grows."""
        ...

    async def published(self, after: int) -> list[Event] | None:
        """What was published after a number; 0 is before everything. None where not all of that is kept, or known."""
        ...
