"""The server's side of the Tasks extension."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from mcpspec.ext.tasks import methods, structs
from typedmcp import Context, Diagnostic, DiagnosticKind, ServerConfig
from typedmcp.building import MaybeAwaitable, check_seconds, format_value, is_awaitable, to_builtins
from typedmcp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, InvalidParamsError, RemoteError, UsageError
from typedmcp.extensions import (
    DetachedContext,
    ExtensionListener,
    LegacyForm,
    RunTool,
    ServerExtension,
    TaskSupport,
    ToolTask,
    find_answer_fault,
)
from typedmcp_extensions.tasks.access import TaskAccess, owner_of, unreachable
from typedmcp_extensions.tasks.engine import TaskEngine
from typedmcp_extensions.tasks.extension import TASKS
from typedmcp_extensions.tasks.legacy import LegacyTasks
from typedmcp_extensions.tasks.limits import TaskLimits
from typedmcp_extensions.tasks.memory import MemoryTaskStore
from typedmcp_extensions.tasks.runs import RunCaller
from typedmcp_extensions.tasks.store import TaskRecord, TasksFullError, TaskStore
from typedmcp_extensions.tasks.wire import created_result, status_notification, task_result

__all__ = ["ServerTasks"]

_MAX_WATCHED = 1000
"""Tasks that one subscription watches."""


class ServerTasks(ServerExtension):
    """The Tasks extension of a server: calls that outlive their requests. `Server(extensions=[ServerTasks()])`.

    `store` keeps the tasks, by default a `MemoryTaskStore` with `limits`. `poll_interval` are the seconds between two
    requests that clients should make for the state of a task. `tools` is for handlers by hand: it tells clients of
    2025-11-25 which tools run as tasks. Raises `UsageError` for options that make no sense.

    ```python
    server = typedmcp.Server("video", extensions=[ServerTasks()])

    @server.tool(task="optional")
    async def convert(url: str, ctx: Context) -> str: ...
    ```
    """

    def __init__(
        self,
        store: TaskStore | None = None,
        *,
        limits: TaskLimits | None = None,
        poll_interval: float = 1.0,
        tools: Mapping[str, TaskSupport] | None = None,
    ) -> None:
        if store is not None and limits is not None:
            raise UsageError("limits: a store has its own; pass them to the store")
        check_seconds("poll_interval", poll_interval)
        if not 0.001 <= poll_interval <= 86_400:
            raise UsageError(f"poll_interval must be between 0.001 and 86400 seconds, not {poll_interval:g}")
        for name, support in (tools or {}).items():
            if support not in ("forbidden", "optional", "required"):
                text = f"expected 'forbidden', 'optional' or 'required', got {support!r}"
                raise UsageError(f"tools: {name}: {text}")
        super().__init__(TASKS, lifespan=self._open)
        self.store: TaskStore = MemoryTaskStore(limits) if store is None else store
        self._poll_ms = int(poll_interval * 1000)
        self.run_tool: RunTool | None = self._run_tool
        self._access = TaskAccess(self)
        self._legacy = LegacyTasks(self._access, self._poll_ms, dict(tools or {}))
        self.legacy: LegacyForm | None = self._legacy
        self.handler(methods.TASKS_GET)(self._get)
        self.handler(methods.TASKS_UPDATE)(self._update)
        self.handler(methods.TASKS_CANCEL)(self._cancel)
        self.filter("taskIds", list[str])(self._watch)

    @asynccontextmanager
    async def _open(self, config: ServerConfig) -> AsyncGenerator[TaskEngine]:
        engine = TaskEngine(config, self.store, self._poll_ms)
        await engine.open()
        try:
            yield engine
        finally:
            await engine.close()

    async def run(self, ctx: Context, call: RunCaller, *, required: bool = False, retry: bool = False) -> Any:
        """Run a function as a task, for a handler by hand: `return await tasks.run(ctx, call)`.

        `call` takes a context, which outlives the request, and returns the result of the request. The result of `run`
        is a task for a client that has declared the extension, and for one of 2025-11-25 that wants a task. For others
        the function runs within the request, or, if `required`, `MissingCapabilityError` is raised. With `retry`
        another worker calls the handler's method again if this one dies.
        """
        if isinstance(ctx, DetachedContext):  # called by a worker that has taken the task over
            return await _awaited(call(ctx))
        if self._legacy.wants_task(ctx):
            return await self._legacy.begin(ctx, call, may_repeat=retry)
        if ctx.revision not in TASKS.revisions or not TASKS.is_declared(ctx.client_capabilities):
            if not required:
                return await _awaited(call(ctx))
            if ctx.revision in TASKS.revisions:
                self.require(ctx)
            if ctx.revision in self._legacy.revisions:
                text = "this call runs as a task only; call it with the member `task`"
                raise RemoteError(METHOD_NOT_FOUND, f"{ctx.method}: {text}")
            revisions = ", ".join(sorted({*self._legacy.revisions, *TASKS.revisions}))
            raise RemoteError(METHOD_NOT_FOUND, f"{ctx.method}: this call runs as a task only, on {revisions}")
        engine = self._access.engine(ctx)
        try:
            record = await engine.start(ctx, call, owner_of(ctx), may_repeat=retry)
        except ConnectionError as error:
            raise unreachable(ctx, error) from error
        return created_result(record, self._poll_ms)

    async def _run_tool(self, wish: ToolTask, ctx: Context, call: RunCaller) -> Any:
        return await self.run(ctx, call, required=wish.is_required, retry=wish.may_repeat)

    # Methods

    async def _get(self, params: structs.GetTaskRequestParams, ctx: Context) -> structs.GetTaskResult:
        return task_result(await self._access.load(params.task_id, ctx), self._poll_ms)

    async def _cancel(self, params: structs.CancelTaskRequestParams, ctx: Context) -> structs.CancelTaskResult:
        await self._access.load(params.task_id, ctx)
        try:
            await self._access.engine(ctx).cancel(params.task_id)
        except ConnectionError as error:
            raise unreachable(ctx, error) from error
        return structs.CancelTaskResult()

    async def _update(self, params: structs.UpdateTaskRequestParams, ctx: Context) -> structs.UpdateTaskResult:
        """Store answers. Those to questions that do not wait are ignored, as the specification says."""
        record = await self._access.load(params.task_id, ctx)
        answers: dict[str, Any] = {}
        for key, answer in params.input_responses.items():
            if key in record.questions:
                answers[key] = to_builtins(answer)
                _check_answer(key, record.questions[key], answers[key])
        if ignored := [key for key in params.input_responses if key not in answers]:
            text = f"inputResponses: no question of the task waits for {format_value(ignored[0])}: ignored"
            ctx.config.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, ctx.method, ctx.id, ignored))
        try:
            await self._access.engine(ctx).store.answer(params.task_id, answers, len(msgspec.json.encode(answers)))
        except TasksFullError as error:
            raise RemoteError(INTERNAL_ERROR, f"no room for the answers: {error}") from None
        except ConnectionError as error:
            raise unreachable(ctx, error) from error
        return structs.UpdateTaskResult()

    @asynccontextmanager
    async def _watch(self, ids: list[str], listener: ExtensionListener) -> AsyncGenerator[list[str]]:
        """Grant the tasks of the client, and notify it of their changes."""
        ctx = listener.ctx
        engine, notifier = self._access.engine(ctx), _Notifier(listener, self._poll_ms)
        known: list[str] = []
        for id in [*dict.fromkeys(ids)][:_MAX_WATCHED]:
            record = await engine.store.load(id)
            if record is not None and record.owner == owner_of(ctx):
                known.append(id)
        try:
            for id in known:
                engine.listen(id, notifier)
            yield known
        finally:
            for id in known:
                engine.end_listening(id, notifier)


class _Notifier:
    """Sends the changes of tasks to a subscription."""

    def __init__(self, listener: ExtensionListener, poll_ms: int) -> None:
        self._listener, self._poll_ms = listener, poll_ms

    def on_task(self, record: TaskRecord | None) -> None:
        """Send the state of a task."""
        if record is not None:
            params = status_notification(record, self._poll_ms)
            self._listener.notify(methods.NOTIFICATIONS_TASKS, params, key=record.id)


def _check_answer(key: str, question: Any, answer: Any) -> None:
    """Raise `InvalidParamsError` for an answer that does not fit its question."""
    if (fault := find_answer_fault(question, answer)) is not None:
        path = f"params.inputResponses[{key!r}]"
        raise InvalidParamsError(f"{path}: {fault}", {"path": path})


async def _awaited(made: MaybeAwaitable[Any]) -> Any:
    return await made if is_awaitable(made) else made
