"""Server-sent events: a parser and an encoder, without I/O.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

Only CR, LF and CRLF end a line, since JSON may contain other line separators. Unlike a browser, the parser also returns
events without data: their ids are places from which a stream can be resumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.protocol.framing import OversizeMessage, limit_depth

__all__ = ["EventParser", "ServerSentEvent", "encode_event"]

_BOM = b"\xef\xbb\xbf"

_HEAD_BYTES = 4096
"""Bytes that are kept of an event that is too long, to find the id of its message."""

_MAX_RETRY_DIGITS = 10
"""Digits of a `retry` time. A longer time is ignored."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event. `data` is an `OversizeMessage` if it was longer or deeper than its limit."""

    data: bytes | OversizeMessage = b""
    event: str = "message"
    """The event's type."""
    id: str | None = None
    """The event's id; None if it has none, empty if the stream can no longer be resumed."""
    retry: int | None = None
    """Milliseconds after which the client should reconnect to a broken stream."""


class EventParser:
    """Parses a stream of events in chunks of any size, in time linear in its length.

    `limit` is the number of bytes that an event may have. Only the beginning of a longer one is kept. `depth` is the
    number of levels of arrays and objects in its data.
    """

    __slots__ = (
        "_after_cr", "_data", "_depth", "_event", "_head", "_id", "_is_at_start", "_limit", "_line", "_line_size",
        "_retry", "_size",
    )  # fmt: skip

    def __init__(self, limit: int = DEFAULT_LIMITS.message_bytes, depth: int = DEFAULT_LIMITS.message_depth) -> None:
        if limit < 1:
            raise ValueError(f"limit must be positive, not {limit}")
        self._limit = limit
        self._depth = depth
        self._line: list[bytes] = []
        """The pieces of the line that is not complete yet."""
        self._line_size = 0
        """Bytes of these pieces."""
        self._after_cr = False
        self._is_at_start = True
        self._reset()

    def _reset(self) -> None:
        self._data: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        """The beginning of the event's data, once it is too long."""
        self._event = b""
        self._id: bytes | None = None
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Parse a chunk, and return the events that it completes."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")  # the second half of a CRLF
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, tail = data.split(b"\n")
        if lines:
            lines[0] = self._complete_line(lines[0])
        events: list[ServerSentEvent] = []
        for line in lines:
            if line:
                self._parse_field(line)
            else:
                self._dispatch(events)
        if tail:
            self._keep_piece(tail)
        return events

    def _complete_line(self, line: bytes) -> bytes:
        """Return a line, joined with its pieces from earlier chunks."""
        if self._line:
            line = b"".join([*self._line, line])
            self._line.clear()
            self._line_size = 0
        if self._is_at_start:
            self._is_at_start = False
            line = line.removeprefix(_BOM)
        return line

    def _parse_field(self, line: bytes) -> None:
        if line.startswith(b":"):  # a comment
            return
        if line.startswith(b"data:"):
            self._add_data(line[6 if line[5:6] == b" " else 5 :])  # one copy of a value that may be large
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":  # a field without a value
            self._add_data(b"")
        elif name == b"id" and b"\0" not in value:
            self._id = value
        elif name == b"event":
            self._event = value
        elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self._retry = int(value)

    def _add_data(self, value: bytes) -> None:
        if self._head is None:
            self._data.append(value)
            self._size += len(value) + 1
            if self._size > self._limit + 1:
                self._truncate()

    def _keep_piece(self, piece: bytes) -> None:
        """Keep the beginning of a line. Once it is too long, skip the rest of it like a comment."""
        self._line.append(piece)
        self._line_size += len(piece)
        if self._line_size > self._limit + len(b"data: "):
            if self._head is None:
                self._data.append(b"".join(self._line).partition(b":")[2].removeprefix(b" "))
                self._truncate()
            self._line, self._line_size = [b":"], 1

    def _truncate(self) -> None:
        self._head = b"\n".join(self._data)[:_HEAD_BYTES]
        self._data.clear()

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        """End an event, and append it to `events` if it has more than a type."""
        if self._head is not None:
            events.append(self._make_event(OversizeMessage(self._head)))
        elif self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(self._make_event(limit_depth(data, self._depth)))
        elif self._id is not None or self._retry is not None:
            events.append(self._make_event(b""))
        self._reset()

    def _make_event(self, data: bytes | OversizeMessage) -> ServerSentEvent:
        id = None if self._id is None else self._id.decode(errors="replace")
        return ServerSentEvent(data, self._event.decode(errors="replace") or "message", id, self._retry)


def encode_event(data: bytes, *, id: str | None = None, event: str | None = None, retry: int | None = None) -> bytes:
    """Encode an event. `retry` is in milliseconds.

    Line ends in `data` become LF. Raises `ValueError` for an id or a type with a line end or NUL.
    """
    head = b"" if event is None else b"event: %b\n" % _one_line(event)
    if id is not None:
        head += b"id: %b\n" % _one_line(id)
    if retry is not None:
        head += b"retry: %d\n" % retry
    if data.find(b"\n") >= 0 or data.find(b"\r") >= 0:  # `in` would cost 2,000 instructions more
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    return b"%bdata: %b\n\n" % (head, data)


def _one_line(value: str) -> bytes:
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"{value!r} does not fit in one line of an event")
    return value.encode()
