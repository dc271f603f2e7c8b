"""A session over a transport: one line for each message, in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from typedmcp.client.session.reader import PendingCall, SessionListener
from typedmcp.client.session.session import ClientSession, DirectCalls
from typedmcp.errors import ConnectionLostError, Error, ProtocolError, RequestTimeoutError
from typedmcp.limits import Limits
from typedmcp.observers import Network
from typedmcp.protocol.codec import Notification, encode_message
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Framer
from typedmcp.protocol.pending import Call
from typedmcp.protocol.text import visible
from typedmcp.transports import Transport, network_of, tap

__all__ = ["StreamSession"]

_SUCCESS = "exit status 0"
"""The description of a process that ended by itself, such as a script without a server."""
_LARGE_BYTES = 1 << 16
"""A message of more bytes is sent by itself."""
_SHOWN_CHARACTERS = 200
"""Characters that an error shows of a line that is not a message."""


class StreamSession(ClientSession):
    """A session over one connection, which cannot be reopened."""

    def __init__(self, transport: Transport, listener: SessionListener, limits: Limits) -> None:
        super().__init__(listener, limits, self._on_stray_line)
        self.transport: Transport = transport
        self.direct: DirectCalls | None = self
        self.network: Network | None = network_of(transport)
        self.url: str | None = getattr(transport, "url", None)
        self._framer = Framer(limits.message_bytes, limits.message_depth)
        self._out: list[bytes] = []
        self._is_flush_scheduled = False
        self._is_silent = True
        self._timer: asyncio.TimerHandle | None = None
        self._reading = self._loop.create_task(self._read())

    # Calls

    def begin(self, call: Call, params: Any) -> asyncio.Future[Raw]:
        """Send a request, and return the future of its result."""
        self._schedule_expiry(call.deadline)
        try:
            self._send_line(encode_message(Notification("2.0", call.method, params, call.id)))
        except BaseException:
            self.requests.cancel_call(call.id)
            raise
        pending: PendingCall = call.owner
        pending.is_sent = True
        return pending.response

    async def exchange(self, call: Call, params: Any) -> Raw:
        """Send a request and return the bytes of its result. See `ClientSession.exchange`."""
        response: asyncio.Future[Raw] = call.owner.response
        try:
            if self.transport.is_congested:
                self._schedule_expiry(call.deadline)
                await self._wait_for_drain(response)
            return await (response if response.done() else self.begin(call, params))
        except asyncio.CancelledError:
            self.withdraw(call)
            raise

    async def _wait_for_drain(self, response: asyncio.Future[Raw]) -> None:
        """Wait until the server reads again, or the call has ended."""
        draining = asyncio.ensure_future(self.transport.drain())
        try:
            await asyncio.wait((draining, response), return_when=asyncio.FIRST_COMPLETED)
        finally:
            draining.cancel()

    def exchange_in_background(self, method: str, params: Any, timeout: float) -> None:
        """Send a request and discard its response. `timeout` is in seconds."""
        call = self.start_call(method, timeout=timeout)
        pending: PendingCall = call.owner
        pending.response.add_done_callback(lambda response: response.cancelled() or response.exception())
        self.begin(call, params)

    def _post(self, message: bytes, method: str | None, params: Any = None) -> None:  # noqa: ARG002  # HTTP needs them
        self._send_line(message)

    def _send_line(self, line: bytes) -> None:
        """Send a line, which has no newline yet."""
        if len(line) > _LARGE_BYTES:  # copying it to others, or to a newline, would cost more than a write
            self._flush()
            self._write(line)
            self._write(b"\n")
        elif self._out or len(self.requests.calls) > 1:  # other calls are about to send too: one write for all
            self._out.append(line)
            if not self._is_flush_scheduled:
                self._is_flush_scheduled = True
                self._loop.call_soon(self._flush)
        else:
            self._write(line + b"\n")

    def _write(self, data: bytes) -> None:
        if not self.has_ended:
            self.transport.write(data)

    def _flush(self) -> None:
        self._is_flush_scheduled = False
        if self._out:
            self._out.append(b"")  # ends the last line
            data = b"\n".join(self._out)
            self._out.clear()
            self._write(data)

    def withdraw(self, call: Call) -> None:
        """Cancel a call, unless it has ended."""
        if self.requests.cancel_call(call.id):
            self._notify_cancelled(call, "the client no longer needs the result")

    def _notify_cancelled(self, call: Call, reason: str) -> None:
        # A request that waits for the server to read is not on its way yet, and `initialize` must not be cancelled.
        if call.owner.is_sent and call.method != "initialize" and not self.has_ended:
            self.notify("notifications/cancelled", {"requestId": call.id, "reason": reason})

    @property
    def is_congested(self) -> bool:
        """True while the server is not reading."""
        return self.transport.is_congested

    # Deadlines

    def _schedule_expiry(self, deadline: float | None) -> None:
        if deadline is not None and (self._timer is None or deadline < self._timer.when()):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        for call in self.requests.expire(self.time()):
            pending: PendingCall = call.owner
            if not pending.response.done():
                error = RequestTimeoutError(call.allowed or 0.0, self._describe_stray_line())
                pending.response.set_exception(error.attach_call(call.method, call.id))
            self._notify_cancelled(call, "the call timed out")
        self._schedule_expiry(self.requests.next_deadline())

    # Reading

    async def _read(self) -> None:
        """Read up to the end of the stream. Most transports pass data to `_receive` as it arrives."""
        tap(self.transport, self._receive)
        try:
            while self._receive(await self.transport.read()):
                pass
            for line in self._framer.end():
                self.reader.receive(line)
        except OSError as error:
            text = f"the connection broke: {error}"
            self.reader.listener.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text, error=error))
        finally:
            self._end()

    def _receive(self, data: bytes) -> bool:
        """Handle data. Return False at the end of the stream, and if the client has ended the session."""
        self._is_silent = self._is_silent and not data
        for line in self._framer.feed(data):
            self.reader.receive(line)
            if self.abort_reason is not None:
                self._reading.cancel()
                return False
        return bool(data)

    def _end(self) -> None:
        self._is_flush_scheduled = True  # nothing more can be flushed
        self._out.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._fail_all_calls()

    def end_error(self) -> Error:
        """Return the error for calls that are open when the connection ends."""
        if self.abort_reason is not None:
            return ProtocolError(self.abort_reason)
        describe: Callable[[], str] | None = getattr(self.transport, "describe_end", None)
        reason = describe() if describe is not None else ""
        text = f"the connection ended{': ' if reason else ''}{reason}{self._describe_stray_line()}"
        if self._is_silent and reason.startswith(_SUCCESS):
            text += "; the program sent nothing: a file with a server must call server.run()"
        return ConnectionLostError(text)

    def _describe_stray_line(self) -> str:
        """Return the end of an error about a server that printed something else than messages."""
        line = self.stray_line
        return f"; it printed {_quote(line.result())}, which is not a message of MCP" if line.done() else ""

    def _on_stray_line(self, start: bytes) -> None:
        """Report a line that is not JSON, and remember the first: the process may not be a server at all."""
        if not self.stray_line.done():
            self.stray_line.set_result(start[:_SHOWN_CHARACTERS])
        text = f"the server printed {_quote(start)}, which is not a message of MCP; a server prints to standard error"
        self.reader.listener.report(Diagnostic(DiagnosticKind.MALFORMED, text))

    async def _close(self) -> None:
        self._flush()
        self.has_ended = True
        try:
            await self.transport.close()
        finally:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def _quote(line: bytes) -> str:
    """Return the beginning of a line of the server, escaped."""
    return f"'{visible(line[:_SHOWN_CHARACTERS].decode(errors='replace'), _SHOWN_CHARACTERS)}'"
