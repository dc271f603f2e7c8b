"""A session with a server: calls that wait, and what is done with each message that comes.

The tables and deadlines are `typedmcp.peer`'s, what is no message `typedmcp.wire`'s. How messages travel is up to the
class: `lines` for a stream of them, `http` for one request each. Nothing here knows eras or types: results come as the
bytes that they were sent as.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from typedmcp.client.mirror import Mirror
from typedmcp.errors import ConnectionLost, Error, ProtocolError, RemoteError
from typedmcp.peer import Call, Kind, Peer, Report
from typedmcp.wire import Bad, Batch, Frame, Oversize, RequestId, answered_id, envelope, examine

__all__ = ["Listener", "Pending", "Session", "SessionLost"]


class _Envelope(msgspec.Struct):
    """Any message: what is in it is looked at by whoever waits for it."""

    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Envelope).decode


class Listener(Protocol):
    """Who is told of what the server says on its own."""

    def heard(self, method: str, params: bytes, call: Call | None) -> None:
        """A notification; `call` is the open call that its progress token names."""
        ...

    def asked(self, id: RequestId, method: str, params: bytes) -> None:
        """A request of the server's, which older revisions have."""
        ...

    def report(self, report: Report) -> None:
        """Something odd."""
        ...

    def lost(self) -> None:
        """The connection ended."""
        ...


class SessionLost(ConnectionLost):
    """The server does not know the session any more: the call was not executed."""


class Pending:
    """What a call of ours remembers: the future of its answer, and whom to tell of its progress."""

    __slots__ = ("answer", "on_progress", "timer")

    def __init__(self, answer: asyncio.Future[Raw], on_progress: Any = None) -> None:
        self.answer: asyncio.Future[Raw] = answer
        self.on_progress: Any = on_progress
        self.timer: asyncio.Timeout | None = None
        """What ends the call in time, where it has a timer of its own."""


class Session(ABC):
    """What all connections to a server have in common: the table of calls, and where messages go."""

    renewable: bool = False
    """Whether a new session may be begun by itself where this one has ended."""

    mirror: Mirror | None = None
    """What stands in headers too, where there are any."""

    def __init__(self, listener: Listener) -> None:
        self.peer: Peer = Peer()
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.Task[None] | None = None
        self.ended: bool = False
        """Whether nothing can be called any more."""
        self.over: asyncio.Event = asyncio.Event()
        """Set when everything that was open has failed."""

    # Calling

    def begin(
        self, method: str, *, timeout: float | None = None, latest: float | None = None, on_progress: Any = None
    ) -> Call:
        """A call with a new id, which is its progress token too. It has to be posted next.

        `timeout` is how many seconds without an answer or progress it may take, `latest` how many in all.
        Raises `ConnectionLost` at the end of the connection.
        """
        if self.ended:
            raise self.loss().of_call(method, "none")
        pending = Pending(self._loop.create_future(), on_progress)
        return self.peer.call(method, pending, self._loop.time(), timeout=timeout, latest=latest)

    @abstractmethod
    async def exchange(self, call: Call, params: Any) -> Raw:
        """Send a call and wait for the bytes of its result.

        Raises `RemoteError` for an error answer, `RequestTimeout`, `ConnectionLost` at the end of the connection,
        and `ProtocolError` for an answer that is none. Cancelled, it tells the server.
        """

    @abstractmethod
    def forget(self, method: str, params: Any, timeout: float) -> None:
        """Send a call whose answer nobody waits for."""

    @abstractmethod
    def notify(self, method: str, params: Any = UNSET) -> None:
        """Send a notification."""

    async def tell(self, method: str) -> None:
        """Send a notification that what is sent next must not overtake."""
        self.notify(method)

    @abstractmethod
    def answer(self, id: RequestId, result: Any) -> None:
        """Answer a request of the server's."""

    @abstractmethod
    def refuse(self, id: RequestId, code: int, message: str, data: Any = None) -> None:
        """Answer a request of the server's with an error."""

    @property
    @abstractmethod
    def congested(self) -> bool:
        """Whether the server does not read what it is sent."""

    async def settle(self, revision: str, *, handshake: bool) -> None:  # noqa: ARG002  # others depend on it
        """A revision was agreed on; after a handshake the server is told so."""
        if handshake:
            await self.tell("notifications/initialized")

    def progressed(self, call: Call) -> None:
        """The server works on a call: its time starts again."""
        self.peer.progressed(call.id, self._loop.time())
        pending: Pending = call.owner
        if pending.timer is not None and not pending.timer.expired():
            pending.timer.reschedule(call.deadline)

    @abstractmethod
    def loss(self) -> Error:
        """The error of a call that the end of the connection ends."""

    def _fail_all(self) -> None:
        """Every call that waits fails at once."""
        self.ended = True
        for call in self.peer.close()[1]:
            pending: Pending = call.owner
            if not pending.answer.done():
                pending.answer.set_exception(self.loss().of_call(call.method, call.id))
                pending.answer.exception()  # it may be that nobody waits any more
        self._listener.lost()
        self.over.set()

    # What comes

    def _take(self, line: bytes | Oversize) -> None:
        """Take a line in, the fast way where it is an answer as it should be."""
        try:
            message = _decode(line)  # type: ignore[arg-type]  # one that is too long is a TypeError
        except (msgspec.MsgspecError, ValueError, RecursionError, TypeError):
            self._look(line)
            return
        if message.method is not UNSET:
            self._heard(message)
        elif message.result is not UNSET and message.error is UNSET and message.id is not UNSET:
            self._resolve(message.id, message.result)
        else:
            self._look(line)

    def _resolve(self, id: RequestId, result: Raw) -> None:
        call, odd = self.peer.resolve(id)
        if odd is not None:
            self._listener.report(Report(odd, _ODD[odd], None if call is None else call.method, id))
        if call is not None:
            pending: Pending = call.owner
            if not pending.answer.done():
                pending.answer.set_result(result)

    def _fail(self, id: RequestId | None, error: Error) -> bool:
        """End a call with an error. False if there is no call of that id."""
        call, odd = self.peer.resolve(id)
        if odd is not None:
            self._listener.report(Report(odd, _ODD[odd], None if call is None else call.method, id, error=error))
        if call is None:
            return False
        pending: Pending = call.owner
        if not pending.answer.done():
            pending.answer.set_exception(error.of_call(call.method, call.id))
        return True

    def _heard(self, message: _Envelope) -> None:
        params = b"{}" if message.params is UNSET else bytes(message.params)
        method = str(message.method)
        try:
            if message.id is not UNSET:
                self._listener.asked(message.id, method, params)
            else:
                progress = method == "notifications/progress"
                self._listener.heard(method, params, self._call_of(params) if progress else None)
        except Exception as error:  # nothing that is said must end the reading
            self._listener.report(Report(Kind.FAILED, f"{method} could not be taken: {error!r}", method, error=error))

    def _call_of(self, params: bytes) -> Call | None:
        try:
            token = _progress_token(params).token
        except (msgspec.MsgspecError, ValueError):
            return None
        return self.peer.pending.get(token)

    # The slow look

    def _look(self, line: bytes | Oversize) -> None:
        found = examine(line)
        if isinstance(found, Bad):
            self._bad(found, line)
        elif isinstance(found, Batch):
            for item in found.items:
                one = envelope(item)
                if isinstance(one, Bad):
                    self._bad(one, msgspec.json.encode(item))
                else:
                    self._frame(one)
        elif found is not None:
            self._frame(found)

    def _frame(self, frame: Frame) -> None:
        if frame.method is not None:
            params = frame.value.get("params", UNSET)
            raw = UNSET if params is UNSET else Raw(msgspec.json.encode(params))
            self._heard(_Envelope("2.0", UNSET if frame.id is None else frame.id, frame.method, raw))
        elif "result" in frame.value and frame.id is not None:
            self._resolve(frame.id, Raw(msgspec.json.encode(frame.value["result"])))
        else:
            self._refused(frame)

    def _refused(self, frame: Frame) -> None:
        """An error answer. Without an id it is nobody's, unless only one call can be meant."""
        error = RemoteError.of_wire(frame.value["error"])
        id = frame.id
        if id is None and len(self.peer.pending) == 1:
            id = next(iter(self.peer.pending))
        if id is None:
            self._listener.report(Report(Kind.STRAY, f"an error without an id: {error}", error=error))
        else:
            self._fail(id, error)

    def _bad(self, bad: Bad, line: bytes | Oversize) -> None:
        """Junk is never answered, since both ends might. A call that it was to answer ends with it."""
        id = answered_id(line.head if isinstance(line, Oversize) else line)
        self._listener.report(Report(Kind.MALFORMED, bad.reason, id=id))
        if id is not None and id in self.peer.pending:
            self._fail(id, ProtocolError(f"the answer is no message: {bad.reason}"))

    # Ending

    async def close(self) -> None:
        """End the connection; open calls fail. May be called by several, and again."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    @abstractmethod
    async def _close(self) -> None: ...


class _Token(msgspec.Struct):
    token: RequestId = msgspec.field(name="progressToken")


_progress_token = msgspec.json.Decoder(_Token).decode

_ODD = {
    Kind.STRAY: "an answer to nothing",
    Kind.LATE: "an answer to a call that had been given up",
    Kind.ID_TYPE: "an answer whose id is a string where the call's was a number",
}
