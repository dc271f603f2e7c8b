"""Load a server and its clients with everything at once, and fail if memory rises: `python -m tests.soak`.

The load is as many calls as the server can answer, on the newest and an older revision, sessions, streams,
subscriptions, cancelled calls, large results, malformed requests, clients that read slowly, vanish or are killed, and
clients that count: each of their calls must be served once, and answered once. After a quarter of the time, for caches
and pools to fill, samples of the server and of this process, which has the clients, are compared: the median slope
between any two of them must stay below a bound. At the end, the server must have no more tasks and open files than
before. A soak that has not ended two minutes after its time prints what hangs, and fails.
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
from tests.server.http.http_wire import META, WireServer, call, post, served
from tests.server.test_fuzz import mutate
from tests.soak_clients import Tally, count_answers, fill_known_heads, generate_load, kill_a_client, read_slowly, vanish
from tests.spoken import LEGACY, MODERN_REVISION

__all__ = ["Sample", "ends_within", "judge", "slope"]

MAX_OBJECTS_PER_MINUTE: Final = 1500
"""Objects of Python that a process may gain in a minute, which are less than 0.3 MB."""
MAX_BYTES_PER_MINUTE: Final = 3 << 20
MAX_TASKS_PER_MINUTE: Final = 60
MAX_FILES_PER_MINUTE: Final = 60
"""Tasks and open files that a process may gain in a minute. A leak for each client that vanishes is thousands."""
_WARM_UP: Final = 0.25
"""The part of the time before the first sample."""
_SAMPLES: Final = 12
_READINGS: Final = 8
"""Readings of the server's memory for a sample, of which the least counts: a large result is held for a moment."""
_CLIENTS: Final = 4
_COUNTING: Final = 4
_OWN_TASKS: Final = 2
"""Tasks that the server starts for itself: one carries calls before Python 3.12, one forgets old sessions."""
_PATIENCE: Final = 120.0
"""Seconds that everything besides the load may take: the samples, and the end of the clients."""


class Sample(NamedTuple):
    """What a process holds at a time."""

    seconds: float
    objects: int
    memory: int
    tasks: int = 0
    files: int = 0


def slope(samples: list[Sample], field: Callable[[Sample], float]) -> float:
    """Return the median rise in a minute over all pairs of samples, which single outliers do not move."""
    pairs = itertools.combinations(samples, 2)
    return 60 * statistics.median((field(b) - field(a)) / (b.seconds - a.seconds) for a, b in pairs)


def main() -> int:
    options = _options()
    seconds, runner = options.seconds, asyncio.Runner()
    with (
        served("--own-class") as server,
        ends_within(seconds + _PATIENCE, runner.get_loop(), server.running.process),
        runner,
    ):
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
    await fill_known_heads(server)
    loop = asyncio.get_running_loop()
    start, before, tally = loop.time(), await _held(server), Tally()
    working = (*[_work] * _CLIENTS, _send_malformed, read_slowly, vanish, kill_a_client)
    load = [asyncio.create_task(_repeat(work, server, seed)) for seed, work in enumerate(working)]
    counting = [asyncio.create_task(count_answers(server, random.Random(seed), tally)) for seed in range(_COUNTING)]
    everything = asyncio.create_task(generate_load(server, seconds))
    samples: dict[str, list[Sample]] = {"server": [], "clients": []}
    for number in range(_SAMPLES):
        share = _WARM_UP + (1 - _WARM_UP) * number / (_SAMPLES - 1)
        watched = [*load, *counting]
        await asyncio.wait(watched, timeout=start + share * seconds - loop.time(), return_when=asyncio.FIRST_COMPLETED)
        if broken := [task for task in watched if task.done()]:
            broken[0].result()
        samples["server"].append(_sample(loop.time(), await _held(server)))
        gc.collect()
        here = {"objects": len(gc.get_objects()), "memory": _resident(), "tasks": len(asyncio.all_tasks())}
        samples["clients"].append(_sample(loop.time(), {**here, "files": len(os.listdir("/proc/self/fd"))}))
    tally.stopping = True
    for task in load:
        task.cancel()
    await asyncio.wait(load)
    await asyncio.gather(*counting, everything)
    return judge(samples) | await _judge_end(server, before, tally)


def _sample(seconds: float, held: dict[str, int]) -> Sample:
    return Sample(seconds, held["objects"], held["memory"], held["tasks"], held["files"])


async def _judge_end(server: WireServer, before: dict[str, int], tally: Tally) -> int:
    """Print what was counted and what is left, and return 1 if it is not what it should be."""
    loop = asyncio.get_running_loop()
    until, held = loop.time() + _PATIENCE / 2, await _held(server)
    while _is_more(held, before) and loop.time() < until:
        await asyncio.sleep(0.1)
        held = await _held(server)
    is_wrong = not (tally.sent == tally.answered == held["calls"] > 0)
    print(f"counted: {tally.sent} calls sent, {held['calls']} served, {tally.answered} answered{', wrong' * is_wrong}")
    is_left = _is_more(held, before)
    tasks, files = held["tasks"] - before["tasks"], held["files"] - before["files"]
    print(f"left at the end: {tasks} tasks, {files} open files{', leaking' * is_left}")
    return int(is_wrong or is_left)


def _is_more(held: dict[str, int], before: dict[str, int]) -> bool:
    return held["tasks"] > before["tasks"] + _OWN_TASKS or held["files"] > before["files"]


def judge(samples: dict[str, list[Sample]]) -> int:
    """Print the slopes, and return 1 if one is above its bound."""
    status = 0
    for name, taken in samples.items():
        objects, memory = slope(taken, lambda each: each.objects), slope(taken, lambda each: each.memory)
        tasks, files = slope(taken, lambda each: each.tasks), slope(taken, lambda each: each.files)
        is_rising = objects > MAX_OBJECTS_PER_MINUTE or memory > MAX_BYTES_PER_MINUTE
        is_rising |= tasks > MAX_TASKS_PER_MINUTE or files > MAX_FILES_PER_MINUTE
        rise = f"{objects:+.0f} objects, {memory / 2**20:+.2f} MB, {tasks:+.0f} tasks and {files:+.0f} files a minute"
        print(f"{name}: {rise}{', rising' * is_rising}")
        if is_rising:
            print(*(f"  {each.seconds:8.1f} s {each}" for each in taken), sep="\n")
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
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "held", "arguments": {"n": _READINGS}, "_meta": META},
    }
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(call(message, {"Connection": "close"}))
    body = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    held: dict[str, int] = json.loads(json.loads(body)["result"]["content"][0]["text"])
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
