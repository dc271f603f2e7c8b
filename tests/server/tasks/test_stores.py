"""Stores of tasks: the same promises in memory and in Redis."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.redis_server import RedisServer, shared_redis
from typedmcp.tasks import MemoryTaskStore, RedisTaskStore, TaskLimits, TaskStore
from typedmcp.tasks.store import NewTask, Outcome, Question, StoredCall, TasksFullError

__all__ = ["shared_redis"]  # a fixture

_numbers = itertools.count(1)
DONE = Outcome("completed", {"content": []})
CALL = StoredCall(raw=b"{}", revision="2026-07-28", meta={})


class Store:
    """A store that is open, and the changes that it has announced."""

    def __init__(self, store: TaskStore) -> None:
        self.store = store
        self.changes: list[tuple[str | None, bool]] = []

    async def changed(self, id: str, *, is_over: bool) -> None:
        """Wait until a change was announced."""
        async with asyncio.timeout(60):
            while (id, is_over) not in self.changes:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def opened(store: TaskStore) -> AsyncGenerator[Store]:
    made = Store(store)
    await store.open(lambda task, is_over: made.changes.append((task, is_over)))
    try:
        yield made
    finally:
        await store.close()


Make = Callable[..., TaskStore]


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Make:
    """Return a function that makes a store, each time with the same tasks in Redis."""
    server: RedisServer | None = request.getfixturevalue("shared_redis") if request.param == "redis" else None
    prefix = f"tasks{next(_numbers)}:"

    def made(limits: TaskLimits | None = None) -> TaskStore:
        if server is None:
            return MemoryTaskStore(limits)
        return RedisTaskStore(server.url, prefix=prefix, limits=limits)

    return made


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def new(id: str = "a", **options: Any) -> NewTask:
    given: dict[str, Any] = {"owner": None, "client": "c", "call": None, "answers": {}, "size": 10, **options}
    return NewTask(id=id, **given)


def test_a_task_is_found_until_it_is_too_old(make: Make) -> None:
    async def main() -> None:
        async with opened(make(TaskLimits(ttl=0.02, keep=0.03))) as opening:
            store = opening.store
            created = await store.create(new(owner="ada"))
            assert (created.status, created.ttl_ms, created.owner) == ("working", 50, "ada")
            assert await store.load("a") == created
            await asyncio.sleep(0.08)
            assert await store.load("a") is None

    run(main())


def test_a_task_ends_once(make: Make) -> None:
    async def main() -> None:
        async with opened(make()) as opening:
            store = opening.store
            await store.create(new())
            assert await store.end("a", 1, DONE, 20)
            assert not await store.end("a", 1, Outcome("failed", {"code": 1}), 20)
            assert not await store.end("a", None, Outcome("cancelled"), 0)
            record = await store.load("a")
            assert record is not None
            assert (record.status, record.content) == ("completed", {"content": []})
            assert not await store.set_message("a", 1, "late")
            assert not await store.ask("a", 1, [Question("k", {})], 1)
            assert await store.answers("a", 1, ["k"]) is None
            await opening.changed("a", is_over=True)

    run(main())


def test_only_the_current_run_changes_a_task(make: Make) -> None:
    async def main() -> None:
        async with opened(make()) as opening:
            store = opening.store
            await store.create(new())
            assert not await store.set_message("a", 2, "x")
            assert not await store.end("a", 2, DONE, 0)
            assert await store.set_message("a", 1, "half – done")
            record = await store.load("a")
            assert record is not None
            assert (record.status, record.message) == ("working", "half – done")
            assert await store.end("a", None, Outcome("cancelled"), 0)

    run(main())


def test_questions_are_asked_and_answered_once(make: Make) -> None:
    async def main() -> None:
        async with opened(make()) as opening:
            store = opening.store
            await store.create(new(answers={"known": {"action": "accept"}}))
            questions = [Question("one", {"q": 1}), Question("two", {"q": 2}), Question("known", {"q": 3})]
            assert await store.ask("a", 1, questions, 30)
            record = await store.load("a")
            assert record is not None
            assert record.status == "input_required"
            assert record.questions == {"one": {"q": 1}, "two": {"q": 2}}
            assert await store.answer("a", {"one": 1, "none": 2}, 5) == ["one"]
            assert await store.answer("a", {"one": 9}, 5) == []
            assert await store.answers("a", 1, ["one", "two", "known"]) == {"one": 1, "known": {"action": "accept"}}
            assert await store.ask("a", 1, questions, 30)
            assert await store.answer("a", {"two": {"x": "é"}}, 5) == ["two"]
            record = await store.load("a")
            assert record is not None
            assert (record.status, record.questions) == ("working", {})
            assert await store.answers("a", 1, ["two"]) == {"two": {"x": "é"}}

    run(main())


def test_the_number_of_tasks_is_limited(make: Make) -> None:
    async def main() -> None:
        limits = TaskLimits(tasks=4, client_share_percent=50, ttl=0.05, keep=0.05)
        async with opened(make(limits)) as opening:
            store = opening.store
            for id in "ab":
                await store.create(new(id, client="one"))
            with pytest.raises(TasksFullError, match="the client has as many tasks as its share allows"):
                await store.create(new("c", client="one"))
            for id in "cd":
                await store.create(new(id, client=""))
            with pytest.raises(TasksFullError, match="all clients together have as many tasks"):
                await store.create(new("e", client="two"))
            await asyncio.sleep(0.15)
            await store.create(new("e", client="one"))

    run(main())


def test_the_bytes_of_tasks_are_limited(make: Make) -> None:
    async def main() -> None:
        limits = TaskLimits(task_bytes=20_000, client_share_percent=50)
        async with opened(make(limits)) as opening:
            store = opening.store
            with pytest.raises(TasksFullError):
                await store.create(new(size=10_000))
            await store.create(new(size=4000))
            with pytest.raises(TasksFullError):
                await store.ask("a", 1, [Question("k", {})], 6000)
            assert await store.ask("a", 1, [Question("k", {})], 4000)
            with pytest.raises(TasksFullError):
                await store.answer("a", {"k": 1}, 2000)
            with pytest.raises(TasksFullError):
                await store.end("a", 1, DONE, 2000)
            assert await store.end("a", 1, Outcome("failed", {"code": 1, "message": "x"}), 0)

    run(main())


def test_an_owner_of_a_run_that_was_cancelled_learns_of_it(make: Make) -> None:
    async def main() -> None:
        async with opened(make()) as opening:
            store = opening.store
            await store.renew({})
            for id in "ab":
                await store.create(new(id))
            await store.end("a", None, Outcome("cancelled"), 0)
            renewal = await store.renew({"a": 1, "b": 1})
            assert (list(renewal.lost), list(renewal.taken)) == (["a"], [])

    run(main())


# Several workers


@pytest.fixture
def prefix() -> str:
    """Return the prefix of the keys in Redis."""
    return f"tasks{next(_numbers)}:"


@pytest.fixture
def worker(shared_redis: RedisServer, prefix: str) -> Callable[..., RedisTaskStore]:
    """Return a function that makes the store of one more worker."""

    def made(lease: float = 0.3, **limits: Any) -> RedisTaskStore:
        return RedisTaskStore(shared_redis.url, prefix=prefix, lease=lease, limits=TaskLimits(**limits))

    return made


Worker = Callable[..., RedisTaskStore]


async def renewed_until(store: TaskStore, holds: Callable[[Any], bool]) -> Any:
    """Renew the lease of a worker until a renewal is as expected."""
    async with asyncio.timeout(60):
        while not holds(renewal := await store.renew({})):
            await asyncio.sleep(0.05)
    return renewal


def test_a_change_on_one_worker_is_announced_on_the_other(worker: Worker) -> None:
    async def main() -> None:
        async with opened(worker()) as one, opened(worker()) as other:
            await one.store.create(new())
            await one.store.set_message("a", 1, "x")
            await other.changed("a", is_over=False)
            await one.store.end("a", None, Outcome("cancelled"), 0)
            await other.changed("a", is_over=True)

    run(main())


def test_a_task_of_a_dead_worker_is_taken_over_if_it_may_run_again(worker: Worker) -> None:
    async def main() -> None:
        async with opened(worker()) as one, opened(worker()) as other:
            await one.store.renew({})
            await other.store.renew({})
            await one.store.create(new("once"))
            await one.store.create(new("again", call=CALL))
            await one.store.create(new("over", call=CALL))
            await one.store.end("over", 1, DONE, 0)
            renewal = await renewed_until(other.store, lambda renewal: bool(renewal.taken))
            assert [(task.id, task.run, task.client, task.call) for task in renewal.taken] == [("again", 2, "c", CALL)]
            failed, over = await other.store.load("once"), await other.store.load("over")
            assert failed is not None
            assert over is not None
            assert failed.status == "failed"
            assert failed.content["message"] == "the worker that ran the task has died"
            assert over.status == "completed"
            # the first worker was only slow
            assert set((await one.store.renew({"once": 1, "again": 1, "over": 1})).lost) == {"once", "again", "over"}
            assert not await one.store.end("again", 1, DONE, 0)
            assert await other.store.end("again", 2, DONE, 0)

    run(main())


def test_a_task_is_not_taken_over_for_ever(worker: Worker) -> None:
    async def main() -> None:
        async with opened(worker(lease=0.05, takeovers=2)) as opening:
            store = opening.store
            await store.renew({})
            await store.create(new(call=CALL))
            runs: list[int] = []
            async with asyncio.timeout(60):
                while (record := await store.load("a")) is not None and record.status == "working":
                    runs += [task.run for task in (await store.renew({})).taken]  # which nothing runs
                    await asyncio.sleep(0.02)
            assert record is not None
            assert (runs, record.status) == ([2, 3], "failed")

    run(main())


def test_a_released_task_is_taken_over_at_once(worker: Worker) -> None:
    async def main() -> None:
        async with opened(worker(lease=60)) as one, opened(worker(lease=60)) as other:
            await one.store.create(new(call=CALL))
            await one.store.release("a", 1)
            (task,) = (await other.store.renew({})).taken
            assert (task.id, task.run) == ("a", 2)

    run(main())


def test_no_worker_counts_as_dead_while_redis_was_away(worker: Worker, shared_redis: RedisServer) -> None:
    async def main() -> None:
        async with opened(worker(lease=0.3)) as one, opened(worker(lease=0.3)) as other:
            await one.store.create(new(call=CALL))
            for each in (one, other):
                await each.store.renew({"a": 1} if each is one else {})
            with shared_redis.paused():
                await asyncio.sleep(0.7)
            assert (await other.store.renew({})).taken == []
            renewal = await one.store.renew({"a": 1})
            assert (list(renewal.lost), list(renewal.taken)) == ([], [])

    run(main())


def test_nothing_is_left_of_a_task_that_is_too_old(worker: Worker, shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(worker(ttl=0.01, keep=0.01)) as opening:
            store = opening.store
            await store.create(new(call=CALL))
            await store.ask("a", 1, [Question("k", {})], 5)
            await asyncio.sleep(0.05)
            await store.renew({})
            with shared_redis.client() as client:
                left = {key.decode().removeprefix(prefix) for key in client.keys(f"{prefix}*")}
            assert left <= {"changes", "clock", "workers", "pulse", "grace"}

    run(main())


def test_redis_that_cannot_be_reached_is_a_connection_error() -> None:
    async def main() -> None:
        store = RedisTaskStore("redis://127.0.0.1:1", timeout=0.5)
        with pytest.raises(ConnectionError):
            await store.load("a")
        await store.close()

    run(main())
