"""Server-sent events: bytes to events and back, without I/O.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

Only CR, LF and both together end a line: JSON may have other line separators inside. Unlike a browser, the parser hands
out events without data too, since the id of such a one is where a stream can be resumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from typedmcp.wire import DEFAULT_LIMIT, Oversize

__all__ = ["Event", "EventParser", "event_bytes"]

_BOM = b"\xef\xbb\xbf"

_HEAD = 4096
"""How much of an event that is too long is kept, to find out what it was about."""

_DIGITS = 10
"""How many digits a time may have: more are centuries."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data` is `Oversize` where it was longer than the limit."""

    data: bytes | Oversize = b""
    event: str = "message"
    """Its type."""
    id: str | None = None
    """Its own id; None if it has none, empty if the stream cannot be resumed from here any more."""
    retry: int | None = None
    """After how many milliseconds a stream that has broken should be asked for again."""


class EventParser:
    """Reads a stream of events in any chunking, in time linear in its length.

    `limit` is the longest event in bytes: of a longer one only the beginning is kept.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_event",
        "_head",
        "_held",
        "_id",
        "_limit",
        "_line",
        "_retry",
        "_size",
        "_start",
    )

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        if limit < 1:
            raise ValueError(f"the limit of an event must be positive, not {limit}")
        self._limit = limit
        self._line: list[bytes] = []
        """The pieces of a line whose end has not come yet."""
        self._held = 0
        """How many bytes these are."""
        self._after_cr = False
        self._start = True
        self._reset()

    def _reset(self) -> None:
        self._data: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        """The beginning of data that was too long."""
        self._event = b""
        self._id: bytes | None = None
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")  # the second half of a CRLF
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, tail = data.split(b"\n")
        if lines:
            lines[0] = self._begun(lines[0])
        events: list[Event] = []
        for line in lines:
            if line:
                self._field(line)
            else:
                self._dispatch(events)
        if tail:
            self._hold(tail)
        return events

    def _begun(self, line: bytes) -> bytes:
        """A line with the pieces of it that came before."""
        if self._line:
            line = b"".join([*self._line, line])
            self._line.clear()
            self._held = 0
        if self._start:
            self._start = False
            line = line.removeprefix(_BOM)
        return line

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value
        elif name == b"event":
            self._event = value
        elif name == b"retry" and value.isdigit() and len(value) <= _DIGITS:
            self._retry = int(value)

    def _add(self, value: bytes) -> None:
        if self._head is None:
            self._data.append(value)
            self._size += len(value) + 1
            if self._size > self._limit + 1:
                self._cut()

    def _hold(self, piece: bytes) -> None:
        """Keep the beginning of a line. Once it is too long, the rest of it is passed over like a comment."""
        self._line.append(piece)
        self._held += len(piece)
        if self._held > self._limit + len(b"data: "):
            if self._head is None:
                self._data.append(b"".join(self._line).partition(b":")[2].removeprefix(b" "))
                self._cut()
            self._line, self._held = [b":"], 1

    def _cut(self) -> None:
        self._head = b"\n".join(self._data)[:_HEAD]
        self._data.clear()

    def _dispatch(self, events: list[Event]) -> None:
        """At the end of an event: hand it out, if anything but its type was said."""
        if self._head is not None:
            events.append(self._made(Oversize(self._head)))
        elif self._data:
            events.append(self._made(self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
        elif self._id is not None or self._retry is not None:
            events.append(self._made(b""))
        self._reset()

    def _made(self, data: bytes | Oversize) -> Event:
        id = None if self._id is None else self._id.decode(errors="replace")
        return Event(data, self._event.decode(errors="replace") or "message", id, self._retry)


def event_bytes(data: bytes, *, id: str | None = None, event: str | None = None, retry: int | None = None) -> bytes:
    """One event as it goes over the wire. `retry` is in milliseconds.

    Line ends in `data` become LF. Raises `ValueError` for an id or a type with one, or an id with NUL.
    """
    head = b""
    for name, value in ((b"event", event), (b"id", id), (b"retry", retry)):
        if value is not None:
            head += b"%b: %b\n" % (name, _one_line(str(value)))
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    return b"%bdata: %b\n\n" % (head, data)


def _one_line(value: str) -> bytes:
    encoded = value.encode()
    if any(end in encoded for end in (b"\n", b"\r", b"\0")):
        raise ValueError(f"{value!r} cannot stand in one line of an event")
    return encoded
