"""Checks each message of a connection against the schema of the revision that the two sides speak at that moment."""

from __future__ import annotations

from typedmcp.frames import Sender
from typedmcp_cli.recording.revisions import RevisionTracker
from typedmcp_cli.traffic import MalformedLineError, TrafficChecker, TrafficFault, decode_line

__all__ = ["FrameChecker"]

_MAX_SHOWN_FAULTS = 20


class FrameChecker:
    """Follows a connection. `revision` is that of messages that name none."""

    def __init__(self, revision: str) -> None:
        self._tracker = RevisionTracker(revision)
        self._checkers: dict[str, TrafficChecker] = {}

    def check(self, sender: Sender, data: bytes) -> tuple[str, list[str]]:
        """Return the revision of a message, and its faults, each as `place: reason`."""
        try:
            message = decode_line(data)
        except MalformedLineError as error:
            return self._tracker.revision, [str(error)]
        revision = self._tracker.find(sender, message)
        checker = self._checker(revision)
        if (request := self._tracker.completed_handshake) is not None:
            for _ in checker.check({"sender": "client", "message": request}):
                pass  # the request was checked before; now its response can be
        faults = checker.check({"sender": sender, "message": message})
        return revision, [_describe(fault) for fault, _ in zip(faults, range(_MAX_SHOWN_FAULTS), strict=False)]

    def _checker(self, revision: str) -> TrafficChecker:
        if revision not in self._checkers:
            self._checkers[revision] = TrafficChecker(revision)
        return self._checkers[revision]


def _describe(fault: TrafficFault) -> str:
    return ": ".join(part for part in (fault.path, fault.reason) if part)
