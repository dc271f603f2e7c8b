"""The tasks that a client has begun, kept in a file so that a later process can resume them."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import msgspec

from typedmcp.building import open_lock, replace_file
from typedmcp.errors import UsageError

__all__ = ["KnownTask", "TaskJournal"]

_MAX_TASKS = 1000
_LOCK_SECONDS = 5.0
"""Time for which a change waits for the lock of the journal."""
_LOCK_PAUSE = 0.005


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

    Processes may share a file: each change is made to what the file holds then, under a lock in a file beside it. Of
    more than 1000 tasks the oldest are forgotten. Its methods raise `UsageError` for a file that is no journal, or that
    another process keeps locked.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._tasks: dict[str, KnownTask] = {}
        self._read()

    def tasks(self) -> list[KnownTask]:
        """Return the known tasks, the oldest first."""
        self._read()
        return [*self._tasks.values()]

    def find(self, id: str) -> KnownTask:
        """Return a task, which is added if it is not known."""
        self._read()
        return self._tasks.get(id) or KnownTask(id)

    def save(self, task: KnownTask) -> None:
        """Keep a task and its answers."""
        with self._changing():
            self._tasks[task.id] = task
            while len(self._tasks) > _MAX_TASKS:
                del self._tasks[next(iter(self._tasks))]

    def forget(self, id: str) -> None:
        """Forget a task that has ended."""
        with self._changing():
            self._tasks.pop(id, None)

    def _read(self) -> None:
        """Read the file, which other processes may have changed."""
        if self._path is None:
            return
        try:
            tasks = msgspec.json.decode(self._path.read_bytes(), type=list[KnownTask])
        except FileNotFoundError:
            tasks = []
        except (msgspec.MsgspecError, OSError) as error:
            raise UsageError(f"{self._path} is no journal of tasks: {error}") from error
        self._tasks = {task.id: task for task in tasks}

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Change what the file holds now, and replace it as a whole: a process that dies leaves the old or the new."""
        if self._path is None:
            yield
            return
        with _locked(self._path):
            self._read()
            before = msgspec.json.encode([*self._tasks.values()])
            yield
            if (after := msgspec.json.encode([*self._tasks.values()])) != before:
                replace_file(self._path, after)


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold the lock of a journal. Systems without such locks have one process for each journal."""
    try:
        descriptor, try_lock = open_lock(path.with_name(f".{path.name}.lock"))
    except ImportError:
        yield
        return
    try:
        deadline = monotonic() + _LOCK_SECONDS
        while not try_lock():  # other processes hold it for a few milliseconds
            if monotonic() > deadline:
                text = f"another process has kept the journal {path} locked for {_LOCK_SECONDS:g} s"
                raise UsageError(f"{text}; end it, or use another file")
            sleep(_LOCK_PAUSE)
        yield
    finally:
        os.close(descriptor)
