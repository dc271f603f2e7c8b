"""Tasks as the Tasks extension writes them, and errors and results as tasks keep them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from mcpspec.ext.tasks.plain import structs
from mcpspec.support.structs import to_builtins
from typedmcp.errors import INTERNAL_ERROR, RemoteError
from typedmcp.protocol.codec import encode_into
from typedmcp.server.context import Context
from typedmcp.tasks.store import Outcome, TaskRecord

__all__ = [
    "created_result", "encoded_result", "ended", "failure", "shorten", "status_notification", "task_result",
    "text_of_progress",
]  # fmt: skip

_RESULTS: dict[str, Any] = {
    "working": structs.GetTaskResultWorking,
    "input_required": structs.GetTaskResultInputRequired,
    "completed": structs.GetTaskResultCompleted,
    "failed": structs.GetTaskResultFailed,
    "cancelled": structs.GetTaskResultCancelled,
}
_NOTIFICATIONS: dict[str, Any] = {
    "working": structs.TaskStatusNotificationParamsWorking,
    "input_required": structs.TaskStatusNotificationParamsInputRequired,
    "completed": structs.TaskStatusNotificationParamsCompleted,
    "failed": structs.TaskStatusNotificationParamsFailed,
    "cancelled": structs.TaskStatusNotificationParamsCancelled,
}
_MESSAGE_CHARS = 1000


def created_result(record: TaskRecord, poll_ms: int) -> structs.CreateTaskResult:
    """Return the result of a request that has begun a task."""
    return structs.CreateTaskResult(status=record.status, **_members(record, poll_ms))


def task_result(record: TaskRecord, poll_ms: int) -> structs.GetTaskResult:
    """Return the result of `tasks/get`."""
    made: structs.GetTaskResult = _RESULTS[record.status](**_members(record, poll_ms), **_content(record))
    return made


def status_notification(record: TaskRecord, poll_ms: int) -> structs.TaskStatusNotificationParams:
    """Return the parameters of `notifications/tasks`."""
    made: structs.TaskStatusNotificationParams = _NOTIFICATIONS[record.status](
        **_members(record, poll_ms), **_content(record)
    )
    return made


def _members(record: TaskRecord, poll_ms: int) -> dict[str, Any]:
    return {
        "task_id": record.id, "created_at": _time(record.created), "last_updated_at": _time(record.updated),
        "ttl_ms": record.ttl_ms, "status_message": record.message, "poll_interval_ms": poll_ms,
    }  # fmt: skip


def _content(record: TaskRecord) -> dict[str, Any]:
    """Return the members that only tasks in this state have."""
    if record.status == "input_required":
        return {"input_requests": record.questions}
    if record.status == "completed":
        return {"result": record.content}
    return {"error": structs.Error(**record.content)} if record.status == "failed" else {}


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of_progress(params: Any) -> str:
    """Return progress as a text for people, such as `2 of 3: compressing`."""
    amount = f"{params.progress:g}" + ("" if params.total is None else f" of {params.total:g}")
    return shorten(amount if not params.message else f"{amount}: {params.message}")


def shorten(text: str) -> str:
    """Return a text that is not too long for the description of a state."""
    return text if len(text) <= _MESSAGE_CHARS else f"{text[: _MESSAGE_CHARS - 1]}…"


def encoded_result(ctx: Context, result: Any, server_info: Any) -> tuple[Any, int]:
    """Return the result of a request as the client would have got it, in plain JSON, and its size in bytes.

    `server_info` adds the name of the server. Raises `UsageError` for a value that is no result of the method.
    """
    encoded = ctx.method_codec.downgrade(result, [])
    line = bytearray()
    encode_into(server_info(encoded), line)
    return msgspec.json.decode(line), len(line)


def failure(error: BaseException, method: str, revision: str) -> Outcome:
    """Return the end of a task whose request failed. Clients see the text of errors that are meant for them."""
    if isinstance(error, RemoteError):
        content: dict[str, Any] = {"code": error.wire_code(revision), "message": error.message}
        if error.data is not None:
            content["data"] = to_builtins(error.data)
        return Outcome("failed", content, shorten(error.message))
    return ended(f"internal error in {method}")


def ended(reason: str) -> Outcome:
    """Return the end of a task that the server could not complete."""
    return Outcome("failed", {"code": INTERNAL_ERROR, "message": reason}, shorten(reason))
