"""The client's side of the Tasks extension: calls that wait for their task, and answer its questions.

On revisions that have tasks in the protocol itself, `typedmcp_extensions.tasks.legacy_client` translates.

https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias, Unpack

import msgspec
from msgspec import Raw

from mcpspec.ext.tasks import methods, structs
from typedmcp import CallOptions, Diagnostic, DiagnosticKind, types
from typedmcp.building import check_seconds, format_value, to_builtins
from typedmcp.dialect import methods as protocol
from typedmcp.errors import (
    INTERNAL_ERROR,
    ConnectionLostError,
    Error,
    InputUnavailableError,
    ProtocolError,
    RemoteError,
    TaskCancelledError,
)
from typedmcp.extensions import ClientExtension, ExtendedCall, ExtensionClient, LegacyCallForm
from typedmcp_extensions.tasks.extension import FINAL_STATUSES, TASKS
from typedmcp_extensions.tasks.journal import KnownTask, TaskJournal
from typedmcp_extensions.tasks.legacy_client import LegacyTaskCalls, request_options

__all__ = ["ClientTasks", "OnTaskStatus", "TaskCalls"]

OnTaskStatus: TypeAlias = Callable[[structs.GetTaskResult], object]
"""Called with a task whenever its state or its text has changed."""

_MIN_POLL, _MAX_POLL = 0.02, 60.0
"""Seconds between two requests for the state of a task, whatever the server suggests."""
_DEFAULT_POLL = 1.0
_LISTENING_POLL = 30.0
"""Seconds between two requests for the state of a task whose changes the server sends."""
_PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts to reach the server."""
_CALL = "tools/call"
_CANCEL_TIME = 2.0
_TTL = 86_400.0
_MAX_ANSWERS = 1000
"""Questions of one task."""

_is_detached: ContextVar[bool] = ContextVar("is_detached", default=False)
"""True within `TaskCalls.begin`, which does not wait for the task."""


class ClientTasks(ClientExtension):
    """The Tasks extension of a client: `connect(…, extensions=[ClientTasks()])`.

    Calls of tools that become tasks wait for the result, and answer the questions of the task with the callbacks of the
    client. `client.extension(TaskCalls)` has the tasks. `journal` is a file that keeps the ids and answers of
    unfinished tasks, for a process that resumes them. With `listen` the server sends changes instead of being asked for
    them. `on_status` is called with each change. `ttl` is the time in seconds for which servers of 2025-11-25 are asked
    to keep a task; with None, and on newer revisions, they decide that.
    """

    def __init__(
        self,
        journal: str | os.PathLike[str] | None = None,
        *,
        listen: bool = False,
        on_status: OnTaskStatus | None = None,
        ttl: float | None = _TTL,
    ) -> None:
        super().__init__(TASKS)
        if ttl is not None:
            check_seconds("ttl", ttl)
        self._journal, self._listens, self._on_status, self._ttl = journal, listen, on_status, ttl

    def bind(self, client: ExtensionClient) -> TaskCalls:
        """Return the tasks of one client."""
        journal = TaskJournal(self._journal)
        return TaskCalls(client, journal, listens=self._listens, on_status=self._on_status, ttl=self._ttl)


class TaskCalls(ClientExtension):
    """The tasks of one client, as `client.extension(TaskCalls)`."""

    def __init__(
        self,
        client: ExtensionClient,
        journal: TaskJournal,
        *,
        listens: bool,
        on_status: OnTaskStatus | None,
        ttl: float | None,
    ) -> None:
        super().__init__(TASKS)
        self._client, self._journal, self._listens, self._on_status = client, journal, listens, on_status
        self._changed: dict[str, asyncio.Event] = {}
        """The tasks that are followed. Their events are set when the server sends a change."""
        self.completes(structs.CreateTaskResult)(self._complete)
        self.on(methods.NOTIFICATIONS_TASKS)(lambda params: self._note(params.task_id))
        self._legacy = LegacyTaskCalls(client, ttl, self._note)
        self.legacy: LegacyCallForm | None = self._legacy

    # For users

    def list(self) -> list[KnownTask]:
        """Return the tasks that were begun, here or by an earlier process with the same journal, and have not ended."""
        return self._journal.tasks()

    async def begin(
        self, tool: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> structs.CreateTaskResult | Any:
        """Call a tool without waiting for its task, which `resume` does.

        Returns the task, or the `CallToolResult` if the server ran the tool within the request.
        """
        token = _is_detached.set(True)
        try:
            params = {"name": tool, "arguments": dict(arguments or {})}
            return await self._client.send(protocol.TOOLS_CALL, params, **options)
        finally:
            _is_detached.reset(token)

    async def get(self, id: str, **options: Unpack[CallOptions]) -> structs.GetTaskResult:
        """Return the state of a task. Raises `InvalidParamsError` for a task that the server does not know."""
        if self._legacy.has_tasks(await self._client.connect()):
            return await self._legacy.get(id, options)
        return await self._client.send(methods.TASKS_GET, {"taskId": id}, **options)

    async def cancel(self, id: str, **options: Unpack[CallOptions]) -> None:
        """Ask the server to cancel a task, and forget it."""
        if self._legacy.has_tasks(await self._client.connect()):
            await self._legacy.cancel(id, options)
        else:
            await self._client.send(methods.TASKS_CANCEL, {"taskId": id}, **options)
        self._journal.forget(id)

    async def resume(self, id: str, **options: Unpack[CallOptions]) -> Any:
        """Wait for the end of a task, answer its questions, and return its `CallToolResult`.

        Raises `RemoteError` for a task that failed, and `TaskCancelledError` for one that was cancelled. The task goes
        on if this call is cancelled.
        """
        self._journal.save(self._journal.find(id))
        return await self._follow(id, options)

    # For the client

    async def _complete(self, result: structs.CreateTaskResult, call: ExtendedCall) -> Any:
        """Wait for the task that a call has become. A cancelled call cancels its task."""
        if call.method != "tools/call":
            raise ProtocolError(f"{call.method}: the server returned a task, which only tools/call can become")
        self._journal.save(KnownTask(result.task_id, call.params.name))
        if _is_detached.get():
            return result
        try:
            return await self._follow(result.task_id, call.options)
        except (asyncio.CancelledError, InputUnavailableError, ProtocolError):
            await self._give_up(result.task_id)
            raise

    async def _give_up(self, id: str) -> None:
        """Cancel a task whose result nobody waits for, if the server can be reached soon."""
        if self._client.is_closed:
            return
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CANCEL_TIME):
                await self.cancel(id)

    def _note(self, id: str) -> None:
        changed = self._changed.get(id)
        if changed is not None:
            changed.set()

    async def _follow(self, id: str, options: CallOptions) -> Any:
        """Return the result of a task, once there is one."""
        with self._following(id) as changed:
            async with AsyncExitStack() as stack:
                least = _MIN_POLL
                if self._listens and not self._legacy.has_tasks(await self._client.connect()):
                    least = await self._listen(id, stack)
                return await self._poll(id, changed, options, least=least)

    async def _listen(self, id: str, stack: AsyncExitStack) -> float:
        """Subscribe to a task, if the server lets it. Return the seconds between two requests for its state."""
        try:
            subscription = await stack.enter_async_context(self._client.listen({"taskIds": [id]}))
        except (ConnectionLostError, RemoteError) as error:
            text = f"the server sends no changes of tasks, and is asked for them: {format_value(str(error))}"
            self._client.report(Diagnostic(DiagnosticKind.NOT_GRANTED, text, "subscriptions/listen", error=error))
            return _MIN_POLL
        return _LISTENING_POLL if id in (subscription.granted_members.get("taskIds") or ()) else _MIN_POLL

    @contextmanager
    def _following(self, id: str) -> Generator[asyncio.Event]:
        previous = self._changed.get(id)
        changed = self._changed[id] = asyncio.Event()
        try:
            yield changed
        finally:
            self._legacy.close_result(id)
            if previous is None:
                self._changed.pop(id, None)
            else:
                self._changed[id] = previous

    async def _poll(self, id: str, changed: asyncio.Event, options: CallOptions, *, least: float = _MIN_POLL) -> Any:
        """Ask for the state of a task until it has ended, every `least` seconds or more."""
        known, seen = self._journal.find(id), None
        sent: set[str] = set()
        while True:
            changed.clear()
            task = await self._get_patiently(id, changed, options)
            if self._on_status is not None and (state := (task.status, task.status_message)) != seen:
                seen = state
                self._on_status(task)
            if task.status in FINAL_STATUSES:
                self._journal.forget(id)
                return self._result_of(task)
            if isinstance(task, structs.GetTaskResultInputRequired):
                new = {key: request for key, request in task.input_requests.items() if key not in sent}
                if new and await self._answer(known, new, options):
                    sent.update(new)
            pause = _DEFAULT_POLL if task.poll_interval_ms is None else task.poll_interval_ms / 1000
            with suppress(TimeoutError):
                async with asyncio.timeout(min(max(pause, least), _MAX_POLL)):
                    await changed.wait()

    async def _get_patiently(self, id: str, changed: asyncio.Event, options: CallOptions) -> structs.GetTaskResult:
        """Return the state of a task. A server that cannot be reached, or fails, gets some time: the task may go on."""
        for pause in (*_PAUSES, None):
            try:
                task = await self.get(id, **request_options(options))
                if task.status == "input_required" and self._legacy.has_tasks(await self._client.connect()):
                    self._legacy.open_result(task, changed)
                return task
            except ConnectionLostError as error:
                if pause is None or self._client.is_closed:
                    error.add_note(f"the task may go on: client.extension(TaskCalls).resume({id!r})")
                    raise
                await asyncio.sleep(pause)
            except RemoteError as error:
                if error.code != INTERNAL_ERROR or pause is None:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError  # not reached: the last pause is None

    async def _answer(self, known: KnownTask, requests: Mapping[str, Any], options: CallOptions) -> bool:
        """Answer questions of a task, and return whether the server has the answers.

        A question that an earlier process has answered gets the same answer again.
        """
        limit = self._client.limits.input_requests
        if len(requests) > limit:
            text = f"tools/call: the task asks {len(requests)} questions at once; the limit is {limit} (input_requests)"
            raise InputUnavailableError(text)
        for key, request in requests.items():
            if key not in known.answers:
                if len(known.answers) >= _MAX_ANSWERS:
                    raise InputUnavailableError(f"tools/call: the task has asked more than {_MAX_ANSWERS} questions")
                asked: Any = types.from_builtins(to_builtins(request), protocol.INPUT_REQUESTS[request.method].message)
                known.answers[key] = to_builtins(await self._client.answer("tools/call", asked))
                self._journal.save(known)  # before it is sent: a later process sends the same
        responses = {key: known.answers[key] for key in requests}
        try:
            await self._client.send(
                methods.TASKS_UPDATE, {"taskId": known.id, "inputResponses": responses}, **request_options(options)
            )
        except RemoteError as error:
            for key in responses:
                del known.answers[key]
            raise ProtocolError(f"tools/call: the server rejected an answer: {error.message}") from error
        except ConnectionLostError as error:
            text = f"an answer may not have arrived: {format_value(str(error))}"
            self._client.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text, "tasks/update"))
            return False
        return True

    def _result_of(self, task: structs.GetTaskResult) -> Any:
        """Return the result of a task that has ended. Raises the error of one without.

        The examples of the specification leave out `resultType`, which belongs to the response.
        """
        if isinstance(task, structs.GetTaskResultCompleted):
            members = {"resultType": "complete", **task.result}
            if "content" not in task.result and self._client.tolerate("result.content: required, but missing", _CALL):
                members["content"] = []
            return self._client.decode(_CALL, Raw(msgspec.json.encode(members)))
        if isinstance(task, structs.GetTaskResultFailed):
            raise RemoteError.from_wire(to_builtins(task.error))
        text = "" if not task.status_message else f": {task.status_message}"
        raise TaskCancelledError(f"the task was cancelled{text}")
