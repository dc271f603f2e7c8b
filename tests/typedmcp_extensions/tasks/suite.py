"""The behaviour of every store of tasks: tests which the project's stores run, and which yours can run, too.

They need pytest and public names of typedmcp alone. A subclass of `TaskStoreSuite` whose name begins with `Test` has a
fixture `make`: a function that takes limits, or None, and makes a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest

from typedmcp_extensions.tasks import NewTask, Outcome, Question, TaskLimits, TasksFullError, TaskStore

__all__ = ["CALL", "DONE", "Make", "TaskStoreSuite", "new", "opened", "run"]

DONE = Outcome("completed", {"content": []})
CALL = b"{}"


class OpenStore:
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
async def opened(store: TaskStore) -> AsyncGenerator[OpenStore]:
    made = OpenStore(store)
    await store.open(lambda task, is_over: made.changes.append((task, is_over)))
    try:
        yield made
    finally:
        await store.close()


Make: TypeAlias = Callable[[TaskLimits | None], TaskStore]


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def new(id: str = "a", **options: Any) -> NewTask:
    given: dict[str, Any] = {"owner": None, "client": "c", "call": None, "answers": {}, "size": 10, **options}
    return NewTask(id=id, **given)


class TaskStoreSuite:
    """Tests of one store of tasks: a subclass, `TestMyTaskStore`, has the fixture `make`."""

    def test_a_task_is_found_until_it_is_too_old(self, make: Make) -> None:
        async def main() -> None:
            async with opened(make(TaskLimits(ttl=0.02, keep=0.03))) as opening:
                store = opening.store
                created = await store.create(new(owner="ada"))
                assert (created.status, created.ttl_ms, created.owner) == ("working", 50, "ada")
                assert await store.load("a") == created
                await asyncio.sleep(0.08)
                assert await store.load("a") is None

        run(main())

    def test_a_task_ends_once(self, make: Make) -> None:
        async def main() -> None:
            async with opened(make(None)) as opening:
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

    def test_only_the_current_run_changes_a_task(self, make: Make) -> None:
        async def main() -> None:
            async with opened(make(None)) as opening:
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

    def test_questions_are_asked_and_answered_once(self, make: Make) -> None:
        async def main() -> None:
            async with opened(make(None)) as opening:
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

    def test_the_number_of_tasks_is_limited(self, make: Make) -> None:
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

    def test_the_bytes_of_tasks_are_limited(self, make: Make) -> None:
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

    def test_an_owner_of_a_run_that_was_cancelled_learns_of_it(self, make: Make) -> None:
        async def main() -> None:
            async with opened(make(None)) as opening:
                store = opening.store
                await store.renew({})
                for id in "ab":
                    await store.create(new(id))
                await store.end("a", None, Outcome("cancelled"), 0)
                renewal = await store.renew({"a": 1, "b": 1})
                assert (list(renewal.lost), list(renewal.taken)) == (["a"], [])

        run(main())
