"""Forwarding of one request to one server, and of what the server asks meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from typedmcp import Context, Diagnostic, DiagnosticKind
from typedmcp.dialect import methods, structs
from typedmcp.errors import (
    INTERNAL_ERROR,
    URL_ELICITATION_REQUIRED,
    AuthorizationRequiredError,
    ConnectionLostError,
    Error,
    MethodNotFoundError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    SignInError,
    UnsupportedVersionError,
)
from typedmcp.revisions.features import FEATURES
from typedmcp_gateway.callers import GatewayCaller
from typedmcp_gateway.extension_calls import send_plain
from typedmcp_gateway.extension_results import AddedResult
from typedmcp_gateway.protocol import TASK_NAMES
from typedmcp_gateway.questions import ForwardedCall, ParkedCalls
from typedmcp_gateway.results import pass_result
from typedmcp_gateway.servers import (
    GatewayServer,
    Leases,
    ServerLease,
    call_options,
    can_be_asked,
    follow_level,
    input_capabilities,
    plain_params,
    wants_logs,
)
from typedmcp_gateway.tasks import TaskIds
from typedmcp_gateway.workers import WorkerCalls

__all__ = ["STATE", "Forwarder"]


STATE: Final = "server:"
"""The beginning of a state that a server gave, as the gateway passes it on; the name of the server follows."""
_URLS: Final = "urls"
"""The state of a call that is repeated after URLs were opened."""


class Forwarder:
    """Forwards requests, and keeps the calls that wait for answers of their clients."""

    def __init__(
        self,
        leases: Leases,
        parked: ParkedCalls,
        answer_seconds: float,
        describe: Callable[[GatewayServer], Awaitable[None]],
        task_ids: TaskIds,
        workers: WorkerCalls | None,
        *,
        tells_causes: bool = False,
    ) -> None:
        self._leases = leases
        self._parked = parked
        self._answer_seconds = answer_seconds
        self._task_ids = task_ids
        self._describe = describe
        """Connects to a server, so that its revision is known."""
        self._workers = workers
        """Passes attempts to other workers; None if there is one."""
        self._tells_causes = tells_causes
        self._worker = "" if workers is None else workers.worker

    def forward(
        self, server: GatewayServer, params: Any, ctx: Context, caller: GatewayCaller, *, is_plain: bool = True
    ) -> Awaitable[Any]:
        """Return the result of a request at a server: typed, in plain JSON, encoded, or an `InputRequiredResult`.

        Results are encoded or plain JSON if `is_plain` and the server speaks the revision of the request.

        Raises `RemoteError` for the error response of the server, and if it cannot be reached.
        """
        state: str | None = getattr(params, "request_state", None)
        if state is None and server.description is not None:
            if server.revision != ctx.revision:
                server = server.spoken_to(ctx.revision)
            return self._begin(server, params, ctx, caller, None, is_plain=is_plain)
        return self._continue(server, params, ctx, caller, state, is_plain=is_plain)

    async def _continue(
        self,
        server: GatewayServer,
        params: Any,
        ctx: Context,
        caller: GatewayCaller,
        state: str | None,
        *,
        is_plain: bool,
    ) -> Any:
        """Forward a request that continues another one, or that is the first one for a server."""
        answers: dict[str, Any] = getattr(params, "input_responses", None) or {}
        owner = self._parked.worker_of(state)
        if state is not None and owner is not None:
            if self._workers is not None and owner not in ("", self._workers.worker):
                return await self._workers.resume(owner, state, ctx, caller.key, answers)
            return await self._parked.resume(state, caller.key, ctx, answers)
        if state == _URLS and any(answer.action != "accept" for answer in answers.values()):
            raise RemoteError(INTERNAL_ERROR, "the server needs a URL to be opened, which was not accepted")
        if server.description is None:
            await self._require_description(server, ctx)
        server = server.spoken_to(ctx.revision)
        mark = f"{STATE}{server.name}:"
        own = state.removeprefix(mark) if state is not None and state.startswith(mark) else None
        return await self._begin(server, params, ctx, caller, own, is_plain=is_plain)

    def _begin(
        self,
        server: GatewayServer,
        params: Any,
        ctx: Context,
        caller: GatewayCaller,
        state: str | None,
        *,
        is_plain: bool,
    ) -> Awaitable[Any]:
        """Make a call at a server. It has a task of its own if its client may be asked something meanwhile."""
        capabilities = input_capabilities(ctx)
        can_ask = bool(capabilities) and ctx.accepts_input and can_be_asked(capabilities)
        call = ForwardedCall(ctx, caller, can_ask=can_ask, worker=self._worker)
        making = self._send(server, params, call, capabilities, state, is_plain=is_plain)
        if not can_ask or server.is_stateless:
            return making
        call.start(making)
        return self._parked.step(call)

    async def _require_description(self, server: GatewayServer, ctx: Context) -> None:
        """Connect to a server that could not be reached so far, once for all calls: each would open a connection.

        Raises `RemoteError` if that fails. With credentials of each principal, the call goes on with those.
        """
        await self._describe(server)
        error = server.error
        if server.description is None and isinstance(error, Error) and not self._leases.has_credentials:
            raise self._unavailable(server, ctx, error, _reason(error)) from error

    async def _send(
        self,
        server: GatewayServer,
        params: Any,
        call: ForwardedCall,
        capabilities: dict[str, Any],
        state: str | None,
        *,
        is_plain: bool,
    ) -> Any:
        """Make a call at a server. `state` is the state that the server gave for the next attempt.

        Members that the schema does not know survive in an encoded result.
        """
        ctx = call.ctx
        lease: ServerLease | None = None
        try:
            lease = self._leases.lease(server, call.caller, capabilities, call, wants_logs=wants_logs(ctx))
            with lease if lease.try_enter() else await lease.enter():
                if not server.is_stateless:
                    await follow_level(lease, ctx)
                client, method = lease.client, ctx.method
                options = call_options(server, call, capabilities, self._answer_seconds if call.can_ask else None)
                if is_plain and server.revision == ctx.revision:
                    plain = plain_params(ctx, params, state)
                    if "task" in plain and FEATURES[client.revision].has_tasks:
                        del plain["task"]  # the gateway declares no tasks there, so the call is a usual one
                    result = pass_result(client, method, await client.send_raw(method, plain, **options), ctx)
                else:
                    if hasattr(params, "request_state"):
                        params = msgspec.structs.replace(params, request_state=state)
                    result = await client.send(methods.CLIENT_REQUESTS[method], params, rounds=0, **options)
                return result if result.__class__ is Raw else self._marked(result, server, ctx, lease)
        except RemoteError as error:
            if lease is not None and lease.refuses_revision(error):
                newest = server.refuse()
                ctx.report(f"server {server.name!r} names {server.revision} as supported and refused it")
                return await self._send(newest, params, call, capabilities, state, is_plain=is_plain)
            if isinstance(error, UnsupportedVersionError):
                raise self._unavailable(server, ctx, error, "cannot be called: no common revision") from error
            if error.code == URL_ELICITATION_REQUIRED and ctx.is_modern:
                return _url_requests(error)
            raise
        except Error as error:
            raise self._unavailable(server, ctx, error, _reason(error)) from error

    def _marked(self, result: Any, server: GatewayServer, ctx: Context, lease: ServerLease) -> Any:
        """Mark the state of a server in an `InputRequiredResult`, and the id of a task, and keep the server."""
        if isinstance(result, AddedResult):
            lease.keep(self._answer_seconds)
            return self._task_ids.expose_created(result, server, ctx)
        if isinstance(result, structs.InputRequiredResult) and result.request_state is not None:
            lease.keep(self._answer_seconds)
            return msgspec.structs.replace(result, request_state=f"{STATE}{server.name}:{result.request_state}")
        return result

    def _unavailable(self, server: GatewayServer, ctx: Context, error: Error, reason: str) -> RemoteError:
        text = f"server {server.name!r}: {error}"
        if isinstance(error, RequestTimeoutError) and error.limit is not None:  # it says nothing about the server
            ctx.config.report(Diagnostic(DiagnosticKind.LIMIT_REACHED, text, ctx.method, ctx.id))
        else:
            server.error = error if isinstance(error, ConnectionLostError) else server.error
            ctx.report(text, error)
        cause = f": {error}" if self._tells_causes else ""
        return RemoteError(INTERNAL_ERROR, f"the server {server.name!r} {reason}{cause}")

    # Methods and notifications of extensions

    async def forward_plain(
        self, server: GatewayServer, params: dict[str, Raw], ctx: Context, caller: GatewayCaller
    ) -> Any:
        """Return the result of a method that only extensions know, encoded or in plain JSON.

        Raises `RemoteError` for the error response of the server, and if it cannot be reached.
        """
        return await self._lease_plain(server, ctx, caller, lambda lease, call: send_plain(lease, params, call))

    async def notify_plain(
        self, server: GatewayServer, params: dict[str, Any], ctx: Context, caller: GatewayCaller
    ) -> None:
        """Send a notification that only extensions know. Raises `RemoteError` if the server cannot be reached."""

        async def notify(lease: ServerLease, call: ForwardedCall) -> None:
            options = call_options(server, call, input_capabilities(ctx))
            sent: dict[str, Any] = {name: options.get(name) for name in ("meta", "capabilities")}
            await lease.client.notify(ctx.method, params, **sent)

        await self._lease_plain(server, ctx, caller, notify)

    async def _lease_plain(
        self,
        server: GatewayServer,
        ctx: Context,
        caller: GatewayCaller,
        use: Callable[[ServerLease, ForwardedCall], Awaitable[Any]],
    ) -> Any:
        if server.description is None:
            await self._require_description(server, ctx)
        server = server.spoken_to(ctx.revision)
        if not server.extensions:
            raise MethodNotFoundError(ctx.method)
        call = ForwardedCall(ctx, caller, can_ask=False)
        try:
            lease = self._leases.lease(server, caller, input_capabilities(ctx), call, wants_logs=wants_logs(ctx))
            with await lease.enter():
                if not server.is_stateless:
                    await follow_level(lease, ctx)
                if ctx.method in TASK_NAMES:
                    lease.keep(self._answer_seconds)
                return await use(lease, call)
        except UnsupportedVersionError as error:
            raise self._unavailable(server, ctx, error, "cannot be called: no common revision") from error
        except RemoteError:
            raise
        except Error as error:
            raise self._unavailable(server, ctx, error, _reason(error)) from error


class _UrlElicitation(msgspec.Struct):
    """A URL to open, in the error -32042 of 2025-11-25."""

    message: str
    url: str


class _UrlElicitations(msgspec.Struct):
    elicitations: list[_UrlElicitation]


def _url_requests(error: RemoteError) -> Any:
    """Return the URLs in an error of 2025-11-25 as input requests. The call is repeated after them."""
    try:
        urls = msgspec.convert(error.data, _UrlElicitations).elicitations
    except msgspec.ValidationError:
        raise error from None
    requests: dict[str, Any] = {
        f"elicitation/create#{number}": structs.ElicitRequest(
            params=structs.ElicitRequestURLParams(message=e.message, url=e.url)
        )
        for number, e in enumerate(urls, 1)
    }
    return structs.InputRequiredResult(result_type="input_required", input_requests=requests, request_state=_URLS)


def _reason(error: Error) -> str:
    """Return what a client may know of a failure. The operator gets the error itself."""
    if isinstance(error, RequestTimeoutError):
        if error.limit is not None:
            return f"was not asked within {error.seconds:g} s: {error.limit}"
        return f"gave no answer within {error.seconds:g} s"
    if isinstance(error, AuthorizationRequiredError | SignInError):
        return "does not accept the gateway's credentials"
    if isinstance(error, ConnectionLostError):
        return "cannot be reached, or the connection was lost before its answer"
    if isinstance(error, ProtocolError):
        return "sent an answer that is not valid"
    return "cannot be called"
