"""Make both stores for a Redis that is not there: what needs it fails with an error that says so."""

import asyncio
from collections.abc import Awaitable

import typedmcp
from typedmcp.stores import Store
from typedmcp_extensions.tasks import ServerTasks, TaskStore
from typedmcp_redis import RedisStore, RedisTaskStore

URL = "redis://127.0.0.1:1"

store: Store = RedisStore(URL, timeout=5)
tasks: TaskStore = RedisTaskStore(URL, timeout=5)
server = typedmcp.Server("trial", extensions=[ServerTasks(tasks)])
typedmcp.asgi(server, store=store, state_signer=typedmcp.StateSigner(b"a key of all workers"))


async def fails(operation: Awaitable[object]) -> bool:
    try:
        await operation
    except ConnectionError as error:
        return "Redis" in str(error)
    return False


async def main() -> None:
    assert await fails(store.load_session("session"))
    assert await fails(tasks.load("task"))
    await store.close()
    await tasks.close()


asyncio.run(main())
