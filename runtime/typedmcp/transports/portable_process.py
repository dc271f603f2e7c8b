"""A server as a child process, where the system has no process groups or no shell, as on Windows.

The child runs through asyncio's own support for subprocesses. Only the child itself is ended: processes that it started
stay, and a child whose client is killed has to notice the end of its input.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from contextlib import suppress
from typing import Final, cast

from typedmcp.transports import HIGH_WATER
from typedmcp.transports.concurrency import limit_time
from typedmcp.transports.process import ProcessTransport
from typedmcp.transports.process_output import StderrText
from typedmcp.transports.process_parameters import (
    StdioServerParameters,
    child_environment,
    start_errors,
)
from typedmcp.transports.supervised_child import ChildTransport

__all__ = ["HAS_PROCESS_GROUPS", "PortableProcessTransport", "start_process"]

HAS_PROCESS_GROUPS: Final[bool] = hasattr(os, "killpg")
"""True if children are process groups. Otherwise they run as `PortableProcessTransport`."""

_READ_AHEAD_BYTES = 1 << 20
"""Bytes that are received before the reader asks for them."""

# On Windows, Ctrl-C in a console reaches all processes of a group, and the client ends its children itself.
_NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


async def start_process(parameters: StdioServerParameters) -> ProcessTransport | PortableProcessTransport:
    """Start a child process in the way that this system supports.

    Raises `ConnectionLostError` if the command does not exist or cannot be executed. Raises `UsageError` if the working
    directory does not exist, or if a parameter contains a NUL or is not a string.
    """
    if HAS_PROCESS_GROUPS:
        return await ProcessTransport.start(parameters)
    return await PortableProcessTransport.start(parameters)


class PortableProcessTransport(ChildTransport):
    """A connection to a child process that leads no process group. `start` creates it."""

    def __init__(self, parameters: StdioServerParameters, child: _Child) -> None:
        self._child = child
        super().__init__(parameters, child, child.stderr, child.read)

    @classmethod
    async def start(cls, parameters: StdioServerParameters) -> PortableProcessTransport:
        """Start a child process. Raises what `start_process` raises."""
        with start_errors(parameters):
            child = await _start_child(parameters)
        transport = cls(parameters, child)
        await transport._begin_supervision()
        return transport

    def write(self, data: bytes) -> None:
        """Send bytes to the child, and queue those that it does not accept now."""
        if not self._closing.is_set():
            self._child.write(data)

    @property
    def is_congested(self) -> bool:
        """Return whether too many bytes wait to be sent."""
        return not self._child.drained.is_set()

    async def drain(self) -> None:
        """Wait until the child has read enough, or reads no more."""
        await self._child.drained.wait()

    async def _shut_down(self) -> None:
        parameters, child = self._parameters, self._child
        child.discard_output()
        child.close_input()
        await limit_time(parameters.close_timeout, self._finish())
        for end, seconds in (
            (child.terminate, parameters.terminate_timeout),
            (child.kill, parameters.kill_timeout),
        ):
            if not child.exited.is_set():
                end()
                await limit_time(seconds, child.exited.wait())

    async def _finish(self) -> None:
        """Wait until the queued messages have been sent, and the child has exited."""
        await self._child.input_closed.wait()
        await self._child.exited.wait()

    async def _release(self) -> None:
        self._child.close()


async def _start_child(parameters: StdioServerParameters) -> _Child:
    environment = child_environment(parameters)
    # Windows itself finds only .exe files by a bare name; `npx` and most others are .cmd files.
    command = shutil.which(parameters.command, path=environment.get("PATH")) or parameters.command
    on_line = parameters.stderr if callable(parameters.stderr) else None
    keep = {"inherit": None, "drop": subprocess.DEVNULL}
    transport, child = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Child(StderrText(parameters.encoding, on_line)),
        command,
        *parameters.args,
        stderr=subprocess.PIPE if on_line is not None else keep.get(str(parameters.stderr), subprocess.PIPE),
        cwd=parameters.cwd,
        env=environment,
        creationflags=_NEW_GROUP,
    )
    child.attach(transport)
    return child


class _Child(asyncio.SubprocessProtocol):
    """A child process and its pipes, as asyncio reports on them."""

    def __init__(self, stderr: StderrText) -> None:
        self.stderr: StderrText = stderr
        self.exited: asyncio.Event = asyncio.Event()
        self.input_closed: asyncio.Event = asyncio.Event()
        self.drained: asyncio.Event = asyncio.Event()
        self.drained.set()
        self.status: int | None = None
        self._chunks: list[bytes] = []
        self._size = 0
        self._at_end = False
        self._is_discarding = False
        self._is_paused = False
        self._readable = asyncio.Event()

    def attach(self, transport: asyncio.SubprocessTransport) -> None:
        """Begin to use the pipes."""
        self._transport = transport
        self.pid: int = transport.get_pid()
        self._input = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
        self._input.set_write_buffer_limits(high=HIGH_WATER)
        self._output = cast(asyncio.ReadTransport, transport.get_pipe_transport(1))

    async def read(self) -> bytes:
        """Return the bytes that have arrived, or empty bytes at the end."""
        await self._readable.wait()
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        if not self._at_end:
            self._readable.clear()
        self._resume()
        return data

    def discard_output(self) -> None:
        """End the output for the reader, and discard all that follows, so that the child does not block."""
        self._is_discarding = self._at_end = True
        self._chunks.clear()
        self._readable.set()
        self._resume()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._output.resume_reading()

    def write(self, data: bytes) -> None:
        if not self._input.is_closing():
            self._input.write(data)

    def close_input(self) -> None:
        """Close standard input once the queued bytes are sent."""
        self._input.close()

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            self._transport.terminate()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._transport.kill()

    def close(self) -> None:
        """Kill the child if it is running, and close the pipes."""
        self._transport.close()

    # Called by the event loop

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self.stderr.add(data)
        elif not self._is_discarding:
            self._chunks.append(data)
            self._size += len(data)
            self._readable.set()
            if self._size > _READ_AHEAD_BYTES and not self._is_paused:
                self._is_paused = True
                self._output.pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 0:
            self.input_closed.set()
            self.drained.set()
        elif fd == 1:
            self._at_end = True
            self._readable.set()
        else:
            self.stderr.end()

    def pause_writing(self) -> None:
        self.drained.clear()

    def resume_writing(self) -> None:
        self.drained.set()

    def process_exited(self) -> None:
        self.status = self._transport.get_returncode()
        self.exited.set()
