"""typedmcp's blocking client, with a thread for each call at a time: `ours_blocking.py TARGET REVISION`."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pacing import TEXT, turns

from typedmcp import sync

TARGET, REVISION = sys.argv[1:3]
SERVER = TARGET if TARGET.startswith("http") else [sys.executable, TARGET]


def several(until):
    """How many calls were made, one at least."""
    calls = 0
    while True:
        if client.call_tool("echo", {"text": TEXT}).content[0].text != TEXT:
            raise RuntimeError("no echo")
        calls += 1
        if time.perf_counter() >= until:
            return calls


def rate(pool, depth, seconds):
    """Calls a second. Alone, it is the main thread that calls."""
    start = time.perf_counter()
    if depth == 1:
        return several(start + seconds) / (time.perf_counter() - start)
    calls = sum(pool.map(several, [start + seconds] * depth))
    return calls / (time.perf_counter() - start)


with sync.connect(SERVER, revisions=[REVISION]) as client, ThreadPoolExecutor(256) as pool:
    rate(pool, 1, 0)
    for depth, seconds in turns():
        rate(pool, depth, seconds / 5)
        print(rate(pool, depth, seconds), flush=True)
