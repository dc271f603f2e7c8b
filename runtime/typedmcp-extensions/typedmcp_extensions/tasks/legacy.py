"""Tasks as they are part of a legacy revision, translated to the tasks of the extension.

The client decides that a call becomes a task, `tasks/result` waits for the end of one, and the questions of a task are
requests of the server while `tasks/result` waits.
https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

import msgspec
from msgspec import UNSET

from typedmcp import Context, ServerConfig, types
from typedmcp.building import is_awaitable, to_builtins
from typedmcp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, InvalidParamsError, RemoteError
from typedmcp.extensions import HandleWithin, TaskSupport, exact_result
from typedmcp_extensions.tasks.access import TaskAccess, owner_of, unreachable
from typedmcp_extensions.tasks.delivery import QuestionDelivery, StatusReports
from typedmcp_extensions.tasks.revisions import RELATED_TASK, SERVER_INFO, WITH_TASKS, structs_of
from typedmcp_extensions.tasks.runs import RunCaller
from typedmcp_extensions.tasks.store import Outcome, TaskRecord, is_unfinished
from typedmcp_extensions.tasks.wire import legacy_members

__all__ = ["LegacyTasks"]

_PAGE: Final = 100
"""Tasks on a page of `tasks/list`."""


class LegacyTasks:
    """The tasks of a server on revisions that have them in the protocol itself: a `LegacyForm`.

    `tools` says which tools of a handler by hand run as tasks; without, it offers none. A `Server` knows that itself.
    """

    revisions: frozenset[str] = WITH_TASKS
    """The revisions that have tasks."""

    def __init__(self, access: TaskAccess, poll_ms: int, tools: Mapping[str, TaskSupport]) -> None:
        self._access, self._poll_ms, self._tools = access, poll_ms, tools

    def capabilities(self, config: ServerConfig, *, has_session: bool) -> Mapping[str, Any]:
        """Return the capabilities to declare. Without a session a client may have no tasks of its own to list."""
        if not self._is_offered(config):
            return {}
        listing: dict[str, Any] = {"list": {}} if has_session else {}
        return {"tasks": {**listing, "cancel": {}, "requests": {"tools": {"call": {}}}}}

    def extend(
        self, functions: dict[str, Callable[[Any, Any], Any]], config: ServerConfig, handle: HandleWithin | None
    ) -> None:
        """Add the functions of the methods, and let `tools/call` and `tools/list` know of tasks."""
        if not self._is_offered(config):
            return
        own: dict[str, Callable[[Any, Any], Any]] = {
            "get_task": self._get, "get_task_payload": self._result, "list_tasks": self._list,
            "cancel_task": self._cancel,
        }  # fmt: skip
        functions.update({name: _within(handle, function) for name, function in own.items()})
        for name, wrap in (("call_tool", self._check_call), ("list_tools", self._add_support)):
            if name in functions:
                functions[name] = wrap(functions[name], config)

    def _is_offered(self, config: ServerConfig) -> bool:
        return bool(self._tools) or config.task_support_of is not None

    # Tools

    def support_of(self, name: str, config: ServerConfig) -> TaskSupport:
        """Return whether a tool can run as a task."""
        return self._tools.get(name, "forbidden") if config.task_support_of is None else config.task_support_of(name)

    def _check_call(self, call: Callable[[Any, Any], Any], config: ServerConfig) -> Callable[[Any, Any], Any]:
        """Wrap the function for `tools/call`, so that a call as a task is rejected for tools that do not run so."""

        @wraps(call)
        def call_tool(params: Any, ctx: Context) -> Any:
            if self.wants_task(ctx) and self.support_of(params.name, config) == "forbidden":
                text = f"tools/call: {params.name!r} cannot run as a task; call it without the member `task`"
                raise RemoteError(METHOD_NOT_FOUND, text)
            return call(params, ctx)

        return call_tool

    def _add_support(self, list_tools: Callable[[Any, Any], Any], config: ServerConfig) -> Callable[[Any, Any], Any]:
        """Wrap the function for `tools/list`, so that tools say whether they run as tasks."""

        @wraps(list_tools)
        def list_with_support(params: Any, ctx: Context) -> Any:
            listed = list_tools(params, ctx)
            if ctx.revision not in self.revisions:
                return listed
            return self._awaited_support(listed, ctx, config) if is_awaitable(listed) else add(listed, ctx)

        def add(listed: Any, ctx: Context) -> Any:
            return self._with_support(listed, ctx, config)

        return list_with_support

    async def _awaited_support(self, listed: Any, ctx: Context, config: ServerConfig) -> Any:
        return self._with_support(await listed, ctx, config)

    def _with_support(self, listed: Any, ctx: Context, config: ServerConfig) -> Any:
        """Return a list of tools in the types of the revision, which have `execution`."""
        exact, made = structs_of(ctx.revision), exact_result(ctx, listed)
        for tool in made.tools:
            tool.execution = exact.ToolExecution(task_support=self.support_of(tool.name, config))
        return made

    # Calls

    def wants_task(self, ctx: Context) -> bool:
        """Return whether a call is to become a task. The server chooses the lifetime of tasks, whatever `ttl` says."""
        if ctx.revision not in self.revisions or b'"task"' not in ctx.raw or not self._is_offered(ctx.config):
            return False
        return _decode_call(ctx.raw).params.task is not None

    async def begin(self, ctx: Context, call: RunCaller, *, may_repeat: bool) -> Any:
        """Begin a task for a call, and return its `CreateTaskResult`."""
        engine, exact = self._access.engine(ctx), structs_of(ctx.revision)
        try:
            record = await engine.start(ctx, call, owner_of(ctx), may_repeat=may_repeat)
        except ConnectionError as error:
            raise unreachable(ctx, error) from error
        StatusReports.follow(engine, record, ctx)
        task = exact.Task(**legacy_members(record, self._poll_ms))
        return exact.CreateTaskResult(task=task, meta={RELATED_TASK: {"taskId": record.id}})

    # Methods

    def _rebind(self, record: TaskRecord, ctx: Context) -> None:
        """Report the status of a task to the session that has asked for it last."""
        reports = self._access.engine(ctx).reports.get(record.id)
        if reports is not None:
            reports.rebind(ctx)

    async def _get(self, params: Any, ctx: Context) -> Any:
        record = await self._access.load(params.task_id, ctx)
        self._rebind(record, ctx)
        return structs_of(ctx.revision).GetTaskResult(**legacy_members(record, self._poll_ms))

    async def _list(self, params: Any, ctx: Context) -> Any:
        owner, cursor = owner_of(ctx), getattr(params, "cursor", UNSET)
        if owner is None:
            raise RemoteError(METHOD_NOT_FOUND, "tasks/list: without a session or a token, no tasks are the client's")
        after = cursor if isinstance(cursor, str) else None
        try:
            records = await self._access.engine(ctx).store.list_owned(owner, after, _PAGE + 1)
        except LookupError:
            text = "the cursor is not valid, or its task was deleted; begin again without it"
            raise InvalidParamsError(text, {"path": "params.cursor"}) from None
        except ConnectionError as error:
            raise unreachable(ctx, error) from error
        exact = structs_of(ctx.revision)
        page = exact.ListTasksResult(
            tasks=[exact.Task(**legacy_members(record, self._poll_ms)) for record in records[:_PAGE]]
        )
        if len(records) > _PAGE:
            page.next_cursor = records[_PAGE - 1].id
        return page

    async def _cancel(self, params: Any, ctx: Context) -> Any:
        record = await self._access.load(params.task_id, ctx)
        engine, has_ended = self._access.engine(ctx), False
        try:
            if is_unfinished(record.status):
                has_ended = await engine.store.end(record.id, None, Outcome("cancelled"), 0)
        except ConnectionError as error:
            raise unreachable(ctx, error) from error
        record = await self._access.load(params.task_id, ctx)
        members = legacy_members(record, self._poll_ms)
        if not has_ended:
            raise InvalidParamsError(f"the task has ended already: {members['status']}", {"path": "params.taskId"})
        return structs_of(ctx.revision).CancelTaskResult(**members)

    async def _result(self, params: Any, ctx: Context) -> Any:
        """Wait for the end of a task while the client answers its questions, and return its result."""
        record = await self._access.load(params.task_id, ctx)
        if is_unfinished(record.status):
            self._rebind(record, ctx)
            try:
                ended = await QuestionDelivery(self._access.engine(ctx), record, ctx).run()
            except ConnectionError as error:
                raise unreachable(ctx, error) from error
            if ended is None:
                raise InvalidParamsError("the task was deleted before its end", {"path": "params.taskId"})
            record = ended
        return _payload(record, ctx)


def _within(handle: HandleWithin | None, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that runs within the middleware of a `Server`."""
    return function if handle is None else lambda params, ctx: handle(function, params, ctx)


def _payload(record: TaskRecord, ctx: Context) -> dict[str, Any]:
    """Return the result of the call that a task runs. Raises its error."""
    if record.status == "failed":
        raise RemoteError.from_wire(record.content)
    if record.status == "cancelled":
        raise RemoteError(INTERNAL_ERROR, "the task was cancelled, and has no result")
    result = types.from_builtins(record.content, types.CallToolResult)
    plain: dict[str, Any] = to_builtins(exact_result(ctx, result, "tools/call"))
    meta = {name: value for name, value in plain.get("_meta", {}).items() if name != SERVER_INFO}
    return {**plain, "_meta": {**meta, RELATED_TASK: {"taskId": record.id}}}


class _ToolCallParams(msgspec.Struct):
    task: Any = None


class _ToolCall(msgspec.Struct):
    params: _ToolCallParams


_decode_call = msgspec.json.Decoder(_ToolCall).decode
