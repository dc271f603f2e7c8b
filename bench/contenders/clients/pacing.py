"""The protocol between the benchmark and a measured client.

The client prints `ready` after a first correct response. Then it reads turns, lines of `DEPTH SECONDS [CALLS]`, from
standard input, and prints the calls per second of each turn. A turn takes that many seconds, and makes at least `CALLS`
calls.
"""

import asyncio
import sys
import time

TEXT = "x" * 20


def read_turns():
    """Yield the number of concurrent calls, the seconds and the least number of calls of each turn."""
    print("ready", flush=True)
    for line in sys.stdin:
        depth, seconds, *calls = line.split()
        yield int(depth), float(seconds), int(*calls)


async def take_turns(call):
    """Measure `call`, a coroutine function that calls the echo tool and returns the text."""
    await measure(call, 1, 0)
    for depth, seconds, least in read_turns():
        await measure(call, depth, seconds / 5)
        print(await measure(call, depth, seconds, least), flush=True)


async def measure(call, depth, seconds, least=0):
    """Return calls per second with `depth` concurrent tasks, each of which makes at least one call."""
    calls = 0

    async def call_repeatedly():
        nonlocal calls
        while True:
            if await call() != TEXT:
                raise RuntimeError("the response is not an echo")
            calls += 1
            if time.perf_counter() >= until and calls >= least:
                break

    start = time.perf_counter()
    until = start + seconds
    await asyncio.gather(*(call_repeatedly() for _ in range(depth)))
    return calls / (time.perf_counter() - start)
