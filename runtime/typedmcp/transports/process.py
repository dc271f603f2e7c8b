"""A server as a child process, connected by its standard input and output.

The child leads its own session and process group. Closing the connection ends the whole group, and Ctrl-C in a terminal
does not reach it. Processes that leave the group (by `setsid`) are not ended. If this process is killed and cannot end
the child, a watchdog does (`typedmcp.transports.watchdog`).
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import AsyncExitStack, ExitStack

from typedmcp.transports.concurrency import limit_time
from typedmcp.transports.process_group import ProcessGroup
from typedmcp.transports.process_output import StderrReader, StderrText, StdoutTransport
from typedmcp.transports.process_parameters import (
    StdioServerParameters,
    child_environment,
    start_errors,
)
from typedmcp.transports.streams import StreamTransport
from typedmcp.transports.supervised_child import ChildTransport
from typedmcp.transports.watchdog import Watchdog

__all__ = ["ProcessTransport"]


class ProcessTransport(ChildTransport):
    """A connection to a child process that leads a process group, which ends with it. `start` creates it."""

    def __init__(self, parameters: StdioServerParameters, resources: AsyncExitStack) -> None:
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
        super().__init__(parameters, self._child, self._stderr.text, self._stdout.read)

    @classmethod
    async def start(cls, parameters: StdioServerParameters) -> ProcessTransport:
        """Start a child process.

        Raises `ConnectionLostError` if the command does not exist or cannot be executed. Raises `UsageError` if the
        working directory does not exist, or if a parameter contains a NUL or is not a string.
        """
        async with AsyncExitStack() as resources:
            with start_errors(parameters):
                transport = cls(parameters, resources)
        await transport._begin_supervision()
        return transport

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

    async def _shut_down(self) -> None:
        parameters, child = self._parameters, self._child
        self._stdout.discard()
        await limit_time(parameters.close_timeout, self._finish())
        for number, seconds in (
            (signal.SIGTERM, parameters.terminate_timeout),
            (signal.SIGKILL, parameters.kill_timeout),
        ):
            if not child.has_ended():
                child.signal(number)
                await limit_time(seconds, child.wait_until_ended())

    async def _finish(self) -> None:
        """Send the queued messages, close standard input, and wait for the exit of the child."""
        await self._stdin.close()
        await self._child.exited.wait()

    async def _release(self) -> None:
        await self._resources.aclose()


def _open_pipe(ends: ExitStack) -> tuple[int, int]:
    """Open a pipe whose ends are closed with the stack. As always in Python, other children do not inherit them."""
    pair = os.pipe()
    for end in pair:
        ends.callback(os.close, end)
    return pair


def _open_stderr(parameters: StdioServerParameters, ends: ExitStack) -> tuple[StderrReader, int | None]:
    """Return the reader of standard error, and the file that becomes the child's standard error."""
    on_line = parameters.stderr if callable(parameters.stderr) else None
    text = StderrText(parameters.encoding, on_line)
    if parameters.stderr in ("inherit", "drop"):
        return StderrReader(None, text), None if parameters.stderr == "inherit" else subprocess.DEVNULL
    source, sink = _open_pipe(ends)
    return StderrReader(source, text), sink


def _start_process(
    parameters: StdioServerParameters, stdin: int, stdout: int, stderr: int | None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # the caller chooses the command
        [parameters.command, *parameters.args],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=parameters.cwd,
        env=child_environment(parameters),
        start_new_session=True,
    )
