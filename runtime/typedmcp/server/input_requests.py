"""Input requests: a handler asks the client for input within a request.

On modern revisions the result of an attempt lists the input requests, and the client repeats its request with the
answers. https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
On legacy revisions the server sends requests of its own, and the handler waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from mcpspec.support.converters import DroppedFields
from mcpspec.support.error_text import format_value
from mcpspec.support.objects import is_object
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallLostError,
    ConnectionLostError,
    DecodeError,
    InputUnavailableError,
    InvalidParamsError,
    MissingCapabilityError,
    RemoteError,
    RequestTimeoutError,
    UsageError,
)
from typedmcp.protocol.backends import check_struct, to_model, to_plain, to_struct
from typedmcp.protocol.codec import Notification
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, RequestId
from typedmcp.protocol.pending import Call, PendingRequests
from typedmcp.revisions.capabilities import has_sampling_context, known_capabilities, missing_capabilities
from typedmcp.revisions.conversions import downgrade
from typedmcp.revisions.input_requests import downgrade_request, upgrade_result
from typedmcp.server.attempts import Attempt, AttemptState, InputRequested, is_input_required
from typedmcp.server.calls import ServedCalls
from typedmcp.server.context import Context
from typedmcp.server.state_token import VerifiedState, state_binding
from typedmcp.transports.concurrency import is_awaitable
from typedmcp_schemas.nesting import encode_json

__all__ = ["InputRequests", "check_requests"]

D = dialect.structs

_RECIPE = "to ask on an event, let a tool wait for it and ask (docs/servers.md#asking-on-an-event)"
_NO_STATE = "without requestState, no question was asked"


class InputRequests:
    """Asks the client of a session for input."""

    __slots__ = ("_calls", "_config", "_session", "pending")

    def __init__(self, calls: ServedCalls) -> None:
        self.pending: PendingRequests = PendingRequests()
        """The requests to the client that wait for a response."""
        self._calls = calls
        self._config = calls.engine.config
        self._session = calls.session

    def restore(self, ctx: Context, params: Any) -> Coroutine[Any, Any, None] | None:
        """Restore the answers of earlier attempts, and the handler's own state, from the members of a request.

        Answers to questions that were not asked are left out and reported. Returns what has to be awaited before the
        handler is called, if anything. Raises `InvalidParamsError` for a state that this server did not sign for this
        request.
        """
        if not ctx.metadata.features.has_input_requests or not ctx.method_codec.accepts_input:
            return None
        token, responses = params.request_state, params.input_responses
        if not isinstance(token, str):
            if is_object(responses):
                self._report_ignored(ctx, DiagnosticKind.UNEXPECTED_RESPONSE, dict.fromkeys(responses, _NO_STATE))
                params.input_responses = None
            return None
        signer = self._config.state_signer
        verified = signer.verify(token, _binding(ctx), time.time())
        attempt = ctx.attempt = Attempt(_decode_state(verified))
        params.request_state = attempt.handler_state
        if is_object(responses):
            unasked, unfit = attempt.take_answers(responses)
            self._report_ignored(ctx, DiagnosticKind.UNEXPECTED_RESPONSE, unasked)
            self._report_ignored(ctx, DiagnosticKind.INVALID_DATA, unfit)
            taken = {key: answer for key, answer in responses.items() if key not in unasked and key not in unfit}
            params.input_responses = taken or None
        return self._use_once(verified) if signer.single_use else None

    async def _use_once(self, state: VerifiedState) -> None:
        """Record the use of a state that is valid once. Raises `InvalidParamsError` if it was used already."""
        if not await self._calls.engine.use_once(state.id, max(1.0, state.expires - time.time())):
            text = "requestState: it was used already; call again without it"
            raise InvalidParamsError(text, {"path": "params.requestState"})

    def _report_ignored(self, ctx: Context, kind: DiagnosticKind, reasons: Mapping[str, str]) -> None:
        """Report answers that do not count."""
        if reasons:
            key, why = next(iter(reasons.items()))
            others = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
            text = f"inputResponses: the answer to {format_value(key)} is ignored{others}: {why}"
            self._config.report(Diagnostic(kind, text, ctx.method, ctx.id, list(reasons)))

    async def ask(self, ctx: Context, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Return the client's results for some requests, by the same keys, as `Context.ask` describes."""
        if ctx.id is None or not ctx.method_codec.accepts_input:
            raise InputUnavailableError(f"{ctx.method} cannot ask the client for input; {_RECIPE}")
        if ctx.is_answered:
            raise InputUnavailableError(f"{ctx.method} has its response already: {_RECIPE}")
        if ctx.cancelled:
            raise InputUnavailableError(f"{ctx.method} was cancelled: it cannot ask the client for input")
        requests = self._check(ctx, requests)
        if not ctx.metadata.features.has_input_requests:
            return await self._call_client(ctx, requests)
        attempt = ctx.attempt = ctx.attempt or Attempt()
        before = len(attempt.changed)
        answers = {key: attempt.answer_to(key, request) for key, request in requests.items()}
        if changed := [*attempt.changed][before:]:
            why = "the handler asks something else now than in the last attempt"
            self._report_ignored(ctx, DiagnosticKind.INVALID_DATA, dict.fromkeys(changed, why))
        if missing := {key: requests[key] for key, answer in answers.items() if answer is None}:
            raise InputRequested(missing)
        return answers

    def respond(self, ctx: Context, result: Any) -> None:
        """Ask for the input that a handler requests with `InputRequiredResult`."""
        if ctx.cancelled:
            return
        try:
            result = to_struct(result)
            if not ctx.method_codec.accepts_input:
                raise UsageError(f"{ctx.method} cannot ask the client for input")
            requests = self._check(ctx, result.input_requests or {})
            if not ctx.metadata.features.has_input_requests:
                self._calls.spawn(ctx, self._ask_and_repeat(ctx, requests, result.request_state))
                return
            encoded = self._signed_result(ctx, requests, result)
        except Exception as error:
            self._calls.fail(ctx, error)
            return
        self._calls.send_result(ctx, encoded)

    def _check(self, ctx: Context, requests: Mapping[str, Any]) -> Mapping[str, Any]:
        """Check requests as `check_requests` does. Raises `RemoteError` without the session that they need."""
        if self._session.is_shared and not ctx.metadata.features.has_input_requests:
            text = f"{ctx.method} asks for input, which on {ctx.revision} needs a session; it has sessions=False"
            raise RemoteError(INVALID_REQUEST, text)
        return check_requests(ctx, requests)

    # Modern revisions

    def _signed_result(self, ctx: Context, requests: Mapping[str, Any], result: D.InputRequiredResult) -> Any:
        config, attempt = self._config, ctx.attempt or Attempt()
        if attempt.rounds >= config.limits.input_rounds:
            raise self._too_many_rounds(attempt.changed)
        content = attempt.next_state(requests, result.request_state)
        signed = D.InputRequiredResult(
            result_type="input_required",
            input_requests=dict(requests) or None,
            request_state=config.state_signer.sign(content, _binding(ctx), time.time()),
            meta={**config.result_meta, **(result.meta or {})},
        )
        return downgrade(signed, ctx.revision, [])

    def _too_many_rounds(self, changed: Iterable[str] = ()) -> RemoteError:
        text = f"no result after {self._config.limits.input_rounds} rounds of input requests"
        for key in changed:
            text += f"; the question {format_value(key)} changed from attempt to attempt, so no answer to it counted"
        return RemoteError(INTERNAL_ERROR, text)

    # Legacy revisions

    async def _ask_and_repeat(self, ctx: Context, requests: Mapping[str, Any], state: str | None) -> Any:
        """Send the requests of an `InputRequiredResult`, and call the handler again with the answers."""
        config = self._config
        for _ in range(config.limits.input_rounds):
            answers = await self._call_client(ctx, requests)
            params = ctx.params
            if config.codec == "msgspec":
                params.input_responses, params.request_state = answers, state
            else:
                params.input_responses = {key: to_model(answer) for key, answer in answers.items()}
                if state is not None:
                    params.request_state = state
            made: object = self._calls.call_handler(ctx, params)
            made = await made if is_awaitable(made) else made
            if not is_input_required(made):
                return made
            result = to_struct(made)
            requests, state = check_requests(ctx, result.input_requests or {}), result.request_state
        raise self._too_many_rounds()

    async def _call_client(self, ctx: Context, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Send requests to the client, all at once, and wait for the results."""
        observer = self._calls.observer
        call = self._call_once if observer is None else partial(observer.on_ask, self._call_once)
        if len(requests) == 1:
            return {key: await call(ctx, request) for key, request in requests.items()}
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {key: group.create_task(call(ctx, request)) for key, request in requests.items()}
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return {key: task.result() for key, task in tasks.items()}

    async def _call_once(self, ctx: Context, request: Any) -> Any:
        """Send one request to the client, and return its result in the dialect."""
        method = request.method
        dropped: DroppedFields = []
        params = None if request.params is None else downgrade_request(method, request.params, ctx.revision, dropped)
        self._config.report_dropped(dropped, method, ctx.revision)
        loop = asyncio.get_running_loop()
        call = self.pending.add_call(method, loop.create_future(), loop.time())
        id = self._session.home.request_id(call.id)
        if not self._session.send(ctx, Notification("2.0", method, _with_request_meta(ctx, params), id)):
            self.pending.cancel_call(call.id)
            raise InputUnavailableError(f"{method}: the client cannot be reached")
        value = await self._wait_for_response(ctx, call, id)
        try:
            result = upgrade_result(method, value, ctx.revision)
        except DecodeError as error:
            raise RemoteError(INTERNAL_ERROR, f"{method}: the client sent a wrong result: {error}") from error
        form: Any = getattr(params, "requested_schema", None)  # as it was sent: older forms have fewer kinds of fields
        from typedmcp.protocol.input_checks import find_answer_fault  # here, since most servers never ask

        if form is not None and (fault := find_answer_fault(to_builtins(form), result)) is not None:
            raise InvalidParamsError(f"the answer does not fit the form: {fault}")
        return result

    async def _wait_for_response(self, ctx: Context, call: Call, id: RequestId) -> Any:
        """Return the result of a request to the client in plain JSON. Cancels the request if it takes too long."""
        seconds = self._config.input_timeout
        try:
            async with asyncio.timeout(seconds):
                return await call.owner
        except (asyncio.CancelledError, TimeoutError) as error:
            if self.pending.cancel_call(call.id):
                self._session.send(ctx, Notification("2.0", "notifications/cancelled", {"requestId": id}))
            if isinstance(error, TimeoutError):
                raise RequestTimeoutError(seconds or 0.0).attach_call(call.method, id) from None
            raise

    def handle_response(self, number: RequestId | None, frame: Frame) -> None:
        """Pass the client's response to the call with this number; report a response without a call."""
        call, problem = self.pending.resolve(number, strict=self._config.strict)
        if problem is not None:
            text = f"a response with the id {frame.id!r}"
            method = None if call is None else call.method
            self._config.report(Diagnostic(problem, text, method, frame.id, frame.value))
        if call is None or call.owner.done():
            return
        if (error := frame.value.get("error")) is None:
            call.owner.set_result(frame.value["result"])
        else:
            call.owner.set_exception(RemoteError.from_wire(error).attach_call(call.method, call.id))

    def fail_all(self, reason: str) -> None:
        """Fail all requests to the client, since no more responses are read."""
        for call in list(self.pending.calls.values()):
            self.pending.cancel_call(call.id)
            if not call.owner.done():
                call.owner.set_exception(_UnansweredError(reason).attach_call(call.method, call.id))
                call.owner.exception()  # the task that waits for it may have been cancelled


class _UnansweredError(CallLostError, ConnectionLostError):
    """A question gets no answer any more. If the handler does not catch it, the call gets the error of a lost call."""


def check_requests(ctx: Context, requests: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check input requests, and return them as they may be sent.

    Raises `UsageError` for those that the specification forbids, and for too many of them. Raises
    `MissingCapabilityError` if the client has not declared what one of them needs.
    """
    from typedmcp.protocol.input_checks import find_request_fault  # here, since most servers never ask

    limit = ctx.config.limits.input_requests
    if len(requests) > limit:
        raise UsageError(f"{len(requests)} input requests in one round; the limit is {limit} (input_requests)")
    declared = known_capabilities(to_builtins(ctx.client_capabilities), ctx.revision)
    for key, request in requests.items():
        encode_json(to_plain(request))  # raises here, where the handler asks, rather than when it is sent
        try:
            check_struct(to_struct(request))
        except DecodeError as error:
            raise UsageError(f"the input request {format_value(key)} is wrong: {error}") from None
        if missing := missing_capabilities(request, declared):
            raise MissingCapabilityError(missing)
        if (fault := find_request_fault(request)) is not None:
            raise UsageError(f"the input request {format_value(key)} is wrong: {fault}")
    return {key: _without_context(ctx, request, declared) for key, request in requests.items()}


def _without_context(ctx: Context, request: Any, declared: dict[str, Any]) -> Any:
    """Leave out `includeContext` if the client has not declared that it heeds it, and report that."""
    if request.method != "sampling/createMessage" or "context" in declared.get("sampling", {}):
        return request
    params = to_struct(request.params)
    if params.include_context == "none" or not has_sampling_context(ctx.revision):
        return request
    text = "params.includeContext: the client has not declared sampling.context"
    ctx.config.report(Diagnostic(DiagnosticKind.DROPPED, text, request.method, ctx.id, params.include_context))
    return D.CreateMessageRequest(params=msgspec.structs.replace(params, include_context="none"))


def _binding(ctx: Context) -> bytes:
    # Of the parameters as the client sent them: the handler may have changed its own.
    try:
        params = msgspec.json.decode(ctx.raw).get("params", {})
    except ValueError as error:  # in a member that the protocol does not have, and which was skipped before
        raise RemoteError(PARSE_ERROR, f"the message is not JSON: {error}") from error
    return state_binding(ctx.method, params, None if ctx.principal is None else ctx.principal.key)


def _with_request_meta(ctx: Context, params: Any) -> Any:
    """Return the parameters of a request to the client, with the `_meta` that the request in progress gives them."""
    if ctx.request_meta is None:
        return params
    plain: dict[str, Any] = {} if params is None else to_builtins(params)
    return {**plain, "_meta": {**plain.get("_meta", {}), **ctx.request_meta}}


def _decode_state(state: VerifiedState) -> AttemptState:
    try:
        return msgspec.json.decode(state.content, type=AttemptState)
    except msgspec.ValidationError as error:
        text = "requestState: another version of the server has issued it; call again without it"
        raise InvalidParamsError(text, {"path": "params.requestState"}) from error
