"""Checks the lines of a recording or a log, each message against the revision of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from mcpspec import VERSIONS
from typedmcp.building import format_value, is_object
from typedmcp.frames import Sender
from typedmcp_cli.recording.revisions import RevisionTracker
from typedmcp_cli.traffic import TrafficChecker, TrafficFault

__all__ = ["RecordingChecker"]


class RecordingChecker:
    """Checks lines in their order. `revision` is that of messages that do not tell it.

    A line of a recording names its revision and its connection. In other lines, a handshake and the `_meta` of requests
    name it.
    """

    def __init__(self, revision: str | None) -> None:
        self.revision = revision
        self._malformed = 0
        self._connections: dict[object, _Connection] = {}

    @property
    def messages(self) -> int:
        """The number of messages that were checked; each message of a batch counts."""
        return self._malformed + sum(each.messages for each in self._connections.values())

    def count_malformed(self, reason: str) -> TrafficFault:
        """Count a line that is no message, and return its fault."""
        self._malformed += 1
        return TrafficFault(None, "", reason)

    def check(self, value: object) -> Iterator[TrafficFault]:
        """Yield the faults of a line: a message or a batch, by itself or in an object with its sender."""
        line: dict[str, Any] = value if is_object(value) and "jsonrpc" not in value and "message" in value else {}
        message, size = line.get("message", value), line.get("invalid_bytes")
        if line and message is None and size is not None:
            yield self.count_malformed(f"a frame of {format_value(size)} bytes that is not JSON")
            return
        side, named = line.get("sender"), line.get("revision")
        if side not in ("client", "server", None):
            yield TrafficFault(None, "sender", f'expected "client" or "server", got {format_value(side)}')
            side = None
        if named is not None and named not in VERSIONS:
            yield TrafficFault(None, "revision", f"expected one of {', '.join(VERSIONS)}, got {format_value(named)}")
            named = None
        number = line.get("connection")
        key = number if isinstance(number, int | str) else None
        connection = self._connections.get(key)
        if connection is None:
            connection = self._connections[key] = _Connection(self.revision)
        yield from connection.check(side, message, named)


class _Connection:
    """Checks the messages of one connection, whose revision a handshake changes."""

    def __init__(self, revision: str | None) -> None:
        self._tracker = RevisionTracker(revision or "")
        self._checkers: dict[str, TrafficChecker] = {}
        self._last = ""
        """The revision of the message before, which that of a notification of a modern server is."""
        self._unchecked = 0
        self._repeated = 0

    @property
    def messages(self) -> int:
        return self._unchecked - self._repeated + sum(each.messages for each in self._checkers.values())

    def check(self, side: str | None, message: object, named: str | None) -> Iterator[TrafficFault]:
        sender = side or ("client" if is_object(message) and "method" in message else "server")
        found = self._tracker.find(cast("Sender", sender), message)
        revision = self._last = named or found or self._last
        if not revision:
            self._unchecked += 1
            yield TrafficFault(None, "", "its revision is not known from this line or those before; use --revision")
            return
        checker = self._checkers.get(revision)
        if checker is None:
            checker = self._checkers[revision] = TrafficChecker(revision)
        if (request := self._tracker.completed_handshake) is not None:
            self._repeat(request, checker)
        yield from checker.check_from(side, message)

    def _repeat(self, request: dict[str, Any], checker: TrafficChecker) -> None:
        """Check a handshake again, against the revision of its response: that can then be checked, too."""
        if not checker.has_request("client", request.get("id")):
            self._repeated += 1
            for _ in checker.check_from("client", request):
                pass  # it was checked in its own revision
