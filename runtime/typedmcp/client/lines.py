"""A session over a transport: one line for each message, both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from typedmcp.client.session import Listener, Pending, Session
from typedmcp.codec import Notification, Response, encode_into, error_bytes
from typedmcp.errors import ConnectionLost, Error, RequestTimeout
from typedmcp.peer import Call, Kind, Report
from typedmcp.transports import Transport
from typedmcp.wire import Framer, RequestId

__all__ = ["LineSession"]


class LineSession(Session):
    """A connection to a server, from the first byte to the last.

    `limit` is the longest line that is read, in bytes.
    """

    def __init__(self, transport: Transport, listener: Listener, *, limit: int) -> None:
        super().__init__(listener)
        self.transport: Transport = transport
        self._framer = Framer(limit)
        self._out = bytearray()
        self._flushing = False
        self._timer: asyncio.TimerHandle | None = None
        self._reading = self._loop.create_task(self._read())

    # Calling

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

    @property
    def congested(self) -> bool:
        """Whether the server does not read what it is sent."""
        return self.transport.congested

    # Deadlines

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
        self._flushing = True
        self._out.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._fail_all()

    def loss(self) -> Error:
        """The error of a call that the end of the connection ends."""
        describe: Callable[[], str] | None = getattr(self.transport, "describe_end", None)
        told = describe() if describe is not None else ""
        return ConnectionLost(f"the connection ended{': ' if told else ''}{told}")

    # Ending

    async def _close(self) -> None:
        self._flush()
        self.ended = True
        try:
            await self.transport.close()
        finally:
            self._reading.cancel()
            await asyncio.wait([self._reading])
