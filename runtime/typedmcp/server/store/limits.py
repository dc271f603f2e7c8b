"""The limits of a store."""

from __future__ import annotations

from dataclasses import dataclass, fields

from typedmcp.errors import UsageError

__all__ = ["StoreLimits"]


@dataclass(frozen=True)
class StoreLimits:
    """The limits of a store. Raises `UsageError` for a limit that is not positive."""

    ttl: float = 1800.0
    """Seconds after which an unused session is deleted."""
    sessions: int = 65_536
    """Sessions at a time. More raise `TooManySessionsError`."""
    events: int = 1000
    """Events kept of one stream. Older ones are dropped."""
    event_bytes: int = 4 << 20
    """Bytes of events kept of one stream. Older events are dropped; the newest is kept even if it is larger."""
    keep: float = 300.0
    """Seconds for which a stream that has ended can still be followed."""
    backlog: int = 1000
    """Published messages that are kept. Older ones are dropped."""
    ended_bytes: int = 64 << 20
    """Bytes of events of all streams that have ended (`MemoryStore` only). The oldest streams are dropped."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise UsageError(f"{field.name} must be positive, not {getattr(self, field.name):g}")
