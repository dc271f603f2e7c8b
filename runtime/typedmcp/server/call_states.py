"""The states of a call, which is one request or notification of a client, and the events that change them.

A call is created when its message has been decoded, and its handler is called at once. Most handlers do not wait: such
a call is answered in the state NEW, and nobody but its channel has known it. A handler that waits makes its call
WAITING: it is in flight, its bytes count, and the client can cancel it.

    event:       ADMIT        ANSWER       CANCEL
    NEW          WAITING      ANSWERED     CANCELLED
    WAITING      -            ANSWERED     CANCELLED
    ANSWERED     -            -            ANSWERED
    CANCELLED    -            CANCELLED    CANCELLED

A message that is rejected before its handler could be called (malformed, contradicted by its headers, with an id that
is in use) never becomes a call. One beyond a limit is admitted, and answered with an error.

The table does not say that
- a notification has no id: it is never admitted or answered, and stays NEW until its handler has ended;
- the task of a call ends after its last state is reached, and the bytes are released then;
- a channel that is lost cancels its calls, unless they belong to a session over HTTP, whose stored events go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

__all__ = ["TRANSITIONS", "CallEvent", "CallState"]


class CallState(StrEnum):
    """The state of a call."""

    NEW = "new"
    """Decoded. Its handler has not waited."""
    WAITING = "waiting"
    """In flight: its handler waits, or it takes the slow path."""
    ANSWERED = "answered"
    """It has its response. Nothing more is sent for it."""
    CANCELLED = "cancelled"
    """Its client has cancelled it, or has left. Nothing more is sent for it."""


class CallEvent(StrEnum):
    """An event that changes the state of a call."""

    ADMIT = "admit"
    """It becomes one of the requests in flight."""
    ANSWER = "answer"
    """A result or an error is sent."""
    CANCEL = "cancel"
    """The client cancels it, its channel is lost, or its session ends."""


TRANSITIONS: Final[Mapping[CallState, Mapping[CallEvent, CallState]]] = {
    CallState.NEW: {
        CallEvent.ADMIT: CallState.WAITING,
        CallEvent.ANSWER: CallState.ANSWERED,
        CallEvent.CANCEL: CallState.CANCELLED,
    },
    CallState.WAITING: {
        CallEvent.ANSWER: CallState.ANSWERED,
        CallEvent.CANCEL: CallState.CANCELLED,
    },
    CallState.ANSWERED: {
        CallEvent.CANCEL: CallState.ANSWERED,
    },
    CallState.CANCELLED: {
        CallEvent.ANSWER: CallState.CANCELLED,
        CallEvent.CANCEL: CallState.CANCELLED,
    },
}
"""The state that follows from an event. An event that a state lacks is an error of this library: `KeyError`."""
