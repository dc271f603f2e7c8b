"""Tasks of servers whose revision has them in the protocol itself, translated to those of the extension.

The client asks for a task, and `tasks/result` waits for its end. Meanwhile the server asks the questions of the task in
requests of its own, which the callbacks of the client answer like any others.
https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpspec.ext.tasks import structs
from typedmcp import CallOptions
from typedmcp.building import from_builtins, is_object, to_builtins
from typedmcp.client import ServerDescription
from typedmcp.errors import INTERNAL_ERROR, DecodeError, InvalidParamsError, ProtocolError, RemoteError, UsageError
from typedmcp.extensions import ExtensionClient
from typedmcp_extensions.tasks.extension import FINAL_STATUSES
from typedmcp_extensions.tasks.revisions import WITH_TASKS, structs_of

__all__ = ["LegacyTaskCalls", "request_options"]

_MAX_TOOLS: Final = 10_000
"""Tools whose support for tasks is known at a time."""
_NO_TTL: Final = "result: a task without ttl, which was read as null"
_NAMES: Final = {"ttl": "ttlMs", "pollInterval": "pollIntervalMs"}
"""The members of a task with another name in the extension."""


def request_options(options: CallOptions) -> CallOptions:
    """Return the options of a call that concern each of its requests."""
    made = CallOptions()
    if "timeout" in options:
        made["timeout"] = options["timeout"]
    return made


class LegacyTaskCalls:
    """The tasks of one client on revisions that have tasks in the protocol itself: a `LegacyCallForm`.

    `ttl` is the time in seconds for which servers are asked to keep a task. `on_change` is called with the id of a task
    whose status has changed.
    """

    revisions: frozenset[str] = WITH_TASKS
    """The revisions that have tasks."""

    def __init__(self, client: ExtensionClient, ttl: float | None, on_change: Callable[[str], None]) -> None:
        self._client = client
        self._metadata: dict[str, int] = {} if ttl is None else {"ttl": int(ttl * 1000)}
        self.callbacks: Mapping[str, Callable[[Any], object]] = {
            "notifications/tasks/status": lambda params: on_change(params.task_id),
            "notifications/tools/list_changed": lambda _params: self._support.clear(),
        }
        """The callbacks for notifications."""
        self._support: dict[str, str] = {}
        """The `taskSupport` of tools, by name, as far as it is known."""
        self._listed: ServerDescription | None = None
        """The session whose tools are known."""
        self._listing = asyncio.Lock()
        self._results: dict[str, _OpenResult] = {}
        """The open `tasks/result` requests, by the id of their task."""

    def has_tasks(self, server: ServerDescription) -> bool:
        """Return whether a server has tasks of this form."""
        return server.tasks is not None and server.revision in self.revisions

    # Calls

    async def call(self, method: str, params: Any, options: CallOptions) -> Any:
        """Call a tool that can run as a task so that it does, and return the task. Other calls are left alone."""
        if method != "tools/call":
            return None
        server = await self._client.connect()
        if not self.has_tasks(server) or not _runs_tools(server.tasks or {}):
            return None
        if not await self._can_run(params.name, server, request_options(options)):
            return None
        plain: dict[str, Any] = {"name": params.name, "task": self._metadata}
        if params.arguments is not None:
            plain["arguments"] = params.arguments
        raw = await self._client.send_raw(method, plain, **options)
        if not _has_task(raw):
            return raw  # the server has run the tool within the request
        exact = structs_of(server.revision)
        made = self._decode(method, raw, exact.CreateTaskResult, "task")
        return _convert(method, {**made["task"], "resultType": "task"}, structs.CreateTaskResult)

    async def _can_run(self, name: str, server: ServerDescription, options: CallOptions) -> bool:
        """Return whether a tool can run as a task. Tools are listed when an unknown one is called."""
        async with self._listing:
            if self._listed is not server:
                self._support.clear()
                self._listed = server
            if name not in self._support:
                await self._list(name, options)
                if len(self._support) > _MAX_TOOLS:
                    self._support = {name: self._support.get(name, "forbidden")}
            return self._support.setdefault(name, "forbidden") in ("optional", "required")

    async def _list(self, name: str, options: CallOptions) -> None:
        """List tools until the one with this name."""
        cursor: str | None = None
        for _ in range(self._client.limits.list_pages):
            raw = await self._client.send_raw("tools/list", {} if cursor is None else {"cursor": cursor}, **options)
            try:
                page = _decode_page(raw)
            except (msgspec.MsgspecError, ValueError) as error:
                raise ProtocolError(f"tools/list: result: {error}") from error
            known = len(self._support)
            for tool in page.tools:
                self._support[tool.name] = "forbidden" if tool.execution is None else tool.execution.support
            is_endless = page.cursor == cursor and len(self._support) == known
            cursor = page.cursor
            if not cursor or is_endless or name in self._support or len(self._support) > _MAX_TOOLS:
                return

    # Tasks

    async def get(self, id: str, options: CallOptions) -> structs.GetTaskResult:
        """Return the state of a task, with its result or error if it has ended."""
        state = await self._request_state(id, options)
        waiting = self._results.get(id)
        raw = None if waiting is None else waiting.find()
        if raw is None and state["status"] not in ("completed", "failed"):
            members: dict[str, Any] = {"inputRequests": {}} if state["status"] == "input_required" else {}
            return _to_state(state, **members)
        try:
            if raw is None:
                raw = await self._client.send_raw("tasks/result", {"taskId": id}, **options)
        except RemoteError as error:
            return _failed(state, error)
        result = self._client.decode("tools/call", raw)
        if state["status"] == "failed" and not result.is_error:  # some servers have no other result of such a task
            text = state.get("statusMessage") or "the task has failed, and the server does not say why"
            return _failed(state, RemoteError(INTERNAL_ERROR, text))
        # As in the extension, a tool that has failed makes no failed task.
        return _to_state(state, status="completed", result=to_builtins(result))

    async def _request_state(self, id: str, options: CallOptions) -> dict[str, Any]:
        """Return the state of a task in plain JSON."""
        server = await self._client.connect()
        raw = await self._client.send_raw("tasks/get", {"taskId": id}, **options)
        return self._decode("tasks/get", raw, structs_of(server.revision).GetTaskResult)

    async def cancel(self, id: str, options: CallOptions) -> None:
        """Cancel a task. One that has ended already is left alone. Raises `UsageError` if the server cannot do it."""
        server = await self._client.connect()
        if "cancel" not in (server.tasks or {}):
            raise UsageError("tasks/cancel: the server has not declared that it can cancel tasks")
        try:
            await self._client.send_raw("tasks/cancel", {"taskId": id}, **options)
        except InvalidParamsError:
            if (await self._request_state(id, options))["status"] not in FINAL_STATUSES:
                raise

    def open_result(self, task: structs.GetTaskResult, changed: asyncio.Event) -> None:
        """Wait for the result of a task that needs input: meanwhile the server asks its questions.

        `changed` is set as soon as there is a result. After an error the next poll says what has become of the task.
        """
        waiting = self._results.get(task.task_id)
        if waiting is None or waiting.has_failed():
            request = asyncio.create_task(self._wait_for_result(task.task_id))
            self._results[task.task_id] = _OpenResult(request, changed)

    async def _wait_for_result(self, id: str) -> Raw:
        # People may take their time for an answer. The call that waits for the task has its own time.
        return await self._client.send_raw("tasks/result", {"taskId": id}, timeout=None, max_time=None)

    def close_result(self, id: str) -> None:
        """Wait no longer for the result of a task."""
        waiting = self._results.pop(id, None)
        if waiting is not None:
            waiting.request.cancel()

    # Decoding

    def _decode(self, method: str, raw: Raw, kind: Any, member: str | None = None) -> dict[str, Any]:
        """Return a result that is a task, or has one as a member, as plain JSON.

        Some servers leave out `ttl` instead of sending null. Raises `ProtocolError` for a result that does not fit.
        """
        try:
            plain: Any = msgspec.json.decode(raw)
            task: Any = plain if member is None else plain[member]
            if is_object(task) and "ttl" not in task and self._client.tolerate(_NO_TTL, method):
                task["ttl"] = None
            made: dict[str, Any] = to_builtins(from_builtins(plain, kind))
        except DecodeError as error:
            raise _to_protocol_error(method, error) from error
        except ValueError as error:
            raise ProtocolError(f"{method}: result: {error}") from error
        return made


class _OpenResult:
    """A `tasks/result` request that waits for the end of its task."""

    def __init__(self, request: asyncio.Task[Raw], changed: asyncio.Event) -> None:
        self.request = request
        request.add_done_callback(lambda _request: None if self.has_failed() else changed.set())

    def has_failed(self) -> bool:
        """Return whether the request has got an error."""
        return self.request.done() and (self.request.cancelled() or self.request.exception() is not None)

    def find(self) -> Raw | None:
        """Return the result, if there is one."""
        return self.request.result() if self.request.done() and not self.has_failed() else None


def _to_protocol_error(method: str, error: DecodeError) -> ProtocolError:
    path = f"result.{error.path}" if error.path else "result"
    return ProtocolError(f"{method}: {path}: {error.reason}")


def _runs_tools(tasks: Mapping[str, Any]) -> bool:
    """Return whether a server runs calls of tools as tasks, by its capability `tasks`."""
    return "call" in tasks.get("requests", {}).get("tools", {})


def _convert(method: str, task: Mapping[str, Any], kind: Any) -> Any:
    """Return a task in a type of the extension. Raises `ProtocolError` for a member that does not fit."""
    made = {_NAMES.get(name, name): value for name, value in task.items()}
    try:
        return from_builtins(made, kind)
    except DecodeError as error:
        raise _to_protocol_error(method, error) from error


def _to_state(state: Mapping[str, Any], **members: Any) -> structs.GetTaskResult:
    """Return a task with other members as the extension has it."""
    made = {**state, **members, "resultType": "complete"}
    return cast("structs.GetTaskResult", _convert("tasks/get", made, structs.GetTaskResult))


def _failed(state: Mapping[str, Any], error: RemoteError) -> structs.GetTaskResult:
    """Return a task that has ended with an error."""
    content: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        content["data"] = to_builtins(error.data)
    return _to_state(state, status="failed", error=content)


class _Execution(msgspec.Struct):
    support: str = msgspec.field(name="taskSupport", default="forbidden")


class _Tool(msgspec.Struct):
    name: str
    execution: _Execution | None = None


class _Page(msgspec.Struct):
    tools: list[_Tool]
    cursor: str | None = msgspec.field(name="nextCursor", default=None)


class _CallResult(msgspec.Struct):
    task: Raw | UnsetType = UNSET


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_call_result = msgspec.json.Decoder(_CallResult).decode


def _has_task(raw: Raw) -> bool:
    """Return whether the result of a call is a task."""
    try:
        return _decode_call_result(raw).task is not UNSET
    except (msgspec.MsgspecError, ValueError):
        return False  # decoding the usual result says what is wrong
