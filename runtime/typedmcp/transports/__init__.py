"""How bytes get from one end to the other. `Transport` is all that a connection of one's own has to be."""

from __future__ import annotations

from typing import Protocol

__all__ = ["HIGH_WATER", "Transport"]

HIGH_WATER = 4 << 20
"""How many bytes may wait to be sent before a connection is congested."""


class Transport(Protocol):
    """A stream of bytes both ways. Lines may be cut anywhere.

    One task reads at a time. Writing never waits; whoever has written much awaits `drain`.
    """

    async def read(self) -> bytes:
        """The next bytes, in any chunking; empty at the end. Raises `OSError` where the connection broke."""
        ...

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent. What is written after the end is dropped."""
        ...

    @property
    def congested(self) -> bool:
        """Whether so much is queued that nobody should write before `drain` returns."""
        ...

    async def drain(self) -> None:
        """Wait until the other end keeps up again; at the end of the connection at once."""
        ...

    async def close(self) -> None:
        """Send what is queued, as far as the other end takes it, and end the connection. Twice is once."""
        ...
