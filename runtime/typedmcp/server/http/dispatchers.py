"""The dispatchers of requests over HTTP: without a session, and of one session of a legacy revision."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

import msgspec

from typedmcp import dialect
from typedmcp.errors import INTERNAL_ERROR, INVALID_REQUEST, MethodNotFoundError, RemoteError
from typedmcp.frames import OnFrame
from typedmcp.protocol.budgets import ClientKey, Hold
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, RequestId
from typedmcp.protocol.headers import is_plain
from typedmcp.protocol.notifications import LEVELS, Change
from typedmcp.revisions.features import DIALECT
from typedmcp.server.batches import BatchResponse
from typedmcp.server.context import Context, ResponseSink
from typedmcp.server.dispatcher import Dispatcher, StartedCall
from typedmcp.server.http.header_checks import (
    HeaderParams,
    check_arguments,
    check_method,
    check_no_version,
    check_version,
)
from typedmcp.server.http.messages import Headers
from typedmcp.server.http.state import AppState
from typedmcp.server.http.streams import EventStream
from typedmcp.server.metadata import RequestMetadata
from typedmcp.server.store import TooManySubscriptionsError
from typedmcp.server.subscriptions import too_many_subscriptions

__all__ = [
    "STANDALONE", "HttpDispatcher", "HttpSink", "LegacyStatelessDispatcher", "SessionDispatcher",
    "StatelessDispatcher", "http_sink",
]  # fmt: skip

D = dialect.structs

_CACHED_NAMES = 256
_CACHED_NAME_BYTES = 128
"""A longer name is not cached."""


class HttpSink(ResponseSink, Protocol):
    """The sink for the responses to one POST, as dispatchers use it."""

    header_params: HeaderParams
    """The parameters of the called tool that headers repeat."""
    stream: EventStream | None
    """The response, once it is a stream of events."""
    status: int | None
    """The status of the response, if it does not follow from the error."""
    rejection: tuple[int, str] | None
    """Code and text of the error for a rejected message that has no response."""

    @property
    def client(self) -> ClientKey:
        """The client that budgets count for."""
        ...

    @property
    def header_bytes(self) -> int:
        """The size of the headers."""
        ...

    @property
    def headers(self) -> Headers:
        """The headers of the request by name."""
        ...

    def send_fast(self, line: bytes) -> None:
        """Send the response of a handler that did not wait."""
        ...


def http_sink(sink: ResponseSink | None) -> HttpSink | None:
    """Return the sink of the POST that a message came in, which may have been in a batch."""
    while isinstance(sink, BatchResponse):
        sink = sink.parent
    return cast("HttpSink | None", sink)


class HttpDispatcher(Dispatcher):
    """A dispatcher whose responses go to the POSTs of their requests."""

    __slots__ = ("full_clients", "state")

    def __init__(self, state: AppState) -> None:
        super().__init__(state.config, threads=state.threads)
        self.is_local = False
        self.state: AppState = state
        self.full_clients: set[ClientKey] = self._calls.full
        """The clients whose requests hold as many bytes as they may. While there are any, no request is fast."""

    def dispatch_slow(self, line: bytes, sink: ResponseSink) -> StartedCall:
        """Dispatch a message with all checks. Return a request whose handler has to be awaited."""
        return self._dispatch_slow(line, sink)

    @property
    def session_id(self) -> str | None:
        """None: there is no session."""
        return None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the application runs in."""
        return self.state.loop

    def open_frames(self) -> OnFrame | None:
        """Return the function for the messages of one request; None without a sink for them."""
        sink = self.config.record
        if sink is None:
            return None
        from typedmcp.server.observation import ObservedConnection  # loaded where it is used

        return sink.open(ObservedConnection(self))

    def use_once(self, name: str, seconds: float) -> Awaitable[bool]:
        """Record the use of a name in the store, for all workers. The result is False if it was used already."""
        return self.state.store.use_once(name, seconds)

    def client_of(self, ctx: Context) -> ClientKey:
        """Return the client that a request is counted for: its principal or its address."""
        post = http_sink(ctx.sink)
        return None if post is None else post.client

    def hold_for(self, sink: ResponseSink | None) -> Hold:
        """Return what counts the responses to a batch, and the headers of its POST."""
        post = http_sink(sink)
        hold = Hold(self._calls, None if post is None else post.client)
        hold.add(0 if post is None else post.header_bytes)
        return hold

    def size_of(self, ctx: Context) -> int:
        """Return the bytes that a request counts while its handler waits. The headers of a batch count once."""
        post = http_sink(ctx.sink)
        size = super().size_of(ctx)
        return size + post.header_bytes if post is not None and post is ctx.sink else size

    def reject_busy(self, ctx: Context) -> None:
        """Reject a request, on modern revisions with a status that invites the client to try again."""
        post = http_sink(ctx.sink)
        if post is not None and ctx.metadata.features.is_modern:
            post.status = 503
        super().reject_busy(ctx)

    def send_message(self, ctx: Context | None, line: bytes) -> bool:
        """Send a message before the response to a request. False if it is dropped."""
        return ctx is not None and ctx.sink is not None and ctx.sink.send_message(ctx, line)

    def send_response(self, sink: ResponseSink | None, line: bytes, code: int | None = None) -> None:
        """Send a response."""
        if sink is not None:
            sink.send_response(line, code)

    def send_fast(self, ctx: Context, line: bytes) -> None:
        """Send the response to a request that was never registered."""
        sink: Any = ctx.sink
        sink.send_fast(line)

    def _stream(self, ctx: Context | None) -> EventStream | None:
        sink = None if ctx is None else http_sink(ctx.sink)
        return None if sink is None else sink.stream

    def is_congested(self, ctx: Context | None) -> bool:
        """Return whether the client reads the stream of a request too slowly."""
        stream = self._stream(ctx)
        return stream is not None and stream.is_congested

    async def drain(self, ctx: Context | None) -> None:
        """Wait until the client has caught up."""
        stream = self._stream(ctx)
        if stream is not None:
            await stream.drain()

    def drain_later(self, ctx: Context | None) -> None:
        """Deliver the delayed changes once the client has caught up."""
        stream = self._stream(ctx)
        if stream is not None:
            stream.on_drained = self.subscriptions.resume

    def reject_unanswerable(self, sink: ResponseSink | None, code: int, text: str) -> None:
        """Reject a message that has no JSON-RPC response by the status of its POST."""
        post = http_sink(sink)
        if post is not None and post is sink:
            post.rejection = (code, text)

    def listen(self) -> Callable[[], None]:
        """Listen to changes, which come through the application's store. Return the function that stops it."""
        return self.state.listen(self)

    def on_change(self, number: int, change: Change, uri: str | None) -> None:  # noqa: ARG002  # sessions need it
        """Deliver a change to the subscriptions."""
        self.subscriptions.publish(change, uri)


class StatelessDispatcher(HttpDispatcher):
    """Serves the requests of all clients on one modern revision. Requests of different clients may have the same id.

    The dispatchers of other modern revisions have the same requests in flight, which are limited together.
    """

    follows_client = False  # the fast path compares the header with the one revision

    def __init__(self, state: AppState, revision: str | None = None, in_flight: dict[Any, Any] | None = None) -> None:
        super().__init__(state)
        self.metadata.share()
        if revision is not None:
            self.use_revision(revision)
        if in_flight is not None:
            self.in_flight = in_flight
        self.handshake.is_done = True  # no session can begin: a message of one client must not affect another
        self.version_header: bytes = self._features.version.encode()
        """The value of `MCP-Protocol-Version` in requests that can take the fast path."""
        self.plain_names: dict[bytes, str] = {}
        """The values of `Mcp-Name` that have passed `check_plain`, which spares 2 % of a request's instructions."""

    def register(self, ctx: Context) -> bool:
        """Register a request as in flight."""
        self.in_flight[ctx] = ctx
        ctx.is_registered = True
        if ctx.sink is not None:
            ctx.sink.expect()
        return True

    def unregister(self, ctx: Context) -> bool:
        """Remove a request before its response. False if it was not in flight."""
        return self.in_flight.pop(ctx, None) is not None

    def missing_metadata_error(self, frame: Frame, *, has_meta: bool) -> RemoteError:
        """Return the error for a request without metadata: "method not found" if no modern revision has the method."""
        if not self.has_method(frame, self.config.modern_revisions or [DIALECT]):
            return MethodNotFoundError(str(frame.method))
        return super().missing_metadata_error(frame, has_meta=has_meta)

    def handle_response(self, frame: Frame, sink: ResponseSink | None) -> None:
        """Reject a response: modern revisions have no requests to clients."""
        text = "a response to no request: servers send no requests on this revision"
        self.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, id=frame.id, params=frame.value))
        self.reject_unanswerable(sink, INVALID_REQUEST, text)

    def check_plain(self, header: bytes | None, value: str) -> None:
        """Raise `ValueError` unless the header `Mcp-Name` has exactly this value, and remember it."""
        if header is None or not is_plain(header, value):  # a header that is absent is not an empty one
            raise ValueError
        if len(header) <= _CACHED_NAME_BYTES:
            if len(self.plain_names) >= _CACHED_NAMES:
                self.plain_names.clear()
            self.plain_names[header] = value

    def check_headers(self, frame: Frame, sink: ResponseSink | None) -> None:
        """Raise `HeaderMismatchError` or `UnsupportedVersionError` if the headers contradict the body."""
        post = http_sink(sink)
        assert post is not None
        check_version(post.headers, frame, self.config.modern_revisions, self.config.revisions)
        if frame.id is not None:
            check_method(post.headers, frame, self.config.name_params)
            check_arguments(post.headers, frame, post.header_params)


class LegacyStatelessDispatcher(StatelessDispatcher):
    """Serves one request on a legacy revision without a session: the client cannot be asked for input."""

    can_ask = False

    def __init__(self, state: AppState, revision: str | None) -> None:
        super().__init__(state)
        self.handshake.is_done, self.handshake.has_session = revision is not None, False
        if revision is not None:
            self.metadata.open_session(RequestMetadata.anonymous(revision))
            self.use_revision(revision)

    def check_headers(self, frame: Frame, sink: ResponseSink | None) -> None:  # noqa: ARG002
        """Raise `HeaderMismatchError` if the body names a modern revision."""
        check_no_version(frame)

    def open_session(self, metadata: RequestMetadata) -> None:
        """Do nothing: no session is kept."""


STANDALONE = "all-"
"""The beginning of the names of standalone streams in the ids of their events."""
_MAX_FORWARDED_ID = 256
"""Characters of a request id that is sent to other workers."""
_NUMBER = re.compile("[0-9]{1,15}")
_FORWARDED_ID = re.compile(r"[0-9a-zA-Z]{1,40}-[0-9]{1,15}\.[0-9]{1,15}")


class _StoredClient(msgspec.Struct):
    """The field of a stored session that describes its client."""

    revision: str
    meta: dict[str, Any]


def _stored_metadata(fields: Mapping[str, str], revisions: Sequence[str]) -> RequestMetadata:
    """Return the metadata in the fields of a stored session. Raises `ValueError` if they are not valid."""
    client = msgspec.json.decode(fields.get("client", ""), type=_StoredClient)
    if client.revision not in revisions:
        raise ValueError(f"the revision {client.revision[:40]!r} is not served as a session")
    metadata = RequestMetadata(client.revision, client.meta)
    level = fields.get("level")
    if level and level not in LEVELS:
        raise ValueError("level: an unknown log level")
    metadata.log_level = level or None
    return metadata


class SessionDispatcher(HttpDispatcher):
    """Serves the requests of one session that reach this worker.

    The fields that other workers need are in the store; `fields` is a copy of them.
    """

    __slots__ = (
        "_delivering", "_missed_subscriptions", "_name", "_on_frame", "_saved_at", "fields", "id", "last_change",
        "standalone", "standalone_name", "unsaved", "used_at",
    )  # fmt: skip

    def __init__(self, state: AppState, id: str) -> None:
        super().__init__(state)
        self.id: str = id
        self.fields: dict[str, str] = {}
        self.standalone: EventStream | None = None
        """The stream for messages that belong to no request, if it is open on this worker."""
        self.standalone_name: str = ""
        """Its name in the ids of its events. A stream that is resumed keeps its name, another one gets a new one."""
        self.used_at: float = state.loop.time()
        """The time at which it was last seen in use."""
        self.last_change: int = 0
        """The number of the last change that was delivered."""
        self._missed_subscriptions: list[tuple[str, bool]] | None = None
        """The changes of subscriptions that arrive while these are loaded."""
        self.unsaved: list[Coroutine[Any, Any, Any]] = []
        """The store operations that must complete before a response is sent."""
        self._name = state.unique_name()
        self._delivering: int | None = None
        """The number of the change that is being delivered."""
        self._saved_at = 0.0
        """The time at which the fields were last stored; infinite while they have unsaved changes."""
        self._on_frame = super().open_frames()

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.id

    @property
    def stored_session_id(self) -> str:
        """The id of the session."""
        return self.id

    def open_frames(self) -> OnFrame | None:
        """Return the function for the messages of the session."""
        return self._on_frame

    @property
    def is_idle(self) -> bool:
        """True if the dispatcher can be dropped, since the store has all its state."""
        return not (self.in_flight or self.pending.calls or self.tasks or self.standalone or self.unsaved)

    @property
    def client_size(self) -> int:
        """The length of the client's description of itself, as text."""
        return len(self.fields.get("client", ""))

    @property
    def revision(self) -> str:
        """The revision of the session; empty before the handshake."""
        return self.handshake.metadata.revision if self.handshake.metadata is not None else ""

    # Fields

    def initial_fields(self) -> dict[str, str]:
        """Return the fields of a session after its handshake."""
        metadata = self.handshake.metadata
        assert metadata is not None
        client = _StoredClient(metadata.revision, metadata.members)
        self.fields = {"client": msgspec.json.encode(client).decode(), "level": metadata.log_level or ""}
        return self.fields

    def refresh(self, fields: dict[str, str], read_at: float) -> None:
        """Apply fields read from the store, unless the session has changed since `read_at`, a time of the loop.

        Raises `ValueError` for fields that no worker of this version writes.
        """
        if fields == self.fields or read_at < self._saved_at:
            return
        metadata = _stored_metadata(fields, self.config.legacy_revisions)
        self.fields = fields
        self.handshake.metadata, self.handshake.is_done = metadata, "ready" in fields
        self.use_revision(metadata.revision)
        self.metadata.open_session(metadata if self.handshake.is_done else None)

    def open_session(self, metadata: RequestMetadata) -> None:
        """Begin the session with the metadata of a complete handshake."""
        self.metadata.open_session(metadata)
        self.use_revision(metadata.revision)
        self.save_fields({"ready": ""})

    def save_fields(self, fields: Mapping[str, str | None]) -> None:
        """Change fields; the store gets them with the next `save`."""
        self._saved_at = math.inf
        for name, value in fields.items():
            if value is None:
                self.fields.pop(name, None)
            else:
                self.fields[name] = value
        self.unsaved.append(self.state.store.update_session(self.id, fields))
        listening_worker = self.fields.get("stream")
        if listening_worker not in (None, self.state.store.worker):
            self.unsaved.append(self.state.send_to(str(listening_worker), "session changed", self.id))

    async def save(self) -> None:
        """Run the pending store operations. Raises `ConnectionError`."""
        while self.unsaved:
            await self.unsaved.pop(0)
        if self._saved_at == math.inf:
            self._saved_at = self.loop.time()

    # Subscriptions: only the worker with the standalone stream has them, the others change them in the store

    async def add_subscription(self, ctx: Context, uri: str) -> None:
        """Subscribe the session to a resource. Raises `RemoteError` at a limit."""
        with self._store_errors(ctx):
            await self.state.store.subscribe(self.id, uri, self.config.limits.resource_subscriptions)
            await self._publish_subscription(uri, is_subscribed=True)

    async def remove_subscription(self, ctx: Context, uri: str) -> None:
        """End a subscription of the session."""
        with self._store_errors(ctx):
            await self.state.store.unsubscribe(self.id, uri)
            await self._publish_subscription(uri, is_subscribed=False)

    @contextmanager
    def _store_errors(self, ctx: Context) -> Generator[None]:
        """Raise `RemoteError` for the errors of the store."""
        try:
            yield
        except TooManySubscriptionsError as error:
            self.state.report_full_store(f"subscriptions of a session: {error}")
            raise too_many_subscriptions(f"{error}") from error
        except ConnectionError as error:
            self.state.report_unreachable_store(error)
            if (post := http_sink(ctx.sink)) is not None:
                post.status = 503
            raise RemoteError(INTERNAL_ERROR, "the server's store is unreachable: try again later") from error

    async def _publish_subscription(self, uri: str, *, is_subscribed: bool) -> None:
        """Pass a change that is stored to the worker that has the standalone stream."""
        worker, listening_worker = self.state.store.worker, self.fields.get("stream")
        if self.standalone is not None:
            self.change_subscription(uri, is_subscribed=is_subscribed)
        elif listening_worker is not None and listening_worker != worker:
            await self.state.send_to(listening_worker, "subscription changed", self.id, uri, is_subscribed)

    def change_subscription(self, uri: str, *, is_subscribed: bool) -> None:
        """Add or remove a subscription that the store has added or removed."""
        if self._missed_subscriptions is not None:
            self._missed_subscriptions.append((uri, is_subscribed))
        uris = self.subscriptions.uris
        (uris.add if is_subscribed else uris.discard)(uri)

    async def load_subscriptions(self) -> None:
        """Load the subscriptions of the session. Raises `ConnectionError`."""
        missed: list[tuple[str, bool]] = []
        self._missed_subscriptions = missed
        try:
            uris = await self.state.store.load_subscriptions(self.id)
        finally:
            self._missed_subscriptions = None
        self.subscriptions.uris.clear()
        self.subscriptions.uris.update(uris)
        for uri, is_subscribed in missed:
            self.change_subscription(uri, is_subscribed=is_subscribed)

    # Messages

    def check_headers(self, frame: Frame, sink: ResponseSink | None) -> None:  # noqa: ARG002
        """Raise `HeaderMismatchError` if the body names a revision: a session has one for all its messages."""
        check_no_version(frame)

    def _stream(self, ctx: Context | None) -> EventStream | None:
        return self.standalone if ctx is None else super()._stream(ctx)

    def send_message(self, ctx: Context | None, line: bytes) -> bool:
        """Send a message before the response to a request, or on the standalone stream. False if it is dropped."""
        if ctx is not None:
            return super().send_message(ctx, line)
        id = None if self._delivering is None else f"{self.standalone_name}.{self._delivering}"
        return self.standalone is not None and self.standalone.put(line, id)

    def outgoing_request_id(self, number: int) -> RequestId:
        """Return an id that contains the worker that waits for the response."""
        return f"{self.state.store.worker}.{self._name}.{number}"

    def handle_response(self, frame: Frame, sink: ResponseSink | None) -> None:  # noqa: ARG002
        """Handle a client's response to a request of this worker, or forward it to the worker that waits for it."""
        worker, _, rest = str(frame.id).partition(".")
        name, _, number = rest.partition(".")
        store = self.state.store
        if worker == store.worker and name == self._name and _NUMBER.fullmatch(number):
            self.input_requests.handle_response(int(number), frame)
        elif store.is_shared and worker != store.worker and _FORWARDED_ID.fullmatch(rest):
            self.unsaved.append(self.state.send_to(worker, "response", self.id, frame.id, frame.value))
        else:
            text = "a response to no request"
            self.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, id=frame.id, params=frame.value))

    def cancel(self, id: RequestId) -> bool:
        """Cancel a request, which may be handled on another worker. False if no worker can have it."""
        if super().cancel(id):
            return True
        if not self.state.store.is_shared or len(str(id)) > _MAX_FORWARDED_ID:
            return False
        self.unsaved.append(self.state.publish("request cancelled", self.id, id))
        return True

    # Changes

    def attach_standalone(self, stream: EventStream, name: str) -> None:
        """Use a stream as the standalone stream, and end the previous one."""
        if self.standalone is not None:
            self.standalone.end()
        self.standalone, self.standalone_name = stream, name
        self.subscriptions.close()
        self.subscriptions.add_session()

    def detach_standalone(self, stream: EventStream) -> None:
        """Stop using a stream whose client has disconnected."""
        if self.standalone is stream:
            self.standalone = None
            self.subscriptions.close()
            self.subscriptions.uris.clear()

    def on_change(self, number: int, change: Change, uri: str | None) -> None:
        """Deliver a change, unless it was replayed already.

        The event's id has the number of the change. Changes that are delivered later, after congestion, have no id, so
        a client that disconnects in the meantime gets them again.
        """
        if number > self.last_change:
            self.last_change = self._delivering = number
            try:
                self.subscriptions.publish(change, uri)
            finally:
                self._delivering = None

    def close(self) -> None:
        """Cancel all requests and end the standalone stream, since the session has ended."""
        self.is_closed = True
        self.end_callbacks.call()
        if self.observer is not None:
            self.observer.on_end()
        for id in list(self.in_flight):
            super().cancel(id)
        if self.standalone is not None:
            self.standalone.end()
        self.subscriptions.close()
