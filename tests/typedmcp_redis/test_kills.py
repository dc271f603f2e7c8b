"""Tasks of workers that are killed, in a Redis that is restarted: each ends once, and none is lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.paths import ROOT
from tests.redis_server import RedisServer, redis_server
from tests.spoken import MODERN_REVISION
from typedmcp_extensions.tasks import ClientTasks, TaskCalls, TaskRecord, is_unfinished
from typedmcp_redis import RedisTaskStore

pytestmark = pytest.mark.long

PREFIX, LEASE, TASKS, KILLS = "kills:", 1.0, 200, 6
TOOLS = ("once", "again")


class Worker:
    """A worker process with its client. After it was killed, the next call starts another."""

    def __init__(self, url: str, log: Path) -> None:
        command = [sys.executable, "-m", "tests.typedmcp_redis.task_worker", url, PREFIX, str(LEASE), str(log)]
        self._target = typedmcp.StdioServerParameters(command=command[0], args=command[1:], cwd=str(ROOT))
        self._client: typedmcp.Client | None = None
        self._pid = 0
        self.kills = 0

    async def start(self) -> typedmcp.Client:
        """Start the process, if it does not run, and return its client."""
        if self._client is None:
            client = await typedmcp.connect(
                self._target, revisions=[MODERN_REVISION], extensions=[ClientTasks()], timeout=20.0
            )
            try:
                self._pid = await client.call_tool("pid", result_type=int)
            except BaseException:
                await client.close()
                raise
            self._client = client
        return self._client

    async def begin(self, tool: str, number: int) -> str | None:
        """Begin a task, and return its id; None if there was no answer."""
        try:
            client = await self.start()
            task = await client.extension(TaskCalls).begin(tool, {"number": number})
        except typedmcp.RemoteError:  # Redis cannot be reached
            return None
        except typedmcp.ConnectionLostError:
            await self.stop()
            return None
        id: str = task.task_id
        return id

    async def kill(self) -> None:
        """Kill the process."""
        if self._client is not None:
            os.kill(self._pid, signal.SIGKILL)
            self.kills += 1
            await self.stop()

    async def stop(self) -> None:
        """End the process, as a client does."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


async def begin_all(workers: list[Worker]) -> dict[str, tuple[str, int]]:
    """Begin all tasks, half of each tool, and return tool and number by id. Each number is one call of the client."""
    begun: dict[str, tuple[str, int]] = {}
    numbers = iter(range(10_000))

    async def fill(worker: Worker, tool: str, count: int) -> None:
        done = 0
        while done < count:
            number = next(numbers)
            id = await worker.begin(tool, number)
            if id is None:
                await asyncio.sleep(0.1)
                continue
            begun[id] = tool, number
            done += 1
            await asyncio.sleep(0.02)

    for worker in workers:
        await worker.start()
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(fill_in_turns(fill, worker))
    return begun


async def fill_in_turns(fill: Any, worker: Worker) -> None:
    for _ in range(TASKS // 20):
        for tool in TOOLS:
            await fill(worker, tool, 5)


async def disturb(workers: list[Worker], redis: RedisServer, beginning: asyncio.Task[Any]) -> None:
    """Kill workers at random while tasks begin, and Redis in between."""
    chance, has_restarted = random.Random(7), False
    while (kills := sum(worker.kills for worker in workers)) < KILLS and not beginning.done():
        await asyncio.sleep(chance.uniform(0.2, 0.5))
        await chance.choice(workers).kill()
        if kills == KILLS // 2 and not has_restarted:
            has_restarted = True
            redis.stop()
            await asyncio.sleep(0.3)
            redis.start()


async def ends_of(ids: list[str], url: str, workers: list[Worker]) -> dict[str, TaskRecord]:
    """Wait until all tasks have ended, with both workers running."""
    store = RedisTaskStore(url, prefix=PREFIX)
    ended: dict[str, TaskRecord] = {}
    async with asyncio.timeout(40):
        while len(ended) < len(ids):
            for worker in workers:
                with suppress(typedmcp.ConnectionLostError):
                    await worker.start()
            for id in ids:
                if id not in ended:
                    record = await store.load(id)
                    assert record is not None, "a task is lost"
                    if not is_unfinished(record.status):
                        ended[id] = record
            await asyncio.sleep(0.2)
    await store.close()
    return ended


def ends_in_log(url: str) -> Counter[str]:
    """Return how often each task has ended, by id."""
    with import_module("redis").Redis.from_url(url) as client:
        changes = client.xrange(f"{PREFIX}changes")
    return Counter(entry[b"id"].decode() for _, entry in changes if entry[b"over"] == b"1")


def test_each_task_ends_once_although_workers_and_redis_are_killed(tmp_path: Path) -> None:
    async def main(redis: RedisServer) -> None:
        log = tmp_path / "log"
        workers = [Worker(redis.url, log) for _ in range(2)]
        begun: dict[str, tuple[str, int]] = {}
        async with asyncio.TaskGroup() as group:
            beginning = group.create_task(begin_all(workers))
            group.create_task(disturb(workers, redis, beginning))
        begun = beginning.result()
        assert len(begun) == TASKS
        ended = await ends_of([*begun], redis.url, workers)
        for worker in workers:
            await worker.stop()
        check(begun, ended, log.read_text().splitlines(), ends_in_log(redis.url))
        assert sum(worker.kills for worker in workers) >= KILLS // 2

    with redis_server(is_durable=True) as redis:
        asyncio.run(main(redis))


def check(begun: dict[str, tuple[str, int]], ended: dict[str, TaskRecord], log: list[str], ends: Counter[str]) -> None:
    """Check that each task has one end, which is right, and has run as often as it may."""
    lines, statuses = Counter(log), Counter[tuple[str, str]]()
    for id, (tool, number) in begun.items():
        record = ended[id]
        statuses[tool, record.status] += 1
        assert ends[id] == 1, f"{tool} {number} has ended {ends[id]} times"
        began = lines[f"{tool} {number} began"]
        if record.status == "completed":
            assert record.content["structuredContent"] == {"result": number}
            assert lines[f"{tool} {number} ended"] >= 1
        else:
            assert (tool, record.status) == ("once", "failed"), (tool, record)
            assert "has died" in record.content["message"]
        assert tool == "again" or began <= 1, f"{tool} {number} began {began} times"
    assert statuses["again", "completed"] == TASKS // 2
    assert statuses["once", "failed"] >= 1, "no run was hit, so the test shows nothing"
    assert any(count > 1 for line, count in lines.items() if line.startswith("again"))
