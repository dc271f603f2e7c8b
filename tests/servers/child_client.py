"""A client that is to be killed: `child_client.py FUNCTION` starts children, prints their numbers, and waits.

`main` runs its event loop in the main thread, `thread` in a thread that has ended. `forked` forks a process that stays.
`early` kills itself before it can name the child to the watchdog. `saving` has a child that writes its input to a file.
`orphan` has a child that exited and left another process. `quits` exits without closing anything. `adopts` becomes the
parent of orphans, closes, and prints whether a zombie is left.
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

from typedmcp.transports.process import ProcessTransport
from typedmcp.transports.process_parameters import StdioServerParameters

ACTOR = str(Path(__file__).parent / "child_actor.py")


async def start(leader: str = "stays", **options: Any) -> tuple[ProcessTransport, list[int]]:
    arguments = ["-S", ACTOR, "start_group", leader]
    transport = await ProcessTransport.start(StdioServerParameters(sys.executable, arguments, **options))
    grandchild = int(await transport.read())
    return transport, [transport.pid, grandchild]


def print_numbers(numbers: list[int]) -> None:
    os.write(1, (" ".join(map(str, numbers)) + "\n").encode())


async def main() -> None:
    (_, first), (_, second) = await asyncio.gather(start(), start())
    print_numbers(first + second)
    await asyncio.sleep(3600)


def thread() -> None:
    """End the event loop and its thread without closing anything."""

    def work() -> None:
        loop = asyncio.new_event_loop()
        keep.append(loop)
        keep.append(loop.run_until_complete(start()))

    keep: list[Any] = []
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    print_numbers(keep[1][1])
    signal.pause()


async def forked() -> None:
    _, numbers = await start()
    fork = os.fork()
    if not fork:
        signal.pause()
    print_numbers([*numbers, fork])
    await asyncio.sleep(3600)


async def early() -> None:
    popen = subprocess.Popen

    def start_and_die(command: list[str], **options: Any) -> Any:
        started = popen(command, **options)
        if ACTOR in command:
            print_numbers([started.pid])
            os.kill(os.getpid(), signal.SIGKILL)
        return started

    with mock.patch.object(subprocess, "Popen", start_and_die):
        await ProcessTransport.start(StdioServerParameters(sys.executable, ["-S", ACTOR, "pause"]))


async def orphan() -> None:
    transport, numbers = await start("exits")
    while transport.exit_status is None:
        await asyncio.sleep(0.01)
    print_numbers(numbers)
    await asyncio.sleep(3600)


async def quits() -> None:
    _, numbers = await start()
    print_numbers(numbers)
    os._exit(0)


async def saving(path: str) -> None:
    transport = await ProcessTransport.start(StdioServerParameters(sys.executable, ["-S", ACTOR, "save", path]))
    transport.write(b"kept")
    print_numbers([transport.pid])
    await asyncio.sleep(3600)


async def adopts() -> None:
    subreaper = 36
    assert ctypes.CDLL(None).prctl(subreaper, 1, 0, 0, 0) == 0
    transport, numbers = await start("exits", terminate_timeout=0.1)
    await transport.close()
    print_numbers(numbers)
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
