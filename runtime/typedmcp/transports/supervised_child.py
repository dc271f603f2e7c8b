"""The supervision of a child process, and the description of its end, for both ways to run one."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from typedmcp.transports.concurrency import limit_time
from typedmcp.transports.process_output import StderrText
from typedmcp.transports.process_parameters import StdioServerParameters, describe_end

__all__ = ["ChildTransport", "SupervisedChild"]

_EXIT_WAIT = 0.5
"""Seconds that the end of the output waits for the exit of the child, so that its status can be reported."""


class SupervisedChild(Protocol):
    """A child process, as its supervision uses it."""

    @property
    def pid(self) -> int: ...
    @property
    def status(self) -> int | None: ...
    @property
    def exited(self) -> asyncio.Event: ...


class ChildTransport(ABC):
    """A connection to a child process, without the ways in which bytes come and go and the child is ended.

    Close it after use. If the event loop ends first, as at the end of `asyncio.run`, it closes itself.
    """

    network: Final = "pipe"

    def __init__(
        self,
        parameters: StdioServerParameters,
        child: SupervisedChild,
        stderr: StderrText,
        read_output: Callable[[], Awaitable[bytes]],
    ) -> None:
        self._parameters = parameters
        self._read_output = read_output
        self._supervised = child
        self._stderr_text = stderr
        self._closing = asyncio.Event()
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise())
        _supervisors.add(self._supervisor)
        self._supervisor.add_done_callback(_supervisors.discard)

    async def _begin_supervision(self) -> None:
        """Let the supervisor start: from then on it always ends the child, also if this call is cancelled."""
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._closing.set()
            raise

    async def read(self) -> bytes:
        """Return the next bytes, or empty bytes at the end and after `close`.

        At the end `exit_status` and `stderr_tail` are known, unless the child only closed its output.
        """
        data = await self._read_output()
        if not data and not self._closing.is_set():
            await limit_time(_EXIT_WAIT, self._supervised.exited.wait())
        return data

    async def close(self) -> None:
        """Send the queued bytes, close the child's standard input, and end the child.

        A child that does not exit in time gets SIGTERM, then SIGKILL; Windows ends it at once. If the call is
        cancelled, the shutdown continues in the background. It takes no longer than its timeouts.
        """
        self._closing.set()
        await asyncio.wait([self._supervisor])

    @property
    def pid(self) -> int:
        """The process id. The system may reuse it once the connection is closed."""
        return self._supervised.pid

    @property
    def exit_status(self) -> int | None:
        """The exit status, negative if a signal killed the child (`-9`); None while the child is running."""
        return self._supervised.status

    @property
    def stderr_tail(self) -> str:
        """The last lines of standard error: at most 20, and 4 KiB. Empty if it is inherited or dropped."""
        return self._stderr_text.tail

    def describe_end(self) -> str:
        """Describe how the child ended, with its last lines on standard error, for error messages."""
        return describe_end(self.exit_status, self.stderr_tail)

    async def _supervise(self) -> None:
        """End the child after `close`, or when the end of the loop cancels this task. If cancelled again, kill it."""
        try:
            await self._closing.wait()
        except asyncio.CancelledError:
            self._closing.set()
        try:
            await self._shut_down()
        finally:
            await self._release()

    @abstractmethod
    async def _shut_down(self) -> None:
        """End the child within the timeouts."""

    @abstractmethod
    async def _release(self) -> None:
        """Kill what is left of the child, and close everything."""


_supervisors: set[asyncio.Task[None]] = set()
"""The tasks that supervise children. An event loop holds only weak references to tasks."""
