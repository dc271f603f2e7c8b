"""One connection to a server: requests out, answers in.

The tables and deadlines are `typedmcp.peer`'s, the lines `typedmcp.wire`'s; this is what moves the bytes and wakes
whoever waits. It knows no eras and no types: results come as the bytes that they were sent as.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType

from typedmcp.codec import Notification, Response, encode_into, error_bytes
from typedmcp.errors import ConnectionLost, Error, ProtocolError, RemoteError, RequestTimeout
from typedmcp.peer import Call, Kind, Peer, Report
from typedmcp.transports import Transport
from typedmcp.wire import Bad, Batch, Frame, Framer, Oversize, RequestId, answered_id, envelope, examine

__all__ = ["ClientSession", "Listener", "Pending"]


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


class Pending:
    """What a call of ours remembers: the future of its answer, and whom to tell of its progress."""

    __slots__ = ("answer", "on_progress")

    def __init__(self, answer: asyncio.Future[Raw], on_progress: Any = None) -> None:
        self.answer: asyncio.Future[Raw] = answer
        self.on_progress: Any = on_progress


class ClientSession:
    """A connection to a server, from the first byte to the last.

    `limit` is the longest line that is read, in bytes.
    """

    def __init__(self, transport: Transport, listener: Listener, *, limit: int) -> None:
        self.peer: Peer = Peer()
        self.transport: Transport = transport
        self._listener = listener
        self._framer = Framer(limit)
        self._loop = asyncio.get_running_loop()
        self._out = bytearray()
        self._flushing = False
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self.ended: bool = False
        """Whether nothing can be called any more."""
        self.over: asyncio.Event = asyncio.Event()
        """Set when everything that was open has failed."""
        self._reading = self._loop.create_task(self._read())

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

    async def exchange(self, call: Call, params: Any) -> Raw:
        """Send a call and wait for the bytes of its result.

        Raises `RemoteError` for an error answer, `RequestTimeout`, `ConnectionLost` at the end of the connection,
        and `ProtocolError` for an answer that is none. Cancelled, it tells the server.
        """
        pending: Pending = call.owner
        if call.deadline is not None:
            self._watch(call.deadline)
        try:
            if self.transport.congested:
                await self._keep_pace(pending.answer)
            if not pending.answer.done():
                self._send_call(call, params)
            return await pending.answer
        except asyncio.CancelledError:
            if self.peer.cancel(call.id):
                self._tell_cancelled(call, "nobody waits for it any more")
            raise

    def _send_call(self, call: Call, params: Any) -> None:
        try:
            self.send(Notification("2.0", call.method, params, call.id))
        except BaseException:
            self.peer.cancel(call.id)
            raise

    async def _keep_pace(self, answer: asyncio.Future[Raw]) -> None:
        """Wait until the server reads again, but no longer than for the answer."""
        drained = self._loop.create_task(self._drain())
        try:
            await asyncio.wait((drained, answer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            drained.cancel()

    async def _drain(self) -> None:
        await self.transport.drain()

    def forget(self, method: str, params: Any, timeout: float) -> None:
        """Send a call whose answer nobody waits for."""
        call = self.begin(method, timeout=timeout)
        pending: Pending = call.owner
        pending.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        self.send(Notification("2.0", method, params, call.id))
        if call.deadline is not None:
            self._watch(call.deadline)

    def notify(self, method: str, params: Any = UNSET) -> None:
        """Send a notification."""
        self.send(Notification("2.0", method, params))

    def answer(self, id: RequestId, result: Any) -> None:
        """Answer a request of the server's."""
        self.send(Response("2.0", id, result))

    def refuse(self, id: RequestId, code: int, message: str, data: Any = None) -> None:
        """Answer a request of the server's with an error."""
        self._write(error_bytes(id, code, message, data))

    def send(self, message: msgspec.Struct) -> None:
        """Send a message. Raises `TypeError` or `ValueError` where it cannot be encoded."""
        if self._out or len(self.peer.pending) > 1:  # others are about to send too
            encode_into(message, self._out)
            self._flush_soon()
        else:
            line = bytearray()
            encode_into(message, line)
            self._write_now(bytes(line))

    def _write(self, line: bytes) -> None:
        self._out += line
        self._flush_soon()

    def _write_now(self, data: bytes) -> None:
        if not self.ended:
            self.transport.write(data)

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._out:
            data = bytes(self._out)
            self._out.clear()
            self._write_now(data)

    def _tell_cancelled(self, call: Call, reason: str) -> None:
        if call.method != "initialize" and not self.ended:  # which must not be cancelled
            self.notify("notifications/cancelled", {"requestId": call.id, "reason": reason})

    # Deadlines

    def progressed(self, call: Call) -> None:
        """The server works on a call: its time starts again."""
        self.peer.progressed(call.id, self._loop.time())

    def _watch(self, deadline: float) -> None:
        if self._timer is None or deadline < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for call in self.peer.expire(now):
            pending: Pending = call.owner
            if not pending.answer.done():
                pending.answer.set_exception(RequestTimeout(call.allowed or 0.0).of_call(call.method, call.id))
            self._tell_cancelled(call, "it took too long")
        deadline = self.peer.next_deadline()
        if deadline is not None:
            self._watch(deadline)

    # Reading

    async def _read(self) -> None:
        transport, framer = self.transport, self._framer
        try:
            while data := await transport.read():
                for line in framer.feed(data):
                    self._take(line)
            for line in framer.end():
                self._take(line)
        except OSError as error:
            self._listener.report(Report(Kind.BROKEN, f"the connection broke: {error}", error=error))
        finally:
            self._after_the_end()

    def _after_the_end(self) -> None:
        """Every call that waits fails at once."""
        self.ended = True
        self._flushing = True
        self._out.clear()
        if self._timer is not None:
            self._timer.cancel()
        for call in self.peer.close()[1]:
            pending: Pending = call.owner
            if not pending.answer.done():
                pending.answer.set_exception(self.loss().of_call(call.method, call.id))
                pending.answer.exception()  # it may be that nobody waits any more
        self._listener.lost()
        self.over.set()

    def loss(self) -> Error:
        """The error of a call that the end of the connection ends."""
        describe: Callable[[], str] | None = getattr(self.transport, "describe_end", None)
        told = describe() if describe is not None else ""
        return ConnectionLost(f"the connection ended{': ' if told else ''}{told}")

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

    async def _close(self) -> None:
        self._flush()
        self.ended = True
        try:
            await self.transport.close()
        finally:
            self._reading.cancel()
            await asyncio.wait([self._reading])


class _Token(msgspec.Struct):
    token: RequestId = msgspec.field(name="progressToken")


_progress_token = msgspec.json.Decoder(_Token).decode

_ODD = {
    Kind.STRAY: "an answer to nothing",
    Kind.LATE: "an answer to a call that had been given up",
    Kind.ID_TYPE: "an answer whose id is a string where the call's was a number",
}
