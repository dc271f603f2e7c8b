"""A session over Streamable HTTP: every message is a request of its own, and its response is the HTTP response.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http

The task that makes a call sends the request and reads the response, without a queue or a task in between. Legacy
revisions add a session id, a stream of server messages, and streams that resume where they broke.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Raw

from mcpspec.features import NAME_PARAMS
from typedmcp.client.http.bodies import accept_coding, content_type, raise_error_in, read_body
from typedmcp.client.http.endpoint import Endpoint, shorten_body
from typedmcp.client.http.event_streams import EventStreams
from typedmcp.client.requests.heads import POST, RequestHeads
from typedmcp.client.session.reader import PendingCall, SessionListener
from typedmcp.client.session.session import ClientSession, RepeatableError, SessionLostError
from typedmcp.dialect import methods
from typedmcp.errors import INVALID_REQUEST, ConnectionLostError, Error, ProtocolError, RequestTimeoutError
from typedmcp.observers import Network
from typedmcp.protocol.codec import Notification, encode_message
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import OversizeMessage
from typedmcp.protocol.headers import SESSION
from typedmcp.protocol.pending import Call
from typedmcp.protocol.text import visible
from typedmcp.transports.concurrency import FairLimit, limit_time
from typedmcp.transports.deadlines import Deadlines
from typedmcp.transports.http1 import HttpResponse, StaleConnectionError

__all__ = ["HttpSession"]

_POST_TIMEOUT: Final = 30.0
"""Seconds for a message that needs no response, and for the request that tells whether the session is still known."""

_FIRST_CALL_DELAY: Final = 0.1
"""Seconds for which the first call waits until the server has opened the stream of its messages."""
_STREAM_OPEN_TIMEOUT: Final = 1.0
"""Seconds that a server has to open its stream of messages before a subscription counts as established."""

_DELETE_TIMEOUT: Final = 2.0
"""Seconds for the request that ends the session at the server."""

_REFUSALS: Final = frozenset((400, 401, 404, 409, 410, -32000, -32001, INVALID_REQUEST))
"""The answers of servers that do not know a session, besides 404 and 5xx: statuses, and codes of errors."""

_LEGACY_REQUESTS: Final = {"initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"}
_IDEMPOTENT: Final = (_LEGACY_REQUESTS | methods.CLIENT_REQUESTS.keys()) - {"tools/call"}
"""Requests that may be sent again if a reused connection turns out to be closed."""


class HttpSession(ClientSession):
    """A session with the server at a URL."""

    is_renewable: bool = True
    network: Network | None = "http"
    has_ended: bool

    def __init__(
        self, endpoint: Endpoint, listener: SessionListener, name_params: Mapping[str, str] = NAME_PARAMS
    ) -> None:
        super().__init__(listener, endpoint.limits)
        self.endpoint: Endpoint = endpoint
        self.url: str | None = endpoint.url
        self.initialize_status: int | None = None
        """The status that rejected `initialize`, if one did."""
        self._heads = RequestHeads(name_params)
        self.heads: RequestHeads | None = self._heads
        self._streams = EventStreams(endpoint, self._heads, self.reader, self._receive, self._check_session)
        self._loss: SessionLostError | None = None
        self._check_request: tuple[str, Any] = ("ping", None)
        """A request that does nothing, with its parameters."""
        self._slots = FairLimit(endpoint.limits.http_calls_in_flight)
        self._deadlines = Deadlines(self._loop)
        self._background = _BackgroundTasks(self._report_failure)

    # Calls

    async def exchange(self, call: Call, params: Any) -> Raw:
        """Send a request and read until its result has arrived. See `ClientSession.exchange`."""
        pending: PendingCall = call.owner
        takes_slot = call.method != "subscriptions/listen"  # which lasts
        limit: str | None = None
        timer = pending.timer = self._deadlines.start(call.deadline)
        try:
            body = encode_message(Notification("2.0", call.method, params, call.id))
            if takes_slot and not self._slots.try_acquire():
                takes_slot = False  # until it is admitted
                limit = f"{self._slots.limit} calls are in progress (http_calls_in_flight): try again later"
                await self._slots.acquire(call.id, None, limit)
                takes_slot, limit = True, None
            try:
                return await self._exchange(call, params, body)
            except Error as failure:
                await self._check_session(failure, call.method, pending.status)
                raise
        except asyncio.CancelledError:
            is_late = timer.take_cancellation()
            if limit is None:  # the request was sent
                reason = "the call timed out" if is_late else "the client no longer needs the result"
                self._notify_cancelled(call, reason)
            if is_late:
                error = RequestTimeoutError(call.allowed or 0.0, limit=limit)
                raise error.attach_call(call.method, call.id) from None
            raise
        except OSError as error:
            raise self.endpoint.connection_error(error).attach_call(call.method, call.id) from error
        except Error as error:
            raise error if error.method is not None else error.attach_call(call.method, call.id)  # noqa: B904
        finally:
            self._deadlines.stop(timer)
            if takes_slot:
                self._slots.release()
            self.requests.cancel_call(call.id)

    async def _exchange(self, call: Call, params: Any, body: bytes) -> Raw:
        head = self._heads.of(call.method, params)
        pending: PendingCall = call.owner
        try:
            response = await self.endpoint.send("POST", head, body, pending.timer)
        except StaleConnectionError:
            if call.method not in _IDEMPOTENT:
                raise
            response = await self._send_again(call, params, head)
        try:
            if call.method == "initialize" and response.status == 200:
                self.session_id = response.headers.get(SESSION) or self.session_id
            if "content-encoding" in response.headers:
                accept_coding(response, self.reader.listener.tolerate)
            kind = content_type(response)
            if response.status == 202:
                return await self._streams.wait_elsewhere(call)
            if response.status != 200 or kind not in ("application/json", "text/event-stream"):
                await self._check(call, response, kind)
            if kind == "application/json":
                return self._read_result(call, await read_body(self.endpoint, response))
            return await self._streams.read(call, response)
        finally:
            response.close()

    async def _send_again(self, call: Call, params: Any, head: bytes) -> HttpResponse:
        """Send a request under a new id: the server may have received it, and the old id has no response yet."""
        pending: PendingCall = call.owner
        if pending.on_progress is not None:  # the old id is part of the parameters: the caller begins a new call
            raise RepeatableError("the server closed the connection")
        self.requests.renew(call)
        return await self.endpoint.send("POST", head, encode_message(Notification("2.0", call.method, params, call.id)))

    def _read_result(self, call: Call, body: bytes) -> Raw:
        """Return the result in a JSON body: one message, or a batch of 2025-03-26."""
        if (result := self.reader.find_result(body, call)) is not None:
            return result
        self.reader.receive(body, (call,))
        pending: PendingCall = call.owner
        if not pending.response.done():
            raise_error_in(body)
        return pending.response.result()

    async def _check(self, call: Call, response: HttpResponse, kind: str) -> None:
        """Raise the error in a response, unless it may be a result that has another status than 200."""
        if response.status < 300:
            self._check_success(call, response, kind)
            return
        call.owner.status = response.status
        if call.method == "initialize":
            self.initialize_status = response.status
        is_busy = response.status in (429, 503) and "retry-after" in response.headers
        if kind != "application/json" or is_busy:
            raise await self.endpoint.error_of(response)
        body = await read_body(self.endpoint, response)
        try:
            raise_error_in(body)  # about this call, whatever its id
        except ProtocolError:
            raise await self.endpoint.error_of(response, shorten_body(body)) from None

    def _check_success(self, call: Call, response: HttpResponse, kind: str) -> None:
        if kind not in ("application/json", "text/event-stream"):
            found = f"the content-type {visible(kind, 100)}" if kind else "no content-type"
            raise ProtocolError(f"the response has {found}, expected application/json or text/event-stream")
        text = f"the response has the status {response.status}, expected 200"
        if response.status != 200 and not self.reader.listener.tolerate(text, call.method):
            raise ProtocolError(text)

    def _receive(self, message: bytes | OversizeMessage, own: Collection[Call]) -> None:
        self.reader.receive(message, own)
        if self.abort_reason is not None:
            raise ProtocolError(self.abort_reason)

    # Negotiation and legacy sessions

    def propose_revision(self, revision: str, params: Any) -> None:
        """Use this revision for `server/discover`, with these parameters."""
        self._heads.proposed, self._check_request = revision, ("server/discover", params)

    async def apply_revision(self, revision: str, *, handshake: bool) -> None:
        """Use the negotiated revision from now on, and complete the handshake if there was one."""
        self._heads.revision = revision
        if not handshake:
            return
        self._check_request = ("ping", None)
        self._heads.begin_legacy_session(revision, self.session_id)
        await self.notify_in_order("notifications/initialized")
        self._background.start(self._streams.read_server_messages())
        # Servers drop a request to the client if the stream is not open. So the request for the stream goes out before
        # the first call, and a server that responds at once has opened it by then.
        await limit_time(_FIRST_CALL_DELAY, self._streams.is_answered.wait())

    async def wait_for_server_messages(self) -> None:
        """Wait until messages of the server can arrive. Some servers open their stream only with the first one."""
        await limit_time(_STREAM_OPEN_TIMEOUT, self._streams.is_answered.wait())

    async def _check_session(self, error: Error, method: str = "", status: int = 200) -> None:
        """Raise `SessionLostError` if the error of a request means that the server no longer knows the session.

        Many servers do not answer 404 for a session that they have forgotten, and a server may be replaced by one of
        another revision. So a refused request is followed by one that does nothing, and if that is refused, too, the
        session ends. A call that may have had an effect fails all the same: only an equal refusal with 4xx shows that
        it had none, and lets it be repeated.
        """
        status = getattr(error, "status", status)
        if status == 404 and method and (self.session_id is not None or self._loss is not None):
            raise self._end_lost_session() from error
        if self._heads.revision is None or not _is_refusal(error, method, status):
            return
        check, params = self._check_request
        if method == check:
            raise self._end_lost_session() from error
        if status == 401 and not isinstance(self.endpoint.options.auth, str | None):
            if self.session_id is not None:  # the check would ask for credentials once more, and they are new
                self._end_lost_session()
            return
        try:
            await self.exchange(self.start_call(check, timeout=_POST_TIMEOUT), params)
        except SessionLostError as loss:
            is_equal = 400 <= status < 500 and loss.__cause__ is not None and loss.__cause__.args == error.args
            if is_equal or method in _IDEMPOTENT:
                raise self._end_lost_session() from error
        except Error:  # which says nothing of the session
            pass

    def _end_lost_session(self) -> SessionLostError:
        """End a session that the server no longer knows. Calls in progress end by themselves."""
        loss = SessionLostError("the server no longer knows the session")
        if not self.has_ended:
            self._loss, self.session_id = loss, None
            self._stop()
        return loss

    def _stop(self) -> None:
        """Make no further call. Those on other streams end by themselves."""
        self.has_ended = True
        self.reader.listener.on_disconnect()
        self.end_event.set()

    # Messages without a response

    def exchange_in_background(self, method: str, params: Any, timeout: float) -> None:
        """Send a request and discard its response. `timeout` is in seconds."""
        self._background.start(self._exchange_and_report(self.start_call(method, timeout=timeout), params))

    async def _exchange_and_report(self, call: Call, params: Any) -> None:
        try:
            await self.exchange(call, params)
        except Error as error:
            self._report_failure(str(error), error, call)

    async def notify_in_order(self, method: str) -> None:
        """Send a notification, and wait until the server has accepted it."""
        await self._post_and_report(encode_message(Notification("2.0", method)), method, self._heads.legacy)

    def _post(self, message: bytes, method: str | None, params: Any = None) -> None:
        head = self._heads.legacy if method is None else self._heads.of(method, params)
        if not self.has_ended:
            self._background.start(self._post_and_report(message, method or "a response", head))

    @property
    def is_signing_in(self) -> bool:
        """True while a flow gets an access token."""
        return self.endpoint.credentials.is_signing_in

    def _notify_cancelled(self, call: Call, reason: str) -> None:
        """Cancel a call at a legacy server. For a modern one, closing the HTTP response has done so."""
        is_legacy = self._heads.revision is not None and self._heads.modern_revision(call.method) is None
        if is_legacy and call.method != "initialize" and not self.has_ended:
            self.notify("notifications/cancelled", {"requestId": call.id, "reason": reason})

    async def _post_and_report(self, body: bytes, name: str, head: bytes) -> None:
        try:
            async with asyncio.timeout(_POST_TIMEOUT) as timer:
                await self.endpoint.post(head, body, timer)
        except TimeoutError as error:
            text = f"{name} did not reach the server: no answer within {_POST_TIMEOUT:g} s"
            self._report_failure(text, error)
        except (Error, OSError) as error:
            self._report_failure(f"{name} did not reach the server: {error}", error)

    def _report_failure(self, text: str, error: BaseException, call: Call | None = None) -> None:
        method, id = (None, None) if call is None else (call.method, call.id)
        self.reader.listener.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, id, error=error))

    # The end

    def end_error(self) -> Error:
        """Return the error for calls that are open when the session ends."""
        if self.abort_reason is not None:
            return ProtocolError(self.abort_reason)
        return ConnectionLostError("the session has ended") if self._loss is None else self._loss

    def abort(self, reason: str) -> None:
        """End the session because of what the server sent. Calls on other streams end by themselves."""
        super().abort(reason)
        self._stop()

    async def _close(self) -> None:
        self.has_ended = True
        await self._background.close()
        self._deadlines.close()
        if self._loss is not None:  # its calls may still get their results
            return
        if self.session_id is not None:
            with suppress(OSError, Error):  # the server drops idle sessions by itself
                async with asyncio.timeout(_DELETE_TIMEOUT):
                    (await self.endpoint.send("DELETE", self._heads.legacy.removeprefix(POST))).close()
        self._fail_all_calls()


def _is_refusal(error: Error, method: str, status: int) -> bool:
    """Return whether a request may have been refused because the server does not know the session or the revision."""
    code: int | str | None = getattr(error, "code", None)
    is_refused = status in _REFUSALS or (status >= 500 and getattr(error, "retry_after", None) is None)
    return is_refused or code in _REFUSALS or (code is not None and method == "server/discover")


class _BackgroundTasks:
    """The tasks of a session that no call waits for. `report` gets what callbacks in them raise, such as `auth`."""

    def __init__(self, report: Callable[[str, BaseException], None]) -> None:
        self._report = report
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._report(f"a background request failed: {error!r}", error)

    async def close(self) -> None:
        """Cancel all tasks, and wait for their end."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
