"""Load a server and its clients with everything at once, and fail if memory rises: `python -m tests.soak`.

The load is calls on the newest and an older revision, sessions, streams, subscriptions, cancelled calls, large results
and malformed requests. After a quarter of the time, for caches and pools to fill, samples of the server and of this
process, which has the clients, are compared: the median slope between any two of them must stay below a bound. A soak
that has not ended a minute after its time prints what hangs, and fails.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import itertools
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import typedmcp
from tests.server.http.http_wire import WireServer, post, served
from tests.server.test_fuzz import mutate
from tests.spoken import LEGACY, MODERN_REVISION

__all__ = ["Sample", "ends_within", "judge", "slope"]

MAX_OBJECTS_PER_MINUTE: Final = 1500
"""Objects of Python that a process may gain in a minute, which are less than 0.3 MB."""
MAX_BYTES_PER_MINUTE: Final = 3 << 20
_WARM_UP: Final = 0.25
"""The part of the time before the first sample."""
_SAMPLES: Final = 12
_CLIENTS: Final = 4
_PATIENCE: Final = 60.0
"""Seconds that everything besides the load may take: the samples, and the end of the clients."""


class Sample(NamedTuple):
    """What a process holds at a time."""

    seconds: float
    objects: int
    memory: int


def slope(samples: list[Sample], field: Callable[[Sample], float]) -> float:
    """Return the median rise in a minute over all pairs of samples, which single outliers do not move."""
    pairs = itertools.combinations(samples, 2)
    return 60 * statistics.median((field(b) - field(a)) / (b.seconds - a.seconds) for a, b in pairs)


def main() -> int:
    options = _options()
    seconds, runner = options.seconds, asyncio.Runner()
    with served() as server, ends_within(seconds + _PATIENCE, runner.get_loop(), server.running.process), runner:
        return runner.run(_soak(server, seconds))


@contextmanager
def ends_within(seconds: float, loop: asyncio.AbstractEventLoop, server: subprocess.Popen[str]) -> Generator[None]:
    """Give the body of `with` some seconds. After that, print what hangs, kill the server, and exit with status 1.

    It works from a thread, since a task that ignores its cancellation, or blocks the loop, keeps the process forever.
    """
    timer = threading.Timer(seconds, _give_up, (seconds, loop, server))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _give_up(seconds: float, loop: asyncio.AbstractEventLoop, server: subprocess.Popen[str]) -> None:
    print(f"the soak has not ended after {seconds:g} s; its tasks and threads:", file=sys.stderr)
    for task in asyncio.all_tasks(loop):
        print(f"{task.get_name()}:", *_awaited(task.get_coro()), sep="\n  ", file=sys.stderr)
    faulthandler.dump_traceback(sys.stderr)
    server.kill()
    os._exit(1)


def _awaited(awaited: Any) -> Generator[str]:
    """Yield the place of each coroutine, down to the one that waits: `Task.get_stack` has the outermost one alone."""
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        awaited = awaited.cr_await


async def _soak(server: WireServer, seconds: float) -> int:
    loop = asyncio.get_running_loop()
    start = loop.time()
    load = [asyncio.create_task(_repeat(_work, server, number)) for number in range(_CLIENTS)]
    load.append(asyncio.create_task(_repeat(_send_malformed, server, _CLIENTS)))
    samples: dict[str, list[Sample]] = {"server": [], "clients": []}
    for number in range(_SAMPLES):
        share = _WARM_UP + (1 - _WARM_UP) * number / (_SAMPLES - 1)
        await asyncio.wait(load, timeout=start + share * seconds - loop.time(), return_when=asyncio.FIRST_COMPLETED)
        if broken := [task for task in load if task.done()]:
            broken[0].result()
        held = await _held(server)
        samples["server"].append(Sample(loop.time(), held["objects"], held["memory"]))
        gc.collect()
        samples["clients"].append(Sample(loop.time(), len(gc.get_objects()), _resident()))
    for task in load:
        task.cancel()
    await asyncio.wait(load)
    return judge(samples)


def judge(samples: dict[str, list[Sample]]) -> int:
    """Print the slopes, and return 1 if one is above its bound."""
    status = 0
    for name, taken in samples.items():
        objects, memory = slope(taken, lambda each: each.objects), slope(taken, lambda each: each.memory)
        is_rising = objects > MAX_OBJECTS_PER_MINUTE or memory > MAX_BYTES_PER_MINUTE
        print(f"{name}: {objects:+.0f} objects and {memory / 2**20:+.2f} MB a minute{', rising' * is_rising}")
        status |= is_rising
    return status


async def _repeat(work: Callable[[WireServer, random.Random], Awaitable[None]], server: WireServer, seed: int) -> None:
    rng = random.Random(seed)
    while True:
        await work(server, rng)


async def _work(server: WireServer, rng: random.Random) -> None:
    """Connect on one revision or the other, use everything, and disconnect."""
    revisions = [rng.choice([MODERN_REVISION, LEGACY[-1]])]
    url = f"{server.running.address}/mcp"
    async with typedmcp.connect(url, revisions=revisions, on_diagnostic=_ignore) as client:
        await client.list_tools()
        async with client.listen(tools=True):
            for _ in range(rng.randrange(20)):
                await client.call_tool("echo", {"region": "north"})
            await client.call_tool("large", {"n": rng.choice([10, 1 << 20])})
            await client.call_tool("many", {"n": 20})
            with suppress(TimeoutError):
                async with asyncio.timeout(rng.random() / 100):
                    await client.call_tool("many", {"n": 1000})
            with suppress(typedmcp.RemoteError, typedmcp.ToolError):
                await client.call_tool("fails")


def _ignore(_diagnostic: typedmcp.Diagnostic) -> None:
    """Ignore the diagnostics of cancelled calls."""


async def _send_malformed(server: WireServer, rng: random.Random) -> None:
    request = post({"jsonrpc": "2.0", "id": rng.randrange(9), "method": "tools/call", "params": {"name": "echo"}})
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(mutate(rng, request))
    writer.write_eof()
    with suppress(ConnectionError):
        await reader.read()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def _held(server: WireServer) -> dict[str, int]:
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(b"GET /held HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    body = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    held: dict[str, int] = json.loads(body)
    return held


def _resident() -> int:
    """Return the bytes of memory that this process has, on Linux."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
