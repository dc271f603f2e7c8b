"""A child process that does what its arguments say: `child_actor.py WHAT ARGUMENT…`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

DEAF = [sys.executable, "-S", __file__, "deaf", "terminate"]
"""A process that ends by SIGKILL only."""


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_all() -> bytes:
    chunks: list[bytes] = []
    while chunk := os.read(0, 1 << 16):
        chunks.append(chunk)
    return b"".join(chunks)


def echo() -> None:
    while data := os.read(0, 1 << 16):
        write_all(1, data)


def keep(path: str) -> None:
    """Leave in a file what came."""
    Path(path).write_bytes(read_all())


def chatter() -> None:
    """Write much more than a pipe holds before reading anything; then leave quietly."""
    write_all(1, bytes(8 << 20))
    read_all()


def pause() -> None:
    while True:
        signal.pause()


def deaf(*also: str) -> None:
    """Ignore the end of the input; with `terminate` SIGTERM too."""
    if also:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say("ready")
    pause()


def start_deaf() -> int:
    child = subprocess.Popen(DEAF, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    assert child.stdout.read(6) == b"ready\n"
    return child.pid


def family(leader: str) -> None:
    """Start a deaf process and name it. The leader is `deaf` too, `leaves` at once, or ends with its `input`."""
    if leader == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say(str(start_deaf()))
    if leader == "deaf":
        pause()
    if leader == "input":
        read_all()
    os._exit(0)


def fail(status: str, *lines: str) -> None:
    for line in lines:
        os.write(2, f"{line}\n".encode())
    os._exit(int(status))


def error_bytes(text: str) -> None:
    os.write(2, bytes.fromhex(text))
    read_all()


def flood(megabytes: str, line: str) -> None:
    """Write to standard error in lines of this length (0 is none), then say that it is done."""
    chunk = b"x" * (1 << 20)
    if line != "0":
        chunk = (b"x" * (int(line) - 1) + b"\n") * ((1 << 20) // int(line))
    for _ in range(int(megabytes)):
        write_all(2, chunk)
    say("done")
    read_all()


def place() -> None:
    say(str(Path.cwd()))


def descriptors() -> None:
    """Name the descriptors that are open, then stay until the end of the input."""
    own = {str(number) for number in (0, 1, 2)}
    say(",".join(sorted(name for name in os.listdir("/proc/self/fd") if name in own or is_open(int(name)))))
    read_all()


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    what: Callable[..., None] = globals()[sys.argv[1]]
    what(*sys.argv[2:])
