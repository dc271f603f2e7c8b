"""A child process for the tests of transports: `child_actor.py FUNCTION ARGUMENT…` calls one of these functions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

UNENDING = [sys.executable, "-S", __file__, "ignore_end", "terminate"]
"""The command of a process that only SIGKILL ends."""


def print_line(text: str) -> None:
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


def save(path: str) -> None:
    """Write the whole input to a file."""
    Path(path).write_bytes(read_all())


def write_first() -> None:
    """Write much more than a pipe holds, then read the whole input and exit."""
    write_all(1, bytes(8 << 20))
    read_all()


def pause() -> None:
    while True:
        signal.pause()


def ignore_end(*more: str) -> None:
    """Ignore the end of the input, and with `terminate` also SIGTERM."""
    if more:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print_line("ready")
    pause()


def start_unending() -> int:
    child = subprocess.Popen(UNENDING, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    assert child.stdout.read(6) == b"ready\n"
    return child.pid


def start_group(leader: str) -> None:
    """Start a process that only SIGKILL ends, and print its number.

    The leader of the group does the same (`stays`), exits at once (`exits`) or exits after its input (`reads`).
    """
    if leader == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print_line(str(start_unending()))
    if leader == "stays":
        pause()
    if leader == "reads":
        read_all()
    os._exit(0)


def leave_child(status: str) -> None:
    """Start a process that keeps the output open for a minute, and exit."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    os._exit(int(status))


def fail(status: str, *lines: str) -> None:
    for line in lines:
        os.write(2, f"{line}\n".encode())
    os._exit(int(status))


def write_error(text: str) -> None:
    os.write(2, bytes.fromhex(text))
    read_all()


def flood(megabytes: str, line: str) -> None:
    """Write to standard error in lines of this length, or without newlines for 0, then print `done`."""
    chunk = b"x" * (1 << 20)
    if line != "0":
        chunk = (b"x" * (int(line) - 1) + b"\n") * ((1 << 20) // int(line))
    for _ in range(int(megabytes)):
        write_all(2, chunk)
    print_line("done")
    read_all()


def print_directory() -> None:
    print_line(str(Path.cwd()))


def print_descriptors() -> None:
    """Print the open descriptors, then wait for the end of the input."""
    own = {str(number) for number in (0, 1, 2)}
    print_line(",".join(sorted(name for name in os.listdir("/proc/self/fd") if name in own or is_open(int(name)))))
    read_all()


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    function: Callable[..., None] = globals()[sys.argv[1]]
    function(*sys.argv[2:])
