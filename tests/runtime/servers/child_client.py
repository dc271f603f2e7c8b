"""A client to be killed. It starts deaf children, prints the numbers of all that it has started, and waits.

`child_client.py WHEN`: `main` has its loop in the main thread, `thread` in one that has ended, `forked` has a process
forked from it which stays, `early` kills itself before it can tell the watchdog of the child, `tidy` has a child that
leaves in a file what it got, `orphan` one that has ended and left another. `quits` exits by itself without closing
anything; `adopts` gets the orphans of its children, closes, and says whether a zombie is left.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest import mock

from typedmcp.transports.process import ProcessTransport, StdioServerParameters

ACTOR = str(Path(__file__).parent / "child_actor.py")


async def start(leader: str = "deaf", **options: Any) -> tuple[ProcessTransport, list[int]]:
    arguments = ["-S", ACTOR, "family", leader]
    transport = await ProcessTransport.start(StdioServerParameters(sys.executable, arguments, **options))
    grandchild = int(await transport.read())
    return transport, [transport.pid, grandchild]


def say(numbers: list[int]) -> None:
    os.write(1, (" ".join(map(str, numbers)) + "\n").encode())


async def main() -> None:
    (_, first), (_, second) = await asyncio.gather(start(), start())
    say(first + second)
    await asyncio.sleep(3600)


def thread() -> None:
    """The loop ends, and its thread too, without anything being closed."""

    def work() -> None:
        loop = asyncio.new_event_loop()
        keep.append(loop)
        keep.append(loop.run_until_complete(start()))

    keep: list[Any] = []
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    say(keep[1][1])
    signal.pause()


async def forked() -> None:
    _, numbers = await start()
    fork = os.fork()
    if not fork:
        signal.pause()
    say([*numbers, fork])
    await asyncio.sleep(3600)


async def early() -> None:
    popen = subprocess.Popen

    def start_and_die(command: list[str], **options: Any) -> Any:
        started = popen(command, **options)
        if ACTOR in command:
            say([started.pid])
            os.kill(os.getpid(), signal.SIGKILL)
        return started

    with mock.patch.object(subprocess, "Popen", start_and_die):
        await ProcessTransport.start(StdioServerParameters(sys.executable, ["-S", ACTOR, "pause"]))


async def orphan() -> None:
    transport, numbers = await start("leaves")
    while transport.exit_status is None:
        await asyncio.sleep(0.01)
    say(numbers)
    await asyncio.sleep(3600)


async def quits() -> None:
    _, numbers = await start()
    say(numbers)
    os._exit(0)


async def tidy(path: str) -> None:
    transport = await ProcessTransport.start(StdioServerParameters(sys.executable, ["-S", ACTOR, "keep", path]))
    transport.write(b"kept")
    say([transport.pid])
    await asyncio.sleep(3600)


async def adopts() -> None:
    subreaper = 36
    assert ctypes.CDLL(None).prctl(subreaper, 1, 0, 0, 0) == 0
    transport, numbers = await start("leaves", terminate_timeout=0.1)
    await transport.close()
    say(numbers)
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        os.write(1, b"none left\n")


if __name__ == "__main__":
    when = globals()[sys.argv[1]]
    if when is thread:
        thread()
    else:
        asyncio.run(when(*sys.argv[2:]))
