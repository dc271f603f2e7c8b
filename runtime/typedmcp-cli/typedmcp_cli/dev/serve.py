"""Serves the page at a port of this machine, and connects again when a watched file changes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import uvicorn

from typedmcp_cli.dev.access import AccessGuard
from typedmcp_cli.dev.app import InspectorApp
from typedmcp_cli.dev.inspector import Inspector
from typedmcp_cli.reloader import POLL_SECONDS, take_snapshot
from typedmcp_cli.status import CommandExit

__all__ = ["serve_page"]


class _PageServer(uvicorn.Server):
    """Ends the event streams before it waits for open connections."""

    def __init__(self, inspector: Inspector, guard: AccessGuard) -> None:
        self._inspector = inspector
        # Nothing is logged that holds the path of a request, since that holds the token.
        super().__init__(
            uvicorn.Config(
                InspectorApp(inspector, guard), access_log=False, ws="none", lifespan="off", log_level="critical",
                server_header=False, timeout_graceful_shutdown=2,
            )
        )  # fmt: skip

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the session and the event streams first."""
        await self._inspector.close()
        await super().shutdown(sockets)


async def serve_page(inspector: Inspector, port: int, folder: Path | None) -> None:
    """Serve the page until a signal; with a folder, connect again when a Python file in it changes."""
    with _listen(port) as listener:
        guard = AccessGuard(listener.getsockname()[1])
        sys.stdout.write(f"{guard.url}\n")
        sys.stdout.flush()
        sys.stderr.write(
            "The address holds a secret token: open it in your browser, and do not share it. Ctrl-C ends.\n"
        )
        tasks = [asyncio.create_task(inspector.reconnect("started"))]
        if folder is not None:
            tasks.append(asyncio.create_task(_reconnect_on_changes(inspector, folder)))
        try:
            await _PageServer(inspector, guard).serve([listener])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await inspector.close()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise CommandExit(f"cannot listen at 127.0.0.1:{port}: {error.strerror}; choose another --port") from None


async def _reconnect_on_changes(inspector: Inspector, folder: Path) -> None:
    seen = take_snapshot(folder)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        now = await asyncio.to_thread(take_snapshot, folder)
        if now != seen:
            changed = sorted({os.path.relpath(path, folder) for path, _ in seen.items() ^ now.items()})
            seen = now
            await inspector.reconnect(f"{', '.join(changed)} changed")
