"""Contenders that are processes: how they are started, watched and ended, and the messages that servers get."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

import msgspec

from bench.plan import ContenderFailed, Found, Measure, Plan, say, started_anew
from bench.results import Row
from tests.interop import install

__all__ = [
    "CONTENDERS",
    "LEGACY",
    "MODERN",
    "OFFICIAL",
    "OFFICIAL_CLIENT",
    "PATIENCE",
    "TEXT",
    "WARM_NODE",
    "Contender",
    "Process",
    "answer",
    "ask",
    "at_a_time",
    "call",
    "clients_in_turns",
    "environ",
    "get_warm",
    "is_answer",
    "note",
    "opening",
    "pinned",
    "python",
    "rows",
    "started",
    "typescript",
]

CONTENDERS = Path(__file__).parents[1] / "contenders"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
OFFICIAL, OFFICIAL_CLIENT = "official Python, low level", "official Python"
"""The contenders that others are compared with, among servers and among clients."""
TEXT = "x" * 20
"""What is echoed."""
WARM, WARM_NODE = 300, 10_000
"""How many calls it takes a new process to get warm, and one of Node.js: V8 compiles what has been called often."""
LONGEST_WARM = 10.0
"""Seconds that this may take."""
PATIENCE = 30.0
"""Seconds after which a contender that gives no answer is given up, beside what it was asked to take."""


CLIENT = {"name": "bench", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Contender:
    """What is measured: a name as tables have it, and a command."""

    name: str
    command: list[str]
    note: str = ""
    warm: int = WARM
    """How many calls it takes a new process of it to get warm."""


@dataclass(frozen=True)
class Process:
    """A contender that runs. What it writes to standard error is kept, to be told if it fails."""

    name: str
    popen: subprocess.Popen[bytes]
    errors: IO[bytes]

    def failure(self, what: str) -> ContenderFailed:
        """An error that says who failed, how, and what it wrote last."""
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(1)
        self.errors.seek(0)
        written = self.errors.read()[-2000:].decode(errors="replace").strip()
        status = self.popen.poll()
        state = "it still runs" if status is None else f"exit status {status}"
        return ContenderFailed(f"{self.name}: {what} ({state})\n{written}")

    @contextmanager
    def deadline(self, seconds: float = 0) -> Generator[None]:
        """Have the process killed where it takes far longer than so many seconds: who reads from it then reads its end.

        A thread does it, so that what is timed is not slowed down by timeouts of its own.
        """
        timer = threading.Timer(seconds * 3 + PATIENCE, self.popen.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def write(self, data: bytes) -> None:
        """Write to its standard input."""
        assert self.popen.stdin is not None
        try:
            os.write(self.popen.stdin.fileno(), data)
        except BrokenPipeError:
            raise self.failure("it reads no more") from None

    def read(self) -> bytes:
        """Read what it has written to its standard output."""
        assert self.popen.stdout is not None
        data = os.read(self.popen.stdout.fileno(), 1 << 20)
        if not data:
            raise self.failure("it went away")
        return data

    def read_line(self) -> bytes:
        """Read the one line that it writes next: fast for long ones, too."""
        parts = [b""]
        while not parts[-1].endswith(b"\n"):
            parts.append(self.read())
        line = b"".join(parts)
        if line.count(b"\n") > 1:
            raise self.failure(f"more than the line that was asked for: {line[:300]!r}")
        return line

    def end(self) -> None:
        """End it: by the end of its input if it has one, else by signal."""
        if self.popen.stdin is not None:
            with suppress(OSError):
                self.popen.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(3)
        self.popen.terminate()
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        if self.popen.stdout is not None:
            self.popen.stdout.close()


@contextmanager
def started(name: str, command: list[str], *, pipes: bool = True) -> Generator[Process]:
    """A process of a contender, with or without pipes to and from it."""
    ends = subprocess.PIPE if pipes else subprocess.DEVNULL
    with tempfile.TemporaryFile() as errors:
        try:
            popen = subprocess.Popen(  # noqa: S603
                command, stdin=ends, stdout=ends, stderr=errors, bufsize=0, env=environ()
            )
        except OSError as error:
            raise ContenderFailed(f"{name}: it cannot be started: {error}") from error
        process = Process(name, popen, errors)
        try:
            yield process
        finally:
            process.end()


def ask(process: Process, line: str = "", seconds: float = 0) -> str:
    """Write a line, unless it is empty, and read the line that answers it, within about so many seconds."""
    with process.deadline(seconds):
        if line:
            process.write(line.encode() + b"\n")
        return process.read_line().decode()


def answer(process: Process, line: str) -> dict[str, Any]:
    """Write a request, and read the message that answers it."""
    text = ask(process, line)
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise process.failure(f"no message, but {text[:300]!r}: {error}") from None


def at_a_time(depth: int) -> str:
    """The name of a column."""
    return "one at a time" if depth == 1 else f"{depth} at a time"


def get_warm(contender: Contender, rate: Callable[[float], float], plan: Plan) -> None:
    """Have calls made, by what makes some for so many seconds and gives their rate, until a new process is warm."""
    calls, until, step = 0.0, time.monotonic() + LONGEST_WARM, 3 * plan.seconds
    while calls < contender.warm and time.monotonic() < until:
        calls += rate(step) * step


@contextmanager
def _calling(contender: Contender, depths: Collection[int], plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """A client that has `pacing.py` and is warm; calls a second, so many side by side."""
    with started(contender.name, contender.command) as client:

        def rate(seconds: float, depth: int = max(depths)) -> float:
            answer = ask(client, f"{depth} {seconds}", seconds)
            try:
                return float(answer)
            except ValueError:
                raise client.failure(f"no number of calls, but {answer[:300]!r}") from None

        def measure(depth: int) -> Mapping[str, float]:
            return {at_a_time(depth): rate(plan.seconds, depth)}

        ask(client)  # it has connected, and was answered rightly
        get_warm(contender, rate, plan)
        yield [partial(measure, depth) for depth in depths]


def clients_in_turns(clients: Iterable[Contender], depths: Collection[int], plan: Plan) -> Found[str, str]:
    """What clients that have `pacing.py` reach."""
    return started_anew({one.name: partial(_calling, one, depths, plan) for one in clients}, plan, max)


def environ() -> dict[str, str]:
    """The environment of a contender: what it imports is compiled once, as it is for its users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def pinned(core: int, command: list[str]) -> list[str]:
    """A command that runs on one of the cores that there are, if there are several and this can be said."""
    taskset = shutil.which("taskset")
    if taskset is None or sys.platform != "linux" or not shutil.which(command[0]):
        return command
    cores = sorted(os.sched_getaffinity(0))
    return command if len(cores) < 2 else [taskset, "-c", str(cores[core]), *command]


@cache
def typescript(script: Path) -> list[str]:
    """The command that runs a script with the official TypeScript SDK; one that names what is missing, if that is."""
    node, packages = install.node() / "bin" / "node", install.INTEROP / "node" / "node_modules"
    if missing := next((path for path in (node, packages) if not path.exists()), None):
        say("the official TypeScript SDK is not installed: run `make interop`")
        return [str(missing)]
    copy = packages.parent / f"{script.parent.name}_{script.name}"  # Node.js looks for packages beside the script
    copy.write_bytes(script.read_bytes())
    return [str(node), "--no-warnings", str(copy)]


def python(script: Path, *arguments: str) -> list[str]:
    """The command that runs a script in this interpreter."""
    return [sys.executable, str(script), *arguments]


def opening() -> tuple[str, str]:
    """The two messages of a handshake on the older revision."""
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
    return _message(id=0, method="initialize", params=params), _message(method="notifications/initialized")


def call(id: int, revision: str, tool: str, arguments: Mapping[str, object], **meta: object) -> str:
    """A call of a tool."""
    meta = meta if revision == LEGACY else {**META, **meta}
    params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
    return _message(id=id, method="tools/call", params=params)


def _message(**members: object) -> str:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":"))


def is_answer(message: Any, id: int, text: str) -> bool:
    """Whether a message is the answer to a call, with this text and nothing else."""
    expected = [{"type": "text", "text": text}]
    result: Any = message.get("result") or {}
    return bool(message.get("id") == id and result.get("content") == expected)


def rows(measured: Found[str, str], contenders: Iterable[Contender]) -> list[Row]:
    """What was measured, as a table has it."""
    return [Row(one.name, measured[one.name], note(measured, one.name) or one.note) for one in contenders]


def note(measured: Found[str, Any], name: str) -> str:
    """Why a contender was left out, if it was."""
    return f"left out: {measured.failed[name]}" if name in measured.failed else ""
