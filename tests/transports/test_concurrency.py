"""Threads for functions that block, and the turns of clients that wait for them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Hashable

from tests.cases import each
from tests.helpers import run
from typedmcp.transports.concurrency import FairLimit, ThreadLimiter, limit_time


async def turns(*clients: Hashable, count: int = 1, most: int | None = None) -> list[Hashable]:
    """Return the order in which clients get slots that are all taken at first, if each gives its slot back at once."""
    slots, order = FairLimit(count, most), list[Hashable]()
    for _ in range(count):
        await slots.acquire(None)

    async def take(client: Hashable) -> None:
        await slots.acquire(client)
        order.append(client)
        slots.release(client)

    tasks = [asyncio.ensure_future(take(client)) for client in clients]
    await asyncio.sleep(0)
    for _ in range(count):
        slots.release(None)
    await asyncio.gather(*tasks)
    return order


@each(
    "waiting, order",
    [
        ("a", "a"),
        ("aaaa", "aaaa"),
        ("aaaab", "abaaa"),
        ("aaabbbc", "abcabab"),
        ("abab", "abab"),
    ],
)
def test_clients_take_turns(waiting: str, order: str) -> None:
    async def main() -> None:
        assert "".join(map(str, await turns(*waiting))) == order

    run(main())


def count_futures() -> int:
    gc.collect()
    return sum(type(each) is asyncio.Future for each in gc.get_objects())


def test_waits_that_are_cancelled_leave_nothing_behind() -> None:
    async def main() -> None:
        slots = FairLimit(1)
        await slots.acquire("a")
        before = count_futures()
        for _ in range(100):
            waiting = asyncio.ensure_future(slots.acquire("b"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert count_futures() - before < 10
        slots.release("a")
        await asyncio.wait_for(slots.acquire("b"), 60)

    run(main())


def test_one_client_leaves_slots_for_others() -> None:
    async def main() -> None:
        slots = FairLimit(4, 3)
        taken = [asyncio.ensure_future(slots.acquire("a")) for _ in range(10)]
        await asyncio.sleep(0)
        assert sum(task.done() for task in taken) == 3
        await asyncio.wait_for(slots.acquire("b"), 60)
        slots.release("b")
        await asyncio.sleep(0)
        assert sum(task.done() for task in taken) == 3
        slots.release("a")
        await asyncio.sleep(0)
        assert sum(task.done() for task in taken) == 4
        for _ in range(9):
            slots.release("a")
            await asyncio.sleep(0)
        assert all(task.done() for task in taken)

    run(main())


def test_a_client_that_is_not_known_can_take_all_slots() -> None:
    async def main() -> None:
        slots = FairLimit(4, 1)
        for _ in range(4):
            await asyncio.wait_for(slots.acquire(None), 60)

    run(main())


def test_a_slot_that_comes_with_a_cancellation_is_not_lost() -> None:
    async def main() -> None:
        slots = FairLimit(1)
        await slots.acquire("a")
        waiting = [asyncio.ensure_future(slots.acquire(client)) for client in "bcd"]
        await asyncio.sleep(0)
        waiting[1].cancel()
        slots.release("a")
        waiting[0].cancel()
        await asyncio.wait_for(waiting[2], 60)
        assert [task.cancelled() for task in waiting] == [True, True, False]
        slots.release("d")
        await asyncio.wait_for(slots.acquire("a"), 60)

    run(main())


def test_a_function_counts_until_it_ends_even_if_its_caller_is_cancelled() -> None:
    async def main() -> None:
        limiter, go = ThreadLimiter(1), threading.Event()
        first = asyncio.ensure_future(limiter.run("a", go.wait, 60))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(limiter.run("b", go.is_set))
        first.cancel()
        await asyncio.wait([first])
        await asyncio.sleep(0.05)  # time for the second function to run, if the first did not count
        go.set()
        assert await asyncio.wait_for(second, 60), "it began while the first function ran"

    run(main())


# Limits of time


@each("steps", range(6))
def test_a_cancellation_at_the_end_of_timed_work_is_not_ignored(steps: int) -> None:
    async def main() -> None:
        ready = asyncio.Event()
        waiting = asyncio.create_task(limit_time(10, ready.wait()))
        await asyncio.sleep(0)
        ready.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        had_ended = waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert had_ended or waiting.cancelled()

    run(main())


def test_work_that_takes_too_long_is_cancelled() -> None:
    async def main() -> None:
        work = asyncio.get_running_loop().create_future()
        assert not await limit_time(0.01, work)
        assert work.cancelled()
        assert await limit_time(None, asyncio.sleep(0))

    run(main())
