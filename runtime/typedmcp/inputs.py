"""Input from the client in the midst of a call: awaited on older wires, asked for between attempts on modern ones.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_object
from mcpspec._support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.backends import as_model, as_struct, plain
from typedmcp.codec import Notification
from typedmcp.dispatch import is_awaitable
from typedmcp.edge.convert import Lost
from typedmcp.edge.revisions import types
from typedmcp.edge.rules import older_input
from typedmcp.errors import INTERNAL_ERROR, DecodeError, InputUnavailable, MissingCapability, RemoteError, UsageError
from typedmcp.peer import Report
from typedmcp.sealer import binding
from typedmcp.wire import Frame, RequestId

if TYPE_CHECKING:
    from typedmcp.context import Context
    from typedmcp.engine import Engine

__all__ = ["Attempt", "InputRequested", "Inputs", "is_input_required"]

D = dialect.structs

RESULTS: dict[str, Any] = {
    name: record.result for name, record in dialect.methods.METHODS.items() if record.kind == "input"
}
"""What each request for input is answered with."""


class InputRequested(BaseException):  # no error: the attempt ends here and is made again
    """Ends an attempt on a modern wire: the client is asked, and calls again with the answers.

    Derived from `BaseException`, so that a handler's `except Exception` does not take it for a failure.
    """

    def __init__(self, requests: dict[str, Any]) -> None:
        super().__init__(requests)
        self.requests = requests


class Attempt:
    """What an attempt at a call knows of those before it."""

    __slots__ = ("answers", "ordinals", "rounds")

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        """The client's answers by key, this round's and earlier ones, as plain JSON."""
        self.rounds: int = 0
        self.ordinals: dict[str, int] = {}

    def key(self, method: str) -> str:
        """The key of a question that was given none: the how-manyth of its kind it is."""
        self.ordinals[method] = number = self.ordinals.get(method, 0) + 1
        return f"{method}#{number}"


class Inputs:
    """Asks the client of one connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, ctx: Context, params: Any) -> None:
        """A call that may ask begins: open the state that it brings back, and give the handler its own.

        Raises `InvalidParams` for a state that is not ours, altered, or another request's.
        """
        if not ctx.is_modern or not ctx.entry.takes_input:
            return
        sealed, responses = params.request_state, params.input_responses
        if not isinstance(sealed, str) and not is_object(responses):
            return
        attempt = ctx.attempt = Attempt()
        if isinstance(sealed, str):
            service = self._engine.service
            content = service.sealer.open(sealed, self._binding(ctx), time.time())
            attempt.answers = content["answers"]
            attempt.rounds = content["rounds"]
            params.request_state = _unset_like(params) if content["state"] is None else content["state"]
        if is_object(responses):
            attempt.answers = {**attempt.answers, **{key: plain(value) for key, value in responses.items()}}

    def _binding(self, ctx: Context) -> bytes:
        # As the client wrote them: the handler may have changed its own.
        params = msgspec.json.decode(ctx.raw).get("params", {})
        return binding(ctx.method, params, ctx.principal)

    def require(self, ctx: Context, request: Any) -> None:
        """Raise `MissingCapability` where the client has not declared what a request to it needs."""
        declared = to_builtins(ctx.client_capabilities)
        if missing := _lacking(_needed(request, declared), declared):
            raise MissingCapability(missing)

    async def ask(self, ctx: Context, requests: Mapping[str, Any]) -> dict[str, Any]:
        """The answers to some requests, by the same keys. See `Context.ask`."""
        if ctx.id is None or not ctx.entry.takes_input:
            raise InputUnavailable(f"{ctx.method} cannot ask the client for input")
        if ctx.ended:
            raise InputUnavailable(f"{ctx.method} has been answered: there is nothing to ask for any more")
        for request in requests.values():
            self.require(ctx, request)
        if not ctx.is_modern:
            if not self._engine.can_ask:
                raise InputUnavailable("a client without a session cannot be asked anything")
            return await self._ask_all(ctx, requests)
        attempt = ctx.attempt or Attempt()
        found: dict[str, Any] = {}
        for key, request in requests.items():
            if key in attempt.answers and (answer := _typed(request.method, attempt.answers[key])) is not None:
                found[key] = answer
        if missing := {key: request for key, request in requests.items() if key not in found}:
            raise InputRequested(missing)
        return found

    def answer(self, ctx: Context, result: Any) -> None:
        """A handler needs input, by what it raised or returned: ask for it, the way of the wire."""
        engine = self._engine
        try:
            result = as_struct(result)
            if not ctx.entry.takes_input:
                raise UsageError(f"{ctx.method} cannot ask the client for input")
            for request in _requests(result).values():
                self.require(ctx, request)
            if not ctx.is_modern:
                engine.spawn(ctx, self._ask_and_repeat(ctx, result))
                return
            encoded = self._sealed(ctx, result)
        except Exception as error:
            engine.failed(ctx, error)
            return
        engine.send_result(ctx, encoded)

    def _sealed(self, ctx: Context, result: D.InputRequiredResult) -> D.InputRequiredResult:
        service, attempt = self._engine.service, ctx.attempt or Attempt()
        if attempt.rounds >= service.rounds:
            raise RemoteError(INTERNAL_ERROR, f"no result after {service.rounds} rounds of input requests")
        own = None if result.request_state is UNSET else result.request_state
        content = {"answers": attempt.answers, "state": own, "rounds": attempt.rounds + 1}
        made = D.InputRequiredResult(
            result_type="input_required",
            input_requests=result.input_requests,
            request_state=service.sealer.seal(content, self._binding(ctx), time.time()),
        )
        meta = {**service.result_meta, **({} if result.meta is UNSET else result.meta)}
        made.meta = D.from_builtins(meta, D.ResultMetaObject)
        return made

    async def _ask_and_repeat(self, ctx: Context, result: D.InputRequiredResult) -> Any:
        """A handler returned what it wants to know: on an older wire ask for it, then enter the handler again."""
        engine = self._engine
        for _ in range(engine.service.rounds):
            answers = await self._ask_all(ctx, _requests(result))
            params = ctx.params
            if engine.service.codec == "msgspec":
                params.input_responses, params.request_state = answers, result.request_state
            else:
                params.input_responses = {key: as_model(answer) for key, answer in answers.items()}
                if result.request_state is not UNSET:
                    params.request_state = result.request_state
            made: object = engine.enter(ctx, params)
            made = await made if is_awaitable(made) else made
            if not is_input_required(made):
                return made
            result = as_struct(made)
            for request in _requests(result).values():
                self.require(ctx, request)
        raise RemoteError(INTERNAL_ERROR, f"no result after {engine.service.rounds} rounds of input requests")

    async def _ask_all(self, ctx: Context, requests: Mapping[str, Any]) -> dict[str, Any]:
        if len(requests) == 1:
            return {key: await self._ask(ctx, request) for key, request in requests.items()}
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {key: group.create_task(self._ask(ctx, request)) for key, request in requests.items()}
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return {key: task.result() for key, task in tasks.items()}

    async def _ask(self, ctx: Context, request: Any) -> Any:
        """One request to a client of an older revision, and its answer in the dialect."""
        engine, method = self._engine, request.method
        lost: Lost = []
        older = UNSET if request.params is UNSET else older_input(method, request.params, ctx.revision, lost)
        engine.report_lost(lost, method, ctx.revision)
        loop = asyncio.get_running_loop()
        call = engine.peer.call(method, loop.create_future(), loop.time())
        id = engine.call_id(call.id)
        if not engine.send(ctx, Notification("2.0", method, older, id)):
            engine.peer.cancel(call.id)
            raise InputUnavailable(f"{method}: the client cannot be reached")
        try:
            value = await call.owner
        except asyncio.CancelledError:
            if engine.peer.cancel(call.id):
                engine.send(ctx, Notification("2.0", "notifications/cancelled", {"requestId": id}))
            raise
        result = RESULTS[method]
        exact = getattr(types(ctx.revision), result.__name__)
        try:
            return D.from_builtins(to_builtins(from_builtins(value, exact)), result)
        except DecodeError as error:
            raise RemoteError(INTERNAL_ERROR, f"{method}: the client answered wrongly: {error}") from error

    def answered(self, number: RequestId | None, frame: Frame) -> bool:
        """An answer of the client's, to the call of that number. False if there is no such call."""
        engine = self._engine
        call, kind = engine.peer.resolve(number)
        if kind is not None:
            text = f"an answer with the id {frame.id!r}"
            engine.report(Report(kind, text, call.method if call else None, frame.id, frame.value))
        if call is None or call.owner.done():
            return call is not None
        error = frame.value.get("error")
        if error is None:
            call.owner.set_result(frame.value["result"])
        else:
            call.owner.set_exception(RemoteError.of_wire(error).of_call(call.method, call.id))
        return True


def is_input_required(result: object) -> bool:
    """Whether a handler's result asks for input, in either library."""
    return type(result).__name__ == "InputRequiredResult" and hasattr(result, "input_requests")


def _requests(result: D.InputRequiredResult) -> Mapping[str, Any]:
    return {} if result.input_requests is UNSET else result.input_requests


def _typed(method: str, answer: Any) -> Any:
    """An answer as its type; None for one that is none, which is asked for again."""
    try:
        return D.from_builtins(answer, RESULTS[method])
    except DecodeError:
        return None


def _needed(request: Any, declared: dict[str, Any]) -> dict[str, Any]:
    """The capabilities that a request for input needs."""
    if request.method == "roots/list":
        return {"roots": {}}
    if request.method == "elicitation/create":
        if getattr(request.params, "mode", UNSET) == "url":
            return {"elicitation": {"url": {}}}
        # A client that names no mode means forms.
        return {"elicitation": {"form": {}} if declared.get("elicitation") else {}}
    tools = request.params.tools is not UNSET or request.params.tool_choice is not UNSET
    return {"sampling": {"tools": {}} if tools else {}}


def _lacking(needed: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    missing: dict[str, Any] = {}
    for name, parts in needed.items():
        if name not in declared:
            missing[name] = parts
        elif any(part not in declared[name] for part in parts):
            missing[name] = {part: {} for part in parts if part not in declared[name]}
    return missing


def _unset_like(params: Any) -> Any:
    """What an absent member is in the library that a value is of."""
    if isinstance(params, D.CallToolRequestParams | D.GetPromptRequestParams | D.ReadResourceRequestParams):
        return UNSET
    from pydantic import MISSING

    return MISSING
