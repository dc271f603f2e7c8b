"""Input requests: a handler asks the client for input within a request.

On modern revisions the result of an attempt lists the input requests, and the client repeats its request with the
answers. https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
On legacy revisions the server sends requests of its own, and the handler waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol, cast

import msgspec

from mcpspec.support.converters import DroppedFields
from mcpspec.support.objects import is_object
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.errors import (
    INTERNAL_ERROR,
    DecodeError,
    InputUnavailableError,
    MissingCapabilityError,
    RemoteError,
    UsageError,
)
from typedmcp.protocol.backends import to_model, to_plain, to_struct
from typedmcp.protocol.codec import Notification
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.protocol.framing import Frame, RequestId
from typedmcp.protocol.pending import PendingRequests
from typedmcp.revisions.features import structs_of
from typedmcp.revisions.input_requests import downgrade_request, upgrade_result
from typedmcp.revisions.rules import downgrade
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Attempt, Context
from typedmcp.server.state_token import state_binding
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["InputRequestBackend", "InputRequested", "InputRequests", "is_input_required", "requested_input"]

D = dialect.structs


class InputRequested(BaseException):  # control flow, not an error: the client repeats its request
    """Ends an attempt on a modern revision. The client repeats its request with the requested input.

    It derives from `BaseException`, so that `except Exception` in a handler does not catch it.
    """

    def __init__(self, requests: dict[str, Any]) -> None:
        super().__init__(requests)
        self.requests = requests


class InputRequestBackend(Protocol):
    """The part of a dispatcher that input requests use."""

    @property
    def config(self) -> ServerConfig: ...
    @property
    def can_ask(self) -> bool: ...
    @property
    def pending(self) -> PendingRequests: ...
    def outgoing_request_id(self, number: int) -> RequestId: ...
    def send(self, ctx: Context | None, message: msgspec.Struct) -> bool: ...
    def call_handler(self, ctx: Context, *args: Any) -> Any: ...
    def spawn(self, ctx: Context, result: Coroutine[Any, Any, Any]) -> None: ...
    def send_result(self, ctx: Context, encoded: msgspec.Struct) -> None: ...
    def respond_error(self, ctx: Context, error: BaseException) -> None: ...
    def report(self, diagnostic: Diagnostic) -> None: ...
    def report_dropped(self, dropped: DroppedFields, method: str, revision: str) -> None: ...


class InputRequests:
    """Asks the client of a dispatcher for input."""

    def __init__(self, backend: InputRequestBackend) -> None:
        self._backend = backend

    def restore(self, ctx: Context, params: Any) -> None:
        """Restore the answers of earlier attempts, and the handler's own state, from the members of a request.

        Raises `InvalidParamsError` for a state that this server did not sign for this request.
        """
        if not ctx.metadata.features.has_input_requests or not ctx.method_codec.accepts_input:
            return
        token, responses = params.request_state, params.input_responses
        if not isinstance(token, str) and not is_object(responses):
            return
        attempt = ctx.attempt = Attempt()
        if isinstance(token, str):
            content = self._backend.config.state_signer.verify(token, _binding(ctx), time.time())
            attempt.answers = content["answers"]
            attempt.rounds = content["rounds"]
            params.request_state = content["state"]
        if is_object(responses):
            attempt.answers = {**attempt.answers, **{key: to_plain(value) for key, value in responses.items()}}

    async def ask(self, ctx: Context, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Return the client's results for some requests, by the same keys, as `Context.ask` describes."""
        if ctx.id is None or not ctx.method_codec.accepts_input:
            raise InputUnavailableError(f"{ctx.method} cannot ask the client for input")
        if ctx.is_answered:
            raise InputUnavailableError(f"{ctx.method} has its response already: it cannot ask the client for input")
        _check_capabilities(ctx, requests)
        if not ctx.metadata.features.has_input_requests:
            if not self._backend.can_ask:
                raise InputUnavailableError("a client without a session cannot be asked for input")
            return await self._call_client(ctx, requests)
        answers = {} if ctx.attempt is None else ctx.attempt.answers
        results: dict[str, Any] = {}
        for key, request in requests.items():
            if key in answers and (result := _decode_answer(request.method, answers[key])) is not None:
                results[key] = result
        if missing := {key: request for key, request in requests.items() if key not in results}:
            raise InputRequested(missing)
        return results

    def respond(self, ctx: Context, result: Any) -> None:
        """Ask for the input that a handler requests with `InputRequiredResult`."""
        try:
            result = to_struct(result)
            if not ctx.method_codec.accepts_input:
                raise UsageError(f"{ctx.method} cannot ask the client for input")
            _check_capabilities(ctx, _requests_of(result))
            if not ctx.metadata.features.has_input_requests:
                self._backend.spawn(ctx, self._ask_and_repeat(ctx, result))
                return
            encoded = self._signed_result(ctx, result)
        except Exception as error:
            self._backend.respond_error(ctx, error)
            return
        self._backend.send_result(ctx, encoded)

    # Modern revisions

    def _signed_result(self, ctx: Context, result: D.InputRequiredResult) -> Any:
        config, attempt = self._backend.config, ctx.attempt or Attempt()
        if attempt.rounds >= config.limits.input_rounds:
            raise self._too_many_rounds()
        content = {"answers": attempt.answers, "state": result.request_state, "rounds": attempt.rounds + 1}
        signed = D.InputRequiredResult(
            result_type="input_required",
            input_requests=result.input_requests,
            request_state=config.state_signer.sign(content, _binding(ctx), time.time()),
            meta={**config.result_meta, **(result.meta or {})},
        )
        return downgrade(signed, structs_of(ctx.revision).InputRequiredResult, ctx.revision, [])

    def _too_many_rounds(self) -> RemoteError:
        rounds = self._backend.config.limits.input_rounds
        return RemoteError(INTERNAL_ERROR, f"no result after {rounds} rounds of input requests")

    # Legacy revisions

    async def _ask_and_repeat(self, ctx: Context, result: D.InputRequiredResult) -> Any:
        """Send the requests of an `InputRequiredResult`, and call the handler again with the answers."""
        backend = self._backend
        for _ in range(backend.config.limits.input_rounds):
            answers = await self._call_client(ctx, _requests_of(result))
            params = ctx.params
            if backend.config.codec == "msgspec":
                params.input_responses, params.request_state = answers, result.request_state
            else:
                params.input_responses = {key: to_model(answer) for key, answer in answers.items()}
                if result.request_state is not None:
                    params.request_state = result.request_state
            made: object = backend.call_handler(ctx, params)
            made = await made if is_awaitable(made) else made
            if not is_input_required(made):
                return made
            result = to_struct(made)
            _check_capabilities(ctx, _requests_of(result))
        raise self._too_many_rounds()

    async def _call_client(self, ctx: Context, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Send requests to the client, all at once, and wait for the results."""
        if len(requests) == 1:
            return {key: await self._call_once(ctx, request) for key, request in requests.items()}
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {key: group.create_task(self._call_once(ctx, request)) for key, request in requests.items()}
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return {key: task.result() for key, task in tasks.items()}

    async def _call_once(self, ctx: Context, request: Any) -> Any:
        """Send one request to the client, and return its result in the dialect."""
        backend, method = self._backend, request.method
        dropped: DroppedFields = []
        params = None if request.params is None else downgrade_request(method, request.params, ctx.revision, dropped)
        backend.report_dropped(dropped, method, ctx.revision)
        loop = asyncio.get_running_loop()
        call = backend.pending.add_call(method, loop.create_future(), loop.time())
        id = backend.outgoing_request_id(call.id)
        if not backend.send(ctx, Notification("2.0", method, params, id)):
            backend.pending.cancel_call(call.id)
            raise InputUnavailableError(f"{method}: the client cannot be reached")
        try:
            value = await call.owner
        except asyncio.CancelledError:
            if backend.pending.cancel_call(call.id):
                backend.send(ctx, Notification("2.0", "notifications/cancelled", {"requestId": id}))
            raise
        try:
            return upgrade_result(method, value, ctx.revision)
        except DecodeError as error:
            raise RemoteError(INTERNAL_ERROR, f"{method}: the client sent a wrong result: {error}") from error

    def handle_response(self, number: RequestId | None, frame: Frame) -> None:
        """Pass the client's response to the call with this number; report a response without a call."""
        call, problem = self._backend.pending.resolve(number)
        if problem is not None:
            text = f"a response with the id {frame.id!r}"
            method = None if call is None else call.method
            self._backend.report(Diagnostic(problem, text, method, frame.id, frame.value))
        if call is None or call.owner.done():
            return
        error = frame.value.get("error")
        if error is None:
            call.owner.set_result(frame.value["result"])
        else:
            call.owner.set_exception(RemoteError.from_wire(error).attach_call(call.method, call.id))


def is_input_required(result: object) -> bool:
    """Return whether a handler's result requests input, in either library."""
    return type(result).__name__ == "InputRequiredResult" and hasattr(result, "input_requests")


def requested_input(error: BaseException) -> dict[str, Any] | None:
    """Return the input requests that ended a handler, also within exception groups; None for other errors."""
    if isinstance(error, InputRequested):
        return error.requests
    if not isinstance(error, BaseExceptionGroup):
        return None
    requests: dict[str, Any] = {}
    group = cast("BaseExceptionGroup[BaseException]", error)
    for each in group.exceptions:
        found = requested_input(each)
        if found is None:
            return None
        requests.update(found)
    return requests


def _binding(ctx: Context) -> bytes:
    # Of the parameters as the client sent them: the handler may have changed its own.
    params = msgspec.json.decode(ctx.raw).get("params", {})
    return state_binding(ctx.method, params, ctx.principal)


def _requests_of(result: D.InputRequiredResult) -> Mapping[str, Any]:
    return result.input_requests or {}


def _decode_answer(method: str, answer: Any) -> Any:
    """Decode an answer, or return None if it is invalid, so that it is requested again."""
    try:
        return D.from_builtins(answer, dialect.methods.INPUT_REQUESTS[method].result)
    except DecodeError:
        return None


def _check_capabilities(ctx: Context, requests: Mapping[str, Any]) -> None:
    """Raise `MissingCapabilityError` if the client has not declared what an input request needs."""
    declared = to_builtins(ctx.client_capabilities)
    for request in requests.values():
        if missing := _missing_capabilities(_needed_capabilities(request, declared), declared):
            raise MissingCapabilityError(missing)


def _needed_capabilities(request: Any, declared: dict[str, Any]) -> dict[str, Any]:
    if request.method == "roots/list":
        return {"roots": {}}
    if request.method == "elicitation/create":
        if request.params.mode == "url":
            return {"elicitation": {"url": {}}}
        # A client that declares elicitation without modes means forms.
        return {"elicitation": {"form": {}} if declared.get("elicitation") else {}}
    has_tools = request.params.tools is not None or request.params.tool_choice is not None
    return {"sampling": {"tools": {}} if has_tools else {}}


def _missing_capabilities(needed: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    missing: dict[str, Any] = {}
    for name, parts in needed.items():
        if name not in declared:
            missing[name] = parts
        elif any(part not in declared[name] for part in parts):
            missing[name] = {part: {} for part in parts if part not in declared[name]}
    return missing
