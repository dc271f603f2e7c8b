"""Calls that outlive their requests, and notifications to sessions after a request: the seam for extensions.

A handler may go on after its request has been answered, in this worker or in another one. What it sends then reaches a
`DetachedRun`, which stands for the client: the Tasks extension keeps progress and questions in a store.
`typedmcp.extensions` has the public names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from threading import get_ident
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary, ref

import msgspec

from mcpspec.support.converters import DroppedFields
from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.errors import UsageError
from typedmcp.protocol.backends import to_plain
from typedmcp.protocol.budgets import ClientKey
from typedmcp.protocol.codec import Notification, codec_for, encode_message
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.revisions.features import DIALECT, structs_of
from typedmcp.server.attempts import AskedQuestion, is_input_required
from typedmcp.server.call_states import CallState
from typedmcp.server.channel import Channel
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context, ServedSession
from typedmcp.server.home import EndCallbacks, SessionHome
from typedmcp.server.input_requests import check_requests
from typedmcp.server.metadata import RequestMetadata
from typedmcp.server.principal import Principal
from typedmcp.transports.concurrency import ThreadLimiter

__all__ = [
    "DetachedContext", "DetachedRun", "SessionHandle", "answers_given", "detach", "encode_result", "exact_result",
    "find_answer_fault", "is_local", "restore_call", "store_call",
]  # fmt: skip

D = dialect.structs
T = TypeVar("T")


class DetachedRun(Protocol):
    """The counterpart of a call that has outlived its request: it stands for the client. Called in the event loop."""

    @property
    def id(self) -> str:
        """Identifies the run. The handler finds it as its progress token."""
        ...

    @property
    def client(self) -> str:
        """The client that limits on threads count for; empty if it is unknown."""
        ...

    def notify(self, method: str, params: Any) -> bool:
        """Take a notification of the handler, with its parameters in the dialect: progress, or a log message.

        False says that the run has no place for it, which is then reported.
        """
        ...

    def ask(self, questions: Mapping[str, Any]) -> Awaitable[Mapping[str, Any]]:
        """Wait for the answers to input requests, both in plain JSON, by the same keys.

        A key stands for one question alone, so a call that begins again asks under the same keys.
        """
        ...


class DetachedContext(Context):
    """The context of a call that has outlived its request."""

    def cancel(self) -> None:
        """Make `cancelled` true, which handlers in threads look at. The caller cancels the task of the handler."""
        self.state = CallState.CANCELLED


class _RunHome(SessionHome):
    def __init__(self, *, is_local: bool) -> None:
        self.is_local: bool = is_local
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()


class _RunBackend(Channel):
    """The backend and the channel of a detached context: passes on to a run what a session sends."""

    def __init__(
        self,
        config: ServerConfig,
        run: DetachedRun,
        principal: Principal | None,
        headers: Mapping[str, str],
        *,
        is_local: bool,
    ) -> None:
        self._run = run
        self.config: ServerConfig = config
        self.principal: Principal | None = principal
        self._headers = headers
        self.end_callbacks: EndCallbacks = EndCallbacks()
        self.thread_id: int = get_ident()
        self.home: SessionHome = _RunHome(is_local=is_local)
        self.threads: ThreadLimiter = _threads_of(config)

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request."""
        return self._headers

    @property
    def client(self) -> ClientKey:
        """The client that limits count for."""
        return self._run.client

    def notify(self, ctx: Context | None, method: str, params: msgspec.Struct) -> None:
        """Pass a notification to the run."""
        if not self._run.notify(method, params):
            text = f"{method} is not sent: the call has outlived its request"
            self.config.report(Diagnostic(DiagnosticKind.DROPPED, text, method, None if ctx is None else ctx.id))

    async def ask(self, ctx: Context, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the client through the run."""
        asked = check_requests(ctx, requests)
        keys = {key: _question_key(key, AskedQuestion.from_request(request).digest) for key, request in asked.items()}
        answers = await self._run.ask({keys[key]: to_builtins(request) for key, request in asked.items()})
        return {
            key: D.from_builtins(answers[keys[key]], dialect.methods.INPUT_REQUESTS[request.method].result)
            for key, request in asked.items()
        }


_threads: WeakKeyDictionary[ServerConfig, ThreadLimiter] = WeakKeyDictionary()


def _threads_of(config: ServerConfig) -> ThreadLimiter:
    """Return the threads of runs: they may take long, so requests have threads of their own."""
    if config not in _threads:
        count = config.limits.threads
        _threads[config] = ThreadLimiter(count, max(1, count * 3 // 4))
    return _threads[config]


def _question_key(key: str, digest: str) -> str:
    """Return a key that stands for one question: another question under the same key of the handler has another one."""
    return f"{key}:{digest[:12]}"


def is_local(ctx: Context) -> bool:
    """Return whether the client of a request has all scopes without a token."""
    return ctx.principal is None and ctx.has_scopes("any")


# Calls


def detach(ctx: Context, run: DetachedRun) -> DetachedContext:
    """Return the context with which the handler of a request goes on after its response.

    Progress and questions of the handler reach `run`. Parameters, principal, headers and lifespan stay what they are.
    """
    backend = _RunBackend(ctx.config, run, ctx.principal, ctx.headers, is_local=is_local(ctx))
    return DetachedContext(
        backend, ctx.method_codec, ctx.id, ctx.metadata, _with_token(ctx.meta, run), ctx.raw, backend,
        params=ctx.params, owner=ctx.owner, attempt=ctx.attempt,
    )  # fmt: skip


class _StoredCall(msgspec.Struct, kw_only=True):
    """A request, as far as another worker needs it to call the handler again."""

    raw: bytes
    revision: str
    meta: dict[str, Any]
    principal: dict[str, Any] | None = None
    is_local: bool = False


def store_call(ctx: Context) -> bytes:
    """Return what another worker needs to call the handler of a request again, for `restore_call`.

    It has the request, the metadata of the client, and its principal without the claims of the token.
    """
    principal = ctx.principal
    kept = None if principal is None else to_builtins(msgspec.structs.replace(principal, claims={}))
    return msgspec.json.encode(
        _StoredCall(
            raw=ctx.raw, revision=ctx.revision, meta=ctx.metadata.members, principal=kept, is_local=is_local(ctx)
        )
    )


def restore_call(config: ServerConfig, stored: bytes, run: DetachedRun) -> DetachedContext:
    """Return the context of a request that `store_call` has kept; call `config.call_tool(ctx.params, ctx)` with it.

    Raises `ValueError` for a request of another version of the server, which this one cannot decode.
    """
    call = msgspec.json.decode(stored, type=_StoredCall)
    if call.revision not in config.revisions:
        raise ValueError(f"the revision {call.revision} is not served")
    codec = config.codec_for(call.revision)
    message = codec.decode(call.raw)
    method_codec = codec.by_message_type[message.__class__]
    principal = None if call.principal is None else msgspec.convert(call.principal, Principal)
    backend = _RunBackend(config, run, principal, {}, is_local=call.is_local)
    meta = _with_token(call.meta, run)
    return DetachedContext(
        backend, method_codec, message.id, RequestMetadata(call.revision, call.meta), meta, call.raw,
        backend, params=method_codec.upgrade(message.params, meta),
    )  # fmt: skip


def _with_token(meta: Mapping[str, Any] | None, run: DetachedRun) -> dict[str, Any]:
    """Return metadata with a progress token: a run takes progress, whether the client has asked for it or not."""
    return {**(meta or {}), "progressToken": run.id}


def answers_given(ctx: Context) -> dict[str, Any]:
    """Return the answers that the client gave in earlier attempts, in plain JSON, by the keys that a run gets."""
    if ctx.attempt is None:
        return {}
    return {_question_key(key, answer.digest): answer.value for key, answer in ctx.attempt.answers.items()}


def find_answer_fault(request: Any, answer: Any) -> str | None:
    """Return what is wrong with an answer to an input request, both in plain JSON; None if it fits."""
    params: dict[str, Any] = request.get("params") or {}
    return AskedQuestion("", request["method"], params.get("requestedSchema")).find_fault(answer)


# Results


def encode_result(ctx: Context, result: Any) -> bytes:
    """Return the result of a request in JSON, as a client of the newest revision gets it, with `_meta` of the server.

    Raises `UsageError` for a value that is no result of the method, and for one that requests input: a handler that
    goes on asks with `ctx.elicit`, `ctx.sample` or `ctx.ask`.
    """
    if is_input_required(result):
        text = "a call that goes on after its request cannot return InputRequiredResult"
        raise UsageError(f"{text}; ask with ctx.elicit, ctx.sample or ctx.ask")
    config, method_codec = ctx.config, ctx.method_codec
    if not ctx.is_modern and ctx.method in dialect.methods.METHODS:
        method_codec = config.codec_for(DIALECT).methods[ctx.method]
    return encode_message(config.with_server_info(method_codec.downgrade(result, [])))


def exact_result(ctx: Context, result: Any, method: str | None = None) -> Any:
    """Return a result of a method in the exact Structs of the client's revision, for a form on that revision alone.

    `method` is by default that of the request. Members that the revision lacks are reported.
    """
    config, method = ctx.config, method or ctx.method
    exact = structs_of(ctx.revision)
    dropped: DroppedFields = []
    is_other = isinstance(result, msgspec.Struct) and config.codec != "msgspec"
    codec = codec_for(ctx.revision) if is_other else config.codec_for(ctx.revision)
    made = codec.methods[method].downgrade(result, dropped)
    config.report_dropped(dropped, ctx.method, ctx.revision, ctx.id)
    kind = getattr(exact, type(made).__name__)
    return made if isinstance(made, kind) else from_builtins(to_plain(made), kind)


# Sessions


class SessionHandle:
    """The session of a request, for notifications after its response. It keeps nothing alive."""

    def __init__(self, ctx: Context) -> None:
        self.revision: str = ctx.revision
        """The protocol revision of the session."""
        self._connection = ref(ctx.connection)

    @property
    def is_open(self) -> bool:
        """True while the session can be reached in this process."""
        connection = cast("ServedSession | None", self._connection())
        return connection is not None and not connection.is_closed

    def notify(self, method: str, params: msgspec.Struct) -> bool:
        """Send a notification, with parameters in the types of the session's revision. Call it in the event loop.

        Returns False if it is not sent, since the session has ended, or its client does not read.
        """
        connection = cast("ServedSession | None", self._connection())
        if connection is None or connection.is_closed or connection.is_congested(None):
            return False
        return connection.send(None, Notification("2.0", method, params))
