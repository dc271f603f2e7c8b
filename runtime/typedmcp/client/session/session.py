"""A session with one server: its open calls, and what it sends.

`typedmcp.protocol.pending` keeps the table of calls with their deadlines, and `MessageReader` dispatches what arrives.
A subclass moves the bytes: `StreamSession` over a byte stream, `HttpSession` with one request per message. Sessions
know neither revisions nor types: a result is passed on as the bytes that the server sent.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Raw

from typedmcp.client.requests.heads import RequestHeads
from typedmcp.client.session.reader import MessageReader, PendingCall, SessionListener
from typedmcp.errors import ConnectionLostError, Error
from typedmcp.limits import Limits
from typedmcp.observers import Network
from typedmcp.protocol.codec import Notification, Response, encode_error, encode_message
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.pending import Call, PendingRequests

__all__ = ["ClientSession", "DirectCalls", "RepeatableError", "SessionLostError"]


class RepeatableError(ConnectionLostError):
    """The call failed, and may be made again."""


class SessionLostError(RepeatableError):
    """The server has forgotten the session, so it did not execute the call."""


class DirectCalls(Protocol):
    """Makes calls without a coroutine for each, while the session is not congested."""

    def begin(self, call: Call, params: Any) -> asyncio.Future[Raw]:
        """Send a request, and return the future of its result. A caller that is cancelled calls `withdraw`."""
        ...

    def withdraw(self, call: Call) -> None:
        """Cancel a call, unless it has ended."""
        ...


class ClientSession(ABC):
    """A session with a server, over any transport."""

    is_renewable: bool = False
    """True if a new session may follow this one without the option `restart`."""

    direct: DirectCalls | None = None
    """A faster way than `exchange`, of sessions that send requests at once."""

    network: Network | None = None
    """The carrier of the messages. None if the transport does not say it."""

    url: str | None = None
    """The URL of the server, over HTTP."""

    session_id: str | None = None
    """The id of the session, over HTTP with a legacy server."""

    heads: RequestHeads | None = None
    """The parameters that requests repeat in headers, over HTTP."""

    def __init__(
        self, listener: SessionListener, limits: Limits, on_stray: Callable[[bytes], None] | None = None
    ) -> None:
        self.requests: PendingRequests = PendingRequests()
        self.reader: MessageReader = MessageReader(self.requests, limits, listener, on_stray)
        self.limits: Limits = limits
        self.abort_reason: str | None = None
        """Why the client ended the session, if it did so because of what the server sent."""
        self._loop = asyncio.get_running_loop()
        self.time: Callable[[], float] = self._loop.time
        """The clock of the event loop."""
        self._closing: asyncio.Task[None] | None = None
        self.has_ended: bool = False
        """True once no further call can be made."""
        self.end_event: asyncio.Event = asyncio.Event()
        """Set once all open calls have failed."""
        self.stray_line: asyncio.Future[bytes] = self._loop.create_future()
        """The beginning of the first line of the server that is not JSON."""

    # Calls

    def start_call(
        self,
        method: str,
        *,
        timeout: float | None = None,
        latest: float | None = None,
        on_progress: Callable[[Any], object] | None = None,
    ) -> Call:
        """Register a call with a new id, which is also its progress token. Then call `exchange`.

        `timeout` is the time in seconds without a response or progress, `latest` the total time.
        Raises `ConnectionLostError` if the session has ended.
        """
        if self.has_ended:
            raise self.end_error().attach_call(method, "none")
        pending = PendingCall(self._loop.create_future(), on_progress)
        return self.requests.add_call(method, pending, self.time(), timeout=timeout, latest=latest)

    @property
    def is_signing_in(self) -> bool:
        """True while a person may be signing in, which takes longer than a response."""
        return False

    @abstractmethod
    async def exchange(self, call: Call, params: Any) -> Raw:
        """Send a request and return the bytes of its result. A cancelled call is cancelled at the server.

        Raises `RemoteError` for an error response, `RequestTimeoutError`, `ConnectionLostError` at the end of the
        connection, and `ProtocolError` for an invalid response.
        """

    @abstractmethod
    def exchange_in_background(self, method: str, params: Any, timeout: float) -> None:
        """Send a request and discard its response. `timeout` is in seconds."""

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification. Raises `TypeError` or `ValueError` if it cannot be encoded."""
        self._post(encode_message(Notification("2.0", method, params)), method, params)

    async def notify_in_order(self, method: str) -> None:
        """Send a notification that no later message overtakes."""
        self.notify(method)

    def respond(self, id: RequestId, result: Any) -> None:
        """Send the result of a request of the server."""
        self._post(encode_message(Response("2.0", id, result)), None)

    def respond_with_error(self, id: RequestId, code: int, message: str, data: Any = None) -> None:
        """Send an error response to a request of the server."""
        self._post(encode_error(id, code, message, data), None)

    @abstractmethod
    def _post(self, message: bytes, method: str | None, params: Any = None) -> None:
        """Send an encoded message: a notification with its method and parameters, or a response."""

    @property
    def is_congested(self) -> bool:
        """True while the server is not reading. Over HTTP, each message has a connection of its own."""
        return False

    def propose_revision(self, revision: str, params: Any) -> None:  # noqa: B027  # only HTTP needs it
        """Use this modern revision until a revision is negotiated. `params` are those of `server/discover`."""

    async def apply_revision(self, revision: str, *, handshake: bool) -> None:  # noqa: ARG002  # HTTP needs it
        """Use the negotiated revision from now on, and complete the handshake if there was one."""
        if handshake:
            await self.notify_in_order("notifications/initialized")

    async def wait_for_server_messages(self) -> None:  # noqa: B027  # only HTTP needs it
        """Wait until messages of the server can arrive, which are no responses."""

    def record_progress(self, call: Call) -> None:
        """Restart the timeout of a call, on which the server reports progress."""
        self.requests.record_progress(call.id, self._loop.time())
        pending: PendingCall = call.owner
        if pending.timer is not None and not pending.timer.expired():
            pending.timer.reschedule(call.deadline)

    @abstractmethod
    def end_error(self) -> Error:
        """Return the error for calls that are open when the session ends."""

    def abort(self, reason: str) -> None:
        """End the session because of what the server sent. Nothing more is read from it."""
        self.abort_reason = reason
        self.has_ended = True

    def _fail_all_calls(self) -> None:
        self.has_ended = True
        for call in self.requests.close():
            pending: PendingCall = call.owner
            if not pending.response.done():
                pending.response.set_exception(self.end_error().attach_call(call.method, call.id))
                pending.response.exception()  # marks it as retrieved: its caller may be gone
        self.reader.listener.on_disconnect()
        self.end_event.set()

    # The end

    async def close(self) -> None:
        """End the session. Open calls fail. May be called from any task, and more than once."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    @abstractmethod
    async def _close(self) -> None: ...
