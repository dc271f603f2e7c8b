"""Transports, which carry bytes from one end of a connection to the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from typedmcp.observers import Network

__all__ = ["HIGH_WATER", "Transport", "missing_members", "network_of", "tap"]

HIGH_WATER: Final = 4 << 20
"""Bytes that may wait to be sent before a connection counts as congested."""


class Transport(Protocol):
    """A connection: a stream of bytes in each direction, in chunks of any size.

    Messages are lines. One task at a time reads. Writing never waits; a task that writes much awaits `drain` while the
    connection is congested. A transport may say what carries it, in an attribute `network`: see `network_of`. With a
    method `tap`, which saves its reader a turn of the event loop for each chunk, it is faster: see `tap`.
    """

    async def read(self) -> bytes:
        """Return the next bytes, or empty bytes at the end. Raises `OSError` if the connection broke.

        The call may be cancelled, also after `close`.
        """
        ...

    def write(self, data: bytes) -> None:
        """Queue bytes to be sent. After the end of the connection they are dropped.

        May raise `OSError` if the connection broke.
        """
        ...

    @property
    def is_congested(self) -> bool:
        """Return whether so many bytes are queued that the writer should await `drain`."""
        ...

    async def drain(self) -> None:
        """Wait until the connection is no longer congested, or has ended."""
        ...

    async def close(self) -> None:
        """Send the queued bytes, as far as the peer reads them, and end the connection. Further calls do nothing.

        The server or client that uses the transport calls it.
        """
        ...


_MEMBERS: Final = ("read", "write", "is_congested", "drain", "close")


def missing_members(value: object) -> list[str]:
    """Return the members that a value lacks to be a `Transport`."""
    return [name for name in _MEMBERS if not hasattr(value, name)]


def network_of(transport: Transport) -> Network | None:
    """Return what carries a connection: the attribute `network` of its transport, or None without one."""
    network: Network | None = getattr(transport, "network", None)
    return network


def tap(transport: Transport, take: Callable[[bytes], bool]) -> None:
    """Pass chunks to `take` as they arrive, until it returns False. `read` returns what arrives then, and the end.

    `take` is called from the event loop, and not within a task. A transport without the method `tap` passes everything
    to `read`, and one with it may do so, too.
    """
    begin: Callable[[Callable[[bytes], bool]], None] | None = getattr(transport, "tap", None)
    if begin is not None:
        begin(take)
