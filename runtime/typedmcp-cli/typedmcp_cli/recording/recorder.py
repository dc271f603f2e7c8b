"""The recorder: it writes the messages of connections to a file, as `typedmcp validate` and `replay` read them."""

from __future__ import annotations

import itertools
import logging
import os
import weakref
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from typedmcp.building import decode_json
from typedmcp.errors import UsageError
from typedmcp.frames import Sender
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.observers import ConnectionInfo
from typedmcp.revisions.features import DIALECT
from typedmcp_cli.private_files import open_private_file
from typedmcp_cli.recording.masks import SecretMasker
from typedmcp_cli.recording.revisions import RevisionTracker

__all__ = ["RecordedConnection", "Recorder"]

_log = logging.getLogger("typedmcp")


class Recorder:
    """A `FrameSink` that writes messages to a file, one line for each. Connections may share it.

    The file is replaced, and only its owner may read it: masks know the secrets of protocols, not those of a business.
    A link is not followed.

    A line is a JSON object with `time` (UTC), `sender` ("client" or "server"), `revision`, `connection` (a number) and
    `message`. A frame that is not JSON has null as `message`, and its size as `invalid_bytes`. `mask` names members
    whose values are masked, beside `recording.masks.SECRET_NAMES`. Lines are complete at any time, also if the process
    is killed. The recording ends at `limits.recording_bytes`, and when the file cannot be written; a warning says so.

    Raises `UsageError` if the file cannot be opened.
    """

    def __init__(
        self, file: str | os.PathLike[str], *, mask: Iterable[str] = (), limits: Limits = DEFAULT_LIMITS
    ) -> None:
        if isinstance(mask, str):
            raise UsageError(f"mask must be a list of names, such as [{mask!r}], not a string")
        self.file: str = os.fspath(file)
        self._mask = [*mask]
        self._left = limits.recording_bytes
        self._numbers = itertools.count(1)
        try:
            descriptor = open_private_file(self.file, is_replaced=True)
        except OSError as error:
            raise UsageError(f"{self.file} cannot be written: {error.strerror}") from error
        self._descriptor: int | None = descriptor
        self._release = weakref.finalize(self, os.close, descriptor)

    def open(self, _info: ConnectionInfo | None = None) -> RecordedConnection:
        """Return the function for the messages of a new connection, which also suits `connect(…, on_frame=…)`."""
        return RecordedConnection(self, next(self._numbers), SecretMasker(self._mask))

    def write(self, line: bytes) -> None:
        """Write a line, unless the recording has ended."""
        if self._descriptor is None:
            return
        if len(line) > self._left:
            self._end("the limit recording_bytes is reached")
            return
        self._left -= len(line)
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            self._end(error.strerror or str(error))

    def _end(self, reason: str) -> None:
        _log.warning("%s: the recording ends here: %s", self.file, reason)
        self.close()

    def close(self) -> None:
        """End the recording. Further messages are not recorded."""
        self._descriptor = None
        self._release()


class RecordedConnection:
    """Records the messages of one connection."""

    def __init__(self, recorder: Recorder, number: int, masker: SecretMasker) -> None:
        self._recorder = recorder
        self._number = number
        self._masker = masker
        self._tracker = RevisionTracker(DIALECT)

    def __call__(self, sender: Sender, data: bytes) -> None:
        """Record a message."""
        entry: dict[str, Any] = {"time": datetime.now(UTC).isoformat().replace("+00:00", "Z"), "sender": sender}
        try:
            message: object = decode_json(data)
            entry["revision"] = self._tracker.find(sender, message)
            entry["connection"] = self._number
            entry["message"] = self._masker.mask(message)
            line = msgspec.json.encode(entry)
        except (ValueError, OverflowError):
            # Secrets are found by their members, so bytes without members are not kept.
            entry |= {"revision": self._tracker.revision, "connection": self._number}
            entry |= {"message": None, "invalid_bytes": len(data)}
            line = msgspec.json.encode(entry)
        self._recorder.write(line + b"\n")
