"""The store of tasks: what outlives the request that began a task, and the worker that runs it.

A task is run by one worker at a time. Its runs are numbered, and only the current run can change the task, so a worker
that was taken for dead cannot end a task a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from typedmcp_extensions.tasks.limits import TaskLimits

__all__ = [
    "NewTask", "OnTaskChange", "Outcome", "Question", "Renewal", "TakenTask", "TaskRecord", "TaskStatus",
    "TaskStore", "TasksFullError", "is_unfinished",
]  # fmt: skip

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]


class TasksFullError(Exception):
    """The store holds as many tasks, or as many of their bytes, as its limits allow."""


class Question(msgspec.Struct):
    """An input request of a task."""

    key: str
    """The key, which stands for this question alone during the whole life of the task."""
    request: Any
    """The input request in plain JSON."""


class Outcome(msgspec.Struct):
    """The end of a task."""

    status: Literal["completed", "failed", "cancelled"]
    content: Any = None
    """The result or the error of the request, in plain JSON."""
    message: str | None = None
    """The text for people."""
    is_error: bool = False
    """True for a result that says that the tool has failed."""


class NewTask(msgspec.Struct, kw_only=True):
    """A task that begins."""

    id: str
    owner: str | None
    """The principal or session that may use the task. None if the id is enough."""
    client: str
    """The client that limits count for; empty if it is unknown."""
    call: bytes | None
    """The request, as another worker needs it to run the task again; None for a task that may not be run again."""
    answers: dict[str, Any]
    """The answers that the client gave before the task began, by key."""
    size: int
    """The bytes of the request."""


class TaskRecord(msgspec.Struct, kw_only=True):
    """A task as it is stored. Times are in milliseconds since 1970."""

    id: str
    owner: str | None
    status: TaskStatus
    created: int
    updated: int
    ttl_ms: int
    message: str | None = None
    questions: dict[str, Any] = {}
    """The input requests that wait for their answers, in plain JSON, by key."""
    content: Any = None
    """The result or the error, in plain JSON, once the task has ended."""
    is_error: bool = False
    """True for a result that says that the tool has failed."""


class TakenTask(NamedTuple):
    """A task that this worker has to run again, since its worker has died."""

    id: str
    run: int
    """The number of the run that begins."""
    client: str
    call: bytes


class Renewal(NamedTuple):
    """The tasks of a worker that renews its lease."""

    lost: Sequence[str]
    """Tasks that are no longer this worker's to run: cancelled, or taken over by another."""
    taken: Sequence[TakenTask]
    """Tasks that this worker has to run now."""


OnTaskChange: TypeAlias = Callable[[str | None, bool], None]
"""Called in the event loop with the id of a task that may have changed; None if any may have.

The second argument is true if the task has ended.
"""


class TaskStore(Protocol):
    """The storage of tasks. Every operation is atomic, and raises `ConnectionError` if the store cannot be reached.

    The operations of a run return False, or None, if the run is not the task's current one, or the task has ended.
    """

    limits: TaskLimits
    is_shared: bool
    """True if other workers can use the same tasks."""
    lease: float
    """Seconds after which a worker counts as dead that has not called `renew`."""

    async def open(self, on_change: OnTaskChange) -> None:
        """Open the store, and call `on_change` for tasks that change, on any worker."""
        ...

    async def close(self) -> None:
        """Close the store. Runs of this worker that have not ended count as runs of a dead worker."""
        ...

    async def renew(self, running: Mapping[str, int]) -> Renewal:
        """Renew the lease of this worker, which has these runs, by task. Take over tasks of workers that have died.

        Those that may not run again are ended as failed. Tasks of this worker that it does not run are ended, too.
        """
        ...

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task, which this worker runs with the run number 1. Raises `TasksFullError`."""
        ...

    async def load(self, id: str) -> TaskRecord | None:
        """Return a task; None if there is none, or if it is too old."""
        ...

    async def list_owned(self, owner: str, after: str | None, count: int) -> Sequence[TaskRecord]:
        """Return up to `count` tasks of an owner, without questions and contents, the oldest first.

        They begin after the task with the id `after`. Raises `LookupError` if the owner has no such task.
        """
        ...

    async def set_message(self, id: str, run: int, message: str) -> bool:
        """Set the text that tells people how far the task is."""
        ...

    async def ask(self, id: str, run: int, questions: Sequence[Question], size: int) -> bool:
        """Add questions, of `size` bytes, that were not asked before. Raises `TasksFullError`."""
        ...

    async def answers(self, id: str, run: int, keys: Sequence[str]) -> dict[str, Any] | None:
        """Return the answers to those of some questions that have one, by key."""
        ...

    async def answer(self, id: str, answers: Mapping[str, Any], size: int) -> list[str]:
        """Store the answers to questions that wait, each once. Return their keys."""
        ...

    async def end(self, id: str, run: int | None, outcome: Outcome, size: int) -> bool:
        """End a task that has not ended. `run` is None for the end that a client wants.

        Raises `TasksFullError` for an outcome that does not fit.
        """
        ...

    async def release(self, id: str, run: int) -> None:
        """Give up a run, so that another worker may take the task over."""
        ...


def is_unfinished(status: TaskStatus) -> bool:
    """Return whether a task has not ended."""
    return status in ("working", "input_required")
