"""A worker with tasks in Redis, over stdio: `python -m tests.typedmcp_redis.task_worker URL PREFIX LEASE LOG`.

The tools `once` and `again` append a line to the log when they begin and when they end: the tool, a number, and what
happened.
"""

from __future__ import annotations

import asyncio
import os
import sys

import typedmcp
from typedmcp_extensions.tasks import ServerTasks, TaskLimits
from typedmcp_redis import RedisTaskStore


def make_server(url: str, prefix: str, lease: str, log: str) -> typedmcp.Server:
    """Return the server of one worker."""
    limits = TaskLimits(takeovers=100, client_share_percent=100)
    tasks = ServerTasks(RedisTaskStore(url, prefix=prefix, lease=float(lease), limits=limits))
    server = typedmcp.Server("worker", extensions=[tasks])
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def work(tool: str, number: int) -> int:
        os.write(file, f"{tool} {number} began\n".encode())
        await asyncio.sleep(0.2 + number % 7 / 10)
        os.write(file, f"{tool} {number} ended\n".encode())
        return number

    @server.tool(task="required")
    async def once(number: int) -> int:
        """Return a number."""
        return await work("once", number)

    @server.tool(task="required", retry=True)
    async def again(number: int) -> int:
        """Return a number, after one or more runs."""
        return await work("again", number)

    @server.tool
    def pid() -> int:
        """Return the number of this process."""
        return os.getpid()

    return server


if __name__ == "__main__":
    make_server(*sys.argv[1:]).run()
