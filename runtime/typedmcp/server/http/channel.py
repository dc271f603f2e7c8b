"""The response to one POST, as a channel: JSON, a stream of events, or just a status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallLostError,
    HeaderMismatchError,
    InsufficientScopeError,
    MissingCapabilityError,
    RemoteError,
    UnsupportedVersionError,
)
from typedmcp.frames import OnFrame
from typedmcp.observers import RequestInfo
from typedmcp.protocol.codec import MethodCodec, encode_error
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame
from typedmcp.server.batches import without_results
from typedmcp.server.calls import LISTEN, ServedCalls
from typedmcp.server.http.header_checks import (
    UNKNOWN_PARAMS,
    HeaderParams,
    MirroredNames,
    check_mirrored,
    check_no_version,
)
from typedmcp.server.http.messages import (
    LARGE_BODY_BYTES,
    TOO_MANY_STREAMS,
    Headers,
    RawHeaders,
    Scope,
    Send,
    WriteNow,
    accepts,
    client_at,
    client_of_principal,
    headers_as_text,
)
from typedmcp.server.http.state import AppState
from typedmcp.server.http.streams import EventStream, StreamChannel, StreamLog
from typedmcp.server.principal import Principal

__all__ = ["LEGACY_STATUSES", "MODERN_STATUSES", "HttpChannel", "PostStatuses", "PostTarget"]


class PostStatuses(NamedTuple):
    """The statuses of errors, by code. All other responses have status 200."""

    failed: Mapping[int, int]
    """Those of requests."""
    refused: Mapping[int, int]
    """Those of messages that did not reach a handler."""


_MODERN: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HeaderMismatchError.CODE: 400,
    MissingCapabilityError.CODE: 400,
    UnsupportedVersionError.CODE: 400,
    InsufficientScopeError.CODE: 403,
}
MODERN_STATUSES: Final = PostStatuses(_MODERN, _MODERN)
LEGACY_STATUSES: Final = PostStatuses(
    {InsufficientScopeError.CODE: 403},  # clients treat other statuses as a failure of the connection
    {PARSE_ERROR: 400, INVALID_REQUEST: 400, HeaderMismatchError.CODE: 400, UnsupportedVersionError.CODE: 400},
)

_CALL_LOST: Final = CallLostError().message


class PostTarget(msgspec.Struct, frozen=True):
    """A session that POSTs go to, and the way in which HTTP serves it."""

    calls: ServedCalls
    state: AppState
    statuses: PostStatuses
    names: MirroredNames | None
    """The headers that repeat values of bodies. None on legacy revisions, whose headers repeat nothing."""
    open_frames: Callable[[], OnFrame | None]
    """Returns the function for the messages of one POST on the wire; None without a sink for them."""
    stored_id: str | None = None
    """The id of a session in the store: its requests go on when their clients disconnect."""


class HttpChannel(msgspec.Struct, StreamChannel, eq=False):
    """The channel of the message or batch in one POST.

    A Struct with all that a response may need, since one is made for each request, and two objects would cost more.
    """

    has_headers = True

    target: PostTarget
    _headers: Headers | RawHeaders
    principal: Principal | None
    """The principal that makes the request, if the application requires credentials."""
    send: Send
    header_params: HeaderParams = UNKNOWN_PARAMS
    """The parameters of the called tool that headers repeat; empty for other methods."""
    scope: Scope | None = None
    """The scope of a request on the hot path."""
    mcp_method: bytes | None = None
    """The header `Mcp-Method`, once it and the version have been read."""
    mcp_name: bytes | None = None
    """The header `Mcp-Name`, if it has been read."""
    write: WriteNow | None = None
    """Sends a response that is complete at once, if the server has a short way for that."""
    line: bytes | None = None
    """The response to the message; empty once a stream has it."""
    code: int | None = None
    """The code of the error in `line`; None if that is a result."""
    status: int | None = None
    """The status of an error, if it does not follow from its code."""
    open_requests: int = 0
    stream: EventStream | None = None
    """The response, once it is a stream of events."""
    on_stream: Callable[[EventStream], None] | None = None
    """Called with a stream that is opened from now on, to send it."""
    on_frame: OnFrame | None = None
    """Called with the messages on the wire, if there is a sink for them."""
    on_change: Callable[[], None] | None = None
    """Called when a request has been answered or abandoned."""
    _retry: float | None = None
    """Seconds after which the client reconnects, if the handler wants to disconnect it before there is a stream."""

    def __repr__(self) -> str:
        """Leave out the headers, since they may contain credentials."""
        return f"<{type(self).__name__}>"

    # The client

    @property
    def client(self) -> str | None:
        """The client that budgets count for."""
        scope = self.scope
        if scope is None or self.principal is not None:
            return client_of_principal(self.principal)
        address = scope.get("client")
        return client_at(address[0]) if address else None

    @property
    def headers(self) -> Headers:
        """The headers of the request by name."""
        if not isinstance(self._headers, dict):
            self._headers = dict(self._headers)
        return self._headers

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the request as text."""
        return headers_as_text(self.headers)

    @property
    def header_bytes(self) -> int:
        """The size of the headers."""
        headers: Any = self._headers
        pairs: Iterable[tuple[bytes, bytes]] = headers.items() if headers.__class__ is dict else headers
        return sum(map(len, chain.from_iterable(pairs)))  # a loop in Python would cost 2 % of a call that waits

    # Checks

    def check_fast(self, method_codec: MethodCodec, params: Any) -> None:
        """Raise `ValueError` if the headers may contradict the body; `check_frame` checks precisely."""
        names = self.target.names
        if names is None:
            return
        if self.mcp_method is None and self.headers.get(b"mcp-protocol-version") == names.version:
            self.mcp_method, self.mcp_name = self.headers.get(b"mcp-method"), self.headers.get(b"mcp-name")
        if self.mcp_method != method_codec.header:
            raise ValueError
        member = method_codec.name_param
        if member is not None:
            value = getattr(params, member)
            if self.header_params:
                raise ValueError
            if names.known.get(self.mcp_name) != value:
                names.check(self.mcp_name, value)

    def check_frame(self, frame: Frame) -> None:
        """Raise `RemoteError` if the headers contradict a message."""
        if self.target.names is None:
            check_no_version(frame)
        else:
            check_mirrored(self.headers, frame, self.target.calls.engine.config, self.header_params)

    # Responses

    def expect(self) -> None:
        """Expect one more response."""
        self.open_requests += 1

    def abandon(self) -> None:
        """Expect one response fewer."""
        self.open_requests -= 1
        if self.line is None and self.stream is not None:
            self.stream.end()
        if self.on_change is not None:
            self.on_change()

    def send_fast(self, line: bytes) -> None:
        """Send the response to a request that was not expected."""
        if self.stream is None:
            self.line = line
            return
        if len(line) > LARGE_BODY_BYTES and not self.stream.hold.take(0):  # its client holds its share
            line = without_results(line)
        self.stream.put(line, last=True)
        self.line = b""  # the stream has it

    def send_response(self, line: bytes, code: int | None = None) -> None:
        """Send a response; `code` is that of an error."""
        self.code = code
        if code is not None:
            self.status = self.status or self.target.statuses.failed.get(code)
        self.send_fast(line)
        self.abandon()

    def refuse(self, line: bytes, code: int) -> None:
        """Send the error for a message that did not reach a handler."""
        self.status = self.target.statuses.refused.get(code, 200)
        self.expect()
        self.send_response(line, code)

    def refuse_unanswerable(self, code: int, text: str) -> None:
        """Refuse a message that has no response in JSON-RPC by the status."""
        self.status, self.code, self.line = 400, code, encode_error(None, code, text)

    def refuse_busy(self) -> None:
        """Invite the client to try again."""
        self.status = 503

    # Messages before the response

    def send_message(self, ctx: RequestInfo | None, line: bytes) -> bool:
        """Send a message before the response, which becomes a stream of events. False if the message is dropped."""
        if ctx is None:
            return False
        if self.stream is None and not self.open_stream(ctx):
            self._drop_message(ctx)
            return False
        assert self.stream is not None
        if self.stream.is_overfull:
            text = "a message: the client reads too slowly"
            self.target.state.report(Diagnostic(DiagnosticKind.DROPPED, text, ctx.method, ctx.id))
            return False
        return self.stream.put(line)

    def _drop_message(self, ctx: RequestInfo) -> None:
        """Report a message for which no stream can be opened; a subscription fails instead."""
        is_accepted = self._accepts_streams
        why = TOO_MANY_STREAMS if is_accepted else "the header Accept lacks text/event-stream"
        if ctx.method == LISTEN:
            self.status = 503 if is_accepted else 406
            raise RemoteError(INTERNAL_ERROR if is_accepted else INVALID_REQUEST, why)
        self.target.state.report(Diagnostic(DiagnosticKind.DROPPED, f"a message: {why}", ctx.method, ctx.id))

    @property
    def _accepts_streams(self) -> bool:
        return accepts(self.headers, b"text/event-stream")

    def open_stream(self, ctx: RequestInfo) -> bool:
        """Make the response to a request an event stream, which can be resumed if its session is in the store.

        False if the limit on streams is reached, or if the client does not accept them.
        """
        state, log = self.target.state, self._new_log(ctx)
        stream = self.stream = state.open_stream(self.send, self.client, log) if self._accepts_streams else None
        if stream is None:
            return False
        stream.on_frame, stream.write = self.on_frame, self.write
        if log is not None:
            stream.first = state.first_event(ctx.revision, f"{log.name}.0")
        if self.on_stream is not None:
            self.on_stream(stream)
        if self._retry is not None:
            self.disconnect(self._retry)
        return True

    def _new_log(self, ctx: RequestInfo) -> StreamLog | None:
        if self.target.stored_id is None:
            return None
        state, final_event = self.target.state, partial(encode_error, ctx.id, CallLostError.CODE, _CALL_LOST)
        return StreamLog(state.store, self.target.stored_id, state.unique_name(), final_event, state.spawn)

    def disconnect(self, retry: float) -> None:
        """Close the connection, if the client can reconnect for the response after `retry` seconds."""
        if self.stream is not None:
            self.stream.hang_up(round(retry * 1000))
        else:
            self._retry = retry  # until there is a stream to resume
