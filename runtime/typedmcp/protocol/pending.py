"""The open requests to the peer of a connection, with their progress and deadlines.

This module does no I/O and reads no clock: times are passed as `now`, in seconds of any monotonic clock. An entry is
added by `add_call`, and removed by exactly one of `resolve`, `cancel_call` and `expire`, so that no request gets two
responses and no entry stays behind. `close` removes all. `renew` gives a call another id.
"""

from __future__ import annotations

import heapq
import re
from collections import OrderedDict
from typing import Any

import msgspec

from typedmcp.protocol.diagnostics import DiagnosticKind
from typedmcp.protocol.framing import RequestId

__all__ = ["Call", "PendingRequests"]

_REMEMBERED_CANCELLATIONS = 1024
"""Cancelled calls whose ids are kept, to recognise late responses."""


class Call(msgspec.Struct, eq=False):
    """A request to the peer that waits for its response."""

    id: int
    method: str
    owner: Any
    """Any object of the caller, such as a future."""
    began: float
    timeout: float | None = None
    latest: float | None = None
    deadline: float | None = None
    is_queued: bool = False
    """True once the deadline is in the queue."""

    def restart(self, now: float) -> None:
        """Set the deadline anew, for a call that begins or makes progress."""
        self.deadline = self.latest
        if self.timeout is not None and (self.latest is None or now + self.timeout < self.latest):
            self.deadline = now + self.timeout

    @property
    def allowed(self) -> float | None:
        """The seconds that its deadline allows: without progress, or in total."""
        if self.latest is not None and self.deadline == self.latest:
            return self.latest - self.began
        return self.timeout


class PendingRequests:
    """The requests to the peer that wait for a response."""

    __slots__ = ("_cancelled", "_deadlines", "_next", "calls")

    def __init__(self) -> None:
        self.calls: dict[RequestId, Call] = {}
        """The requests by id."""
        self._next = 0
        self._cancelled: OrderedDict[RequestId, None] = OrderedDict()
        self._deadlines: list[tuple[float, int]] = []

    def add_call(
        self, method: str, owner: Any, now: float, *, timeout: float | None = None, latest: float | None = None
    ) -> Call:
        """Add a request to the peer, with a new id.

        `timeout` is the time in seconds without a response or progress, `latest` the total time.
        """
        self._next = id = self._next + 1
        call = self.calls[id] = Call(id, method, owner, now, timeout, None if latest is None else now + latest)
        call.restart(now)
        return call

    def renew(self, call: Call) -> None:
        """Give an open call a new id, so that its request can be sent again."""
        self.cancel_call(call.id)
        self._next = call.id = self._next + 1
        self.calls[call.id] = call
        call.is_queued = False

    def resolve(self, id: RequestId | None, *, strict: bool = False) -> tuple[Call | None, DiagnosticKind | None]:
        """Remove the call of a response. Return it, and the problem of the response, if any.

        Unless `strict`, a response may have the number of its call as a string.
        """
        call = self.calls.pop(id, None) if id is not None else None
        if call is not None:
            return call, None
        number = int(id) if not strict and isinstance(id, str) and _NUMBER.fullmatch(id) else id
        if number is not None and (call := self.calls.pop(number, None)):
            return call, DiagnosticKind.ID_TYPE_MISMATCH
        if number is not None and number in self._cancelled:
            del self._cancelled[number]
            return None, DiagnosticKind.LATE_MESSAGE
        return None, DiagnosticKind.UNEXPECTED_RESPONSE

    def cancel_call(self, id: RequestId) -> bool:
        """Cancel a call. Return False if it is no longer open."""
        if self.calls.pop(id, None) is None:
            return False
        self._remember_cancelled(id)
        return True

    def record_progress(self, id: RequestId, now: float) -> Call | None:
        """Restart the timeout of a call that made progress, and return it. Its id is its progress token."""
        call = self.calls.get(id)
        if call is not None:
            call.restart(now)
        return call

    def was_cancelled(self, id: RequestId) -> bool:
        """Return whether a call was cancelled recently: only a limited number is remembered."""
        return id in self._cancelled

    def next_deadline(self) -> float | None:
        """Return the time of the next deadline, if there is one."""
        self._queue_deadlines()
        queue = self._deadlines
        while queue:
            deadline, id = queue[0]
            call = self.calls.get(id)
            if call is None or call.deadline is None:
                heapq.heappop(queue)
            elif call.deadline == deadline:
                return deadline
            else:  # it has made progress
                heapq.heapreplace(queue, (call.deadline, id))
        return None

    def _queue_deadlines(self) -> None:
        """Queue the deadlines of calls that are new since the last time. Most new calls have ended by then."""
        for call in reversed(self.calls.values()):
            if call.is_queued:
                break
            call.is_queued = True
            if call.deadline is not None:
                heapq.heappush(self._deadlines, (call.deadline, call.id))
        if len(self._deadlines) > 64 + 4 * len(self.calls):
            self._deadlines = [(c.deadline, c.id) for c in self.calls.values() if c.deadline is not None]
            heapq.heapify(self._deadlines)

    def expire(self, now: float) -> list[Call]:
        """Cancel the calls whose deadline has passed, and return them."""
        over: list[Call] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            call = self.calls.pop(heapq.heappop(self._deadlines)[1])
            self._remember_cancelled(call.id)
            over.append(call)
        return over

    def close(self) -> list[Call]:
        """Empty the table at the end of the connection. Return the requests that were open."""
        open_calls = list(self.calls.values())
        self.calls.clear()
        self._cancelled.clear()
        self._deadlines.clear()
        return open_calls

    def _remember_cancelled(self, id: RequestId) -> None:
        self._cancelled[id] = None
        if len(self._cancelled) > _REMEMBERED_CANCELLATIONS:
            self._cancelled.popitem(last=False)


_NUMBER = re.compile(r"[1-9][0-9]{,18}")
"""The id of a call, written as a string."""
