"""A server as a child process, connected by its standard input and output.

The child leads its own session and process group. Closing the connection ends the whole group, and Ctrl-C in a terminal
does not reach it. Processes that leave the group (by `setsid`) are not ended. If this process is killed and cannot end
the child, a watchdog does (`typedmcp.transports.watchdog`).

Windows has neither process groups nor pipes for which an event loop can wait. Threads read and write there, and only
the child itself is ended: a child whose client is killed has to notice the end of its input.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Final

from mcpspec.support.error_text import escape_unprintable
from typedmcp.transports.child import KILL, Child, ProcessGroup
from typedmcp.transports.concurrency import limit_time, run_in_daemon_thread
from typedmcp.transports.files import FileTransport
from typedmcp.transports.process_parameters import StdioServerParameters, child_environment, start_errors
from typedmcp.transports.stderr_text import ProbeNoise, StderrText
from typedmcp.transports.streams import StreamTransport
from typedmcp.transports.watchdog import Watchdog

__all__ = ["HAS_PROCESS_GROUPS", "ProcessTransport"]

HAS_PROCESS_GROUPS: Final[bool] = hasattr(os, "killpg")
"""False on Windows."""

_END_WAIT = 0.5
"""Seconds that the end of the output waits for the exit of the child, so that it can be described, and the reverse."""

# On Windows, Ctrl-C in a console reaches all processes of a group, and the client ends its children itself.
_NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


class ProcessTransport:
    """A connection to a child process, which ends with it. `start` creates it.

    Close it after use. If the event loop ends first, as at the end of `asyncio.run`, it closes itself.
    """

    network: Final = "pipe"

    def __init__(self, parameters: StdioServerParameters, resources: AsyncExitStack, noise: ProbeNoise | None) -> None:
        self._parameters = parameters
        kind = StreamTransport if HAS_PROCESS_GROUPS else FileTransport
        self._stderr = StderrText(parameters.encoding, parameters.stderr if callable(parameters.stderr) else None)
        with ExitStack() as ends:
            stdin_read, stdin_write = _open_pipe(ends)
            stdout_read, stdout_write = _open_pipe(ends)
            # One transport for each direction, since the child's input ends before its output.
            self._stdin = kind(stdin_write, stdin_write)
            resources.push_async_callback(self._stdin.close)
            self._stdout = kind(stdout_read, stdout_read)
            resources.push_async_callback(self._stdout.close)
            lines: StreamTransport | FileTransport | None = None
            stderr = {"inherit": None, "drop": subprocess.DEVNULL}.get(str(parameters.stderr), subprocess.PIPE)
            if stderr is None and noise is not None:
                stderr_read, stderr = _open_pipe(ends)
                run_in_daemon_thread(noise.pass_on, os.dup(stderr_read))
            elif stderr == subprocess.PIPE:
                stderr_read, stderr = _open_pipe(ends)
                lines = kind(stderr_read, stderr_read)
                resources.push_async_callback(lines.close)
            watchdog = Watchdog() if HAS_PROCESS_GROUPS else None
            if watchdog is not None:
                resources.callback(watchdog.close)
                watchdog.start(stdin_read)
            process = _start_process(parameters, stdin_read, stdout_write, stderr)
            self._child = ProcessGroup(process) if HAS_PROCESS_GROUPS else Child(process)
            resources.callback(self._child.close)
            if watchdog is not None:
                watchdog.guard(process.pid)
        if lines is None:
            self._stderr.add(b"")
        else:
            lines.consume(self._stderr.add)
        self.tap: Callable[[Callable[[bytes], bool]], None] | None = getattr(self._stdout, "tap", None)
        """Passes chunks to a function: see `typedmcp.transports.tap`."""
        self.has_read: bool = True
        """False if the child has ended and is known not to have read its input."""
        self._resources = resources.pop_all()
        self._output_ended = asyncio.Event()
        self._closing = asyncio.Event()
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())
        _supervisors.add(self._supervisor)
        self._supervisor.add_done_callback(_supervisors.discard)

    @classmethod
    async def start(cls, parameters: StdioServerParameters, noise: ProbeNoise | None = None) -> ProcessTransport:
        """Start a child process. `noise` passes on its standard error, if that is inherited.

        Raises `ConnectionLostError` if the command does not exist or cannot be executed. Raises `UsageError` if the
        working directory does not exist, or if a parameter contains a NUL or is not a string.
        """
        async with AsyncExitStack() as resources:
            with start_errors(parameters):
                transport = cls(parameters, resources, noise)
        try:
            await asyncio.sleep(0)  # once the supervisor has begun, it always ends the child
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
            await limit_time(_END_WAIT, self._wait_for_end())
        return data

    async def _wait_for_end(self) -> None:
        await self._child.exited.wait()
        self.has_read = self._stdin.count_unread() == 0
        await self._stderr.ended.wait()

    def write(self, data: bytes) -> None:
        """Send bytes to the child, and queue those that it does not accept now."""
        self._stdin.write(data)

    async def drain(self) -> None:
        """Wait until the child has read enough, or reads no more."""
        await self._stdin.drain()

    @property
    def is_congested(self) -> bool:
        """Return whether too many bytes wait to be sent."""
        return self._stdin.is_congested

    @property
    def pid(self) -> int:
        """The process id. The system may reuse it once the connection is closed."""
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
        else:
            how = f"killed by {_signal_name(-status)}" if status < 0 else f"exit status {status}"
        tail = escape_unprintable(self.stderr_tail, kept="\n\t")
        return f"{how}; last lines on standard error: {tail}" if tail else how

    # Closing

    async def close(self) -> None:
        """Send the queued bytes, close the child's standard input, and end the child.

        A child that does not exit in time gets SIGTERM, then SIGKILL; Windows ends it at once. If the call is
        cancelled, the shutdown continues in the background. It takes no longer than its timeouts.
        """
        self._closing.set()
        await asyncio.wait([self._supervisor])

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
        self._stdout.consume(lambda data: None if data else self._output_ended.set())
        await limit_time(parameters.close_timeout, self._finish())
        for number, seconds in ((signal.SIGTERM, parameters.terminate_timeout), (KILL, parameters.kill_timeout)):
            if not child.has_ended():
                child.signal(number)
                await limit_time(seconds, child.wait_until_ended())
        await limit_time(_END_WAIT, self._wait_for_streams())

    async def _finish(self) -> None:
        """Send the queued messages, close standard input, and wait for the exit of the child."""
        await self._stdin.close()
        await self._child.exited.wait()

    async def _wait_for_streams(self) -> None:
        """Wait until everything that the child wrote has been read."""
        await self._output_ended.wait()
        await self._stderr.ended.wait()


_supervisors: set[asyncio.Task[None]] = set()
"""The tasks that supervise children. An event loop holds only weak references to tasks."""


def _open_pipe(ends: ExitStack) -> tuple[int, int]:
    """Open a pipe whose ends are closed with the stack. As always in Python, other children do not inherit them."""
    pair = os.pipe()
    for end in pair:
        ends.callback(os.close, end)
    return pair


def _start_process(
    parameters: StdioServerParameters, stdin: int, stdout: int, stderr: int | None
) -> subprocess.Popen[bytes]:
    environment, command = child_environment(parameters), parameters.command
    if not HAS_PROCESS_GROUPS:
        # Windows itself finds only .exe files by a bare name; `npx` and most others are .cmd files.
        command = shutil.which(command, path=environment.get("PATH")) or command
    return subprocess.Popen(  # noqa: S603  # the caller chooses the command
        [command, *parameters.args],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=parameters.cwd,
        env=environment,
        start_new_session=True,
        creationflags=_NEW_GROUP,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
