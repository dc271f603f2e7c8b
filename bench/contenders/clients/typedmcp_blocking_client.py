"""The blocking client of typedmcp, with a thread for each concurrent call.

Usage: `typedmcp_blocking_client.py TARGET REVISION`. TARGET is a URL or the script of a server.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pacing import TEXT, read_turns

from typedmcp import sync

TARGET, REVISION = sys.argv[1:3]
SERVER = TARGET if TARGET.startswith("http") else [sys.executable, TARGET]


def call_until(until):
    """Make calls until a time, at least one, and return how many."""
    calls = 0
    while True:
        if client.call_tool("echo", {"text": TEXT}).content[0].text != TEXT:
            raise RuntimeError("the response is not an echo")
        calls += 1
        if time.perf_counter() >= until:
            return calls


def measure(pool, depth, seconds):
    """Return calls per second. The main thread makes single calls."""
    start = time.perf_counter()
    if depth == 1:
        return call_until(start + seconds) / (time.perf_counter() - start)
    calls = sum(pool.map(call_until, [start + seconds] * depth))
    return calls / (time.perf_counter() - start)


with sync.connect(SERVER, revisions=[REVISION]) as client, ThreadPoolExecutor(256) as pool:
    measure(pool, 1, 0)
    for depth, seconds in read_turns():
        measure(pool, depth, seconds / 5)
        print(measure(pool, depth, seconds), flush=True)
