"""A store of tasks in memory, for one worker. Tasks end with the process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from typedmcp_extensions.tasks.limits import TASK_BYTES, TaskLimits
from typedmcp_extensions.tasks.store import (
    NewTask,
    OnTaskChange,
    Outcome,
    Question,
    Renewal,
    TaskRecord,
    TasksFullError,
    is_unfinished,
)

__all__ = ["MemoryTaskStore"]


class _StoredTask:
    """A task in memory, with what only the store needs."""

    __slots__ = ("answers", "client", "record", "run", "size")

    def __init__(self, record: TaskRecord, task: NewTask) -> None:
        self.record = record
        self.client = task.client
        self.answers = dict(task.answers)
        self.run = 1
        self.size = TASK_BYTES + task.size

    def is_current(self, run: int | None) -> bool:
        return is_unfinished(self.record.status) and run in (None, self.run)


class MemoryTaskStore:
    """A `TaskStore` in memory. A process that ends takes its tasks with it."""

    is_shared: bool = False
    lease: float = 10.0

    def __init__(self, limits: TaskLimits | None = None) -> None:
        self.limits: TaskLimits = TaskLimits() if limits is None else limits
        self._tasks: dict[str, _StoredTask] = {}
        self._numbers: Counter[str] = Counter()
        """The tasks of each client, by client; of all clients under the empty text."""
        self._sizes: Counter[str] = Counter()
        """The bytes of the tasks, in the same way."""
        self._owned: dict[str, dict[str, None]] = {}
        """The tasks of each owner, the oldest first."""
        self._on_change: OnTaskChange = _ignore

    async def open(self, on_change: OnTaskChange) -> None:
        """Open the store."""
        self._on_change = on_change

    async def close(self) -> None:
        """Close the store. Tasks that have ended are kept, and the next `open` finds them."""
        self._on_change = _ignore

    async def renew(self, running: Mapping[str, int]) -> Renewal:
        """Delete the tasks that are too old. Return the runs that have ended without their worker."""
        self._delete_old(_now())
        lost = [id for id, run in running.items() if (task := self._tasks.get(id)) is None or not task.is_current(run)]
        return Renewal(lost, ())

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task. Raises `TasksFullError`."""
        now = _now()
        self._delete_old(now)
        record = TaskRecord(
            id=task.id, owner=task.owner, status="working", created=now, updated=now,
            ttl_ms=self.limits.ttl_ms,
        )  # fmt: skip
        stored = _StoredTask(record, task)
        self._check_room(task.client, 1, stored.size)
        self._tasks[task.id] = stored
        if task.owner is not None:
            self._owned.setdefault(task.owner, {})[task.id] = None
        self._count(task.client, 1, stored.size)
        return _copy(record)

    async def load(self, id: str) -> TaskRecord | None:
        """Return a task."""
        stored = self._find(id)
        return None if stored is None else _copy(stored.record)

    async def list_owned(self, owner: str, after: str | None, count: int) -> Sequence[TaskRecord]:
        """Return tasks of an owner, the oldest first. Raises `LookupError` for an unknown task `after`."""
        self._delete_old(_now())
        ids = [*self._owned.get(owner, ())]
        if after is not None and after not in self._owned.get(owner, ()):
            raise LookupError(after)
        first = 0 if after is None else ids.index(after) + 1
        return [_copy(self._tasks[id].record) for id in ids[first : first + count]]

    async def set_message(self, id: str, run: int, message: str) -> bool:
        """Set the text that tells people how far the task is."""
        stored = self._find(id, run)
        if stored is None:
            return False
        stored.record.message = message
        self._changed(stored.record)
        return True

    async def ask(self, id: str, run: int, questions: Sequence[Question], size: int) -> bool:
        """Add questions that were not asked before. Raises `TasksFullError`."""
        stored = self._find(id, run)
        if stored is None:
            return False
        waiting = stored.record.questions
        added = {each.key: each.request for each in questions if each.key not in stored.answers | waiting}
        if added:
            self._check_room(stored.client, 0, size)
            self._grow(stored, size)
            stored.record.questions = {**waiting, **added}
            stored.record.status = "input_required"
            self._changed(stored.record)
        return True

    async def answers(self, id: str, run: int, keys: Sequence[str]) -> dict[str, Any] | None:
        """Return the answers to some questions."""
        stored = self._find(id, run)
        return None if stored is None else {key: stored.answers[key] for key in keys if key in stored.answers}

    async def answer(self, id: str, answers: Mapping[str, Any], size: int) -> list[str]:
        """Store the answers to questions that wait. Raises `TasksFullError`."""
        stored = self._find(id)
        if stored is None or not stored.is_current(None):
            return []
        record = stored.record
        taken = {key: answer for key, answer in answers.items() if key in record.questions}
        if taken:
            self._check_room(stored.client, 0, size)
            self._grow(stored, size)
            stored.answers.update(taken)
            record.questions = {key: each for key, each in record.questions.items() if key not in taken}
            record.status = "input_required" if record.questions else "working"
            self._changed(record)
        return [*taken]

    async def end(self, id: str, run: int | None, outcome: Outcome, size: int) -> bool:
        """End a task that has not ended. Raises `TasksFullError`."""
        stored = self._find(id)
        if stored is None or not stored.is_current(run):
            return False
        if size > TASK_BYTES:  # a short end always fits
            self._check_room(stored.client, 0, size)
        self._grow(stored, size)
        record = stored.record
        record.status, record.content, record.message = outcome.status, outcome.content, outcome.message
        record.is_error = outcome.is_error
        record.questions, stored.answers = {}, {}
        self._changed(record)
        return True

    async def release(self, id: str, run: int) -> None:
        """Do nothing: there is no other worker."""

    def _find(self, id: str, run: int | None = None) -> _StoredTask | None:
        stored = self._tasks.get(id)
        if stored is None or (run is not None and not stored.is_current(run)):
            return None
        if stored.record.created + stored.record.ttl_ms <= _now():
            self._delete(id)
            return None
        return stored

    def _changed(self, record: TaskRecord) -> None:
        record.updated = max(record.updated, _now())
        self._on_change(record.id, not is_unfinished(record.status))

    def _check_room(self, client: str, number: int, size: int) -> None:
        """Raise `TasksFullError` if there is no room for so many more tasks and bytes."""
        limits = self.limits
        for name, counts, added, total in (
            ("tasks", self._numbers, number, limits.tasks),
            ("task_bytes", self._sizes, size, limits.task_bytes),
        ):
            if counts[""] + added > total:
                raise TasksFullError(f"all clients together have as many tasks as the limit allows ({name})")
            if client and counts[client] + added > limits.share_of(total):
                raise TasksFullError(f"the client has as many tasks as its share allows ({name}, client_share_percent)")

    def _grow(self, stored: _StoredTask, size: int) -> None:
        stored.size += size
        self._count(stored.client, 0, size)

    def _count(self, client: str, number: int, size: int) -> None:
        for key in {"", client}:
            for counts, added in ((self._numbers, number), (self._sizes, size)):
                counts[key] += added
                if counts[key] <= 0:
                    del counts[key]

    def _delete_old(self, now: int) -> None:
        while self._tasks:
            first = next(iter(self._tasks.values())).record  # the oldest, and all live equally long
            if first.created + first.ttl_ms > now:
                return
            self._delete(first.id)

    def _delete(self, id: str) -> None:
        stored = self._tasks.pop(id)
        if (owner := stored.record.owner) is not None:
            del self._owned[owner][id]
            if not self._owned[owner]:
                del self._owned[owner]
        self._count(stored.client, -1, -stored.size)
        self._on_change(id, True)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _copy(record: TaskRecord) -> TaskRecord:
    return msgspec.structs.replace(record)


def _ignore(_id: str | None, _is_over: bool) -> None: ...
