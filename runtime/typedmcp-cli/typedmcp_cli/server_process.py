"""The server process of `typedmcp run --reload`."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

from typedmcp.building import limit_time
from typedmcp_cli.status import GRACE_SECONDS, print_error

__all__ = ["RELOAD_LABEL", "ServerProcess"]

RELOAD_LABEL = "reload"
"""Label of messages about the reloader."""


class ServerProcess:
    """The current server, as a child process."""

    def __init__(self, command: Sequence[str], lifeline: int) -> None:
        self._command, self._lifeline = command, lifeline
        self._process: Process | None = None
        self._is_stopping = False
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the server. If it exits at once, the server itself has printed the reason."""
        await self._start_process(None)

    async def _start_process(self, pipe: int | None) -> Process:
        self._is_stopping = False
        # Python trusts bytecode that is as old as the source to the second: two changes may lie in one second.
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, env=env, pass_fds=[self._lifeline]
        )
        self._process, self._watch = process, asyncio.create_task(self._report_exit(process))
        return process

    async def _report_exit(self, process: Process) -> None:
        status = await process.wait()
        if not self._is_stopping:
            print_error(f"the server exited with status {status}; the next change restarts it", RELOAD_LABEL)

    async def stop(self) -> None:
        """End the server: gracefully, with SIGTERM, and finally with SIGKILL."""
        self._is_stopping = True
        process, watch = self._process, self._watch
        if process is None or watch is None:
            return
        for end in (self._request_end, process.terminate, process.kill):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    end()
                await limit_time(GRACE_SECONDS, asyncio.shield(watch))

    def _request_end(self) -> None:
        assert self._process is not None
        self._process.terminate()
