"""The slow path: every message that the fast path does not decode.

A message is classified, repaired where that is harmless, and handled, or rejected with an explanation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from mcpspec.support.converters import DroppedFields
from mcpspec.support.error_text import format_value
from mcpspec.support.objects import is_object
from mcpspec.support.tolerance import restore_integers
from typedmcp import dialect
from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    DecodeError,
    MethodNotFoundError,
    RemoteError,
    to_invalid_params,
)
from typedmcp.protocol.codec import Codec, MethodCodec, Response, encode_error, encode_message, fallback_codec
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Batch, Frame, InvalidMessage, OversizeMessage, RequestId, classify, classify_value
from typedmcp.protocol.meta import VERSION
from typedmcp.protocol.nulls import nulls_diagnostic
from typedmcp.revisions.features import DIALECT
from typedmcp.server.attempts import remove_unknown_answers
from typedmcp.server.batches import BatchChannel
from typedmcp.server.calls import ServedCalls
from typedmcp.server.channel import Channel
from typedmcp.server.context import Context, ServedSession, StartedCall
from typedmcp.server.engine import Engine
from typedmcp.server.handshake import Handshake
from typedmcp.server.metadata import RequestMetadata
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["SlowPath"]

_FALLBACK: Final = "fallback"
_MISTAKES: Final = frozenset((INVALID_REQUEST, INVALID_PARAMS, METHOD_NOT_FOUND))
"""Codes of errors about mistakes of who writes a client: others are part of a negotiation."""
_METHOD_LENGTH: Final = 64
"""Characters of an unknown method that are compared with known ones."""


class SlowPath:
    """Handles the messages of one session that the fast path does not decode."""

    __slots__ = ("_calls", "_config", "_engine", "_session")

    def __init__(self, session: ServedSession, calls: ServedCalls) -> None:
        self._session = session
        self._calls = calls
        self._engine: Engine = calls.engine
        self._config = calls.engine.config

    def dispatch(self, line: bytes | OversizeMessage, channel: Channel) -> StartedCall:
        """Classify and handle a message. Return a call whose handler has to be awaited."""
        message = classify(line)
        if message is None:
            channel.refuse_unanswerable(PARSE_ERROR, "the message is empty: nothing but white space")
            return None
        if isinstance(message, Batch):
            return self._dispatch_batch(message, channel)
        return self._dispatch_frame(message, line if isinstance(line, bytes) else line.head, channel)

    def _dispatch_batch(self, batch: Batch, channel: Channel) -> StartedCall:
        session, limit = self._session.metadata.session, self._config.limits.batch_messages
        reason = None
        if session is None or not session.features.has_batches:
            reason = "batches are not part of this protocol revision"
        if not batch.items:
            reason = "an empty batch"
        elif reason is None and len(batch.items) > limit:
            reason = f"a batch of {len(batch.items)} messages; the limit is {limit}"
        if reason is not None:
            return self._dispatch_frame(InvalidMessage(INVALID_REQUEST, reason), b"", channel)
        responses = BatchChannel(channel, self._engine.budget)
        for item in batch.items:
            if (started := self._dispatch_frame(classify_value(item), b"", responses)) is not None:
                self._calls.spawn(*started)
        responses.close()
        return None

    def _dispatch_frame(self, frame: Frame | InvalidMessage, line: bytes, channel: Channel) -> StartedCall:
        if isinstance(frame, InvalidMessage):
            return self._dispatch_invalid(frame, channel)
        if frame.method is None:
            if not self._session.home.handle_response(frame):
                text = "a response to no request: servers send no requests on this revision"
                diagnostic = Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, id=frame.id, params=frame.value)
                self._config.report(diagnostic)
                channel.refuse_unanswerable(INVALID_REQUEST, text)
            return None
        if frame.id is not None and self._refuse_duplicate(channel, frame.id, frame.method):
            return None
        try:
            return self._dispatch_method(frame, line, channel)
        except DecodeError as error:
            if self._mend(frame):
                return self._dispatch_frame(frame, b"", channel)
            self._reject_frame(frame, to_invalid_params(error), channel)
        except RemoteError as error:
            self._reject_frame(frame, error, channel)
        return None

    def _dispatch_invalid(self, message: InvalidMessage, channel: Channel) -> StartedCall:
        """Reject an invalid message, or handle what it was meant to be, unless the server is strict."""
        if message.meant is not None and not self._config.strict:
            self._config.report(nulls_diagnostic(["params"], str(message.meant.method), message.id))
            return self._dispatch_frame(message.meant, b"", channel)
        self._config.report(Diagnostic(DiagnosticKind.MALFORMED, message.reason, id=message.id))
        if not message.is_answerable:
            channel.refuse_unanswerable(message.code, message.reason)
        elif message.id is None or not self._refuse_duplicate(channel, message.id, None):
            channel.refuse(encode_error(message.id, message.code, message.reason), message.code)
        return None

    # Repairs

    def _mend(self, frame: Frame) -> bool:
        """Mend parameters that could not be decoded. Return whether that changed any.

        A float that equals an integer becomes one. A parameter that is `null` instead of absent is removed and
        reported, unless the server is strict.
        """
        method, params = str(frame.method), frame.value.get("params")
        session = self._session.metadata.session
        revisions = [DIALECT, *self._config.revisions] if session is None else [session.revision]
        codec = next((codec for each in revisions if method in (codec := self._config.codec_for(each)).methods), None)
        if codec is None or not is_object(params):
            return False
        is_changed = restore_integers(params, codec.struct_of_params(method))
        nulls = [] if self._config.strict else codec.remove_nulls(method, params)
        if nulls:
            self._config.report(nulls_diagnostic(nulls, method, frame.id))
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
            kinds = DiagnosticKind.UNEXPECTED_RESPONSE
            self._config.report(Diagnostic(kinds, text, frame.method, frame.id, unknown))
        return bool(unknown)

    # Rejections

    def _refuse_duplicate(self, channel: Channel, id: RequestId, method: str | None) -> bool:
        """Refuse a request whose id is in use, and return whether it is: a response would end the other request."""
        if id not in self._session.in_flight:
            return False
        text = "a request with this id is in flight"
        self._config.report(Diagnostic(DiagnosticKind.DUPLICATE_ID, text, method, id))
        channel.refuse_unanswerable(INVALID_REQUEST, text)
        return True

    def _reject_frame(self, frame: Frame, error: RemoteError, channel: Channel) -> None:
        if self._calls.observer is not None:
            self._calls.observer.on_rejected(frame, error)
        is_unknown = error.code == METHOD_NOT_FOUND
        meant = self._suggest_method(frame) if is_unknown else ""
        message = f"{error.message}{meant or ''}"
        if frame.id is not None:
            if meant is not None and error.code in _MISTAKES and frame.method != "server/discover":  # it is a probe
                self._config.log.add_mistake(f"rejected request {frame.method}: {message}")
            channel.refuse(encode_error(frame.id, error.code, message, error.data), error.code)
            return
        kind = DiagnosticKind.UNEXPECTED_MESSAGE if is_unknown else DiagnosticKind.REJECTED_NOTIFICATION
        self._config.report(Diagnostic(kind, message, frame.method, params=frame.value.get("params")))
        if not is_unknown:
            channel.refuse_unanswerable(error.code, error.message)

    def _suggest_method(self, frame: Frame) -> str | None:
        """Return the end of an error about an unknown method: the known one that is meant, perhaps.

        None for a method of the protocol, which the server does not serve.
        """
        from difflib import get_close_matches  # nothing was wrong before

        session, method = self._session.metadata.session, str(frame.method)[:_METHOD_LENGTH]
        known = self._config.codec_for(DIALECT if session is None else session.revision).methods
        if frame.method in known:
            return None
        meant = [name for name in known if name.endswith(f"/{method}")] or get_close_matches(
            method, [name for name, each in known.items() if each.is_request == (frame.id is not None)], 1
        )
        return f"; did you mean {meant[0]}?" if meant else ""

    # Requests and notifications

    def _dispatch_method(self, frame: Frame, line: bytes, channel: Channel) -> StartedCall:
        """Handle a request or notification whose envelope is right, by the revision that it belongs to."""
        channel.check_frame(frame)
        params: dict[str, Any] = frame.value.get("params", {})
        meta: Any = params.get("_meta", {})
        if not is_object(meta):
            raise DecodeError("_meta", "expected object")
        is_modern = VERSION in meta and bool(self._config.modern_revisions)
        handshake = self._session.handshake
        if not is_modern and handshake is not None and handshake.handles(frame) and not self._opens_early(frame):
            return self._dispatch_handshake(handshake, frame, channel)
        session = self._session.metadata.session
        if is_modern or (session is not None and meta):
            metadata = self._decode_metadata(meta)
            if session is None and not self._session.is_shared:
                self._session.use_revision(metadata.revision)
        elif session is not None:
            metadata = session
        elif frame.id is None:
            metadata = RequestMetadata.anonymous(DIALECT)
        else:
            raise self._missing_metadata_error(frame, has_meta="_meta" in params)
        codec = self._config.codec_for(metadata.revision)
        return self._dispatch_typed(frame, codec, metadata, line or msgspec.json.encode(frame.value), channel)

    def _opens_early(self, frame: Frame) -> bool:
        """Return whether a message has opened the session, though it came before `notifications/initialized`."""
        if self._session.handshake is None or not self._session.handshake.skip_initialized(frame):
            return False
        text = f"{frame.method} before notifications/initialized"
        self._config.report(Diagnostic(DiagnosticKind.TOLERATED, text, frame.method, frame.id))
        return True

    def _dispatch_handshake(self, handshake: Handshake, frame: Frame, channel: Channel) -> StartedCall:
        observer = self._calls.observer
        if frame.id is None:
            if (metadata := handshake.handle_notification(frame)) is not None:
                if observer is not None:
                    observer.on_handshake(frame, metadata.revision)
                return None
            text = f"{frame.method} before the session is open"
            self._config.report(Diagnostic(DiagnosticKind.UNEXPECTED_MESSAGE, text, frame.method))
            channel.refuse_unanswerable(INVALID_REQUEST, text)
            return None
        if isinstance(channel, BatchChannel):
            raise RemoteError(INVALID_REQUEST, f"{frame.method} must not be part of a batch")
        dropped: DroppedFields = []
        result = handshake.handle_request(frame, dropped)
        channel.send_fast(encode_message(Response("2.0", frame.id, result)))
        revision: str = getattr(result, "protocol_version", "")
        if observer is not None:
            observer.on_handshake(frame, revision)
        self._config.report_dropped(dropped, str(frame.method), revision)
        return None

    def _decode_metadata(self, meta: dict[str, Any]) -> RequestMetadata:
        try:
            return self._session.metadata.get(msgspec.json.encode(meta))
        except DecodeError as error:
            separator = "" if error.path.startswith("[") or not error.path else "."
            raise DecodeError(f"_meta{separator}{error.path}", error.reason) from error

    def _missing_metadata_error(self, frame: Frame, *, has_meta: bool) -> RemoteError:
        """Return the error for a request that is neither modern nor part of a session."""
        engine, config = self._engine, self._config
        if self._session.is_shared and not config.has_method(frame, config.modern_revisions or [DIALECT]):
            return MethodNotFoundError(str(frame.method))
        if not config.has_method(frame, [DIALECT, *config.revisions]) and _FALLBACK not in engine.functions:
            return RemoteError(METHOD_NOT_FOUND, f"method not found: {frame.method}")
        path = f'params._meta["{VERSION}"]' if has_meta else "params._meta"
        text = f"send initialize first; without it {path}: required, but missing"
        return RemoteError(INVALID_PARAMS, text, {"path": path})

    def _dispatch_typed(
        self, frame: Frame, codec: Codec, metadata: RequestMetadata, line: bytes, channel: Channel
    ) -> StartedCall:
        method, is_request = str(frame.method), frame.id is not None
        if (method_codec := codec.methods.get(method)) is None:
            if _FALLBACK not in self._engine.functions:
                raise RemoteError(METHOD_NOT_FOUND, f"method not found: {method}")
            method_codec, params = fallback_codec(method, metadata.revision, is_request=is_request), None
        else:
            if method_codec.is_request != is_request:
                wanted = "a request and needs an id" if method_codec.is_request else "a notification and has no id"
                raise RemoteError(INVALID_REQUEST, f"{method} is {wanted}")
            line, params = self._decode_params(codec, frame, line)
        ctx = Context(self._session, method_codec, frame.id, metadata, metadata.members.copy(), line, channel)
        return self._call(ctx, method_codec, params) if self._admit(ctx) else None

    def _decode_params(self, codec: Codec, frame: Frame, line: bytes) -> tuple[bytes, Any]:
        """Return a message as it was decoded, and its parameters. Raises `DecodeError` or `RemoteError`."""
        try:
            return line, codec.decode(line).params
        except ValueError:
            codec.check_params(str(frame.method), frame.value.get("params", {}))
            line = msgspec.json.encode(frame.value)  # of several members with one name the last counts
            try:
                return line, codec.decode(line).params
            except DecodeError:
                raise
            except ValueError as error:
                raise RemoteError(INVALID_PARAMS, str(error)) from error

    def _admit(self, ctx: Context) -> bool:
        """Admit a message. Return False if it was rejected, for its id or for the limit on what is in flight."""
        limit, calls, budget = self._config.limits.requests_in_flight, self._calls, self._engine.budget
        if ctx.id is None:
            if len(calls.tasks) <= limit:
                return True
            text = f"more than {limit} messages are being handled"
            self._config.report(Diagnostic(DiagnosticKind.REJECTED_NOTIFICATION, text, ctx.method))
            return False
        if not calls.admit(ctx):
            self._refuse_duplicate(ctx.channel, ctx.id, ctx.method)
            return False
        if len(self._session.in_flight) > limit:
            calls.reject(ctx, RemoteError(INTERNAL_ERROR, f"more than {limit} requests in flight"))
            return False
        if budget.full and not budget.admits(ctx.channel.client):
            text = "the requests in progress hold as many bytes as their limit allows: try again later"
            if ctx.is_modern:
                ctx.channel.refuse_busy()
            calls.reject(ctx, RemoteError(INTERNAL_ERROR, text))
            return False
        return True

    def _call(self, ctx: Context, method_codec: MethodCodec, params: Any) -> StartedCall:
        """Call the handler of a message that was admitted."""
        calls = self._calls
        try:
            if method_codec.handler_name not in calls.functions or method_codec.handler_name == _FALLBACK:
                return self._call_fallback(ctx)
            try:
                ctx.params = params = method_codec.upgrade(params, ctx.meta)
            except DecodeError as error:
                raise to_invalid_params(error) from error
            restoring = self._session.questions.restore(ctx, params)
            result = calls.call_handler(ctx, params) if restoring is None else self._call_after(restoring, ctx, params)
        except BaseException as error:
            calls.fail(ctx, error)
            return None
        return calls.settle(ctx, result)

    async def _call_after(self, restoring: Awaitable[None], ctx: Context, params: Any) -> Any:
        """Call the handler once the state of earlier attempts is restored, and return its result."""
        await restoring
        result = self._calls.call_handler(ctx, params)
        return await result if is_awaitable(result) else result

    def _call_fallback(self, ctx: Context) -> StartedCall:
        """Call the handler's `fallback`, which gets the parameters in plain JSON."""
        if _FALLBACK not in self._calls.functions:
            reason = dialect.conversions.DECIDED.get(ctx.method)
            text = f"method not found: {ctx.method}" + (f": {reason}" if reason else "")
            self._calls.reject(ctx, RemoteError(METHOD_NOT_FOUND, text))
            return None
        ctx.method_codec = fallback_codec(ctx.method, ctx.revision, is_request=ctx.method_codec.is_request)
        ctx.params = _decode_plain_params(ctx.raw).params
        return self._calls.settle(ctx, self._calls.call_handler(ctx, ctx.method, ctx.params))


class _PlainParams(msgspec.Struct):
    params: dict[str, Any] = {}


_decode_plain_params: Callable[[bytes], _PlainParams] = msgspec.json.Decoder(_PlainParams).decode
