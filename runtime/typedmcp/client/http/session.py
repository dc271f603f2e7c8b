"""A session over Streamable HTTP: every message is a request of its own, and its response is the HTTP response.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http

The task that makes a call sends the request and reads the response, without a queue or a task in between. Legacy
revisions add a session id, a stream of server messages, and streams that resume where they broke.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Raw

from mcpspec.features import NAME_PARAMS
from typedmcp.client.http.content_coding import accept_coding
from typedmcp.client.http.endpoint import Endpoint, encode_headers, shorten_body
from typedmcp.client.http.turns import FairLimit
from typedmcp.client.requests.param_headers import ParamHeaders
from typedmcp.client.session.session import (
    ClientSession,
    PendingCall,
    RepeatableError,
    SessionListener,
    SessionLostError,
)
from typedmcp.dialect import methods
from typedmcp.errors import (
    ConnectionLostError,
    Error,
    HttpStatusError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    ServerBusyError,
)
from typedmcp.nesting import is_too_deep, too_deep
from typedmcp.observers import Network
from typedmcp.protocol.codec import Notification, Response, encode_error, encode_message
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import RequestId, frame_of
from typedmcp.protocol.headers import EVENT_ID, SESSION, VERSION
from typedmcp.protocol.pending import Call
from typedmcp.protocol.sse import EventParser, ServerSentEvent
from typedmcp.protocol.text import visible
from typedmcp.revisions.features import FEATURES
from typedmcp.transports.concurrency import limit_time
from typedmcp.transports.deadlines import Deadlines
from typedmcp.transports.http1 import HttpResponse, StaleConnectionError

__all__ = ["HttpSession"]

_POST: Final = b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
_GET: Final = b"accept: text/event-stream\r\n"

_FIRST_RECONNECT_DELAY: Final = 0.5
"""Seconds before a stream is requested again, if the server gives no time. Doubled after each failure."""

_MIN_RECONNECT_DELAY: Final = 0.1
"""Seconds before a stream is requested again, even if the server asks for less."""

_MAX_RECONNECT_DELAY: Final = 30.0

_STABLE_SECONDS: Final = 10.0
"""Seconds after which the end of a stream does not count as a failure."""

_POST_TIMEOUT: Final = 30.0
"""Seconds for a message that needs no response."""

_FIRST_CALL_DELAY: Final = 0.1
"""Seconds for which the first call waits until the server has opened the stream of its messages."""
_STREAM_OPEN_TIMEOUT: Final = 1.0
"""Seconds that a server has to open its stream of messages before a subscription counts as established."""

_DELETE_TIMEOUT: Final = 2.0
"""Seconds for the request that ends the session at the server."""

_MAX_EVENT_IDS: Final = 1024
"""Ids of events that are kept to recognise repeated events."""

_MAX_HEADS: Final = 256
"""Encoded headers of modern requests that are kept, by method and name."""
_MAX_HEAD_NAME: Final = 128
"""Characters of a name whose headers are kept."""

_LEGACY_REQUESTS: Final = {"initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"}
_IDEMPOTENT: Final = (_LEGACY_REQUESTS | methods.CLIENT_REQUESTS.keys()) - {"tools/call"}
"""Requests that may be sent again if a reused connection turns out to be closed."""


class _ResumableStream:
    """The position in an event stream of a legacy revision, across all its connections.

    `report` is called with a text for an event whose id has more than `max_id_bytes`.
    """

    def __init__(self, max_id_bytes: int, report: Callable[[str], None]) -> None:
        self._max_id_bytes = max_id_bytes
        self._report = report
        self.last_event_id: str | None = None
        self.retry: float | None = None
        """Seconds to wait before the stream is requested again, as the server asked."""
        self.failures = 0
        """Consecutive requests that returned no event."""
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._seen_before: frozenset[str] = frozenset()

    def on_resumed(self) -> None:
        """Ignore repeated events of the last connection."""
        self._seen_before = frozenset(self._seen)

    def accept(self, event: ServerSentEvent) -> bool:
        """Record an event. Return False if it is repeated."""
        if event.retry is not None:
            self.retry = event.retry / 1000
        if event.id is not None and not self._move_to(event.id):
            return False
        self.failures = 0
        return True

    def _move_to(self, id: str) -> bool:
        """Record the id of an event. Return False if the event is repeated."""
        if id in self._seen_before:
            return False
        if (size := len(id.encode())) > self._max_id_bytes:
            limit = f"the limit is {self._max_id_bytes} (http_event_id_bytes)"
            self._report(f"the stream cannot be resumed after an event whose id has {size} bytes; {limit}")
            id = ""
        self.last_event_id = id or None
        self._seen[id] = None
        if len(self._seen) > _MAX_EVENT_IDS:
            self._seen.popitem(last=False)
        return True

    def on_rejected(self, error: HttpStatusError) -> None:
        """Record when to retry. Raises the error if a retry would get the same response."""
        if error.status < 500 and error.status != 429:
            raise error
        if isinstance(error, ServerBusyError) and error.retry_after is not None:
            self.retry = error.retry_after

    def delay(self) -> float:
        """Return the seconds to wait before requesting the stream again."""
        grown: float = min(_FIRST_RECONNECT_DELAY * 2 ** max(0, self.failures - 1), _MAX_RECONNECT_DELAY)
        if self.retry is None:
            return grown
        return max(self.retry, grown if self.failures > 1 else _MIN_RECONNECT_DELAY)


class HttpSession(ClientSession):
    """A session with the server at a URL."""

    is_renewable: bool = True

    def __init__(
        self, endpoint: Endpoint, listener: SessionListener, name_params: Mapping[str, str] = NAME_PARAMS
    ) -> None:
        super().__init__(listener, endpoint.limits)
        self._param_headers = ParamHeaders(name_params)
        self.param_headers: ParamHeaders | None = self._param_headers
        self.endpoint: Endpoint = endpoint
        self.network: Network | None = "http"
        self.url: str | None = endpoint.url
        self.initialize_status: int | None = None
        """The status that rejected `initialize`, if one did."""
        self._revision: str | None = None
        """The negotiated revision."""
        self._proposed_revision: str | None = None
        """The revision of `server/discover` while none is negotiated."""
        self._heads: dict[tuple[str, str, str], bytes] = {}
        """The headers of modern requests by revision, method and name."""
        self._legacy_head = _POST
        """The headers of requests in legacy revisions."""
        self.session_id: str | None = None
        self._loss: Error | None = None
        self._detached_calls: set[Call] = set()
        """The calls whose results arrive on the stream of server messages."""
        self._stream_answered = asyncio.Event()
        """Set once the server has answered the request for its stream of messages."""
        self._slots = FairLimit(endpoint.limits.http_calls_in_flight)
        self._deadlines = Deadlines(self._loop)
        self._tasks: set[asyncio.Task[None]] = set()

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
            return await self._exchange(call, params, body)
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
        head = self._head(call.method, params)
        pending: PendingCall = call.owner
        session_id = self.session_id
        try:
            response = await self.endpoint.send("POST", head, body, pending.timer)
        except StaleConnectionError:
            if call.method not in _IDEMPOTENT:
                raise
            response = await self._send_again(call, params, head)
        try:
            if response.status == 404 and session_id is not None and self._modern_revision(call.method) is None:
                raise self._end_lost_session()
            if call.method == "initialize":
                self._store_session_id(response)
            if "content-encoding" in response.headers:
                accept_coding(response, self.tolerate)
            content_type = _content_type(response)
            if response.status == 200 and content_type == "application/json":
                return self._read_result(call, await self._read_body(response))
            if response.status == 200 and content_type == "text/event-stream":
                return await self._read_stream(call, response)
            return await self._read_other(call, response, content_type)
        finally:
            response.close()

    async def _send_again(self, call: Call, params: Any, head: bytes) -> HttpResponse:
        """Send a request under a new id: the server may have received it, and the old id has no response yet."""
        pending: PendingCall = call.owner
        if pending.on_progress is not None:  # the old id is part of the parameters: the caller begins a new call
            raise RepeatableError("the server closed the connection")
        self.requests.renew(call)
        return await self.endpoint.send("POST", head, encode_message(Notification("2.0", call.method, params, call.id)))

    def _head(self, method: str, params: Any) -> bytes:
        if (revision := self._modern_revision(method)) is not None:
            name = self._param_headers.name_of(method, params)
            head = None if name is None else self._heads.get((revision, method, name))
            if head is None:
                head = _POST + encode_headers(self._param_headers.headers_for(revision, method, params))
                if name is not None:
                    self._remember_head((revision, method, name), head)
            return head
        return _POST if method == "initialize" else self._legacy_head

    def _remember_head(self, key: tuple[str, str, str], head: bytes) -> None:
        """Keep the headers of calls that differ in no other parameter."""
        if len(key[2]) <= _MAX_HEAD_NAME:
            if len(self._heads) >= _MAX_HEADS:
                self._heads.clear()
            self._heads[key] = head

    def _modern_revision(self, method: str) -> str | None:
        """Return the revision of a request without a session, or None for a legacy request."""
        if self._revision is None:
            return self._proposed_revision if method == "server/discover" else None
        return self._revision if FEATURES[self._revision].is_modern else None

    async def _read_body(self, response: HttpResponse) -> bytes:
        limit = self.endpoint.limits.message_bytes
        try:
            body = response.take_all(limit) or await response.read_all(limit)
        except ValueError as error:
            raise ProtocolError(str(error)) from None
        if self.endpoint.on_frame is not None:
            self.endpoint.on_frame("server", frame_of(body))
        if is_too_deep(body, depth := self.endpoint.limits.message_depth):
            raise ProtocolError(f"the response is not a valid message: {too_deep(depth)} (message_depth)")
        return body

    def _read_result(self, call: Call, body: bytes) -> Raw:
        """Return the result in a JSON body: one message, or a batch of 2025-03-26."""
        if (result := self._find_result(body, call)) is not None:
            return result
        self._receive(body, (call,))
        pending: PendingCall = call.owner
        if not pending.response.done():
            _raise_error_in(body)
        return pending.response.result()

    async def _read_other(self, call: Call, response: HttpResponse, content_type: str) -> Raw:
        """Raise the error in a response, or read a result that has another status than 200."""
        if response.status == 202:
            return await self._wait_on_other_stream(call)
        if response.status < 300:
            return await self._read_other_success(call, response, content_type)
        if call.method == "initialize":
            self.initialize_status = response.status
        is_busy = response.status in (429, 503) and "retry-after" in response.headers
        if content_type != "application/json" or is_busy:
            raise await self.endpoint.error_of(response)
        body = await self._read_body(response)
        try:
            _raise_error_in(body)  # about this call, whatever its id
        except ProtocolError:
            raise await self.endpoint.error_of(response, shorten_body(body)) from None

    async def _wait_on_other_stream(self, call: Call) -> Raw:
        """Wait for a result on the stream of server messages."""
        if not self.tolerate("the response has the status 202, and no result", call.method):
            raise ProtocolError("the response has the status 202, expected a result")
        pending: PendingCall = call.owner
        self._detached_calls.add(call)
        try:
            return await pending.response
        finally:
            self._detached_calls.discard(call)

    async def _read_other_success(self, call: Call, response: HttpResponse, content_type: str) -> Raw:
        if content_type not in ("application/json", "text/event-stream"):
            found = f"the content-type {visible(content_type, 100)}" if content_type else "no content-type"
            raise ProtocolError(f"the response has {found}, expected application/json or text/event-stream")
        text = f"the response has the status {response.status}, expected 200"
        if response.status != 200 and not self.tolerate(text, call.method):
            raise ProtocolError(text)
        if content_type == "application/json":
            return self._read_result(call, await self._read_body(response))
        return await self._read_stream(call, response)

    # Streams

    async def _read_stream(self, call: Call, response: HttpResponse) -> Raw:
        """Read events until the result has arrived. A legacy stream may take several connections."""
        pending: PendingCall = call.owner
        stream = self._new_stream()
        while True:
            failure: OSError | None = None
            try:
                await self._read_events(response, stream, call)
            except OSError as error:
                failure = error
            finally:
                response.close()
            if pending.response.done():
                return pending.response.result()
            if stream.last_event_id is None or self._modern_revision(call.method) is not None:
                raise ConnectionLostError(f"the stream ended before the result came{_suffix(failure)}") from failure
            response = await self._resume(stream, failure)

    async def _resume(self, stream: _ResumableStream, failure: Exception | None) -> HttpResponse:
        """Request the rest of a stream until the server sends it."""
        while True:
            stream.failures += 1
            if stream.failures > self.endpoint.options.reconnects:
                raise ConnectionLostError(f"the stream ended, and was not resumed{_suffix(failure)}") from failure
            await asyncio.sleep(stream.delay())
            try:
                return await self._request_stream(stream)
            except HttpStatusError as error:
                stream.on_rejected(error)
                failure = error
            except OSError as error:
                failure = error

    def _new_stream(self) -> _ResumableStream:
        return _ResumableStream(self.limits.http_event_id_bytes, self._report_invalid)

    def _report_invalid(self, text: str) -> None:
        self._listener.report(Diagnostic(DiagnosticKind.INVALID_DATA, text))

    async def _read_events(self, response: HttpResponse, stream: _ResumableStream, call: Call | None) -> None:
        """Dispatch the events of a stream until its end, or until the response to its call has arrived."""
        parser = EventParser(self.limits.message_bytes, self.limits.message_depth)
        own = self._detached_calls if call is None else (call,)
        until: asyncio.Future[Raw] | None = None if call is None else call.owner.response
        while until is None or not until.done():
            data = await response.read()
            if not data:
                return
            for event in parser.feed(data):
                if stream.accept(event) and event.data and event.event == "message":
                    if self.endpoint.on_frame is not None:
                        self.endpoint.on_frame("server", frame_of(event.data))
                    self._receive(event.data, own)
                    if self.abort_reason is not None:
                        raise ProtocolError(self.abort_reason)

    async def _request_stream(self, stream: _ResumableStream) -> HttpResponse:
        """Request a stream from where it broke. Raises `HttpStatusError` and `SessionLostError`."""
        head = self._legacy_head.replace(_POST, _GET)
        if stream.last_event_id is not None and stream.last_event_id.isprintable():
            head += b"%b: %b\r\n" % (EVENT_ID.encode(), stream.last_event_id.encode())
        response = await self.endpoint.send("GET", head)
        if "content-encoding" in response.headers:
            accept_coding(response, self.tolerate)
        if response.status == 200 and _content_type(response) == "text/event-stream":
            stream.on_resumed()
            return response
        if response.status == 404 and self.session_id is not None:
            response.close()
            raise self._end_lost_session()
        raise await self.endpoint.error_of(response)

    async def _read_server_messages(self) -> None:
        """Read the optional stream of server messages of a legacy server, for as long as the server offers it."""
        stream = self._new_stream()
        try:
            while stream.failures <= self.endpoint.options.reconnects:
                start = self._loop.time()
                await self._read_server_messages_once(stream)
                stream.failures = 1 if self._loop.time() - start > _STABLE_SECONDS else stream.failures + 1
                await asyncio.sleep(stream.delay())
            self._report_stream_end("it ended too often")
        except SessionLostError:
            pass
        except HttpStatusError as error:
            if error.status != 405:  # the server does not offer it
                self._report_stream_end(str(error))
        except Error as error:
            self._report_stream_end(str(error))

    async def _read_server_messages_once(self, stream: _ResumableStream) -> None:
        try:
            try:
                response = await self._request_stream(stream)
            finally:
                self._stream_answered.set()
            try:
                await self._read_events(response, stream, None)
            finally:
                response.close()
        except HttpStatusError as error:
            stream.on_rejected(error)
        except OSError:
            pass  # it is requested again

    def _report_stream_end(self, reason: str) -> None:
        text = f"the stream of server messages ended: {reason}"
        self._listener.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text))

    # Negotiation and legacy sessions

    def propose_revision(self, revision: str) -> None:
        """Use this revision for `server/discover`."""
        self._proposed_revision = revision

    async def apply_revision(self, revision: str, *, handshake: bool) -> None:
        """Use the negotiated revision from now on, and complete the handshake if there was one."""
        self._revision = revision
        if not handshake:
            return
        headers = {VERSION: revision, **({SESSION: self.session_id} if self.session_id is not None else {})}
        self._legacy_head = _POST + encode_headers(headers)
        await self.notify_in_order("notifications/initialized")
        self._start_task(self._read_server_messages())
        # Servers drop a request to the client if the stream is not open. So the request for the stream goes out before
        # the first call, and a server that responds at once has opened it by then.
        await limit_time(_FIRST_CALL_DELAY, self._stream_answered.wait())

    async def wait_for_server_messages(self) -> None:
        """Wait until messages of the server can arrive. Some servers open their stream only with the first one."""
        await limit_time(_STREAM_OPEN_TIMEOUT, self._stream_answered.wait())

    def _store_session_id(self, response: HttpResponse) -> None:
        id = response.headers.get(SESSION)
        if response.status == 200 and id:
            self.session_id = id

    def _end_lost_session(self) -> Error:
        """End a session that the server no longer knows. Calls in progress end by themselves."""
        loss = SessionLostError("the server no longer knows the session")
        if not self.has_ended:
            self.has_ended, self._loss, self.session_id = True, loss, None
            self._listener.on_disconnect()
            self.end_event.set()
        return loss

    # Messages without a response

    def exchange_in_background(self, method: str, params: Any, timeout: float) -> None:
        """Send a request and discard its response. `timeout` is in seconds."""
        self._start_task(self._exchange_and_report(self.start_call(method, timeout=timeout), params))

    async def _exchange_and_report(self, call: Call, params: Any) -> None:
        try:
            await self.exchange(call, params)
        except Error as error:
            self._report_failure(str(error), error, call)

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self._post_in_background(
            encode_message(Notification("2.0", method, params)), method, self._head(method, params)
        )

    async def notify_in_order(self, method: str) -> None:
        """Send a notification, and wait until the server has accepted it."""
        await self._post_and_report(encode_message(Notification("2.0", method)), method)

    def respond(self, id: RequestId, result: Any) -> None:
        """Send the result of a request of the server."""
        self._post_in_background(encode_message(Response("2.0", id, result)), "a response")

    def respond_with_error(self, id: RequestId, code: int, message: str, data: Any = None) -> None:
        """Send an error response to a request of the server."""
        self._post_in_background(encode_error(id, code, message, data), "a response")

    @property
    def is_signing_in(self) -> bool:
        """True while a flow gets an access token."""
        return self.endpoint.is_signing_in

    @property
    def is_congested(self) -> bool:
        """Always False: each message has a connection and a timeout of its own."""
        return False

    def _notify_cancelled(self, call: Call, reason: str) -> None:
        """Cancel a call at a legacy server. For a modern one, closing the HTTP response has done so."""
        is_legacy = self._revision is not None and self._modern_revision(call.method) is None
        if is_legacy and call.method != "initialize" and not self.has_ended:
            self.notify("notifications/cancelled", {"requestId": call.id, "reason": reason})

    def _post_in_background(self, body: bytes, name: str, head: bytes | None = None) -> None:
        if not self.has_ended:
            self._start_task(self._post_and_report(body, name, head))

    async def _post_and_report(self, body: bytes, name: str, head: bytes | None = None) -> None:
        try:
            async with asyncio.timeout(_POST_TIMEOUT) as timer:
                await self.endpoint.post(head or self._legacy_head, body, timer)
        except TimeoutError as error:
            text = f"{name} did not reach the server: no answer within {_POST_TIMEOUT:g} s"
            self._report_failure(text, error)
        except (Error, OSError) as error:
            self._report_failure(f"{name} did not reach the server: {error}", error)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:  # raised by a callback, such as `auth`
            self._report_failure(f"a background request failed: {error!r}", error)

    def _report_failure(self, text: str, error: BaseException, call: Call | None = None) -> None:
        method, id = (None, None) if call is None else (call.method, call.id)
        self._listener.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, method, id, error=error))

    # The end

    def end_error(self) -> Error:
        """Return the error for calls that are open when the session ends."""
        if self.abort_reason is not None:
            return ProtocolError(self.abort_reason)
        return ConnectionLostError("the session has ended") if self._loss is None else self._loss

    def abort(self, reason: str) -> None:
        """End the session because of what the server sent. Calls on other streams end by themselves."""
        super().abort(reason)
        self._listener.on_disconnect()
        self.end_event.set()

    async def _close(self) -> None:
        self.has_ended: bool = True
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._deadlines.close()
        if self._loss is None:  # calls of a lost session may still get their results
            await self._delete_session()
            self._fail_all_calls()

    async def _delete_session(self) -> None:
        """Try for a short time to end the session at the server."""
        if self.session_id is None:
            return
        try:
            async with asyncio.timeout(_DELETE_TIMEOUT):
                response = await self.endpoint.send("DELETE", self._legacy_head.removeprefix(_POST))
                response.close()
        except (OSError, Error):
            pass  # the server drops idle sessions by itself


class _ErrorBody(msgspec.Struct):
    error: dict[str, Any]


_decode_error_body = msgspec.json.Decoder(_ErrorBody).decode


def _raise_error_in(body: bytes) -> NoReturn:
    """Raise the error in a response body, or `ProtocolError` if it holds none."""
    try:
        error = _decode_error_body(body).error
    except ValueError:
        raise ProtocolError(f"the body is not a response to this call: {shorten_body(body)[:200]}") from None
    raise RemoteError.from_wire(error)


def _content_type(response: HttpResponse) -> str:
    value = response.headers.get("content-type", "")
    return value if value == "application/json" else value.partition(";")[0].strip().lower()


def _suffix(error: BaseException | None) -> str:
    return "" if error is None else f": {error}"
