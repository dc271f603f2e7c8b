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


def call_until(until, least=1):
    """Make calls until a time, and at least so many, and return how many."""
    calls = 0
    while True:
        if client.call_tool("echo", {"text": TEXT}).content[0].text != TEXT:
            raise RuntimeError("the response is not an echo")
        calls += 1
        if time.perf_counter() >= until and calls >= least:
            return calls


def measure(pool, depth, seconds, least=1):
    """Return calls per second. The main thread makes single calls."""
    start = time.perf_counter()
    if depth == 1:
        return call_until(start + seconds, least) / (time.perf_counter() - start)
    calls = sum(pool.map(call_until, [start + seconds] * depth))
    return calls / (time.perf_counter() - start)


with sync.connect(SERVER, revisions=[REVISION]) as client, ThreadPoolExecutor(256) as pool:
    measure(pool, 1, 0)
    for depth, seconds, least in read_turns():
        measure(pool, depth, seconds / 5)
        print(measure(pool, depth, seconds, least), flush=True)
