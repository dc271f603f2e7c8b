"""Diagnostics: events that are not errors of a call, for logs, metrics and tests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from mcpspec.support.error_text import format_value
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.text import log_failure, visible

__all__ = ["Diagnostic", "DiagnosticKind", "cancellation_diagnostic", "deliver_diagnostic"]

_log = logging.getLogger("typedmcp")


class DiagnosticKind(StrEnum):
    """The kind of event that a diagnostic is about."""

    MALFORMED = "malformed"
    """A frame is not a valid message. If it may have been a request, it was answered with an error."""
    UNEXPECTED_RESPONSE = "unexpected response"
    """A response has an id that belongs to no call, or an answer in `inputResponses` belongs to no question."""
    LATE_MESSAGE = "late message"
    """A response, or progress, arrived for a call that had been cancelled or had timed out."""
    ID_TYPE_MISMATCH = "id type mismatch"
    """The id of a response is a string, that of the call a number. The response was accepted."""
    DUPLICATE_ID = "duplicate id"
    """A request has the id of a request in flight. It was not answered, since the answer would end the other one."""
    UNEXPECTED_MESSAGE = "unexpected message"
    """A notification has an unknown method or names a call that is not open, or the peer must not send the request."""
    REJECTED_NOTIFICATION = "rejected notification"
    """A notification was ignored: its parameters are invalid, or too many messages are being handled."""
    INTERNAL_ERROR = "internal error"
    """A handler, a callback or the library itself failed. A request was answered with an internal error."""
    DROPPED = "dropped"
    """Members of a message, or a message, could not be sent: the peer's revision lacks them, or it does not read."""
    INVALID_DATA = "invalid data"
    """A part of a result, or of a configuration, is invalid. It was left out or repaired."""
    LOG = "log"
    """A log message was not sent, since the client did not ask for messages of its level."""
    CONNECTION_ERROR = "connection error"
    """The connection, or the connection to the store, broke."""
    LEGACY_NOTIFICATION = "legacy notification"
    """A notification arrived that older revisions have and the dialect lacks."""
    TOLERATED = "tolerated"
    """A message broke the specification harmlessly. It was understood."""
    CANCELLED = "cancelled"
    """The peer cancelled a request, and gave a reason."""
    NOT_GRANTED = "not granted"
    """A server does not report all changes that a subscription asked for."""
    LIMIT_REACHED = "limit reached"
    """A client reached a limit on what it can make the server keep. It is reported once, until the use has halved."""


class Diagnostic(msgspec.Struct, frozen=True):
    """An event that is not an error of a call."""

    kind: DiagnosticKind
    text: str
    """A description, in English: one line, without control characters, even if it holds text of a peer."""
    method: str | None = None
    """The method of the message that it is about, if there is one."""
    id: RequestId | None = None
    """The id of that message, if it has one."""
    params: Any = None
    """The value that it is about, as plain JSON: parameters, names of dropped members, or the invalid value."""
    error: BaseException | None = None
    """The exception behind it, if there is one."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "text", visible(self.text))


def cancellation_diagnostic(peer: str, id: RequestId | None, reason: str) -> Diagnostic:
    """Return the diagnostic for the reason that a peer, "client" or "server", gave for a cancellation."""
    text = f"the {peer} cancelled request {format_value(id)}: {format_value(reason)}"
    return Diagnostic(DiagnosticKind.CANCELLED, text, "notifications/cancelled", id, reason)


def deliver_diagnostic(diagnostic: Diagnostic, on_diagnostic: Callable[[Diagnostic], object] | None) -> None:
    """Pass a diagnostic to `on_diagnostic`, or log it. Errors that `on_diagnostic` raises are logged."""
    if on_diagnostic is None:
        _log.warning("%s: %s", diagnostic.kind, diagnostic.text)
        return
    try:
        on_diagnostic(diagnostic)
    except Exception as error:
        log_failure(logging.ERROR, "on_diagnostic failed", error)
