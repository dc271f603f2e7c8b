"""The dispatcher: it decodes the messages of clients, calls the handler, and sends the responses.

Subclasses define how messages are sent, and keep the state of the client: `typedmcp.server.connection` for a
connection of lines, `typedmcp.server.http` for HTTP requests.

Most requests take the fast path: `decode_request`, the handler, `encode_result`. Every other message takes the slow
path, which handles special cases and errors. Both lead to the same responses.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from types import CoroutineType, coroutine
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET

from mcpspec.support.converters import DroppedFields
from mcpspec.support.error_text import format_value
from mcpspec.support.errors import UnimplementedMethodError
from mcpspec.support.objects import LARGE_TEXT, is_object
from mcpspec.support.structs import may_contain_non_finite
from typedmcp import dialect
from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    DecodeError,
    MissingCapabilityError,
    RemoteError,
    UnsupportedVersionError,
    UsageError,
    is_reserved_code,
    to_invalid_params,
)
from typedmcp.integers import restore_integers
from typedmcp.nesting import SHORT, is_too_deep
from typedmcp.observers import Network
from typedmcp.protocol.backends import to_model, to_plain, to_struct
from typedmcp.protocol.budgets import CALL_BYTES, ClientKey, ClientUse, Hold
from typedmcp.protocol.codec import (
    Codec,
    MethodCodec,
    Notification,
    Response,
    codec_for,
    encode_error,
    encode_message,
    encoder,
    fallback_codec,
)
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind, cancellation_diagnostic
from typedmcp.protocol.framing import Batch, Frame, InvalidMessage, OversizeMessage, RequestId, classify, classify_value
from typedmcp.protocol.json_results import JsonResult
from typedmcp.protocol.meta import VERSION
from typedmcp.protocol.notifications import Change
from typedmcp.protocol.nulls import nulls_diagnostic
from typedmcp.protocol.pending import PendingRequests
from typedmcp.protocol.repairs import Repair
from typedmcp.revisions.features import DIALECT, FEATURES, Features
from typedmcp.revisions.notifications import downgrade_notification
from typedmcp.server.attempts import remove_unknown_answers
from typedmcp.server.batches import BatchResponse
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context, ResponseSink
from typedmcp.server.ending import EndCallbacks
from typedmcp.server.handshake import REPEATED_INITIALIZE, Handshake
from typedmcp.server.input_requests import InputRequests, is_input_required, requested_input
from typedmcp.server.metadata import MetadataCache, RequestMetadata
from typedmcp.server.principal import Principal
from typedmcp.server.subscriptions import Subscriptions
from typedmcp.transports.concurrency import ThreadLimiter, is_awaitable

if TYPE_CHECKING:
    from typedmcp.server.encoded_lists import EncodedList
    from typedmcp.server.observation import ServerObservation

__all__ = ["Dispatcher", "StartedCall", "as_coroutine", "resume"]

D = dialect.structs

StartedCall: TypeAlias = "tuple[Context, Coroutine[Any, Any, Any]] | None"
"""A request and the coroutine of its handler, to be awaited; None if the message needs nothing more."""

T = TypeVar("T")

_RESULT_TYPES: Final = ("complete", "input_required")
"""The types of results that need no extension."""

_LARGE_RESULT_BYTES: Final = 1 << 20
"""Bytes of a result that is encoded together with its envelope, which takes less memory than to copy its text."""

_encode = encoder.encode
_NO_HEADERS: Mapping[str, str] = {}


class Dispatcher:
    """Dispatches the messages of one client, or of many clients without sessions.

    `principal` is who the client authenticated as, if it did. `client` is the client that budgets count
    for, if all messages are from one. `request_headers` are those of the HTTP request that opened the connection, if
    there was one.
    """

    __slots__ = (
        "__weakref__", "_calls", "_closing", "_codec", "_fast_functions", "_features", "_functions", "_is_modern",
        "_known_metadata", "_max_in_flight", "_meta_copiers", "_threads", "_was_large", "client", "config",
        "end_callbacks", "handshake", "in_flight", "input_requests", "is_closed", "is_local", "metadata", "observer",
        "pending", "principal", "request_headers", "subscriptions", "tasks", "thread_id",
    )  # fmt: skip

    def __init__(
        self,
        config: ServerConfig,
        *,
        principal: Principal | None = None,
        client: ClientKey = None,
        request_headers: Mapping[str, str] = _NO_HEADERS,
        threads: ThreadLimiter | None = None,
    ) -> None:
        self.config: ServerConfig = config
        self.principal: Principal | None = principal
        self.client: ClientKey = client
        """The client that budgets count for, if there is only one."""
        self.request_headers: Mapping[str, str] = request_headers
        self.is_local: bool = True
        """False for clients over HTTP, which need a token where scopes are required."""
        self.pending: PendingRequests = PendingRequests()
        self.in_flight: dict[Any, Any] = self.pending.in_flight
        self.input_requests: InputRequests = InputRequests(self)
        self.subscriptions: Subscriptions = Subscriptions(self)
        self.thread_id: int = threading.get_ident()
        """The thread of the event loop."""
        self._closing: asyncio.Event | None = None
        self.is_closed: bool = False
        """True once nothing more is sent."""
        self.handshake: Handshake = Handshake(config)
        self.metadata: MetadataCache = MetadataCache(self._check_version)
        self.tasks: set[asyncio.Task[Any]] = set()
        self.end_callbacks: EndCallbacks = EndCallbacks()
        """The functions for the end of the connection or session."""
        self._max_in_flight = config.limits.requests_in_flight
        self._calls = config.budgets.calls
        self._threads = threads or ThreadLimiter(config.limits.threads)
        self._known_metadata = self.metadata.known
        self._meta_copiers: Any = config.meta_copiers
        self._functions = {
            **self._built_in_functions(), **config.empty_lists, **config.functions, "cancelled": self._on_cancelled,
        }  # fmt: skip
        self.observer: ServerObservation | None = None
        """Observes the requests, if the server has telemetry."""
        if config.telemetry is not None:
            from typedmcp.server.observation import ServerObservation  # loaded where it is used

            self.observer = ServerObservation(self, config.telemetry)
            self._functions = self.observer.wrap(self._functions)
        self._fast_functions = {
            name: function
            for name, function in self._functions.items()
            if name not in config.threaded and name != "initialize"
        }
        self._was_large = False
        """True if the last result was large, as the next one may be, too. The text of a large one is not copied."""
        self.use_revision(config.modern_revisions[0] if config.modern_revisions else DIALECT)

    @property
    def closing(self) -> asyncio.Event:
        """Set when nothing more is read. Few sessions over HTTP need one."""
        if self._closing is None:
            self._closing = asyncio.Event()
        return self._closing

    def use_revision(self, revision: str) -> None:
        """Expect requests of a revision. Others take the slow path, which then expects theirs."""
        self._codec: Codec = self.codec_for(revision)
        self._features: Features = FEATURES[revision]
        self._is_modern = self._features.is_modern

    def codec_for(self, revision: str) -> Codec:
        """Return the codec for clients that speak a revision."""
        table: Any = self.config.methods  # a module, which mypy does not know to be hashable
        own = self.config.extension_methods
        return codec_for(revision, self.config.codec, table, own.get(revision, ()))

    # For subclasses

    follows_client: bool = True
    """True if the next modern request probably has the revision of the last one."""

    can_ask: bool = True
    """True if requests can be sent to clients of legacy revisions."""

    @property
    def session_id(self) -> str | None:
        """A text that identifies the connection or session. None for clients without a session."""
        raise NotImplementedError

    @property
    def stored_session_id(self) -> str | None:
        """The id of a session that may outlive its connections. None for others."""
        return None

    @property
    def network(self) -> Network | None:
        """The carrier of the messages. None if the transport does not say it."""
        return "http"

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that everything but handlers in threads runs in."""
        raise NotImplementedError

    def send_message(self, ctx: Context | None, line: bytes) -> bool:
        """Send a notification or a request, as part of a request or on its own. Return False if that is impossible.

        Like all lines that are sent, it has no newline.
        """
        raise NotImplementedError

    def send_response(self, sink: ResponseSink | None, line: bytes, code: int | None = None) -> None:
        """Send the response to a registered request; `code` is the code of an error."""
        raise NotImplementedError

    def send_fast(self, ctx: Context, line: bytes) -> None:
        """Send the response to a request that was never registered."""
        raise NotImplementedError

    def is_congested(self, ctx: Context | None) -> bool:
        """Return whether the client does not read what is sent to it."""
        raise NotImplementedError

    async def drain(self, ctx: Context | None) -> None:
        """Wait until the client reads again."""
        raise NotImplementedError

    def drain_later(self, ctx: Context | None) -> None:
        """Send delayed changes as soon as the client reads again."""
        raise NotImplementedError

    def save_fields(self, fields: Mapping[str, str | None]) -> None:
        """Store fields of a legacy session, if it outlives its connection; None removes a field."""

    async def add_subscription(self, ctx: Context, uri: str) -> None:
        """Subscribe a legacy session to a resource. Raises `RemoteError` at a limit."""
        self.subscriptions.add(ctx, uri)

    async def remove_subscription(self, ctx: Context, uri: str) -> None:  # noqa: ARG002  # a stored session needs it
        """End a subscription of a legacy session."""
        self.subscriptions.remove(uri)

    def outgoing_request_id(self, number: int) -> RequestId:
        """Return the JSON-RPC id for the request to the client with this number."""
        return number

    def check_headers(self, frame: Frame, sink: ResponseSink | None) -> None:
        """Raise `RemoteError` if the headers contradict the body."""

    def reject_unanswerable(self, sink: ResponseSink | None, code: int, text: str) -> None:
        """Reject a message that has no response in JSON-RPC; the transport may have one."""

    def handle_response(self, frame: Frame, sink: ResponseSink | None) -> None:  # noqa: ARG002
        """Handle the client's response to a request of this server."""
        self.input_requests.handle_response(frame.id, frame)

    def use_once(self, name: str, seconds: float) -> Awaitable[bool]:
        """Record the use of a name, for some seconds. The result is False if it was used already."""
        raise NotImplementedError

    def restart_session(self, frame: Frame, dropped: DroppedFields) -> Any:
        """Begin a new session in place of the present one, and return the result of its `initialize`.

        Raises `RemoteError` if there can be one session only.
        """
        return self.handshake.handle_request(frame, dropped)

    def register(self, ctx: Context) -> bool:
        """Register a request as in flight. Return False if its id is in use: it must get no response."""
        if not self.pending.register(cast(RequestId, ctx.id), ctx):
            return False
        ctx.is_registered = True
        if ctx.sink is not None:
            ctx.sink.expect()
        return True

    def unregister(self, ctx: Context) -> bool:
        """Unregister a request before its response. Return False if it was cancelled: it must get no response."""
        return self.pending.unregister(cast(RequestId, ctx.id))

    def ensure_registered(self, ctx: Context) -> None:
        """Register a request that cannot be completed on the fast path."""
        if ctx.id is not None and not ctx.is_registered:
            self.register(ctx)

    def client_of(self, ctx: Context) -> ClientKey:  # noqa: ARG002  # over HTTP it depends on the request
        """Return the client that a request is counted for; None if it is unknown."""
        return self.client

    def hold_for(self, sink: ResponseSink | None) -> Hold:  # noqa: ARG002
        """Return what counts the responses to a batch."""
        return Hold(self._calls, self.client)

    def size_of(self, ctx: Context) -> int:
        """Return the bytes that a request counts while its handler waits."""
        return CALL_BYTES + len(ctx.raw)

    def hold(self, client: ClientKey, size: int) -> ClientUse:
        """Count the message of a request or notification whose handler waits. Return what `release` needs."""
        calls = self._calls
        use = calls.uses.get(client) or calls.use_of(client)
        calls.used += size  # as in `ByteBudget.add`, whose call would cost 1 % of such a request
        use.held += size
        if calls.used >= calls.total or use.held >= use.share:
            calls.settle(use)
        return use

    def release(self, use: ClientUse, size: int) -> None:
        """Count a message no longer, since its handler has ended."""
        calls = self._calls
        calls.used -= size
        use.held -= size
        if calls.full or calls.reported:
            calls.settle(use)

    def drop_message(self, ctx: Context) -> None:
        """Forget the message of a request whose handler needs it no longer, before the handler waits."""
        ctx.raw, ctx.params = b"", None

    def spawn(self, ctx: Context, result: Coroutine[Any, Any, Any]) -> None:
        """Await the result of a request in a task of its own, and respond."""

        def on_done(task: asyncio.Task[None]) -> None:
            self.tasks.discard(task)
            result.close()  # the task may have been cancelled before its first step

        ctx.task = asyncio.get_running_loop().create_task(self._finish(ctx, result), context=self._task_context())
        self.tasks.add(ctx.task)
        ctx.task.add_done_callback(on_done)

    def _task_context(self) -> contextvars.Context:
        return contextvars.copy_context()

    async def _finish(self, ctx: Context, handling: Awaitable[Any]) -> None:
        size = self.size_of(ctx)
        use = self.hold(self.client_of(ctx), size)
        try:
            result = await handling
        except BaseException as error:
            self.respond_error(ctx, error)
        else:
            self.respond(ctx, result)
        finally:
            self.release(use, size)

    def call_in_loop(self, ctx: Context, send: Callable[[], None]) -> None:
        """Call a function in the event loop, and wait in the calling thread until the client keeps up."""

        async def send_and_drain() -> None:
            send()
            if self.is_congested(ctx):
                await self.drain(ctx)

        asyncio.run_coroutine_threadsafe(send_and_drain(), self.loop).result()

    def ask(self, ctx: Context, requests: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        """Ask the client for input. `Context.ask` describes it."""
        return self.input_requests.ask(ctx, requests)

    # Sending

    def send(self, ctx: Context | None, message: msgspec.Struct) -> bool:
        """Encode and send a notification or a request. Return False if that is impossible.

        Raises `TypeError` or `ValueError` if it cannot be encoded.
        """
        if self.is_closed:
            return False
        if self.observer is not None:
            message = self.observer.on_send(ctx, message)
        return self.send_message(ctx, encode_message(message))

    def notify(self, ctx: Context | None, method: str, params: msgspec.Struct) -> None:
        """Send a notification in the revision of its request, or in that of the session."""
        if ctx is not None and (ctx.cancelled or ctx.is_answered):
            return
        session = self.handshake.metadata
        revision = ctx.revision if ctx is not None else DIALECT if session is None else session.revision
        dropped: DroppedFields = []
        sent = downgrade_notification(method, params, revision, dropped)
        if sent is not None:
            self.send(ctx, Notification("2.0", method, sent))
        self.report_dropped(dropped, method, revision)

    def send_result(self, ctx: Context, encoded: msgspec.Struct) -> None:
        """Send the result of a request, unless the client has cancelled it."""
        if ctx.id is None or ctx.cancelled or not self.unregister(ctx):
            return
        ctx.is_answered = True
        try:
            line = encode_message(Response("2.0", ctx.id, encoded))
        except Exception as error:
            self._send_internal_error(ctx, error)
        else:
            self.send_response(ctx.sink, line)

    # The fast path

    def decode_request(
        self,
        line: bytes | OversizeMessage,
        sink: ResponseSink | None = None,
    ) -> Context | None:
        """Decode a request, or return None if it needs the slow path.

        A request on the fast path is not registered: it cannot be cancelled before it waits.
        """
        codec, in_flight = self._codec, self.in_flight
        try:
            message = codec.decode(line)
            method_codec = codec.by_message_type[message.__class__]
            params, id = message.params, message.id
            if sink is not None:
                sink.check_headers(method_codec, params)
            encoded_meta = UNSET if params is None else params.meta
            if encoded_meta is UNSET:
                metadata: Any = self.metadata.session
            else:
                text = b"%b" % encoded_meta  # the fastest way to the bytes
                metadata = self._known_metadata.get(text) or self.metadata.get(text)
            if metadata.features is not self._features or (
                in_flight and (id in in_flight or len(in_flight) >= self._max_in_flight or self._calls.full)
            ):
                return None
            meta = metadata.members.copy()
            ctx = Context(self, method_codec, id, metadata, meta, line, sink)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            ctx.params = params = method_codec.upgrade(params, meta)
            if method_codec.accepts_input and (
                params.request_state.__class__ is str or params.input_responses.__class__ is dict
            ):
                return None
        except (LookupError, AttributeError, ValueError, TypeError, RemoteError):
            return None
        return ctx

    def encode_result(self, ctx: Context, result: Any, *, is_registered: bool = False) -> bytes | None:
        """Encode the response to a request that is registered or not.

        Return None if it needs the slow path. A response that is encoded here has to be sent.
        """
        id = ctx.id
        encoded: Any = result
        if ctx.is_registered is not is_registered or id is None:
            return None
        dropped: DroppedFields | None = None
        try:
            if ctx.encodings is not None:
                return self._encode_list(ctx, result, ctx.encodings)
            convert = ctx.method_codec.downgrades[result.__class__]
            if convert is not None:
                dropped = []
                encoded = convert(result, dropped)
            if not self._is_modern:  # nor is the request, as `decode_request` has checked
                text = line = _encode(Response("2.0", id, encoded))
            elif (
                not self._was_large
                and encoded.__class__ in self._meta_copiers
                and encoded.meta is None
                and id.__class__ is int
                and len(text := _encode(encoded)) <= _LARGE_RESULT_BYTES
            ):
                # The server's `_meta` is appended as text, since copying the result would cost more.
                line = self.config.response_format % (id, len(text) - 1, text)
            else:
                text = b""  # it may be large
                text = line = _encode(Response("2.0", id, self.config.with_server_info(encoded)))
                self._was_large = len(line) > _LARGE_RESULT_BYTES
            # Of all searches in a short text `rpartition` is the fastest.
            is_lossy = text.rpartition(b"null")[1] if len(text) <= LARGE_TEXT else may_contain_non_finite(text, encoded)
            # Perhaps it has NaN, or JSON that was encoded already.
            if is_lossy or text.find(b"\n") >= 0 or text == b"{}" or (len(text) > SHORT and is_too_deep(text)):
                return None
        except Exception:
            return None
        ctx.is_answered = True
        if dropped:
            self.report_dropped(dropped, ctx.method, ctx.revision)
        return line

    def _encode_list(self, ctx: Context, result: Any, encodings: EncodedList) -> bytes | None:
        """Encode the response to a request for a list that is the same for every client."""
        if result.meta is not None:
            return None
        text, dropped = encodings.encode(result, ctx.method_codec)
        id = _encode(ctx.id)
        if self._is_modern:
            meta = self.config.encoded_result_meta
            line = b'{"jsonrpc":"2.0","id":%b,"result":%.*b,"_meta":%b}}' % (id, len(text) - 1, text, meta)
        else:
            line = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, text)
        ctx.is_answered = True
        if dropped:
            self.report_dropped(dropped, ctx.method, ctx.revision)
        return line

    def dispatch(self, line: bytes | OversizeMessage, sink: ResponseSink | None = None) -> StartedCall:
        """Dispatch a message. Return a request whose handler has to be awaited."""
        ctx = self.decode_request(line, sink)
        function = None if ctx is None else self._fast_functions.get(ctx.method_codec.handler_name)
        if ctx is None or function is None:
            return self._dispatch_slow(line, sink)
        try:
            result = function(ctx.params, ctx)
        except BaseException as error:
            self.ensure_registered(ctx)
            self.respond_error(ctx, error)
            return None
        if result.__class__ is CoroutineType:
            return ctx, result
        return self._handle_result(ctx, result)

    def _handle_result(self, ctx: Context, result: object) -> StartedCall:
        """Respond with the result of a plain handler, unless it has to be awaited."""
        if result.__class__ is CoroutineType:
            return ctx, cast("Coroutine[Any, Any, Any]", result)
        if is_awaitable(result):
            return ctx, as_coroutine(result)
        self.respond_fast(ctx, result)
        return None

    def respond_fast(self, ctx: Context, result: object) -> None:
        """Respond with the result of a handler that did not wait."""
        self.send_encoded(ctx, result, self.encode_result(ctx, result))

    def send_encoded(self, ctx: Context, result: object, line: bytes | None) -> None:
        """Send what `encode_result` has returned for a result."""
        if line is None:
            self.ensure_registered(ctx)
            self.respond_slow(ctx, result)
        else:
            self.send_fast(ctx, line)

    # The slow path

    def _dispatch_slow(self, line: bytes | OversizeMessage, sink: ResponseSink | None) -> StartedCall:
        """Classify and dispatch a message that the fast path did not handle."""
        message = classify(line)
        if message is None:
            self.reject_unanswerable(sink, PARSE_ERROR, "the message is empty: nothing but white space")
            return None
        if isinstance(message, Batch):
            return self._dispatch_batch(message, sink)
        return self._dispatch_frame(message, line if isinstance(line, bytes) else line.head, sink)

    def _dispatch_batch(self, batch: Batch, sink: ResponseSink | None) -> StartedCall:
        session, limit = self.metadata.session, self.config.limits.batch_messages
        reason = None
        if session is None or not session.features.has_batches:
            reason = "batches are not part of this protocol revision"
        if not batch.items:
            reason = "an empty batch"
        elif reason is None and len(batch.items) > limit:
            reason = f"a batch of {len(batch.items)} messages; the limit is {limit}"
        if reason is not None:
            return self._dispatch_frame(InvalidMessage(INVALID_REQUEST, reason), b"", sink)
        responses = BatchResponse(self.send_response, sink, self.principal, self.request_headers, self.hold_for(sink))
        for item in batch.items:
            started = self._dispatch_frame(classify_value(item), b"", responses)
            if started is not None:
                self.spawn(*started)
        responses.close()
        return None

    def _dispatch_frame(self, frame: Frame | InvalidMessage, line: bytes, sink: ResponseSink | None) -> StartedCall:
        if isinstance(frame, InvalidMessage):
            return self._dispatch_invalid(frame, sink)
        if frame.method is None:
            self.handle_response(frame, sink)
            return None
        if frame.id is not None and self._reject_duplicate(sink, frame.id, frame.method):
            return None
        try:
            return self._dispatch_method(frame, line, sink)
        except DecodeError as error:
            if self._mend(frame):
                return self._dispatch_frame(frame, b"", sink)
            self._reject_frame(frame, to_invalid_params(error), sink)
        except RemoteError as error:
            self._reject_frame(frame, error, sink)
        return None

    def _dispatch_invalid(self, message: InvalidMessage, sink: ResponseSink | None) -> StartedCall:
        """Reject an invalid message, or dispatch what it was meant to be, unless the server is strict."""
        if message.meant is not None and not self.config.strict:
            self.report(nulls_diagnostic(["params"], str(message.meant.method), message.id))
            return self._dispatch_frame(message.meant, b"", sink)
        self.report(Diagnostic(DiagnosticKind.MALFORMED, message.reason, id=message.id))
        if not message.is_answerable:
            self.reject_unanswerable(sink, message.code, message.reason)
        elif message.id is None or not self._reject_duplicate(sink, message.id, None):
            self._send_error(message.id, message.code, message.reason, sink=sink)
        return None

    def _mend(self, frame: Frame) -> bool:
        """Mend parameters that could not be decoded. Return whether that changed any.

        A float that equals an integer becomes one. A parameter that is `null` instead of absent is removed and
        reported, unless the server is strict.
        """
        method, params = str(frame.method), frame.value.get("params")
        session = self.metadata.session
        revisions = [DIALECT, *self.config.revisions] if session is None else [session.revision]
        codec = next((codec for each in revisions if method in (codec := self.codec_for(each)).methods), None)
        if codec is None or not is_object(params):
            return False
        is_changed = restore_integers(params, codec.struct_of_params(method))
        nulls = [] if self.config.strict else codec.remove_nulls(method, params)
        if nulls:
            self.report(nulls_diagnostic(nulls, method, frame.id))
        return is_changed or bool(nulls) or self._remove_unknown_answers(frame, codec)

    def _remove_unknown_answers(self, frame: Frame, codec: Codec) -> bool:
        """Remove and report answers to input requests whose form the protocol does not have. Return whether any were.

        https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
        """
        params, kind = frame.value["params"], codec.struct_of_params(str(frame.method))
        members: tuple[str, ...] = getattr(kind, "__struct_fields__", ())  # methods without parameters have none
        if not is_object(params.get("inputResponses")) or "input_responses" not in members:
            return False
        unknown = remove_unknown_answers(params["inputResponses"])
        if unknown:
            names = ", ".join(map(format_value, unknown[:10]))
            text = f"inputResponses: ignored, since the protocol has no such answers: {names}"
            self.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, frame.method, frame.id, unknown))
        return bool(unknown)

    def _reject_duplicate(self, sink: ResponseSink | None, id: RequestId, method: str | None) -> bool:
        """Reject a request whose id is in use, and return whether it is: a response would end the other request."""
        if id not in self.in_flight:
            return False
        text = "a request with this id is in flight"
        self.report(Diagnostic(DiagnosticKind.DUPLICATE_ID, text, method, id))
        self.reject_unanswerable(sink, INVALID_REQUEST, text)
        return True

    def _reject_frame(self, frame: Frame, error: RemoteError, sink: ResponseSink | None) -> None:
        if self.observer is not None:
            self.observer.on_rejected(frame, error)
        if frame.id is not None:
            self._send_error(frame.id, error.code, error.message, error.data, sink=sink)
            return
        is_unknown = error.code == METHOD_NOT_FOUND
        kind = DiagnosticKind.UNEXPECTED_MESSAGE if is_unknown else DiagnosticKind.REJECTED_NOTIFICATION
        self.report(Diagnostic(kind, error.message, frame.method, params=frame.value.get("params")))
        if not is_unknown:
            self.reject_unanswerable(sink, error.code, error.message)

    def _dispatch_method(self, frame: Frame, line: bytes, sink: ResponseSink | None) -> StartedCall:
        """Dispatch a request or notification whose envelope is right, by the revision that it belongs to."""
        self.check_headers(frame, sink)
        params: dict[str, Any] = frame.value.get("params", {})
        meta: Any = params.get("_meta", {})
        if not is_object(meta):
            raise DecodeError("_meta", "expected object")
        session = self.metadata.session
        is_modern = VERSION in meta and bool(self.config.modern_revisions)
        if not is_modern and self.handshake.handles(frame):
            early = self.handshake.skip_initialized(frame)
            if early is None:
                return self._handle_handshake(frame, sink)
            self._open_early(early, frame)
            session = self.metadata.session
        if is_modern or (session is not None and meta):
            metadata = self._decode_metadata(meta)
            if session is None and self.follows_client:
                self.use_revision(metadata.revision)
        elif session is not None:
            metadata = session
        elif frame.id is None:
            metadata = RequestMetadata.anonymous(DIALECT)
        else:
            raise self.missing_metadata_error(frame, has_meta="_meta" in params)
        codec = self.codec_for(metadata.revision)
        return self._dispatch_typed(frame, codec, metadata, line or msgspec.json.encode(frame.value), sink)

    def _decode_metadata(self, meta: dict[str, Any]) -> RequestMetadata:
        try:
            return self.metadata.get(msgspec.json.encode(meta))
        except DecodeError as error:
            separator = "" if error.path.startswith("[") or not error.path else "."
            raise DecodeError(f"_meta{separator}{error.path}", error.reason) from error

    def missing_metadata_error(self, frame: Frame, *, has_meta: bool) -> RemoteError:
        """Return the error for a request that is neither modern nor part of a session."""
        if not self.has_method(frame, [DIALECT, *self.config.revisions]) and "fallback" not in self._functions:
            return RemoteError(METHOD_NOT_FOUND, f"method not found: {frame.method}")
        path = f'params._meta["{VERSION}"]' if has_meta else "params._meta"
        text = f"{path}: required, but missing; no initialize came before"
        return RemoteError(INVALID_PARAMS, text, {"path": path})

    def has_method(self, frame: Frame, revisions: Iterable[str]) -> bool:
        """Return whether one of these revisions has the method of a message."""
        return any(frame.method in self.codec_for(revision).methods for revision in revisions)

    def _dispatch_typed(
        self, frame: Frame, codec: Codec, metadata: RequestMetadata, line: bytes, sink: ResponseSink | None
    ) -> StartedCall:
        method, is_request = str(frame.method), frame.id is not None
        method_codec = codec.methods.get(method)
        if method_codec is None:
            if "fallback" not in self._functions:
                raise RemoteError(METHOD_NOT_FOUND, f"method not found: {method}")
            unknown = fallback_codec(method, metadata.revision, is_request=is_request)
            return self._call(unknown, frame.id, None, metadata, line, sink)
        if method_codec.is_request != is_request:
            wanted = "a request and needs an id" if method_codec.is_request else "a notification and has no id"
            raise RemoteError(INVALID_REQUEST, f"{method} is {wanted}")
        try:
            message = codec.decode(line)
        except ValueError:
            codec.check_params(method, frame.value.get("params", {}))
            line = msgspec.json.encode(frame.value)  # of several members with one name the last counts
            try:
                message = codec.decode(line)
            except DecodeError:
                raise
            except ValueError as error:
                raise RemoteError(INVALID_PARAMS, str(error)) from error
        return self._call(method_codec, frame.id, message.params, metadata, line, sink)

    def _call(
        self,
        method_codec: MethodCodec,
        id: RequestId | None,
        params: Any,
        metadata: RequestMetadata,
        line: bytes,
        sink: ResponseSink | None,
    ) -> StartedCall:
        """Register a message, and call its handler."""
        meta = metadata.members.copy()
        ctx = Context(self, method_codec, id, metadata, meta, line, sink)
        if not self._admit(ctx):
            return None
        try:
            if method_codec.handler_name not in self._functions or method_codec.handler_name == "fallback":
                return self._call_fallback(ctx)
            try:
                ctx.params = params = method_codec.upgrade(params, meta)
            except DecodeError as error:
                raise to_invalid_params(error) from error
            restoring = self.input_requests.restore(ctx, params)
            result = self.call_handler(ctx, params) if restoring is None else self._call_after(restoring, ctx, params)
        except BaseException as error:
            self.respond_error(ctx, error)
            return None
        return self._handle_result(ctx, result)

    async def _call_after(self, restoring: Awaitable[None], ctx: Context, params: Any) -> Any:
        """Call the handler once the state of earlier attempts is restored, and return its result."""
        await restoring
        result = self.call_handler(ctx, params)
        return await result if is_awaitable(result) else result

    def _admit(self, ctx: Context) -> bool:
        """Register a message. Return False if it was rejected, for its id or for the limit on what is in flight."""
        limit = self._max_in_flight
        if ctx.id is None:
            if len(self.tasks) <= limit:
                return True
            text = f"more than {limit} messages are being handled"
            self.report(Diagnostic(DiagnosticKind.REJECTED_NOTIFICATION, text, ctx.method))
            return False
        if not self.register(ctx):
            self._reject_duplicate(ctx.sink, ctx.id, ctx.method)
            return False
        if len(self.in_flight) > limit:
            self._respond_remote_error(ctx, RemoteError(INTERNAL_ERROR, f"more than {limit} requests in flight"))
            return False
        if self._calls.full and not self._calls.admits(self.client_of(ctx)):
            self.reject_busy(ctx)
            return False
        return True

    def reject_busy(self, ctx: Context) -> None:
        """Reject a request of a client whose requests in progress hold as many bytes as they may."""
        text = "the requests in progress hold as many bytes as their limit allows: try again later"
        self._respond_remote_error(ctx, RemoteError(INTERNAL_ERROR, text))

    def call_handler(self, ctx: Context, *args: Any) -> Any:
        """Call the handler's method for a request. The result may have to be awaited."""
        name = ctx.method_codec.handler_name
        function: Callable[..., Any] = self._functions[name]
        if name in self.config.threaded:
            return self._threads.run(self.client_of(ctx), function, *args, ctx)
        return function(*args, ctx)

    async def run_in_thread(self, ctx: Context, function: Callable[..., T], *args: Any) -> T:
        """Run a function that blocks in one of the server's threads, and return its result."""
        return await self._threads.run(self.client_of(ctx), function, *args)

    def _call_fallback(self, ctx: Context) -> StartedCall:
        """Call the handler's `fallback`, which gets the parameters in plain JSON."""
        if "fallback" not in self._functions:
            reason = dialect.conversions.DECIDED.get(ctx.method)
            text = f"method not found: {ctx.method}" + (f": {reason}" if reason else "")
            self._respond_remote_error(ctx, RemoteError(METHOD_NOT_FOUND, text))
            return None
        ctx.method_codec = fallback_codec(ctx.method, ctx.revision, is_request=ctx.method_codec.is_request)
        ctx.params = _decode_plain_params(ctx.raw).params
        return self._handle_result(ctx, self.call_handler(ctx, ctx.method, ctx.params))

    # The handshake

    def _handle_handshake(self, frame: Frame, sink: ResponseSink | None) -> StartedCall:
        if frame.id is None:
            metadata = self.handshake.handle_notification(frame)
            if metadata is not None:
                self.open_session(metadata)
                if self.observer is not None:
                    self.observer.on_handshake(frame, metadata.revision)
                return None
            text = f"{frame.method} before the session is open"
            self.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, frame.method))
            self.reject_unanswerable(sink, INVALID_REQUEST, text)
            return None
        if isinstance(sink, BatchResponse):
            raise RemoteError(INVALID_REQUEST, f"{frame.method} must not be part of a batch")
        dropped: DroppedFields = []
        is_repeated = frame.method == "initialize" and self.handshake.metadata is not None
        handle = self.restart_session if is_repeated else self.handshake.handle_request
        result = handle(frame, dropped)
        self.send_response(sink, encode_message(Response("2.0", frame.id, result)))
        revision: str = getattr(result, "protocol_version", "")
        if self.observer is not None:
            self.observer.on_handshake(frame, revision)
        self.report_dropped(dropped, str(frame.method), revision)
        return None

    def _open_early(self, metadata: RequestMetadata, frame: Frame) -> None:
        """Begin a legacy session with a message that came before `notifications/initialized`, and report that."""
        text = f"{frame.method} before notifications/initialized"
        self.report(Diagnostic(DiagnosticKind.TOLERATED, text, frame.method, frame.id))
        self.open_session(metadata)

    def open_session(self, metadata: RequestMetadata) -> None:
        """Begin a legacy session, after its handshake."""
        self.metadata.open_session(metadata)
        self.use_revision(metadata.revision)
        self.subscriptions.add_session()

    def _check_version(self, revision: str) -> None:
        if revision not in self.config.modern_revisions:
            raise UnsupportedVersionError(revision, self.config.revisions)

    # Responding

    def respond(self, ctx: Context, result: Any) -> None:
        """Respond to a registered request with the result of its handler."""
        line = None
        if (
            ctx.metadata.features is self._features
            and not ctx.cancelled
            and (result.__class__ is JsonResult or getattr(result, "result_type", None) == "complete")
        ):
            line = self.encode_result(ctx, result, is_registered=True)
        if line is None:
            self.respond_slow(ctx, result)
        elif self.unregister(ctx):
            self.send_response(ctx.sink, line)

    def respond_slow(self, ctx: Context, result: Any) -> None:
        """Respond with a result that `encode_result` did not encode."""
        if ctx.id is None:
            return
        if is_input_required(result):
            self.input_requests.respond(ctx, result)
            return
        dropped: DroppedFields = []
        try:
            if (find_repair := ctx.method_codec.find_repair) is not None:
                self._repair(ctx, find_repair(result))
            is_usual = getattr(result, "result_type", None) in _RESULT_TYPES
            encoded = None if is_usual else self._extension_result(ctx, result)
            if encoded is None:
                encoded = ctx.method_codec.downgrade(result, dropped)
            if ctx.metadata.features.is_modern:
                encoded = self.config.with_server_info(encoded)
        except Exception as error:
            self.respond_error(ctx, error)
            return
        self.send_result(ctx, encoded)
        self.report_dropped(dropped, ctx.method, ctx.revision)

    def _extension_result(self, ctx: Context, result: Any) -> Any:
        """Return a result whose `resultType` an extension adds to the method, ready to encode; None for other results.

        Raises `UsageError` if the server does not have the extension, and `MissingCapabilityError` if the client has
        not declared it.
        https://modelcontextprotocol.io/specification/2026-07-28/basic#resulttype
        """
        name: object = result.get("resultType") if is_object(result) else getattr(result, "result_type", None)
        if not isinstance(name, str) or name in _RESULT_TYPES:
            return None
        known = self.config.extension_results.get((ctx.method, name))
        if known is None and ctx.method in dialect.methods.CLIENT_REQUESTS:
            text = f"a result of the type {name!r}, which no extension of the server adds"
            raise UsageError(f"the handler of {ctx.method} returned {text}; pass the extension in `extensions`")
        if known is None:
            return None
        if not ctx.is_modern or known.extension not in (ctx.client_capabilities.extensions or {}):
            raise MissingCapabilityError({"extensions": {known.extension: {}}})
        return result if isinstance(result, msgspec.Struct) or is_object(result) else to_plain(result)

    def _repair(self, ctx: Context, repair: Repair | None) -> None:
        """Repair a result that breaks a rule of the protocol, and report it."""
        if repair is not None:
            repair.apply()
            self.report(Diagnostic(DiagnosticKind.INVALID_DATA, f"{ctx.method}: {repair.text}", ctx.method, ctx.id))

    def respond_error(self, ctx: Context, error: BaseException) -> None:
        """Respond to a registered request whose handler raised."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        try:
            self._respond_error(ctx, error)
        except Exception as broken:  # the error itself cannot be encoded: nothing was sent yet
            if ctx.id is not None:
                self.unregister(ctx)
            self._send_internal_error(ctx, broken)

    def _respond_error(self, ctx: Context, error: BaseException) -> None:
        requests = requested_input(error)
        if requests is not None:
            wanted = D.InputRequiredResult(result_type="input_required", input_requests=requests)
            self.input_requests.respond(ctx, wanted)
        elif ctx.cancelled:
            pass  # its id may belong to another request by now
        elif self.is_closed:
            self._abandon(ctx)
        elif ctx.id is None:
            text = f"the handler of {ctx.method} failed"
            self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, ctx.method, error=error))
        elif isinstance(error, RemoteError):
            self._respond_remote_error(ctx, error)
        elif isinstance(error, UnimplementedMethodError):
            self._respond_remote_error(ctx, RemoteError(METHOD_NOT_FOUND, str(error)))
        elif self.unregister(ctx):
            self._send_internal_error(ctx, error)

    def _respond_remote_error(self, ctx: Context, error: RemoteError) -> None:
        if ctx.id is None or not self.unregister(ctx):
            return
        code = error.wire_code(ctx.revision)
        if self.observer is not None:
            self.observer.on_error(ctx, code, error.message)
        self._send_error(ctx.id, code, error.message, error.data, sink=ctx.sink, is_expected=True)
        ctx.is_answered = True
        if is_reserved_code(error.code, ctx.revision):
            text = f"the error code {error.code} is reserved in {ctx.revision}; {code} was sent"
            self.report(Diagnostic(DiagnosticKind.DROPPED, text, ctx.method, ctx.id, error.code, error))

    def _send_internal_error(self, ctx: Context, error: BaseException) -> None:
        """Send an internal error, and report its cause."""
        text = f"internal error in {ctx.method}"
        if self.observer is not None:
            self.observer.on_error(ctx, INTERNAL_ERROR, text)
        ctx.is_answered = True
        if ctx.id is not None:
            self._send_error(ctx.id, INTERNAL_ERROR, text, sink=ctx.sink, is_expected=True)
        cause = f"{ctx.method} failed: {_safe_repr(error)}"
        self.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, cause, ctx.method, ctx.id, error=error))

    def _abandon(self, ctx: Context) -> None:
        """End a request without a response."""
        if ctx.id is not None and self.unregister(ctx) and ctx.sink is not None:
            ctx.sink.abandon()

    def _send_error(
        self,
        id: RequestId | None,
        code: int,
        text: str,
        data: Any = None,
        *,
        sink: ResponseSink | None,
        is_expected: bool = False,
    ) -> None:
        """Send an error. `is_expected` is true if the sink, if any, expects this response."""
        line = encode_error(id, code, text, data)
        if sink is not None and not is_expected:
            sink.reject(line, code)
        else:
            self.send_response(sink, line, code)

    # Built-in methods

    def _built_in_functions(self) -> dict[str, Callable[[Any, Context], Any]]:
        return {
            "ping": _return_nothing,
            "initialized": _return_nothing,
            "initialize": _reject_initialize,
            "discover": self._discover,
            "set_level": self._set_level,
            "subscriptions_listen": self.subscriptions.listen,
            "subscribe": self.subscriptions.subscribe,
            "unsubscribe": self.subscriptions.unsubscribe,
            "progress": self._report_notification,
            "roots_list_changed": self._report_notification,
            "task_status": self._report_notification,
        }

    def _discover(self, _params: Any, _ctx: Context) -> Any:
        result = D.DiscoverResult(
            supported_versions=self.config.revisions,
            capabilities=self.config.capabilities,
            result_type="complete",
            cache_scope="public",
            ttl_ms=0,
        )
        if self.config.instructions is not None:
            result.instructions = self.config.instructions
        return result if self.config.codec == "msgspec" else to_model(result)

    def _set_level(self, params: Any, _ctx: Context) -> dict[str, Any]:
        if self.metadata.session is not None:
            self.metadata.set_log_level(params.level)
            self.save_fields({"level": params.level})
        return {}

    def _on_cancelled(self, params: Any, ctx: Context) -> Any:
        cancelled = to_struct(params)
        id = cancelled.request_id
        if id is None or not self.cancel(id):
            text = "the cancelled request is not in flight"
            self.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, ctx.method, params=to_plain(params)))
        elif cancelled.reason:
            self.report(cancellation_diagnostic("client", id, cancelled.reason))
        on_cancelled = self.config.functions.get("cancelled")
        return None if on_cancelled is None else on_cancelled(params, ctx)

    def cancel(self, id: RequestId) -> bool:
        """Cancel a request of the client. Return False if no request in flight has this id."""
        ctx = self.pending.cancel_incoming(id)
        if ctx is None:
            return False
        ctx.cancelled = True
        if ctx.sink is not None:
            ctx.sink.abandon()
        if ctx.task is not None:
            ctx.task.cancel()
        return True

    def _report_notification(self, params: Any, ctx: Context) -> None:
        text = f"{ctx.method} from the client"
        self.report(Diagnostic(DiagnosticKind.LEGACY_NOTIFICATION, text, ctx.method, params=to_plain(params)))

    # Changes and diagnostics

    def listen(self) -> Callable[[], None]:
        """Listen to changes, until the returned function is called."""
        return self.config.changes.listen(self.publish_change)

    def publish_change(self, change: Change, uri: str | None) -> None:
        """Publish a change to the listeners of this dispatcher. Any thread may call it."""
        if threading.get_ident() == self.thread_id:
            self.subscriptions.publish(change, uri)
        elif not self.is_closed:
            self.loop.call_soon_threadsafe(self.subscriptions.publish, change, uri)

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`. Errors that it raises are logged."""
        self.config.report(diagnostic)

    def report_dropped(self, dropped: DroppedFields, method: str, revision: str) -> None:
        """Report the parts of a message that the client's revision does not have, if there are any."""
        if dropped:
            text = f"{', '.join(dropped)}: not in {revision}"
            self.report(Diagnostic(DiagnosticKind.DROPPED, text, method, params=list(dropped)))


def _return_nothing(_params: Any, _ctx: Context) -> dict[str, Any]:
    return {}


def _reject_initialize(_params: Any, _ctx: Context) -> None:
    raise RemoteError(INVALID_REQUEST, REPEATED_INITIALIZE)


def _safe_repr(error: BaseException) -> str:
    """Return the `repr` of an exception, which may fail itself."""
    try:
        return repr(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be printed"


async def as_coroutine(awaitable: Awaitable[T]) -> T:
    """Await an awaitable in a coroutine."""
    return await awaitable


@coroutine
def resume(handling: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Drive a coroutine to its end after its first step, which yielded `waits_for`."""
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:
            step: Callable[[Any], Any] = handling.throw
            argument = error
        else:
            step, argument = handling.send, sent
        try:
            waits_for = step(argument)
        except StopIteration as stop:
            return stop.value


class _PlainParams(msgspec.Struct):
    params: dict[str, Any] = {}


_decode_plain_params = msgspec.json.Decoder(_PlainParams).decode
