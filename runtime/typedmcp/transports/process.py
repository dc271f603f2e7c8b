"""A server as a child process, connected by its standard input and output.

The child leads its own session and process group. Closing the connection ends the whole group, and Ctrl-C in a terminal
does not reach it. Processes that leave the group (by `setsid`) are not ended. If this process is killed and cannot end
the child, a watchdog does (`typedmcp.transports.watchdog`).
"""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Literal

from typedmcp.errors import ConnectionLostError, UsageError
from typedmcp.transports.process_group import ProcessGroup
from typedmcp.transports.process_output import StderrReader, StdoutTransport
from typedmcp.transports.streams import StreamTransport
from typedmcp.transports.watchdog import Watchdog

__all__ = ["SAFE_ENVIRONMENT", "ProcessTransport", "StdioServerParameters"]

_POSIX = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_WINDOWS = (
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
SAFE_ENVIRONMENT: Final[tuple[str, ...]] = _WINDOWS if sys.platform == "win32" else _POSIX
"""The environment variables that a child inherits. They are unlikely to contain secrets."""

_EXIT_WAIT = 0.5
"""Seconds that the end of the output waits for the exit of the child, so that its status can be reported."""


@dataclass(frozen=True, slots=True)
class StdioServerParameters:
    """The command of a server that runs as a child process, and its options.

    Raises `UsageError` for invalid values.
    """

    command: str
    args: Sequence[str] = ()
    _: KW_ONLY
    env: Mapping[str, str] | None = None
    """Environment variables, added to those that the child inherits (`SAFE_ENVIRONMENT`)."""
    cwd: str | os.PathLike[str] | None = None
    """The working directory."""
    encoding: str = "utf-8"
    """The encoding of standard error."""
    stderr: Literal["inherit", "capture", "drop"] | Callable[[str], object] = "inherit"
    """The destination of standard error.

    "capture" keeps the last lines for error messages. A function is also called with each line, without its newline and
    in pieces of at most 65,536 characters.
    """
    close_timeout: float = 2.0
    """Seconds that sending the queued messages, and then the exit of the child, may take before SIGTERM."""
    terminate_timeout: float = 2.0
    """Seconds from SIGTERM to SIGKILL."""
    kill_timeout: float = 2.0
    """Seconds to wait for the end of the child after SIGKILL."""

    def __post_init__(self) -> None:
        if isinstance(self.args, str):
            raise UsageError(f"args must be a list of strings, such as [{self.args!r}]")
        if not callable(self.stderr) and self.stderr not in ("inherit", "capture", "drop"):
            raise UsageError(f"stderr must be 'inherit', 'capture', 'drop' or a function, not {self.stderr!r}")
        try:
            codecs.getincrementaldecoder(self.encoding)
        except LookupError as error:
            raise UsageError(str(error)) from error


class ProcessTransport:
    """A connection to a child process. `start` creates it.

    Close it after use. If the event loop ends first, as at the end of `asyncio.run`, it closes itself.
    """

    def __init__(self, parameters: StdioServerParameters, resources: AsyncExitStack) -> None:
        self._parameters = parameters
        with ExitStack() as ends:
            stdin_read, stdin_write = _open_pipe(ends)
            stdout_read, stdout_write = _open_pipe(ends)
            # One transport for each direction, since the child's input ends before its output.
            self._stdin = StreamTransport(stdin_write, stdin_write)
            resources.push_async_callback(self._stdin.close)
            self._stdout = StdoutTransport(stdout_read, stdout_read)
            resources.push_async_callback(self._stdout.close)
            self._stderr, error_sink = _open_stderr(parameters, ends)
            resources.callback(self._stderr.close)
            watchdog = Watchdog()
            resources.callback(watchdog.close)
            watchdog.start(stdin_read)
            process = _start_process(parameters, stdin_read, stdout_write, error_sink)
            self._child = ProcessGroup(process)
            resources.callback(self._child.close)
            watchdog.guard(process.pid)
            self._child.watch()
        self._resources = resources.pop_all()
        self._closing = asyncio.Event()
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())
        _supervisors.add(self._supervisor)
        self._supervisor.add_done_callback(_supervisors.discard)

    @classmethod
    async def start(cls, parameters: StdioServerParameters) -> ProcessTransport:
        """Start a child process.

        Raises `ConnectionLostError` if the command does not exist or cannot be executed. Raises `UsageError` if the
        working directory does not exist, or if a parameter contains a NUL or is not a string.
        """
        if sys.platform == "win32":
            raise UsageError("child processes are not supported on Windows")
        if parameters.cwd is not None and not os.path.isdir(parameters.cwd):
            raise UsageError(f"cannot start {parameters.command!r}: no directory {os.fspath(parameters.cwd)}")
        async with AsyncExitStack() as resources:
            try:
                transport = cls(parameters, resources)
            except OSError as error:
                raise ConnectionLostError(f"cannot start {parameters.command!r}: {error}") from error
            except (TypeError, ValueError) as error:
                raise UsageError(f"cannot start {parameters.command!r}: {error}") from error
        try:
            await asyncio.sleep(0)  # `_supervise` runs from here on, and always ends the child
        except asyncio.CancelledError:
            transport._closing.set()
            raise
        return transport

    async def read(self) -> bytes:
        """Return the next bytes, or empty bytes at the end and after `close`.

        At the end `exit_status` and `stderr_tail` are known, unless the child only closed its output.
        """
        data = await self._stdout.read()
        if not data and not self._closing.is_set():
            await _limit_time(_EXIT_WAIT, self._child.exited.wait())
        return data

    def write(self, data: bytes) -> None:
        """Send bytes to the child, and queue those that it does not accept now."""
        self._stdin.write(data)

    @property
    def is_congested(self) -> bool:
        """Return whether too many bytes wait to be sent."""
        return self._stdin.is_congested

    async def drain(self) -> None:
        """Wait until the child has read enough."""
        await self._stdin.drain()

    async def close(self) -> None:
        """Send the queued bytes, close the child's standard input, and end its process group.

        Processes that do not exit in time get SIGTERM, then SIGKILL. If the call is cancelled, the shutdown continues
        in the background. It takes no longer than its timeouts.
        """
        self._closing.set()
        await asyncio.wait([self._supervisor])

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group. The system may reuse it once the connection is closed."""
        return self._child.pid

    @property
    def exit_status(self) -> int | None:
        """The exit status, negative if a signal killed the child (`-9`); None while the child is running."""
        return self._child.status

    @property
    def stderr_tail(self) -> str:
        """The last lines of standard error: at most 20, and 4 KiB. Empty if it is inherited or dropped."""
        return self._stderr.tail

    def describe_end(self) -> str:
        """Describe how the child ended, with its last lines on standard error, for error messages."""
        status = self.exit_status
        if status is None:
            how = "still running"
        elif status < 0:
            how = f"killed by {_signal_name(-status)}"
        else:
            how = f"exit status {status}"
        return f"{how}; last lines on standard error: {self.stderr_tail}" if self.stderr_tail else how

    async def _supervise(self) -> None:
        """End the child after `close`, or when the end of the loop cancels this task. If cancelled again, kill it."""
        try:
            await self._closing.wait()
        except asyncio.CancelledError:
            self._closing.set()
        try:
            await self._shut_down()
        finally:
            await self._resources.aclose()

    async def _shut_down(self) -> None:
        parameters, child = self._parameters, self._child
        self._stdout.discard()
        await _limit_time(parameters.close_timeout, self._stdin.close())
        await _limit_time(parameters.close_timeout, child.exited.wait())
        for number, seconds in (
            (signal.SIGTERM, parameters.terminate_timeout),
            (signal.SIGKILL, parameters.kill_timeout),
        ):
            if not child.has_ended():
                child.signal(number)
                await _limit_time(seconds, child.wait_until_ended())


_supervisors: set[asyncio.Task[None]] = set()
"""The tasks that supervise children. An event loop holds only weak references to tasks."""


def _open_pipe(ends: ExitStack) -> tuple[int, int]:
    """Open a pipe whose ends are closed with the stack. As always in Python, other children do not inherit them."""
    pair = os.pipe()
    for end in pair:
        ends.callback(os.close, end)
    return pair


def _open_stderr(parameters: StdioServerParameters, ends: ExitStack) -> tuple[StderrReader, int | None]:
    """Return the reader of standard error, and the file that becomes the child's standard error."""
    on_line = parameters.stderr if callable(parameters.stderr) else None
    if parameters.stderr in ("inherit", "drop"):
        sink = None if parameters.stderr == "inherit" else subprocess.DEVNULL
        return StderrReader(None, parameters.encoding, on_line), sink
    source, sink = _open_pipe(ends)
    return StderrReader(source, parameters.encoding, on_line), sink


def _start_process(
    parameters: StdioServerParameters, stdin: int, stdout: int, stderr: int | None
) -> subprocess.Popen[bytes]:
    inherited = {name: os.environ[name] for name in SAFE_ENVIRONMENT if name in os.environ}
    # A value with this prefix is a function that a shell exported.
    inherited = {name: value for name, value in inherited.items() if not value.startswith("()")}
    return subprocess.Popen(  # noqa: S603  # the caller chooses the command
        [parameters.command, *parameters.args],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=parameters.cwd,
        env={**inherited, **(parameters.env or {})},
        start_new_session=True,
    )


async def _limit_time(seconds: float, work: Coroutine[Any, Any, object]) -> None:
    """Await a coroutine, and cancel it after some seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
