"""Deadlines cancel the tasks that have set them, and no others, with one timer of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import each
from tests.helpers import run
from typedmcp.transports.deadlines import Deadline, Deadlines


class FakeClock:
    """An event loop's clock that moves only when a test says so, and its timers."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.started = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        self.started += 1
        timer = (when, callback)
        self.timers.append(timer)
        clock = self

        class Handle:
            def cancel(self) -> None:
                if timer in clock.timers:
                    clock.timers.remove(timer)

        return Handle()

    async def move_to(self, now: float) -> None:
        """Move the clock, and call what is due."""
        self.now = now
        for timer in [one for one in self.timers if one[0] <= now]:
            self.timers.remove(timer)
            timer[1]()
        for _ in range(5):
            await asyncio.sleep(0)


class Fixture:
    """Deadlines on a fake clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.deadlines = Deadlines(self.clock)  # type: ignore[arg-type]
        self.deadline: dict[str, Deadline] = {}

    async def wait(self, name: str, when: float | None) -> str:
        """Wait until the deadline ends the wait."""
        deadline = self.deadline[name] = self.deadlines.start(when)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if deadline.take_cancellation():
                return f"late at {self.clock.now:g}"
            raise
        finally:
            self.deadlines.stop(deadline)
        return "never"


def test_each_task_is_cancelled_at_its_own_time() -> None:
    async def main() -> None:
        given = Fixture()
        tasks = [asyncio.ensure_future(given.wait(f"{when}", when)) for when in (105.0, 103.0, 104.0)]
        await given.clock.move_to(102.0)
        assert not any(task.done() for task in tasks)
        for now in (103.0, 104.0, 105.0):
            await given.clock.move_to(now)
        assert [task.result() for task in tasks] == ["late at 105", "late at 103", "late at 104"]
        assert not given.clock.timers

    run(main())


def test_a_thousand_tasks_in_a_row_start_one_timer() -> None:
    async def main() -> None:
        given = Fixture()
        for number in range(1000):
            given.clock.now += 0.001
            given.deadlines.stop(given.deadlines.start(200.0 + number))
        assert given.clock.started == 1
        await given.clock.move_to(200.0)
        assert not given.clock.timers

    run(main())


@each("change", [106.0, None], ids=["later", "never"])
def test_a_deadline_that_was_moved_does_not_end_its_task_at_the_first_time(change: float | None) -> None:
    async def main() -> None:
        given = Fixture()
        task = asyncio.ensure_future(given.wait("a", 103.0))
        await asyncio.sleep(0)
        given.deadline["a"].reschedule(change)
        await given.clock.move_to(103.0)
        assert not task.done()
        given.deadline["a"].reschedule(106.0)
        await given.clock.move_to(106.0)
        assert task.result() == "late at 106"
        assert given.deadline["a"].expired()

    run(main())


def test_a_deadline_that_was_moved_forward_ends_its_task_earlier() -> None:
    async def main() -> None:
        given = Fixture()
        task = asyncio.ensure_future(given.wait("a", 110.0))
        await asyncio.sleep(0)
        given.deadline["a"].reschedule(101.0)
        await given.clock.move_to(101.0)
        assert task.result() == "late at 101"

    run(main())


def test_a_task_that_someone_else_cancels_is_cancelled() -> None:
    async def main() -> None:
        given = Fixture()
        task = asyncio.ensure_future(given.wait("a", 103.0))
        await asyncio.sleep(0)
        task.cancel()
        await given.clock.move_to(103.0)  # both at once
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_closing_stops_a_timer_that_nobody_needs() -> None:
    async def main() -> None:
        given = Fixture()
        left = given.deadlines.start(103.0)
        given.deadlines.close()
        assert given.clock.timers
        given.deadlines.stop(left)
        given.deadlines.close()
        assert not given.clock.timers

    run(main())
