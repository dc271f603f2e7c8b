"""The server's side of the Tasks extension."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from mcpspec.ext.tasks.plain import methods, structs
from mcpspec.support.error_text import format_value
from mcpspec.support.handlers import MaybeAwaitable
from mcpspec.support.structs import to_builtins
from typedmcp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, InvalidParamsError, RemoteError, UsageError
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.option_checks import check_seconds
from typedmcp.protocol.tasks import TASKS
from typedmcp.server.attempts import AskedQuestion
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context
from typedmcp.server.extension_filters import ExtensionListener
from typedmcp.server.extension_setup import ToolTask
from typedmcp.server.extensions import RunTool, ServerExtension
from typedmcp.tasks.engine import TaskEngine
from typedmcp.tasks.limits import TaskLimits
from typedmcp.tasks.memory import MemoryTaskStore
from typedmcp.tasks.runs import RunCaller, TaskContext
from typedmcp.tasks.store import TaskRecord, TasksFullError, TaskStore
from typedmcp.tasks.wire import created_result, task_result
from typedmcp.transports.concurrency import is_awaitable

__all__ = ["ServerTasks"]

_MAX_WATCHED = 1000
"""Tasks that one subscription watches."""


class ServerTasks(ServerExtension):
    """The Tasks extension of a server: calls that outlive their requests. `Server(extensions=[ServerTasks()])`.

    `store` keeps the tasks, by default a `MemoryTaskStore` with `limits`. `poll_interval` are the seconds between two
    requests that clients should make for the state of a task. Raises `UsageError` for options that make no sense.

    ```python
    server = typedmcp.Server("video", extensions=[typedmcp.ServerTasks()])

    @server.tool(task="optional")
    async def convert(url: str, ctx: Context) -> str: ...
    ```
    """

    def __init__(
        self, store: TaskStore | None = None, *, limits: TaskLimits | None = None, poll_interval: float = 1.0
    ) -> None:
        if store is not None and limits is not None:
            raise UsageError("limits: a store has its own; pass them to the store")
        check_seconds("poll_interval", poll_interval)
        if not 0.001 <= poll_interval <= 86_400:
            raise UsageError(f"poll_interval must be between 0.001 and 86400 seconds, not {poll_interval:g}")
        super().__init__(TASKS, lifespan=self._open)
        self.store: TaskStore = MemoryTaskStore(limits) if store is None else store
        self._poll_ms = int(poll_interval * 1000)
        self.run_tool: RunTool | None = self._run_tool
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

    def _engine(self, ctx: Context) -> TaskEngine:
        engine: TaskEngine | None = ctx.state_of(self)
        if engine is None:
            raise UsageError("the server that is served does not have this ServerTasks among its extensions")
        return engine

    async def run(self, ctx: Context, call: RunCaller, *, required: bool = False, retry: bool = False) -> Any:
        """Run a function as a task, for a handler by hand: `return await tasks.run(ctx, call)`.

        `call` takes a context, which outlives the request, and returns the result of the request. The result of `run`
        is a task for a client that has declared the extension. For others the function runs within the request, or,
        if `required`, `MissingCapabilityError` is raised. With `retry` another worker calls the handler's method again
        if this one dies.
        """
        if isinstance(ctx, TaskContext):  # called by a worker that has taken the task over
            return await _awaited(call(ctx))
        if ctx.revision not in TASKS.revisions or not TASKS.is_declared(ctx.client_capabilities):
            if not required:
                return await _awaited(call(ctx))
            if ctx.revision in TASKS.revisions:
                self.require(ctx)
            revisions = ", ".join(sorted(TASKS.revisions))
            raise RemoteError(METHOD_NOT_FOUND, f"{ctx.method}: this call runs as a task only, on {revisions}")
        engine = self._engine(ctx)
        try:
            record = await engine.start(ctx, call, may_repeat=retry)
        except ConnectionError as error:
            raise _unreachable(ctx, error) from error
        return created_result(record, self._poll_ms)

    async def _run_tool(self, wish: ToolTask, ctx: Context, call: RunCaller) -> Any:
        return await self.run(ctx, call, required=wish.is_required, retry=wish.may_repeat)

    # Methods

    async def _load(self, id: str, ctx: Context) -> TaskRecord:
        """Return a task of the client. Raises `InvalidParamsError` for one that it does not have."""
        try:
            record = await self._engine(ctx).store.load(id)
        except ConnectionError as error:
            raise _unreachable(ctx, error) from error
        if record is None or not _may_use(record, ctx):
            raise InvalidParamsError("unknown task: it never was, or it was deleted", {"path": "params.taskId"})
        return record

    async def _get(self, params: structs.GetTaskRequestParams, ctx: Context) -> structs.GetTaskResult:
        return task_result(await self._load(params.task_id, ctx), self._poll_ms)

    async def _cancel(self, params: structs.CancelTaskRequestParams, ctx: Context) -> structs.CancelTaskResult:
        await self._load(params.task_id, ctx)
        try:
            await self._engine(ctx).cancel(params.task_id)
        except ConnectionError as error:
            raise _unreachable(ctx, error) from error
        return structs.CancelTaskResult()

    async def _update(self, params: structs.UpdateTaskRequestParams, ctx: Context) -> structs.UpdateTaskResult:
        """Store answers. Those to questions that do not wait are ignored, as the specification says."""
        record = await self._load(params.task_id, ctx)
        answers: dict[str, Any] = {}
        for key, answer in params.input_responses.items():
            if key in record.questions:
                answers[key] = to_builtins(answer)
                _check_answer(key, record.questions[key], answers[key])
        if ignored := [key for key in params.input_responses if key not in answers]:
            text = f"inputResponses: no question of the task waits for {format_value(ignored[0])}: ignored"
            ctx.config.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, ctx.method, ctx.id, ignored))
        try:
            await self._engine(ctx).store.answer(params.task_id, answers, len(msgspec.json.encode(answers)))
        except TasksFullError as error:
            raise RemoteError(INTERNAL_ERROR, f"no room for the answers: {error}") from None
        except ConnectionError as error:
            raise _unreachable(ctx, error) from error
        return structs.UpdateTaskResult()

    @asynccontextmanager
    async def _watch(self, ids: list[str], listener: ExtensionListener) -> AsyncGenerator[list[str]]:
        """Grant the tasks of the client, and notify it of their changes."""
        ctx = listener.ctx
        engine = self._engine(ctx)
        known: list[str] = []
        for id in [*dict.fromkeys(ids)][:_MAX_WATCHED]:
            record = await engine.store.load(id)
            if record is not None and _may_use(record, ctx):
                known.append(id)
        try:
            for id in known:
                engine.listen(id, listener)
            yield known
        finally:
            for id in known:
                engine.end_listening(id, listener)


def _may_use(record: TaskRecord, ctx: Context) -> bool:
    """Return whether a task belongs to the client. Without authorization the id is enough, which nobody can guess."""
    principal = ctx.principal
    return record.owner == (None if principal is None else principal.key)


def _check_answer(key: str, question: Any, answer: Any) -> None:
    """Raise `InvalidParamsError` for an answer that does not fit its question."""
    params: dict[str, Any] = question.get("params") or {}
    asked = AskedQuestion("", question["method"], params.get("requestedSchema"))
    if (fault := asked.find_fault(answer)) is not None:
        path = f"params.inputResponses[{key!r}]"
        raise InvalidParamsError(f"{path}: {fault}", {"path": path})


def _unreachable(ctx: Context, error: ConnectionError) -> RemoteError:
    ctx.report("the store of tasks cannot be reached", error)
    return RemoteError(INTERNAL_ERROR, "the tasks cannot be reached: try again later")


async def _awaited(made: MaybeAwaitable[Any]) -> Any:
    return await made if is_awaitable(made) else made
