"""What one end of a connection has to remember: ids, open calls both ways, progress, cancellation, deadlines.

Sans-IO: a transport carries the bytes and a clock is read elsewhere; times come in as `now`, in seconds of any
clock that only goes forward. Every entry is put in by one method and taken out by exactly one other, so that nothing
is answered twice and nothing stays behind:

=================== ============ ==========================================
table               put in by    taken out by
=================== ============ ==========================================
`in_flight` (theirs) `begin`     `end` (answered), `cancelled` (never answered)
`pending` (ours)     `call`      `resolve`, `cancel`, `expire`
=================== ============ ==========================================

`close` empties both.
"""

from __future__ import annotations

import heapq
import re
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from typedmcp.wire import RequestId

__all__ = ["Call", "Kind", "Peer", "Report"]

_REMEMBERED = 1024
"""How many calls that we gave up are remembered, to tell a late answer from one to nothing."""


class Kind(StrEnum):
    """What a report is about."""

    MALFORMED = "malformed"
    """A frame that is no message; it was answered if it could be a request."""
    STRAY = "stray"
    """An answer to nothing."""
    LATE = "late"
    """An answer to a call that had been given up."""
    ID_TYPE = "id type"
    """An answer whose id is a string where the call's was a number; it was taken."""
    DUPLICATE = "duplicate"
    """A request with the id of one that is still in flight; it was not answered, since that would end the other."""
    UNKNOWN = "unknown"
    """A notification of a method that nobody here knows, or about a call that is not open."""
    REFUSED = "refused"
    """A notification whose parameters are wrong."""
    FAILED = "failed"
    """A handler failed; a request was answered with an internal error."""
    LOST = "lost"
    """Parts of a message that the peer's revision does not have."""
    PROBLEM = "problem"
    """A part of a result that is not what it should be, and was left out."""
    LOG = "log"
    """A log message that could not be sent, since nobody asked for any."""
    BROKEN = "broken"
    """The connection broke."""
    EVENT = "event"
    """A notification that older revisions have and the dialect does not."""


@dataclass(frozen=True, slots=True)
class Report:
    """Something that was noticed and is not an error of a call: for a log, a metric, a test."""

    kind: Kind
    text: str
    method: str | None = None
    id: RequestId | None = None
    params: Any = None
    error: BaseException | None = None


class Call:
    """A call of ours that waits for its answer."""

    __slots__ = ("began", "deadline", "id", "latest", "method", "owner", "timeout")

    def __init__(self, id: int, method: str, owner: Any, began: float) -> None:
        self.id: int = id
        self.method: str = method
        self.owner: Any = owner
        """Whatever the caller wants to find again, such as a future."""
        self.began: float = began
        self.timeout: float | None = None
        self.deadline: float | None = None
        self.latest: float | None = None

    @property
    def allowed(self) -> float | None:
        """The seconds that its deadline stands for: without progress, or in all."""
        if self.latest is not None and self.deadline == self.latest:
            return self.latest - self.began
        return self.timeout


class Peer:
    """The tables of one end of a connection."""

    __slots__ = ("_deadlines", "_given_up", "_next", "in_flight", "pending")

    def __init__(self) -> None:
        self.in_flight: dict[RequestId, Any] = {}
        """Their calls that are being worked on, each with what `begin` was given."""
        self.pending: dict[RequestId, Call] = {}
        """Our calls by their id."""
        self._next = 0
        self._given_up: OrderedDict[RequestId, None] = OrderedDict()
        self._deadlines: list[tuple[float, int]] = []

    # Their calls

    def begin(self, id: RequestId, work: Any) -> bool:
        """Note a call of theirs. False if one of that id is in flight: it must not be answered."""
        if id in self.in_flight:
            return False
        self.in_flight[id] = work
        return True

    def end(self, id: RequestId) -> bool:
        """Their call is done. False if it was cancelled meanwhile: it must not be answered."""
        return self.in_flight.pop(id, _NOTHING) is not _NOTHING

    def cancelled(self, id: RequestId) -> Any:
        """They gave a call up: what `begin` was given, or None if it is not in flight."""
        return self.in_flight.pop(id, None)

    # Our calls

    def call(
        self, method: str, owner: Any, now: float, *, timeout: float | None = None, latest: float | None = None
    ) -> Call:
        """Note a call of ours, with a new id.

        `timeout` is how many seconds without an answer or progress it may take, `latest` how many in all.
        """
        self._next += 1
        call = Call(self._next, method, owner, now)
        call.timeout = timeout
        call.latest = None if latest is None else now + latest
        self.pending[call.id] = call
        self._extend(call, now)
        return call

    def resolve(self, id: RequestId | None) -> tuple[Call | None, Kind | None]:
        """The call that an answer with this id ends, and what is odd about it, if anything."""
        call = self.pending.pop(id, None) if id is not None else None
        if call is not None:
            return call, None
        number = int(id) if isinstance(id, str) and _NUMBER.fullmatch(id) else id
        if number is not None and (call := self.pending.pop(number, None)):
            return call, Kind.ID_TYPE
        if number is not None and number in self._given_up:
            del self._given_up[number]
            return None, Kind.LATE
        return None, Kind.STRAY

    def cancel(self, id: RequestId) -> bool:
        """Give a call of ours up. False if it is not open any more."""
        if self.pending.pop(id, None) is None:
            return False
        self._give_up(id)
        return True

    def progressed(self, id: RequestId, now: float) -> Call | None:
        """There was progress on a call of ours (its id is its token): its time starts again, up to the latest."""
        call = self.pending.get(id)
        if call is not None:
            self._extend(call, now)
        return call

    def gave_up(self, id: RequestId) -> bool:
        """Whether a call of ours was given up, as far as that is remembered."""
        return id in self._given_up

    def next_deadline(self) -> float | None:
        """When `expire` has something to do, if ever."""
        while self._deadlines:
            deadline, id = self._deadlines[0]
            call = self.pending.get(id)
            if call is not None and call.deadline == deadline:
                return deadline
            heapq.heappop(self._deadlines)
        return None

    def expire(self, now: float) -> list[Call]:
        """Our calls whose time is over; they are given up."""
        over: list[Call] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            call = self.pending.pop(heapq.heappop(self._deadlines)[1])
            self._give_up(call.id)
            over.append(call)
        return over

    def close(self) -> tuple[list[Any], list[Call]]:
        """The connection is over: their calls, which end unanswered, and ours, which get none."""
        theirs, ours = list(self.in_flight.values()), list(self.pending.values())
        self.in_flight.clear()
        self.pending.clear()
        self._given_up.clear()
        self._deadlines.clear()
        return theirs, ours

    def _extend(self, call: Call, now: float) -> None:
        times = [now + call.timeout] if call.timeout is not None else []
        times += [call.latest] if call.latest is not None else []
        if times and (deadline := min(times)) != call.deadline:
            call.deadline = deadline
            heapq.heappush(self._deadlines, (deadline, call.id))
            if len(self._deadlines) > 64 + 4 * len(self.pending):
                self._deadlines = [(c.deadline, c.id) for c in self.pending.values() if c.deadline is not None]
                heapq.heapify(self._deadlines)

    def _give_up(self, id: RequestId) -> None:
        self._given_up[id] = None
        if len(self._given_up) > _REMEMBERED:
            self._given_up.popitem(last=False)


_NOTHING = object()
_NUMBER = re.compile(r"[1-9][0-9]{,18}")
"""One of our ids, written as a string."""
