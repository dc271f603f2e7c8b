"""The engine of a server: decodes messages, finds their functions, and encodes results. It knows no client.

Four things serve a message, and each is a component of its own:

    engine    one for a configuration. Decodes, finds the function, encodes.                        engine.py
    session   what is known of one client, or of all that have no session: revision, metadata,      session.py
              subscriptions, questions.
    channel   where messages leave: a connection of lines, one HTTP response, a batch.              channel.py
    call      one message while it is handled. Its face for handlers is `Context`.                  context.py
              Its states are in call_states.py, what changes them in calls.py.

The fast path of a call is `decode`, the handler, `encode`; both return None for anything unusual. Then the slow path
(slow_path.py, and `convert` here) decides what it means. Both lead to the same responses.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw

from mcpspec.support.converters import DroppedFields
from mcpspec.support.objects import LARGE_TEXT, is_object
from mcpspec.support.structs import may_contain_non_finite
from typedmcp import dialect
from typedmcp.errors import MissingCapabilityError, RemoteError, UsageError
from typedmcp.protocol.backends import to_plain
from typedmcp.protocol.budgets import ByteBudget
from typedmcp.protocol.codec import JsonResult, Response, encoder
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import OversizeMessage
from typedmcp.protocol.repairs import Repair
from typedmcp.server.built_in import served_functions
from typedmcp.server.call_states import CallState
from typedmcp.server.channel import Channel
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context, ServedSession
from typedmcp.transports.concurrency import ThreadLimiter
from typedmcp_schemas.nesting import SHORT, is_too_deep

if TYPE_CHECKING:
    from typedmcp.server.encoded_lists import EncodedList

__all__ = ["Engine"]

_RESULT_TYPES: Final = ("complete", "input_required")
"""The types of results that need no extension."""

_LARGE_RESULT_BYTES: Final = 1 << 20
"""Bytes of a result that is encoded together with its envelope, which takes less memory than to copy its text."""

_NEWLINE: Final = 10  # a search for a number takes a fifth of one for a text
_NEW: Final = CallState.NEW
_WAITING: Final = CallState.WAITING
_encode = encoder.encode


class Engine:
    """Serves the functions of one configuration to any number of sessions.

    `threads` runs functions that block, by default in threads of its own. `use_once` records the use of a state that is
    valid once, by default for this process.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        threads: ThreadLimiter | None = None,
        use_once: Callable[[str, float], Awaitable[bool]] | None = None,
    ) -> None:
        self.config: ServerConfig = config
        self.functions: dict[str, Callable[..., Any]] = served_functions(config)
        """The functions of all methods, by the names of handlers."""
        self.fast_functions: dict[str, Callable[..., Any]] = {
            name: function
            for name, function in self.functions.items()
            if name not in config.threaded and name != "initialize"
        }
        """Those that the fast path calls."""
        self.threads: ThreadLimiter = threads or ThreadLimiter(config.limits.threads)
        self.use_once: Callable[[str, float], Awaitable[bool]] = use_once or config.used_states.use_once
        """Records the use of a name, for some seconds. The result is False if it was used already."""
        self.thread_id: int = threading.get_ident()
        """The thread of the event loop."""
        self.budget: ByteBudget = config.budgets.calls
        """The bytes of the calls whose handlers wait."""
        self._max_in_flight = config.limits.requests_in_flight
        self._meta_copiers: Any = config.meta_copiers
        self._was_large = False
        """True if the last result was large, as the next one may be, too. The text of a large one is not copied."""

    # The fast path

    def decode(self, session: ServedSession, line: bytes | OversizeMessage, channel: Channel) -> Context | None:
        """Decode a request, or return None if it needs the slow path.

        A request on the fast path is not in flight: it cannot be cancelled before it waits.
        """
        codec, in_flight = session.codec, session.in_flight
        try:
            message = codec.decode(line)
            method_codec = codec.by_message_type[message.__class__]
            params, id = message.params, message.id
            if channel.has_headers:
                channel.check_fast(method_codec, params)
            encoded_meta = UNSET if params is None else params.meta
            cache = session.metadata
            if encoded_meta is UNSET:
                metadata: Any = cache.session
            elif encoded_meta == cache.latest_raw:
                metadata = cache.latest
            else:
                text = b"%b" % encoded_meta  # the fastest way to the bytes
                metadata = cache.known.get(text) or cache.get(text)
            if metadata.features is not codec.features or (
                in_flight and (id in in_flight or len(in_flight) >= self._max_in_flight or self.budget.full)
            ):
                return None
            meta = metadata.members.copy()
            ctx = Context(session, method_codec, id, metadata, meta, line, channel)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            ctx.params = params = method_codec.upgrade(params, meta)
            if method_codec.accepts_input and (
                params.request_state.__class__ is str or params.input_responses.__class__ is dict
            ):
                return None
        except (LookupError, AttributeError, ValueError, TypeError, RemoteError):
            return None
        return ctx

    def encode(self, ctx: Context, result: Any) -> bytes | None:
        """Encode the response to a request, or return None if it needs the slow path.

        A response that is encoded here has to be sent, unless the request has been cancelled.
        """
        id, method_codec = ctx.id, ctx.method_codec
        encoded: Any = result
        if id is None or (
            ctx.state is not _NEW
            and (
                ctx.state is not _WAITING
                or (result.__class__ is not JsonResult and getattr(result, "result_type", None) != "complete")
            )
        ):
            return None
        dropped: DroppedFields | None = None
        try:
            if ctx.encodings is not None:
                return self._encode_list(ctx, result, ctx.encodings)
            convert = method_codec.downgrades[result.__class__]
            if convert is not None:
                dropped = []
                encoded = convert(result, dropped)
                if encoded.__class__ is Raw:
                    line = _encode(Response("2.0", id, encoded))
                    return None if _NEWLINE in line or (len(line) > SHORT and is_too_deep(line)) else line
            if not ctx.metadata.is_modern:
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
            if is_lossy or _NEWLINE in text or text == b"{}" or (len(text) > SHORT and is_too_deep(text)):
                return None
        except Exception:
            return None
        if dropped:
            self.config.report_dropped(dropped, ctx.method, ctx.revision)
        return line

    def _encode_list(self, ctx: Context, result: Any, encodings: EncodedList) -> bytes | None:
        """Encode the response to a request for a list that is the same for every client."""
        if result.meta is not None:
            return None
        text, dropped = encodings.encode(result, ctx.method_codec)
        id = _encode(ctx.id)
        if ctx.is_modern:
            meta = self.config.encoded_result_meta
            line = b'{"jsonrpc":"2.0","id":%b,"result":%.*b,"_meta":%b}}' % (id, len(text) - 1, text, meta)
        else:
            line = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, text)
        if dropped:
            self.config.report_dropped(dropped, ctx.method, ctx.revision)
        return line

    # The slow path

    def convert(self, ctx: Context, result: Any, dropped: DroppedFields) -> Any:
        """Return a result that `encode` did not encode in the types of the revision, ready to encode.

        Append the members that the revision lacks to `dropped`. Raises `UsageError` for a result that is not of the
        method's type, and `MissingCapabilityError` for one that the client cannot take.
        """
        if (find_repair := ctx.method_codec.find_repair) is not None:
            self._repair(ctx, find_repair(result))
        is_usual = getattr(result, "result_type", None) in _RESULT_TYPES
        encoded = None if is_usual else self._extension_result(ctx, result)
        if encoded is None:
            encoded = ctx.method_codec.downgrade(result, dropped)
        return self.config.with_server_info(encoded) if ctx.is_modern else encoded

    def replace_result(self, ctx: Context, result: Any, error: Exception) -> Any:
        """Return what is sent in place of a result that cannot be encoded, ready to encode, if the handler says it.

        Raises the error of the encoding otherwise, or the one that the handler raises.
        """
        explain: Callable[..., Any] | None = getattr(self.config.handler, "explain_unsendable", None)
        if explain is None:
            raise error
        return self.convert(ctx, explain(result, error, ctx), [])

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
            self.config.report(
                Diagnostic(DiagnosticKind.INVALID_DATA, f"{ctx.method}: {repair.text}", ctx.method, ctx.id)
            )
