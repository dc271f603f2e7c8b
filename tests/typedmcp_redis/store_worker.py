"""A worker in a process of its own, controlled by lines: `python -m … URL PREFIX LEASE`.

`begin STREAM`, `append STREAM TEXT` and `close` print a line with the outcome. `flood COUNT` appends to the streams
`0`, `1`, … without end, and prints the name of the stream for every stored event.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from typedmcp.stores import StreamNotFoundError
from typedmcp_redis import RedisStore

SESSION = "s"


async def flood(store: RedisStore, count: int) -> None:
    """Append to many streams, a few at a time."""

    async def write(streams: range) -> None:
        for stream in streams:
            await store.create_stream(SESSION, str(stream), b"final_event")
        for number in itertools.count(1):
            for stream in streams:
                await store.append_events(SESSION, str(stream), [b"%d" % number])
                print(stream, flush=True)

    await asyncio.gather(*(write(range(start, count, 4)) for start in range(4)))


async def run_command(store: RedisStore, command: str, *args: str) -> str:
    """Run one command, and return its outcome."""
    try:
        if command == "flood":
            await flood(store, int(args[0]))
        elif command == "begin":
            await store.create_stream(SESSION, args[0], b"final_event")
        elif command == "append":
            return str(await store.append_events(SESSION, args[0], [args[1].encode()]))
        elif command == "close":
            await store.close()
    except StreamNotFoundError:
        return "gone"
    return "done"


async def main(url: str, prefix: str, lease: str) -> None:
    """Run a worker until the input ends or has `close`."""
    store = RedisStore(url, prefix=prefix, lease=float(lease))
    await store.open(lambda number, message: None)
    print(store.worker, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(await run_command(store, *line.split()), flush=True)
        if line == "close\n":
            return


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
