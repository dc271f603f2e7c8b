"""Frames: the messages of a connection as the bytes on the wire, in both directions.

The option `on_frame` of servers and clients is a function that gets all frames. `record` takes a `FrameSink`, which
gets the frames of each connection apart.
`typedmcp_cli.Recorder` is one, which writes them to a file; the path of a file stands for it. Without a sink, no code
for frames runs.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias

from typedmcp.errors import UsageError
from typedmcp.limits import Limits
from typedmcp.observers import ConnectionInfo
from typedmcp.protocol.framing import Framer, frame_of
from typedmcp.transports import Transport

__all__ = ["FrameSink", "ObservedTransport", "OnFrame", "Sender", "check_frames", "open_sink"]

Sender: TypeAlias = Literal["client", "server"]

OnFrame: TypeAlias = Callable[[Sender, bytes], object]
"""Called with the sender of each message and its bytes, in the event loop: it must not block.

The bytes are those that were received, which need not be valid JSON, or are sent. Of a message beyond the limit
`message_bytes` they are the beginning.
"""


class FrameSink(Protocol):
    """Takes the frames of connections. An option `record` is one."""

    def open(self, info: ConnectionInfo, /) -> OnFrame | None:
        """Return the function for the frames of a new connection; None for a connection without interest.

        A connection of a server is a stream of lines, a session over HTTP, or one request over HTTP without a session.
        A client has one connection, also if it reconnects. The properties of `info` may change: it is given before the
        connection opens.
        """
        ...


def check_frames(value: object, on_frame: object) -> None:
    """Raise `UsageError` for options `record` and `on_frame` that cannot take frames."""
    if on_frame is not None and not callable(on_frame):
        raise UsageError(f"on_frame must be a function, not {on_frame!r}")
    if value is None or isinstance(value, str | PathLike):
        return
    if isinstance(value, type) or not callable(getattr(value, "open", None)):
        raise UsageError(f"record must be the path of a file, or a FrameSink such as a Recorder, not {value!r}")


class _FunctionSink:
    """Passes the frames of all connections to a function, and to a sink if there is one."""

    def __init__(self, on_frame: OnFrame, sink: FrameSink | None) -> None:
        self._on_frame, self._sink = on_frame, sink

    def open(self, info: ConnectionInfo) -> OnFrame:
        """Return the function for the frames of a new connection."""
        on_frame = self._on_frame
        recorded = None if self._sink is None else self._sink.open(info)
        if recorded is None:
            return on_frame

        def on_each(sender: Sender, data: bytes) -> None:
            recorded(sender, data)
            on_frame(sender, data)

        return on_each


def open_sink(
    record: FrameSink | str | PathLike[str] | None, limits: Limits, on_frame: OnFrame | None = None
) -> FrameSink | None:
    """Return the sink of the options `record` and `on_frame`. A `Recorder` of `typedmcp_cli` writes a file.

    Raises `ImportError` with what to install if that is missing, and `UsageError` if the file cannot be written.
    """
    if on_frame is not None:
        return _FunctionSink(on_frame, open_sink(record, limits))
    if not isinstance(record, str | PathLike):
        return record
    from typedmcp.satellites import load_satellite  # loaded where it is used

    use = f"record=typedmcp_cli.Recorder({str(record)!r})"
    sink: FrameSink = load_satellite("recording to a file", "cli", use).Recorder(record, limits=limits)
    return sink


class ObservedTransport:
    """A `Transport` that reports each line before it is passed on. `peer` is the side whose messages are read."""

    tap = None  # all that arrives has to pass `read`

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
            self._on_frame(self._peer, frame_of(line))
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

    def __getattr__(self, name: str) -> Any:
        """Return what the transport has beside the members of a `Transport`, such as `network` and `exit_status`."""
        return getattr(self._transport, name)
