"""Observation of a connection: every message in both directions, as the bytes on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from typedmcp.observers import Network
from typedmcp.protocol.framing import Framer, OversizeMessage
from typedmcp.transports import Transport, network_of

__all__ = ["ObservedTransport", "OnFrame", "Sender", "report_received"]

Sender: TypeAlias = Literal["client", "server"]
OnFrame: TypeAlias = Callable[[Sender, bytes], object]


def report_received(data: bytes | OversizeMessage, on_frame: OnFrame, sender: Sender = "server") -> None:
    """Report a message of the peer. Of one beyond the limit, only the beginning is known."""
    on_frame(sender, data.head if isinstance(data, OversizeMessage) else data)


class ObservedTransport:
    """A `Transport` that reports each line before it is passed on. `peer` is the side whose messages are read."""

    def __init__(self, transport: Transport, on_frame: OnFrame, message_bytes: int, *, peer: Sender = "server") -> None:
        self._transport = transport
        self._on_frame = on_frame
        self._framer = Framer(message_bytes)
        self._peer: Sender = peer
        self._self: Sender = "client" if peer == "server" else "server"

    async def read(self) -> bytes:
        """Return the next bytes, and report the lines that they complete."""
        data = await self._transport.read()
        for line in self._framer.feed(data) if data else self._framer.end():
            report_received(line, self._on_frame, self._peer)
        return data

    def write(self, data: bytes) -> None:
        """Report the lines of this side, and send them."""
        for line in data.split(b"\n"):
            if line:
                self._on_frame(self._self, line)
        self._transport.write(data)

    @property
    def is_congested(self) -> bool:
        """True if the writer should await `drain`."""
        return self._transport.is_congested

    async def drain(self) -> None:
        """Wait until the connection is no longer congested, or has ended."""
        await self._transport.drain()

    async def close(self) -> None:
        """End the connection."""
        await self._transport.close()

    @property
    def network(self) -> Network | None:
        """The carrier of the connection."""
        return network_of(self._transport)

    @property
    def exit_status(self) -> int | None:
        """The exit status of the server's process, if there is one and it has ended."""
        return getattr(self._transport, "exit_status", None)

    def describe_end(self) -> str:
        """Return why the connection ended, if that is known."""
        describe: Callable[[], str] | None = getattr(self._transport, "describe_end", None)
        return "" if describe is None else describe()
