"""A store of tasks in Redis 6.2 or newer, shared by workers on any number of machines.

Every operation is one script of `task_scripts`. Each worker renews a lease; a task whose worker has died is run again
by another one, if it may be, or ends as failed. Workers read a stream of changes, so that listeners on each of them
are notified, and runs learn of answers and cancellation.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from redis.asyncio import Redis

from typedmcp.errors import INTERNAL_ERROR, UsageError
from typedmcp_extensions.tasks import (
    TASK_BYTES,
    NewTask,
    OnTaskChange,
    Outcome,
    Question,
    Renewal,
    TakenTask,
    TaskLimits,
    TaskRecord,
    TasksFullError,
)
from typedmcp_redis import task_scripts as scripts
from typedmcp_redis.link import RedisLink, RetryLoop, Script, cancel_all

__all__ = ["RedisTaskStore"]

_DIED = "the worker that ran the task has died"
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class RedisTaskStore:
    """A `TaskStore` in Redis. All workers of one service need the same `prefix`, limits and lease.

    `url` is the URL of a Redis server, or a client of `redis.asyncio`, which the store does not close. A worker that is
    silent for `lease` seconds counts as dead. Operations use at most `connections` connections, and take `timeout`
    seconds at most; one that takes longer raises `ConnectionError`. Redis must not evict keys, and must persist them if
    tasks are to outlive it. Raises `UsageError` for options that make no sense.
    """

    is_shared: bool = True

    def __init__(
        self,
        url: str | Redis = "redis://127.0.0.1:6379",
        *,
        prefix: str = "typedmcp:tasks:",
        lease: float = 10.0,
        limits: TaskLimits | None = None,
        connections: int = 8,
        timeout: float = 5.0,
    ) -> None:
        for name, value in {"lease": lease, "connections": connections, "timeout": timeout}.items():
            if not value > 0:
                raise UsageError(f"{name} must be positive, not {value:g}")
        self.limits: TaskLimits = TaskLimits() if limits is None else limits
        self.lease: float = lease
        worker, lease_ms = secrets.token_hex(5), max(1, int(lease * 1000))
        self._link = RedisLink(url, (prefix, worker, lease_ms, self.limits.ttl_ms), connections, timeout)
        self._changes = f"{prefix}changes"
        self._on_change: OnTaskChange = lambda _id, _is_over: None
        self._receiving: asyncio.Task[None] | None = None
        made = self.limits
        self._room: tuple[int, ...] = (
            made.tasks, made.share_of(made.tasks), made.task_bytes, made.share_of(made.task_bytes),
        )  # fmt: skip

    async def open(self, on_change: OnTaskChange) -> None:
        """Open the store, and begin to read changes."""
        self._on_change = on_change
        last = int(await self._link.run(scripts.LAST_CHANGE))
        self._receiving = asyncio.get_running_loop().create_task(self._receive(last))

    async def close(self) -> None:
        """Close the store, and give up the lease."""
        if self._link.is_closed:
            return
        if self._receiving is not None:
            await cancel_all([self._receiving])
        with suppress(ConnectionError):  # then the lease ends by itself
            await self._link.run(scripts.CLOSE)
        await self._link.close()

    async def renew(self, running: Mapping[str, int]) -> Renewal:
        """Renew the lease of this worker, and take over tasks of workers that have died."""
        content = _encode({"code": INTERNAL_ERROR, "message": _DIED})
        flat = [part for item in running.items() for part in item]
        lost, taken = await self._link.run(scripts.RENEW, int(self.limits.takeovers), content, _DIED, *flat)
        tasks = [
            TakenTask(id.decode(), int(run), client.decode(), call)
            for id, run, client, call in zip(*[iter(taken)] * 4, strict=True)
        ]
        return Renewal([id.decode() for id in lost], tasks)

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task. Raises `TasksFullError`."""
        call = task.call or b""
        answers = [part for key, value in task.answers.items() for part in (key, _encode(value))]
        created = await self._run_within_limits(
            scripts.CREATE, task.id, _encode(task.owner), task.client, TASK_BYTES + task.size + len(call), call, "",
            *self._room, *answers,
        )  # fmt: skip
        now = int(created)
        return TaskRecord(
            id=task.id, owner=task.owner, status="working", created=now, updated=now, ttl_ms=self.limits.ttl_ms
        )

    async def load(self, id: str) -> TaskRecord | None:
        """Return a task."""
        found = await self._link.run(scripts.LOAD, id)
        if found is None:
            return None
        (owner, status, created, updated, message, content, is_error), questions = found
        return msgspec.convert(
            {
                "id": id,
                "owner": _decode(owner),
                "status": status.decode(),
                "created": int(created),
                "updated": int(updated),
                "ttl_ms": self.limits.ttl_ms,
                "message": message.decode() or None,
                "content": _decode(content) if content else None,
                "is_error": bool(is_error),
                "questions": {
                    key.decode(): _decode(value) for key, value in zip(questions[::2], questions[1::2], strict=True)
                },
            },
            TaskRecord,
        )

    async def list_owned(self, owner: str, after: str | None, count: int) -> Sequence[TaskRecord]:
        """Return tasks of an owner, the oldest first. Raises `LookupError` for an unknown task `after`."""
        found = await self._link.run(scripts.LIST_OWNED, _encode(owner), after or "", count)
        if found == scripts.GONE:
            raise LookupError(after)
        return [
            TaskRecord(
                id=id.decode(), owner=owner, status=status.decode(), created=int(created), updated=int(updated),
                ttl_ms=self.limits.ttl_ms, message=message.decode() or None, is_error=bool(is_error),
            )
            for id, status, created, updated, message, is_error in found
        ]  # fmt: skip

    async def set_message(self, id: str, run: int, message: str) -> bool:
        """Set the text that tells people how far the task is."""
        return bool(await self._link.run(scripts.SET_MESSAGE, id, run, _to_bytes(message)) != scripts.GONE)

    async def ask(self, id: str, run: int, questions: Sequence[Question], size: int) -> bool:
        """Add questions that were not asked before. Raises `TasksFullError`."""
        flat = [part for each in questions for part in (each.key, _encode(each.request))]
        return bool(await self._run_within_limits(scripts.ASK, id, run, size, *self._room, *flat) != scripts.GONE)

    async def answers(self, id: str, run: int, keys: Sequence[str]) -> dict[str, Any] | None:
        """Return the answers to some questions."""
        found = await self._link.run(scripts.ANSWERS, id, run, *keys)
        if found == scripts.GONE:
            return None
        return {key.decode(): _decode(value) for key, value in zip(found[::2], found[1::2], strict=True)}

    async def answer(self, id: str, answers: Mapping[str, Any], size: int) -> list[str]:
        """Store the answers to questions that wait. Raises `TasksFullError`."""
        flat = [part for key, value in answers.items() for part in (key, _encode(value))]
        taken = await self._run_within_limits(scripts.ANSWER, id, size, *self._room, *flat)
        return [key.decode() for key in taken]

    async def end(self, id: str, run: int | None, outcome: Outcome, size: int) -> bool:
        """End a task that has not ended. Raises `TasksFullError`."""
        content = b"" if outcome.content is None else _encode(outcome.content)
        answer = await self._run_within_limits(
            scripts.END, id, "" if run is None else run, outcome.status, content, _to_bytes(outcome.message or ""),
            size, *self._room, "1" if outcome.is_error else "",
        )  # fmt: skip
        return bool(answer != scripts.GONE)

    async def release(self, id: str, run: int) -> None:
        """Give up a run, so that another worker takes the task over."""
        await self._link.run(scripts.RELEASE, id, run)

    async def _run_within_limits(self, script: Script, *args: object) -> Any:
        """Run a script that may reach a limit. Raises `TasksFullError`."""
        answer = await self._link.run(script, *args)
        if answer == scripts.FULL:
            raise TasksFullError("all clients together have as many tasks as the limits allow (tasks, task_bytes)")
        if answer == scripts.FULL_FOR_CLIENT:
            raise TasksFullError("the client has as many tasks as its share allows (client_share_percent)")
        return answer

    async def _receive(self, last: int) -> None:
        """Read the changes after a number until cancelled. After a failure, any task may have changed."""
        attempts = RetryLoop("changes of tasks cannot be read")
        while True:
            await asyncio.sleep(attempts.pause)
            was_failing = bool(attempts.pause)
            with attempts.attempt():
                (entries,) = await self._link.read((self._changes,), last) or ([],)
                if was_failing:
                    self._on_change(None, False)
                for number, entry in entries:
                    last = number
                    self._on_change(entry[b"id"].decode(), entry[b"over"] == b"1")


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
