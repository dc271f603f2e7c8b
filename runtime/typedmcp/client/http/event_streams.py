"""Event streams over HTTP: those of responses, and the one on which a legacy server sends messages of its own.

Streams of legacy revisions resume where they broke.
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from contextlib import closing
from typing import Final

from msgspec import Raw

from typedmcp.client.http.bodies import accept_coding, content_type
from typedmcp.client.http.endpoint import Endpoint, shorten_body
from typedmcp.client.requests.heads import POST, RequestHeads
from typedmcp.client.session.reader import MessageReader, PendingCall, SessionListener
from typedmcp.client.session.session import SessionLostError
from typedmcp.errors import ConnectionLostError, Error, HttpStatusError, ProtocolError, ServerBusyError
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import OversizeMessage, frame_of
from typedmcp.protocol.headers import EVENT_ID
from typedmcp.protocol.pending import Call
from typedmcp.protocol.sse import EventParser, ServerSentEvent
from typedmcp.transports.http1 import HttpResponse

__all__ = ["EventStreams"]

_GET: Final = b"accept: text/event-stream\r\n"

_FIRST_RECONNECT_DELAY: Final = 0.5
"""Seconds before a stream is requested again, if the server gives no time. Doubled after each failure."""

_MIN_RECONNECT_DELAY: Final = 0.1
"""Seconds before a stream is requested again, even if the server asks for less."""

_MAX_RECONNECT_DELAY: Final = 30.0

_STABLE_SECONDS: Final = 10.0
"""Seconds after which the end of a stream does not count as a failure."""

_MAX_TAIL: Final = 800
"""Bytes of a stream that ended without an event that an error quotes."""

_MAX_EVENT_IDS: Final = 1024
"""Ids of events that are kept to recognise repeated events."""


class _ResumableStream:
    """The position in an event stream of a legacy revision, across all its connections.

    An event whose id has more than `max_id_bytes` is reported to `listener`.
    """

    def __init__(self, max_id_bytes: int, listener: SessionListener) -> None:
        self._max_id_bytes = max_id_bytes
        self._listener = listener
        self.last_event_id: str | None = None
        self.retry: float | None = None
        """Seconds to wait before the stream is requested again, as the server asked."""
        self.failures = 0
        """Consecutive requests that returned no event."""
        self.tail = b""
        """What came after the last event."""
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
            text = f"the stream cannot be resumed after an event whose id has {size} bytes; the limit is "
            text += f"{self._max_id_bytes} (http_event_id_bytes)"
            self._listener.report(Diagnostic(DiagnosticKind.INVALID_DATA, text))
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


class EventStreams:
    """Reads the event streams of one session.

    `receive` dispatches a message, which may answer one of some calls. It raises `ProtocolError` once the session is
    aborted. `check_session` raises `SessionLostError` if an error means that the server no longer knows the session.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        heads: RequestHeads,
        reader: MessageReader,
        receive: Callable[[bytes | OversizeMessage, Collection[Call]], None],
        check_session: Callable[[Error], Awaitable[None]],
    ) -> None:
        self._endpoint = endpoint
        self._heads = heads
        self._reader = reader
        self._receive = receive
        self._check_session = check_session
        self._detached: set[Call] = set()
        """The calls whose results arrive on the stream of server messages."""
        self.is_answered: asyncio.Event = asyncio.Event()
        """Set once the server has answered the request for its stream of messages."""

    async def read(self, call: Call, response: HttpResponse) -> Raw:
        """Read events until the result has arrived. A legacy stream may take several connections."""
        pending: PendingCall = call.owner
        stream = self._new_stream()
        while True:
            failure: OSError | None = None
            try:
                with closing(response):
                    await self._read_events(response, stream, call)
            except OSError as error:
                failure = error
            if pending.response.done():
                return pending.response.result()
            if stream.last_event_id is None or self._heads.modern_revision(call.method) is not None:
                quoted = shorten_body(stream.tail) or "an HTML page, or other than text"
                tail = f"; it ended with: {quoted}" if stream.tail else ""
                text = f"the stream ended before the result came{_suffix(failure)}{tail}"
                raise ConnectionLostError(text) from failure
            response = await self._resume(stream, failure)

    async def _resume(self, stream: _ResumableStream, failure: Exception | None) -> HttpResponse:
        """Request the rest of a stream until the server sends it."""
        while True:
            stream.failures += 1
            if stream.failures > self._endpoint.options.reconnects:
                raise ConnectionLostError(f"the stream ended, and was not resumed{_suffix(failure)}") from failure
            await asyncio.sleep(stream.delay())
            try:
                return await self._request_stream(stream)
            except (HttpStatusError, OSError) as error:
                if isinstance(error, HttpStatusError):
                    stream.on_rejected(error)
                failure = error

    def _new_stream(self) -> _ResumableStream:
        return _ResumableStream(self._endpoint.limits.http_event_id_bytes, self._reader.listener)

    async def _read_events(self, response: HttpResponse, stream: _ResumableStream, call: Call | None) -> None:
        """Dispatch the events of a stream until its end, or until the response to its call has arrived."""
        parser = EventParser(self._endpoint.limits.message_bytes, self._endpoint.limits.message_depth)
        own = self._detached if call is None else (call,)
        until: asyncio.Future[Raw] | None = None if call is None else call.owner.response
        while until is None or not until.done():
            data = await response.read()
            if not data:
                return
            events = parser.feed(data)
            stream.tail = b"" if events else (stream.tail + data)[:_MAX_TAIL]
            for event in events:
                if stream.accept(event) and event.data and event.event == "message":
                    if self._endpoint.on_frame is not None:
                        self._endpoint.on_frame("server", frame_of(event.data))
                    self._receive(event.data, own)

    async def _request_stream(self, stream: _ResumableStream) -> HttpResponse:
        """Request a stream from where it broke. Raises `HttpStatusError`."""
        head = self._heads.legacy.replace(POST, _GET)
        if stream.last_event_id is not None and stream.last_event_id.isprintable():
            head += b"%b: %b\r\n" % (EVENT_ID.encode(), stream.last_event_id.encode())
        response = await self._endpoint.send("GET", head)
        accept_coding(response, self._reader.listener.tolerate)
        if response.status == 200 and content_type(response) == "text/event-stream":
            stream.on_resumed()
            return response
        raise await self._endpoint.error_of(response)

    async def read_server_messages(self) -> None:
        """Read the optional stream of server messages of a legacy server, for as long as the server offers it."""
        stream, now = self._new_stream(), asyncio.get_running_loop().time
        try:
            while stream.failures <= self._endpoint.options.reconnects:
                start = now()
                await self._read_server_messages_once(stream)
                stream.failures = 1 if now() - start > _STABLE_SECONDS else stream.failures + 1
                await asyncio.sleep(stream.delay())
            reason = "it ended too often"
        except Error as error:
            if isinstance(error, HttpStatusError) and error.status == 405:
                return
            reason = str(error)
            try:
                await self._check_session(error)
            except SessionLostError:
                return
        text = f"the stream of server messages ended: {reason}"
        self._reader.listener.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text))

    async def _read_server_messages_once(self, stream: _ResumableStream) -> None:
        try:
            try:
                response = await self._request_stream(stream)
            finally:
                self.is_answered.set()
            with closing(response):
                await self._read_events(response, stream, None)
        except HttpStatusError as error:
            stream.on_rejected(error)
        except OSError:
            pass  # it is requested again

    async def wait_elsewhere(self, call: Call) -> Raw:
        """Wait for a result on the stream of server messages."""
        if not self._reader.listener.tolerate("the response has the status 202, and no result", call.method):
            raise ProtocolError("the response has the status 202, expected a result")
        pending: PendingCall = call.owner
        self._detached.add(call)
        try:
            return await pending.response
        finally:
            self._detached.discard(call)


def _suffix(error: BaseException | None) -> str:
    return "" if error is None else f": {error}"
