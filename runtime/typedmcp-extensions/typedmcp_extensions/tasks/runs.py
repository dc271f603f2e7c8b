"""Runs: the function of a task while this worker runs it, with a context that outlives the request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from typedmcp import Context
from typedmcp.building import MaybeAwaitable, is_awaitable, log_failure
from typedmcp.errors import InputUnavailableError, RemoteError, UsageError
from typedmcp.extensions import DetachedContext, encode_result
from typedmcp_extensions.tasks.store import Outcome, Question, TasksFullError, TaskStore
from typedmcp_extensions.tasks.wire import ended, failure, rejection_of, text_of_progress

__all__ = ["RunCaller", "RunEngine", "TaskRun"]

_PROGRESS_PAUSE = 0.2
"""Seconds between two texts about the progress of a task that are stored."""
_MIN_PAUSE, _MAX_PAUSE = 0.05, 2.0
"""Seconds between two attempts to store the end of a task."""

RunCaller = Callable[[Context], MaybeAwaitable[Any]]
"""Calls the function of a task with a context, and returns the result of the request."""


class RunEngine(Protocol):
    """The part of the engine that runs use."""

    store: TaskStore

    def run_ended(self, run: TaskRun) -> None: ...


class TaskRun:
    """A run of a task by this worker, from its beginning until its end is stored."""

    def __init__(self, engine: RunEngine, id: str, number: int, client: str, *, may_repeat: bool) -> None:
        self.id: str = id
        self.number: int = number
        self.client: str = client
        self.may_repeat: bool = may_repeat
        self._engine = engine
        self._store = engine.store
        self._task: asyncio.Task[None] | None = None
        self._ctx: DetachedContext | None = None
        self._woken = asyncio.Event()
        self._message: str | None = None
        self._writing: asyncio.Task[None] | None = None
        self._is_lost = False
        self._is_ending = False
        """True once the function has ended, and only its outcome has to be stored."""
        self._reason: str | None = None
        """The reason why the server ends the run, if it does."""

    @property
    def has_begun(self) -> bool:
        """True once the task exists in the store."""
        return self._task is not None

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task of the function, which ends with the run. None before it begins."""
        return self._task

    def begin(self, ctx: DetachedContext, call: RunCaller) -> None:
        """Begin to run the function."""
        self._ctx = ctx
        self._task = asyncio.get_running_loop().create_task(self._run(ctx, call))

    def wake(self) -> None:
        """Look at the task in the store again: it may have answers, or have ended."""
        self._woken.set()

    def lose(self) -> None:
        """Stop: the task has ended without this run, or another worker runs it."""
        self._is_lost = True
        self._cancel()

    def stop(self, reason: str) -> None:
        """Stop, and end the task as failed."""
        self._reason = reason
        self._cancel()

    def fail(self, reason: str) -> None:
        """End the task as failed, without a call of its function."""
        self._task = asyncio.get_running_loop().create_task(self._finish(ended(reason), 0))

    def _cancel(self) -> None:
        if self._ctx is not None:
            self._ctx.cancel()
        if self._task is not None and not self._is_ending:
            self._task.cancel()

    # The function

    async def _run(self, ctx: DetachedContext, call: RunCaller) -> None:
        try:
            outcome, size = await self._outcome(ctx, call)
        except BaseException as error:
            outcome, size = self._failure(ctx, error), 0
        await self._finish(outcome, size)

    async def _finish(self, outcome: Outcome, size: int) -> None:
        """Store the end of the task, unless the run is lost, and end the run."""
        self._is_ending = True
        if self._writing is not None:
            self._writing.cancel()
        try:
            await self._end(outcome, size)
        except Exception as error:
            log_failure(logging.ERROR, "task: an end could not be stored", error)
        finally:
            self._engine.run_ended(self)

    async def _outcome(self, ctx: DetachedContext, call: RunCaller) -> tuple[Outcome, int]:
        """Run the function, and return how the task ends, with the bytes of the result."""
        seconds = self._store.limits.ttl
        late = asyncio.get_running_loop().call_later(
            seconds, self.stop, f"the task took longer than {seconds:g} s (ttl)"
        )
        try:
            made = call(ctx)
            result = await made if is_awaitable(made) else made
            line = encode_result(ctx, result)
        except asyncio.CancelledError:
            return ended(self._reason or "the run was cancelled"), 0
        finally:
            late.cancel()
        size, limit = len(line), self._store.limits.result_bytes
        if size > limit:
            return ended(f"the result has {size} bytes; the limit is {limit} (result_bytes)"), 0
        content = msgspec.json.decode(line)
        return Outcome("completed", content, is_error=content.get("isError") is True), size

    def _failure(self, ctx: DetachedContext, error: BaseException) -> Outcome:
        """Return the end of a task whose function has raised, and report what clients do not see."""
        if not isinstance(error, RemoteError):
            ctx.report(f"a task of {ctx.method} failed", error)
        return failure(error, ctx)

    async def _end(self, outcome: Outcome, size: int) -> None:
        """Store the end of the task. Try again while the store cannot be reached."""
        pause = _MIN_PAUSE
        while not self._is_lost:
            try:
                await self._store.end(self.id, self.number, outcome, size)
            except TasksFullError as error:
                outcome, size = ended(f"the result does not fit: {error}"), 0
            except ConnectionError:
                await asyncio.sleep(pause)
                pause = min(_MAX_PAUSE, pause * 2)
            else:
                return

    # Progress

    def notify(self, method: str, params: Any) -> bool:
        """Store progress as the text of the task soon; of several texts the last. Tasks have no other notifications."""
        if method != "notifications/progress":
            return False
        self._message = text_of_progress(params)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write_message())
        return True

    async def _write_message(self) -> None:
        while (message := self._message) is not None:
            self._message = None
            with suppress(ConnectionError):  # a later text says more
                if not await self._store.set_message(self.id, self.number, message):
                    self.lose()
                    return
            await asyncio.sleep(_PROGRESS_PAUSE)

    # Input

    async def ask(self, questions: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add questions to the task, and wait for the answers of the client."""
        added = [Question(key, request) for key, request in questions.items()]
        size = sum(len(msgspec.json.encode(each)) for each in added)
        limit = self._store.limits.result_bytes
        if size > limit:
            raise UsageError(f"the input requests have {size} bytes; the limit is {limit} (result_bytes)")
        try:
            is_current = await self._store.ask(self.id, self.number, added, size)
        except TasksFullError as error:
            raise InputUnavailableError(f"the client cannot be asked: {error}") from error
        answers = await self._wait_for_answers([*questions]) if is_current else None
        if answers is None:
            self.lose()
            await asyncio.sleep(0)  # the cancellation arrives here
            raise asyncio.CancelledError
        for answer in answers.values():
            if (rejection := rejection_of(answer)) is not None:
                raise rejection
        return answers

    async def _wait_for_answers(self, keys: list[str]) -> dict[str, Any] | None:
        """Return the answers to all questions, once there are; None if the run is over."""
        while True:
            self._woken.clear()
            try:
                answers = await self._store.answers(self.id, self.number, keys)
            except ConnectionError:
                await asyncio.sleep(_MAX_PAUSE)
                continue
            if answers is None or len(answers) == len(keys):
                return answers
            await self._woken.wait()
