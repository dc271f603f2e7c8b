"""Contenders in processes: starting, watching and ending them, and the messages that they receive."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

import msgspec

from bench.plan import ContenderError, Measure, Measurements, Plan, log, measure_restarting
from bench.results import Row
from tests.interop import install

__all__ = [
    "CONTENDERS",
    "EXACT",
    "JAVA_MAX_WARM_UP_SECONDS",
    "LEGACY",
    "MODERN",
    "NODE_WARM_UP_CALLS",
    "OFFICIAL",
    "OFFICIAL_CLIENT",
    "PROGRAMS",
    "TEXT",
    "TIMEOUT",
    "Contender",
    "Process",
    "describe_failure",
    "exchange_line",
    "format_depth",
    "is_echo",
    "list_programs",
    "make_call",
    "make_environment",
    "make_handshake",
    "make_python_command",
    "make_rows",
    "make_typescript_command",
    "measure_clients",
    "pin_to_core",
    "send_request",
    "start_process",
    "warm_up",
]

PROGRAMS = {"go": "official Go", "java": "official Java", "rust": "official Rust"}
"""The names in tables of the programs that `tests.interop.install` builds, by language."""

CONTENDERS = Path(__file__).parents[1] / "contenders"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
EXACT = "typedmcp, exact results"
"""A handler whose results are of the exact types."""
OFFICIAL, OFFICIAL_CLIENT = "official Python, low level", "official Python"
"""The references for servers and for clients."""
TEXT = "x" * 20
"""The text that is echoed."""
WARM_UP_CALLS, NODE_WARM_UP_CALLS, JAVA_WARM_UP_CALLS = 300, 10_000, 150_000
"""Calls until a new process is warm. Node.js and Java need more: they compile functions that are called often."""
MAX_WARM_UP_SECONDS = 10.0
"""Seconds after which a process is warm after fewer calls."""
JAVA_MAX_WARM_UP_SECONDS = 15.0
"""The same for Java, which begins much slower than it becomes."""
TIMEOUT = 30.0
"""Seconds that a contender may be late before it fails."""


CLIENT = {"name": "bench", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Contender:
    """A contender: its name in tables, and its command."""

    name: str
    command: list[str]
    note: str = ""
    warm_up_calls: int = WARM_UP_CALLS
    """Calls until a new process is warm."""
    max_warm_up_seconds: float = MAX_WARM_UP_SECONDS
    """Seconds after which it is warm after fewer calls."""
    may_stream: bool = False
    """True if it responds over HTTP with streams of events, even of one message."""
    timeout: float = TIMEOUT
    """Seconds that it may be late before it fails."""


@dataclass(frozen=True)
class Process:
    """A running contender. Its standard error is kept, for the error message if it fails."""

    name: str
    popen: subprocess.Popen[bytes]
    errors: IO[bytes]
    timeout: float = TIMEOUT
    """Seconds that it may be late before it fails."""

    def make_failure(self, what: str) -> ContenderError:
        """Return an error with the name of the contender, the failure, and the end of its standard error."""
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(1)
        self.errors.seek(0)
        written = self.errors.read()[-2000:].decode(errors="replace").strip()
        status = self.popen.poll()
        state = "still running" if status is None else f"exit status {status}"
        return ContenderError(f"{self.name}: {what} ({state})\n{written}")

    @contextmanager
    def deadline(self, seconds: float = 0) -> Generator[None]:
        """Kill the process if this block takes far longer than `seconds`. A read from it then returns.

        A thread does that, because timeouts of the reads would slow down the measurement.
        """
        timer = threading.Timer(seconds * 3 + self.timeout, self.popen.kill)
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
            raise self.make_failure("it closed its input") from None

    def read(self) -> bytes:
        """Read from its standard output."""
        assert self.popen.stdout is not None
        data = os.read(self.popen.stdout.fileno(), 1 << 20)
        if not data:
            raise self.make_failure("it closed its output")
        return data

    def read_line(self) -> bytes:
        """Read exactly one line, which may be long."""
        parts = [b""]
        while not parts[-1].endswith(b"\n"):
            parts.append(self.read())
        line = b"".join(parts)
        if line.count(b"\n") > 1:
            raise self.make_failure(f"expected one line, got {line[:300]!r}")
        return line

    def end(self) -> None:
        """End the process: close its input, or send a signal."""
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
def start_process(name: str, command: list[str], *, pipes: bool = True, timeout: float = TIMEOUT) -> Generator[Process]:
    """Start a contender, with pipes to and from it or without."""
    ends = subprocess.PIPE if pipes else subprocess.DEVNULL
    with tempfile.TemporaryFile() as errors:
        try:
            popen = subprocess.Popen(  # noqa: S603
                command, stdin=ends, stdout=ends, stderr=errors, bufsize=0, env=make_environment()
            )
        except OSError as error:
            raise ContenderError(f"{name}: cannot be started: {error}") from error
        process = Process(name, popen, errors, timeout)
        try:
            yield process
        finally:
            process.end()


def exchange_line(process: Process, line: str = "", seconds: float = 0) -> str:
    """Write a line, unless it is empty, and read a line, which may take about `seconds`."""
    with process.deadline(seconds):
        if line:
            process.write(line.encode() + b"\n")
        return process.read_line().decode()


def send_request(process: Process, line: str) -> dict[str, Any]:
    """Write a request and read the response."""
    text = exchange_line(process, line)
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise process.make_failure(f"expected a message, got {text[:300]!r}: {error}") from None


def format_depth(depth: int) -> str:
    """Return the name of the column for a number of concurrent calls."""
    return "one at a time" if depth == 1 else f"{depth} at a time"


def warm_up(contender: Contender, rate: Callable[[float], float], plan: Plan) -> None:
    """Warm up a new process. `rate` makes calls for a number of seconds and returns calls per second."""
    calls, until, step = 0.0, time.monotonic() + contender.max_warm_up_seconds, 3 * plan.seconds
    while calls < contender.warm_up_calls and time.monotonic() < until:
        calls += rate(step) * step


@contextmanager
def _run_client(contender: Contender, depths: Collection[int], plan: Plan) -> Generator[Sequence[Measure[str]]]:
    """Run a client that uses `pacing.py`, and yield measures of calls per second, one for each number of calls."""
    with start_process(contender.name, contender.command) as client:

        def rate(seconds: float, depth: int = max(depths)) -> float:
            line = exchange_line(client, f"{depth} {seconds}", seconds)
            try:
                return float(line)
            except ValueError:
                raise client.make_failure(f"expected calls per second, got {line[:300]!r}") from None

        def measure(depth: int) -> Mapping[str, float]:
            return {format_depth(depth): rate(plan.seconds, depth)}

        exchange_line(client)  # wait until it has received a correct response
        warm_up(contender, rate, plan)
        yield [partial(measure, depth) for depth in depths]


def measure_clients(clients: Iterable[Contender], depths: Collection[int], plan: Plan) -> Measurements[str, str]:
    """Measure clients that use `pacing.py`."""
    return measure_restarting({one.name: partial(_run_client, one, depths, plan) for one in clients}, plan, max)


def make_environment() -> dict[str, str]:
    """Return the environment of a contender. It can cache bytecode, as it does for its users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def pin_to_core(core: int, command: list[str]) -> list[str]:
    """Return the command pinned to a core, if the system supports that and has several cores."""
    taskset = shutil.which("taskset")
    if taskset is None or sys.platform != "linux" or not shutil.which(command[0]):
        return command
    cores = sorted(os.sched_getaffinity(0))
    return command if len(cores) < 2 else [taskset, "-c", str(cores[core]), *command]


@cache
def make_typescript_command(script: Path) -> list[str]:
    """Return the command for a script with the TypeScript SDK; a command that cannot start if the SDK is missing."""
    node, packages = install.node() / "bin" / "node", install.INTEROP / "node" / "node_modules"
    if missing := next((path for path in (node, packages) if not path.exists()), None):
        log("the official TypeScript SDK is not installed: run `make interop`")
        return [str(missing)]
    copy = packages.parent / f"{script.parent.name}_{script.name}"  # Node.js looks for packages beside the script
    copy.write_bytes(script.read_bytes())
    return [str(node), "--no-warnings", str(copy)]


def list_programs(plan: Plan, revision: str, *arguments: str, note: str = "") -> Iterator[Contender]:
    """List the programs on the SDKs of other languages that speak a revision. Without a build, they cannot start."""
    for language, name in PROGRAMS.items():
        slow = plan.quick and language == "java"  # it takes seconds to warm up
        if slow or revision not in install.PROGRAMS[language].revisions:
            continue
        program = install.optimized(language)
        if not program.exists():
            log(f"the official SDK for {language} is not installed: run `make bench`")
        contender = Contender(name, [str(program), *arguments], note, may_stream=language in ("java", "rust"))
        if language == "java":
            contender = replace(
                contender,
                warm_up_calls=JAVA_WARM_UP_CALLS,
                max_warm_up_seconds=JAVA_MAX_WARM_UP_SECONDS,
            )
        yield contender


def make_python_command(script: Path, *arguments: str) -> list[str]:
    """Return the command that runs a script in this interpreter."""
    return [sys.executable, str(script), *arguments]


def make_handshake() -> tuple[str, str]:
    """Return the two messages of the handshake in the older revision."""
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
    return _message(id=0, method="initialize", params=params), _message(method="notifications/initialized")


def make_call(id: int, revision: str, tool: str, arguments: Mapping[str, object], **meta: object) -> str:
    """Make a tool call."""
    meta = meta if revision == LEGACY else {**META, **meta}
    params = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
    return _message(id=id, method="tools/call", params=params)


def _message(**members: object) -> str:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":"))


def is_echo(message: Any, id: int, text: str) -> bool:
    """Return whether a message is the response to a call, with this text and nothing else."""
    expected = [{"type": "text", "text": text}]
    result: Any = message.get("result") or {}
    return bool(message.get("id") == id and result.get("content") == expected)


def make_rows(measured: Measurements[str, str], contenders: Iterable[Contender]) -> list[Row]:
    """Make the rows of a table."""
    return [Row(one.name, measured[one.name], describe_failure(measured, one.name) or one.note) for one in contenders]


def describe_failure(measured: Measurements[str, Any], name: str) -> str:
    """Return why a contender was left out, or an empty text."""
    return f"left out: {measured.failed[name]}" if name in measured.failed else ""
