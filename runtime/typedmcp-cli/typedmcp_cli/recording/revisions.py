"""The revision of each message of a connection, as far as the messages themselves tell it."""

from __future__ import annotations

from typing import Any, Final

from mcpspec import VERSIONS
from typedmcp.building import is_object
from typedmcp.frames import Sender

__all__ = ["RevisionTracker"]

_MAX_OPEN: Final = 10_000
"""Requests whose revision is remembered until their response. Older ones are forgotten."""


class RevisionTracker:
    """Follows a connection: requests name their revision in `_meta` or `initialize`, responses follow their request."""

    def __init__(self, revision: str) -> None:
        self.revision: str = revision
        """The revision of messages that name none."""
        self.completed_handshake: dict[str, Any] | None = None
        """The `initialize` request to which the last message was the response, else None."""
        self._requested: dict[tuple[str, object], str] = {}
        """The revision of each open request, by its sender and id."""
        self._handshake: dict[str, Any] | None = None

    def find(self, sender: Sender, message: object) -> str:
        """Return the revision of the next message."""
        self.completed_handshake = None
        if not is_object(message):
            return self.revision
        id = message.get("id")
        key_id = id if isinstance(id, int | str) else None
        if "method" not in message:
            requester = "server" if sender == "client" else "client"
            found = self._requested.pop((requester, key_id), self.revision)
            return self._after_handshake(message) or found
        found = self._named_in(message) or self.revision
        if key_id is not None:
            if len(self._requested) >= _MAX_OPEN:
                del self._requested[next(iter(self._requested))]
            self._requested[sender, key_id] = found
        return found

    def _named_in(self, request: dict[str, Any]) -> str | None:
        """Return the revision that a request names, and remember the handshake."""
        params = request.get("params")
        if not is_object(params):
            return None
        if request["method"] == "initialize":
            self._handshake = request
            return _known(params.get("protocolVersion"))
        meta = params.get("_meta")
        return _known(meta.get("io.modelcontextprotocol/protocolVersion")) if is_object(meta) else None

    def _after_handshake(self, response: dict[str, Any]) -> str | None:
        """Return the revision that the server chose in the handshake, if this is the response to it."""
        request = self._handshake
        if request is None or response.get("id") != request.get("id"):
            return None
        self._handshake = None
        result = response.get("result")
        chosen = _known(result.get("protocolVersion")) if is_object(result) else None
        if chosen is not None:
            self.revision = chosen
            self.completed_handshake = request
        return chosen


def _known(revision: object) -> str | None:
    return revision if isinstance(revision, str) and revision in VERSIONS else None
