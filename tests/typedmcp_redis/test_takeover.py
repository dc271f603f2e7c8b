"""Tasks in Redis whose worker stops: another one goes on, with the same context and the same answers."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

import typedmcp
from tests.redis_server import RedisServer, shared_redis
from typedmcp import Context, text_of
from typedmcp_extensions.tasks import ClientTasks, ServerTasks, TaskCalls
from typedmcp_redis import RedisTaskStore

__all__ = ["shared_redis"]  # a fixture

_numbers = itertools.count(1)


class Fleet:
    """Servers that share their tasks, and what their tools have seen."""

    def __init__(self, redis: RedisServer, *, lease: float = 0.3) -> None:
        self._url, self._prefix, self._lease = redis.url, f"takeover{next(_numbers)}:", lease
        self.runs: list[tuple[int, str]] = []
        self.blocked = True

    def config(self, number: int, **options: Any) -> typedmcp.ServerConfig:
        """Return one more server."""
        store = RedisTaskStore(self._url, prefix=self._prefix, lease=self._lease)
        inner = typedmcp.Server("inner", extensions=[ServerTasks(store)])

        @inner.tool(task="required", retry=True)
        async def greet(greeting: str, ctx: Context) -> str:
            """Greet a person."""
            name = (await ctx.elicit("Your name?", str)).data
            self.runs.append((number, f"{name} {ctx.meta['acme/trace']} {ctx.client_capabilities.elicitation}"))
            while self.blocked and number == 1:
                await asyncio.sleep(0.01)
            return f"{greeting}, {name}!"

        outer = typedmcp.Server("outer", extensions=[ServerTasks(store, poll_interval=0.02)])
        outer.mount(inner, "in")
        return typedmcp.ServerConfig(outer, **options)


async def until_answered(fleet: Fleet, tasks: TaskCalls, id: str) -> None:
    """Wait until a task has asked its question, and answer it, by a call that is given up."""
    waiting = asyncio.create_task(tasks.resume(id))
    async with asyncio.timeout(60):
        while not fleet.runs:
            await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def answer(params: Any) -> Any:
    return {"value": "Ada"}


async def refuse(params: Any) -> Any:
    raise AssertionError("the question was answered before")


def test_another_worker_goes_on_with_the_task_of_one_that_was_stopped(shared_redis: RedisServer) -> None:
    async def main() -> None:
        fleet = Fleet(shared_redis)
        meta = {"acme/trace": "t1"}
        async with typedmcp.connect(fleet.config(2), extensions=[ClientTasks()], elicit=refuse) as second:
            async with typedmcp.connect(fleet.config(1), extensions=[ClientTasks()], elicit=answer) as first:
                task = await first.extension(TaskCalls).begin("in_greet", {"greeting": "Hello"}, meta=meta)
                await until_answered(fleet, first.extension(TaskCalls), task.task_id)
            assert text_of(await second.extension(TaskCalls).resume(task.task_id)) == "Hello, Ada!"
        (first_run, seen), (second_run, again) = fleet.runs
        assert (first_run, second_run) == (1, 2)
        assert seen == again
        assert seen.startswith("Ada t1")

    asyncio.run(main())


def test_a_listener_on_another_worker_is_notified(shared_redis: RedisServer) -> None:
    async def main() -> None:
        fleet = Fleet(shared_redis, lease=180)
        fleet.blocked = False
        meta = {"acme/trace": "t1"}
        async with (
            typedmcp.connect(fleet.config(1), extensions=[ClientTasks()], elicit=answer) as first,
            typedmcp.connect(fleet.config(2), extensions=[ClientTasks(listen=True)], elicit=answer) as second,
        ):
            task = await first.extension(TaskCalls).begin("in_greet", {"greeting": "Hello"}, meta=meta)
            async with asyncio.timeout(60):  # a third of the time after which it would ask again
                assert text_of(await second.extension(TaskCalls).resume(task.task_id)) == "Hello, Ada!"

    asyncio.run(main())


def test_a_task_cancelled_on_another_worker_stops(shared_redis: RedisServer) -> None:
    async def main() -> None:
        fleet = Fleet(shared_redis, lease=30)
        async with (
            typedmcp.connect(fleet.config(1), extensions=[ClientTasks()], elicit=answer) as first,
            typedmcp.connect(fleet.config(2), extensions=[ClientTasks()]) as second,
        ):
            task = await first.extension(TaskCalls).begin("in_greet", {"greeting": "Hello"}, meta={"acme/trace": "t1"})
            await until_answered(fleet, first.extension(TaskCalls), task.task_id)
            await second.extension(TaskCalls).cancel(task.task_id)
            with pytest.raises(typedmcp.TaskCancelledError):
                await first.extension(TaskCalls).resume(task.task_id)

    asyncio.run(main())


def test_a_server_whose_redis_is_away_says_so(shared_redis: RedisServer) -> None:
    async def main() -> None:
        store = RedisTaskStore(shared_redis.url, prefix=f"takeover{next(_numbers)}:", timeout=1)
        server = typedmcp.Server("x", extensions=[ServerTasks(store)])

        @server.tool(task="required")
        async def work() -> str:
            """Work."""
            return "done"

        async with typedmcp.connect(server, extensions=[ClientTasks()]) as client:
            away = pytest.raises(typedmcp.RemoteError, match="the tasks cannot be reached: try again later")
            with shared_redis.paused(), away:
                await client.call_tool("work")
            assert text_of(await client.call_tool("work")) == "done"

    asyncio.run(main())
