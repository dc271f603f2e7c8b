"""A worker in a process of its own: `python -m tests.redis_worker URL PREFIX LEASE`, told by lines what to do.

`begin STREAM`, `append STREAM TEXT` and `close` answer with a line: what came of it. `flood COUNT` appends to streams
`0`, `1`, … without end and writes the stream's name for every event that is stored.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from typedmcp.state import Gone
from typedmcp.state.redis import RedisStore

SESSION = "s"


async def flood(store: RedisStore, count: int) -> None:
    """Append to many streams, a few at a time."""

    async def write(streams: range) -> None:
        for stream in streams:
            await store.begin(SESSION, str(stream), b"will")
        for number in itertools.count(1):
            for stream in streams:
                await store.append(SESSION, str(stream), [b"%d" % number])
                print(stream, flush=True)

    await asyncio.gather(*(write(range(start, count, 4)) for start in range(4)))


async def obey(store: RedisStore, command: str, *args: str) -> str:
    """Do one thing."""
    try:
        if command == "flood":
            await flood(store, int(args[0]))
        elif command == "begin":
            await store.begin(SESSION, args[0], b"will")
        elif command == "append":
            return str(await store.append(SESSION, args[0], [args[1].encode()]))
        elif command == "close":
            await store.close()
    except Gone:
        return "gone"
    return "done"


async def main(url: str, prefix: str, lease: str) -> None:
    """Be a worker until input ends or `close` is asked for."""
    store = RedisStore(url, prefix=prefix, lease=float(lease))
    await store.open(lambda number, news: None)
    print(store.worker, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(await obey(store, *line.split()), flush=True)
        if line == "close\n":
            return


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
