"""The limits of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from typedmcp.errors import UsageError

__all__ = ["EVENT_STREAM_BYTES", "StoreLimits", "session_size", "subscription_size"]

EVENT_STREAM_BYTES = 512
"""Bytes that a stored stream counts in addition to its events."""
_SESSION_BYTES = 2 << 10
_SUBSCRIPTION_BYTES = 128


@dataclass(frozen=True)
class StoreLimits:
    """The limits of a store. Raises `UsageError` for a limit that is not positive."""

    # Stores
    ttl: float = 1800.0
    """Seconds for which a session is not used.

    The session is deleted.
    """
    unused_ttl: float = 60.0
    """Seconds between `initialize` and the first use of a session.

    The session is deleted.
    """
    sessions: int = 65_536
    """Sessions at a time.

    Status 503 with `Retry-After`.
    """
    session_bytes: int = 64 << 20
    """Bytes of all sessions: the clients' descriptions of themselves and 2 KiB for each session, URIs and 128 bytes for
    each subscription.

    A new session gets status 503 with `Retry-After`, a subscription error -32602.
    """
    client_share_percent: int = 25
    """Percent of the bytes that one client can use: a principal or an address. 100 sets no share.

    The client gets what follows from the budget. Other clients do not notice it.
    """
    events: int = 1000
    """Events kept of one stream.

    Older events are dropped.
    """
    event_bytes: int = 4 << 20
    """Bytes of events kept of one stream.

    Older events are dropped; the newest is kept even if it is larger.
    """
    keep: float = 300.0
    """Seconds for which a stream that has ended can be resumed.

    The stream is dropped.
    """
    kept_bytes: int = 64 << 20
    """Bytes of the events of all streams, with 512 bytes for each stream.

    The oldest streams that have ended are dropped, then the older events of the stream that grows.
    """
    backlog: int = 1000
    """Published messages that are kept.

    Older ones are dropped.
    """
    used_states: int = 100_000
    """States for single use that were used and have not expired.

    Calls that continue with another such state get error -32603.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise UsageError(f"{field.name} must be positive, not {getattr(self, field.name):g}")
        object.__setattr__(self, "unused_ttl", min(self.ttl, self.unused_ttl))  # its use must not shorten a life

    def share_of(self, total: int) -> int:
        """Return the bytes of a budget that one client can use."""
        return max(1, total * self.client_share_percent // 100)


def session_size(fields: Mapping[str, str]) -> int:
    """Return the bytes that a session with these fields counts."""
    return _SESSION_BYTES + sum(_text_size(name) + _text_size(value) for name, value in fields.items())


def subscription_size(uri: str) -> int:
    """Return the bytes that a subscription to a URI counts."""
    return _SUBSCRIPTION_BYTES + _text_size(uri)


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)  # the most that the interpreter needs
