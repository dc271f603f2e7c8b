"""A child process, and the process group that it leads."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from contextlib import suppress
from typing import Final

from typedmcp.transports.concurrency import run_in_daemon_thread

__all__ = ["KILL", "Child", "ProcessGroup"]

_log = logging.getLogger("typedmcp")

KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that ends a process at once. On Windows each signal does."""

_KILL_TIMEOUT = 0.5
"""Seconds that the event loop is blocked for a killed process, if its end cannot be awaited in another way."""

_POLL_INTERVAL = 0.02
"""Seconds between two checks whether a process group is empty. No system notifies of that."""


class Child:
    """A process, until it has ended. A thread waits for that."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.status: int | None = None
        """The exit status, negative for a signal; None while the process is running."""
        self.exited: asyncio.Event = asyncio.Event()
        self.pid: int = process.pid
        self._process = process
        run_in_daemon_thread(self._wait_for_status).add_done_callback(lambda done: self._settle(done.result()))

    def _wait_for_status(self) -> int:
        return self._process.wait()

    def _settle(self, status: int) -> None:
        if self.status is None:
            self.status = status
            self.exited.set()

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def has_ended(self) -> bool:
        """Return whether the process has exited. Reaps it."""
        return self.exited.is_set()

    async def wait_until_ended(self) -> None:
        """Wait until `has_ended` is True."""
        await self.exited.wait()
        while not self.has_ended():
            await asyncio.sleep(_POLL_INTERVAL)

    def close(self) -> None:
        """Kill what has not ended, and reap the process."""
        if not self.has_ended():
            self.signal(KILL)
        try:
            self._settle(self._process.wait(_KILL_TIMEOUT))
        except subprocess.TimeoutExpired:
            _log.warning("process %d cannot be killed", self.pid)


class ProcessGroup(Child):
    """A process and its group, until both have ended.

    The id of the group is safe to signal. The system does not reuse it before the process has been reaped, which
    happens when the connection is closed (not on macOS), or while the group has members.
    """

    def _wait_for_status(self) -> int:
        """Wait for the exit status. Where it can be, the process is not reaped, which would free its id."""
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):  # other code has reaped it
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
                assert ended is not None
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return super()._wait_for_status()

    def _settle(self, status: int) -> None:
        super()._settle(status)
        if status != 0:  # what a process that failed has started may keep its output open, which has no end then
            self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send a signal to the processes of the group that may be signalled."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def has_ended(self) -> bool:
        """Return whether the process has exited and its group is empty. Reaps the process."""
        if not super().has_ended():
            return False
        self._process.wait()
        with suppress(ChildProcessError):
            # Orphans become children of this process if it is the first one of a container: they must be reaped.
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):  # processes that may not be signalled cannot be ended
            return True
        return not _has_living_process(self.pid)


def _has_living_process(group: int) -> bool:
    """Return whether a process of a group is alive. Without /proc, every group counts as alive.

    A dead process stays in its group until it is reaped, and the first process of a container may never do that.
    """
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        names = []
    for name in names:
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            state, _, of, *_ = stat.read().rpartition(b")")[2].split()
            if int(of) == group and state not in (b"Z", b"X"):
                return True
    return not names
