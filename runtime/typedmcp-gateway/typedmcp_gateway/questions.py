"""Calls whose server asks something meanwhile.

A legacy server asks with requests of its own, while its call is open. The gateway keeps that call, and gives its client
the questions as the input requests of a result; the client repeats its request with the answers, and the call goes on.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from typedmcp import Context
from typedmcp.building import to_builtins
from typedmcp.dialect import methods, structs
from typedmcp.errors import INTERNAL_ERROR, InputUnavailableError, InvalidParamsError, RemoteError
from typedmcp_gateway.callers import CallerKey, ClientKey, GatewayCaller
from typedmcp_gateway.shares import CallShares

__all__ = ["ForwardedCall", "ParkedCalls", "ServerQuestions"]


_POLL_SECONDS: Final = 1.0
"""Seconds between two looks at whether the client of a parked call has gone."""
_PREFIX: Final = "parked:"


@dataclass(eq=False)
class _Question:
    request: Any
    answer: asyncio.Future[Any]


class ForwardedCall:
    """A call at a server, which may outlive the request of the client that it was made for."""

    attempt: int = 1
    """The number of the client's current attempt."""
    _count: int = 0
    _task: asyncio.Task[Any] | None = None
    """The task of a call whose client can be asked."""
    _is_away: bool = False
    """True while the client answers: no request of it is open."""
    _progress: Any = None
    """The newest progress that came meanwhile."""

    def __init__(self, ctx: Context, caller: GatewayCaller, *, can_ask: bool, worker: str = "") -> None:
        self.ctx: Context = ctx
        """The request that the client waits for at the moment."""
        self.caller: GatewayCaller = caller
        self.can_ask: bool = can_ask
        """True if the client can be asked something during the call."""
        self._worker = worker

    def start(self, sending: Coroutine[Any, Any, Any]) -> None:
        """Make the call, in a task of its own."""
        self._task = asyncio.get_running_loop().create_task(sending)
        self._task.add_done_callback(lambda _: self._changed.set())

    @cached_property
    def _questions(self) -> dict[str, _Question]:
        return {}

    @cached_property
    def _changed(self) -> asyncio.Event:
        return asyncio.Event()

    @cached_property
    def id(self) -> str:
        """Names the call to the client that continues it, which others cannot guess."""
        token = secrets.token_urlsafe(16)
        return f"{self._worker}.{token}" if self._worker else token

    @cached_property
    def client(self) -> ClientKey:
        """The client that limits count for."""
        return self.ctx.client_key

    def on_progress(self, params: Any) -> Any:
        """Pass progress on to the client: later, while it answers a question."""
        if self._is_away:
            self._progress = params
            return None
        return self.ctx.progress(params.progress, params.total, params.message)

    async def ask(self, request: Any) -> Any:
        """Return the client's answer to a question of the server."""
        self._count += 1
        key = f"{request.method}#{self._count}"
        question = self._questions[key] = _Question(request, asyncio.get_running_loop().create_future())
        self._changed.set()
        try:
            return await question.answer
        finally:
            self._questions.pop(key, None)

    async def step(self) -> Any:
        """Return the result of the call, or an `InputRequiredResult` with the questions that are open.

        If it is cancelled, the call is, too.
        """
        assert self._task is not None
        try:
            while not self._task.done():
                if self._questions:
                    self._is_away = True
                    requests = {key: question.request for key, question in self._questions.items()}
                    return structs.InputRequiredResult(
                        result_type="input_required", input_requests=requests, request_state=_PREFIX + self.id
                    )
                self._changed.clear()
                await self._changed.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self._task.result()

    def resume(self, ctx: Context | None, answers: Mapping[str, Any]) -> None:
        """Continue with the answers that a repeated request has. Questions without an answer are asked again.

        `ctx` is None for a request that reached another worker: it gets no progress.
        """
        self.attempt += 1
        self._is_away = ctx is None
        self.ctx = ctx or self.ctx
        if ctx is not None and (missed := self._progress) is not None:
            self._progress = None
            ctx.progress(missed.progress, missed.total, missed.message)
        for key, answer in answers.items():
            question = self._questions.pop(key, None)
            if question is not None and not question.answer.done():
                kind: Any = methods.INPUT_REQUESTS[question.request.method].result
                question.answer.set_result(structs.from_builtins(to_builtins(answer), kind))

    def cancel(self) -> None:
        """Cancel the call at the server."""
        if self._task is not None:
            self._task.cancel()

    @property
    def is_done(self) -> bool:
        """True once the call has ended."""
        return self._task is None or self._task.done()


class ParkedCalls:
    """The calls that wait for answers. Each is given up after some seconds, or when its client cancels."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._calls: dict[str, ForwardedCall] = {}
        self._numbers: Counter[ClientKey] = Counter()
        """The calls of each client."""

    def __len__(self) -> int:
        return len(self._calls)

    def park(self, call: ForwardedCall) -> None:
        """Keep a call until its client returns. Raises `RemoteError` if all clients, or this one, have too many."""
        text = None
        share = max(1, self._limit * call.ctx.config.limits.client_share_percent // 100)
        if len(self._calls) >= self._limit:
            text = f"{self._limit} calls of the gateway wait for answers of clients (max_parked): try again later"
        elif call.client is not None and self._numbers[call.client] >= share:
            text = (
                f"{share} calls wait for answers of this client (max_parked, client_share_percent): answer them first"
            )
        if text is not None:
            call.cancel()
            raise RemoteError(INTERNAL_ERROR, text)
        self._numbers[call.client] += 1
        self._calls[call.id] = call
        loop = asyncio.get_running_loop()
        self._watch(call, call.attempt, loop, loop.time() + self._seconds)

    def _watch(self, call: ForwardedCall, attempt: int, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if self._calls.get(call.id) is not call or call.attempt != attempt:
            return
        if call.is_done or call.ctx.cancelled or loop.time() >= deadline:
            self._remove(call)
            call.cancel()
            return
        seconds = min(_POLL_SECONDS, max(0.0, deadline - loop.time()))
        loop.call_later(seconds, self._watch, call, attempt, loop, deadline)

    @staticmethod
    def worker_of(state: str | None) -> str | None:
        """Return the worker that holds the call which a state names, "" without workers; None for another state."""
        if state is None or not state.startswith(_PREFIX):
            return None
        return state.removeprefix(_PREFIX).rpartition(".")[0]

    async def resume(self, state: str, caller: CallerKey, ctx: Context | None, answers: Mapping[str, Any]) -> Any:
        """Continue the call that a state names, and return its result or its next questions.

        Raises `InvalidParamsError` for a call that was given up, or that is another client's, and `RemoteError`.
        """
        call = self._take(state, caller)
        try:
            call.resume(ctx, answers)
        except BaseException:
            call.cancel()
            raise
        return await self.step(call)

    async def step(self, call: ForwardedCall) -> Any:
        """Wait for the result or for questions, and keep the call for their answers."""
        result = await call.step()
        if not call.is_done:
            self.park(call)
        return result

    def _take(self, state: str, caller: CallerKey) -> ForwardedCall:
        call = self._calls.get(state.removeprefix(_PREFIX))
        if call is None or call.caller.key != caller:
            text = "requestState: the call has ended at the server; call again without it"
            raise InvalidParamsError(text, {"path": "params.requestState"})
        self._remove(call)
        return call

    def _remove(self, call: ForwardedCall) -> None:
        del self._calls[call.id]
        self._numbers[call.client] -= 1
        if not self._numbers[call.client]:
            del self._numbers[call.client]

    def close(self) -> None:
        """Cancel all calls."""
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()
        self._numbers.clear()


class ServerQuestions:
    """The callbacks of one client of a server: they pass questions and log messages to the open calls."""

    def __init__(self, wait_seconds: float, report: Callable[[str], None], shares: CallShares) -> None:
        self.shares: CallShares = shares
        """The shares of the calls over the connection."""
        self._calls: dict[ForwardedCall, None] = {}
        self._wait_seconds = wait_seconds
        self._report = report
        self._has_call = asyncio.Event()
        self.level: str | None = None
        """The log level that was set last, on legacy servers."""
        self.passes_logs: bool = True
        """False if callers share the connection, so that nobody knows which of them a log message is for."""
        self.lease: Any = None
        """The lease of the client, whose options refer to these callbacks."""
        self.passed: Any = None
        """The `PassedExtensions` of the client."""

    def add(self, call: ForwardedCall) -> None:
        """Begin to pass questions to a call."""
        self._calls[call] = None
        if call.can_ask:
            self._has_call.set()

    def remove(self, call: ForwardedCall) -> None:
        """End that."""
        self._calls.pop(call, None)
        if call.can_ask and self._newest() is None:
            self._has_call.clear()

    @property
    def newest_call(self) -> ForwardedCall | None:
        """The newest open call."""
        return next(reversed(self._calls), None)

    def _newest(self) -> ForwardedCall | None:
        """Return the newest call whose client can be asked."""
        return next((call for call in reversed(self._calls) if call.can_ask), None)

    async def _ask(self, request: Any) -> Any:
        """Ask the client of the newest call. A server that asks outside of a call gets its answer in the next one."""
        if (call := self._newest()) is None:
            try:
                async with asyncio.timeout(self._wait_seconds):
                    await self._has_call.wait()
            except TimeoutError:
                pass
            if (call := self._newest()) is None:
                text = f"{request.method} outside of a call: the gateway could not ask a client"
                self._report(text)
                raise InputUnavailableError(text)
        return await call.ask(request)

    async def sample(self, params: Any) -> Any:
        """Ask the client's model."""
        return await self._ask(structs.CreateMessageRequest(params=params))

    async def elicit(self, params: Any) -> Any:
        """Ask the person at the client to fill in a form, or to open a URL."""
        return await self._ask(structs.ElicitRequest(params=params))

    async def roots(self) -> Any:
        """Ask the client for its roots."""
        return (await self._ask(structs.ListRootsRequest())).roots

    def on_log(self, params: Any) -> Any:
        """Pass a log message to the client of the newest call."""
        call = self.newest_call
        if call is None or not self.passes_logs:
            return None
        return call.ctx.log(params.level, params.data, params.logger)
