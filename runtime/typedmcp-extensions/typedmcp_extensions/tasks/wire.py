"""Tasks as the Tasks extension and legacy revisions write them, and errors and results as tasks keep them.

The store has results and errors as modern revisions write them, for whichever client begins the task.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from mcpspec.ext.tasks import structs
from typedmcp import Context
from typedmcp.building import is_object, to_builtins
from typedmcp.errors import INTERNAL_ERROR, RemoteError
from typedmcp_extensions.tasks.revisions import DIALECT
from typedmcp_extensions.tasks.store import Outcome, TaskRecord

__all__ = [
    "created_result", "ended", "failure", "legacy_members", "rejected_answer", "rejection_of",
    "shorten", "status_notification", "task_result", "text_of_progress",
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

_REJECTION: Final = "typedmcp/error"
"""The member of an answer that is the error of the client. No answer of the protocol has it."""


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


def legacy_members(record: TaskRecord, poll_ms: int) -> dict[str, Any]:
    """Return the members of a task on legacy revisions, where one whose tool has failed counts as failed."""
    has_failed = record.status == "completed" and record.is_error
    made: dict[str, Any] = {
        "task_id": record.id, "status": "failed" if has_failed else record.status, "created_at": _time(record.created),
        "last_updated_at": _time(record.updated), "ttl": record.ttl_ms, "poll_interval": poll_ms,
    }  # fmt: skip
    if record.message is not None:
        made["status_message"] = record.message
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


def failure(error: BaseException, ctx: Context) -> Outcome:
    """Return the end of a task whose request failed. Clients see the text of errors that are meant for them."""
    if isinstance(error, RemoteError):
        code = error.wire_code(ctx.revision if ctx.is_modern else DIALECT)
        content: dict[str, Any] = {"code": code, "message": error.message}
        if error.data is not None:
            content["data"] = to_builtins(error.data)
        return Outcome("failed", content, shorten(error.message))
    return ended(f"internal error in {ctx.method}")


def ended(reason: str) -> Outcome:
    """Return the end of a task that the server could not complete."""
    return Outcome("failed", {"code": INTERNAL_ERROR, "message": reason}, shorten(reason))


def rejected_answer(error: RemoteError) -> dict[str, Any]:
    """Return the error of a client that rejects a question of a task, as the store keeps it among the answers."""
    content: dict[str, Any] = {"code": error.code, "message": error.message}
    return {_REJECTION: content if error.data is None else {**content, "data": to_builtins(error.data)}}


def rejection_of(answer: Any) -> RemoteError | None:
    """Return the error of a client that has rejected a question of a task; None for an answer."""
    rejection: Any = answer.get(_REJECTION) if is_object(answer) else None
    return None if rejection is None else RemoteError.from_wire(rejection)
