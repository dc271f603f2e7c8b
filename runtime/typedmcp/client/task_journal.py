"""The tasks that a client has begun, kept in a file so that a later process can resume them."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from typedmcp.errors import UsageError

__all__ = ["KnownTask", "TaskJournal"]

_MAX_TASKS = 1000


class KnownTask(msgspec.Struct):
    """A task that a client has begun and not seen the end of."""

    id: str
    """The id of the task at its server."""
    tool: str | None = None
    """The tool that was called, if it is known."""
    answers: dict[str, Any] = {}
    """The answers that were given to the task's questions, in plain JSON, by key."""


class TaskJournal:
    """The known tasks of a client. With a path they are in a file that only its user can read.

    One process at a time uses a file. Of more than 1000 tasks the oldest are forgotten. Raises `UsageError` for a file
    that is no journal.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._tasks: dict[str, KnownTask] = {}
        if self._path is not None and self._path.exists():
            try:
                tasks = msgspec.json.decode(self._path.read_bytes(), type=list[KnownTask])
            except (msgspec.MsgspecError, OSError) as error:
                raise UsageError(f"{self._path} is no journal of tasks: {error}") from error
            self._tasks = {task.id: task for task in tasks}

    def tasks(self) -> list[KnownTask]:
        """Return the known tasks, the oldest first."""
        return [*self._tasks.values()]

    def find(self, id: str) -> KnownTask:
        """Return a task, which is added if it is not known."""
        return self._tasks.get(id) or KnownTask(id)

    def save(self, task: KnownTask) -> None:
        """Keep a task and its answers."""
        self._tasks[task.id] = task
        while len(self._tasks) > _MAX_TASKS:
            del self._tasks[next(iter(self._tasks))]
        self._write()

    def forget(self, id: str) -> None:
        """Forget a task that has ended."""
        if self._tasks.pop(id, None) is not None:
            self._write()

    def _write(self) -> None:
        """Replace the file as a whole, so that a process that dies leaves the old one or the new one."""
        if self._path is None:
            return
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}-")  # with the mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(self.tasks()))
            os.replace(name, self._path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
