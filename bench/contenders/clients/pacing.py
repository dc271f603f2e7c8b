"""What clients are made to do: a line `DEPTH SECONDS` on standard input is a turn, and calls a second answer it.

The first line that is printed says that the client has connected and was answered rightly.
"""

import asyncio
import sys
import time

TEXT = "x" * 20


def turns():
    """Depth and seconds of each turn."""
    print("ready", flush=True)
    for line in sys.stdin:
        depth, seconds = line.split()
        yield int(depth), float(seconds)


async def pace(call):
    """Take turns with a coroutine function that calls an echo and returns the text."""
    await rate(call, 1, 0)
    for depth, seconds in turns():
        await rate(call, depth, seconds / 5)
        print(await rate(call, depth, seconds), flush=True)


async def rate(call, depth, seconds):
    """Calls a second, so many side by side. Each makes one call at least."""
    calls = 0

    async def several():
        nonlocal calls
        while True:
            if await call() != TEXT:
                raise RuntimeError("no echo")
            calls += 1
            if time.perf_counter() >= until:
                break

    start = time.perf_counter()
    until = start + seconds
    await asyncio.gather(*(several() for _ in range(depth)))
    return calls / (time.perf_counter() - start)
