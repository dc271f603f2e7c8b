"""The store of tasks in Redis: the behaviour of every store, and several workers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.redis_server import RedisServer, shared_redis
from tests.typedmcp_extensions.tasks.suite import CALL, DONE, Make, TaskStoreSuite, new, opened, run
from typedmcp_extensions.tasks import Outcome, Question, TaskLimits, TaskStore
from typedmcp_redis import RedisTaskStore

__all__ = ["shared_redis"]  # a fixture

_numbers = itertools.count(1)


class TestRedisTaskStore(TaskStoreSuite):
    @pytest.fixture
    def make(self, shared_redis: RedisServer) -> Make:
        """Return a function that makes a store, each time with the same tasks."""
        prefix = f"tasks{next(_numbers)}:"
        return lambda limits: RedisTaskStore(shared_redis.url, prefix=prefix, limits=limits)


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
