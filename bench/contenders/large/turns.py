"""The protocol between the suite of large messages and a measured client.

The client prints `ready` after a first correct call. Then it reads turns, lines of `KIND SIZE SECONDS`, from standard
input, and prints the seconds that a call of each takes at best. KIND is `result` or `argument`. A turn has at least one
call.
"""

import sys
import time


async def take_turns(call):
    """Measure `call(tool, arguments)`, a coroutine function that calls a tool and returns the text of its result."""
    await measure(call, "result", 1, 0)
    print("ready", flush=True)
    for line in sys.stdin:
        kind, size, seconds = line.split()
        print(await measure(call, kind, int(size), float(seconds)), flush=True)


async def measure(call, kind, size, seconds):
    """Return the seconds of the fastest call among those within some seconds."""
    best, until = float("inf"), time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < until:
        arguments = {"size": size} if kind == "result" else {"text": "x" * size}
        start = time.perf_counter()
        text = await call("large" if kind == "result" else "length", arguments)
        best = min(best, time.perf_counter() - start)
        if (len(text) if kind == "result" else int(text)) != size:
            raise RuntimeError(f"the response to a call with {size} bytes is wrong")
        del text, arguments
    return best
