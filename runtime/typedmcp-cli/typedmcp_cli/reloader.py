"""Runs a server for `typedmcp run --reload`, and restarts it when a file changes.

The server is a child process. Over HTTP it is simply restarted; over standard input and output `relay` keeps the
client's connection. If the parent is killed it cannot end its child, so the server watches a pipe that the parent
holds open.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from typedmcp.building import limit_time
from typedmcp_cli.server_process import RELOAD_LABEL, ServerProcess
from typedmcp_cli.status import INTERRUPTED, OK, print_error

if TYPE_CHECKING:
    from typedmcp_cli.serve import ListenAddress, TransportName

__all__ = ["POLL_SECONDS", "run_reloader", "take_snapshot"]

POLL_SECONDS = 0.3
"""Time between two snapshots of the files."""


def run_reloader(
    text: str, folder: Path, transport: TransportName, *, log_level: str, frames: bool, address: ListenAddress
) -> int:
    """Serve a file until a signal or the client ends it; restart the server when a file in `folder` changes."""
    with _open_lifeline() as lifeline:
        others = {"log_level": log_level, "frames": frames, "transport": transport, "lifeline": lifeline}
        options = json.dumps({**address, **others})
        command = [sys.executable, "-P", "-m", "typedmcp_cli.serve", text, options]
        serve = _serve_stdio if transport == "stdio" else _serve_http
        return asyncio.run(serve(command, lifeline, folder))


@contextmanager
def _open_lifeline() -> Generator[int]:
    """Open a pipe for the server to inherit. Its other end closes when this process ends for any reason."""
    source, sink = os.pipe()
    try:
        yield source
    finally:
        os.close(sink)
        os.close(source)


async def _serve_http(command: Sequence[str], lifeline: int, folder: Path) -> int:
    return await _supervise(ServerProcess(command, lifeline), folder, asyncio.Event())


async def _serve_stdio(command: Sequence[str], lifeline: int, folder: Path) -> int:
    from typedmcp.transports.stdio import stdio
    from typedmcp_cli.relay import RelayedServer

    async with stdio() as client:
        server, ended = RelayedServer(command, lifeline, client), asyncio.Event()
        forwarding = asyncio.create_task(server.forward_client(ended))
        try:
            return await _supervise(server, folder, ended)
        finally:
            forwarding.cancel()


async def _supervise(server: ServerProcess, folder: Path, ended: asyncio.Event) -> int:
    """Restart the server with every change until `ended` is set, and return the exit status."""
    signals = _end_on_signals(ended)
    seen = take_snapshot(folder)
    await server.start()
    while not await limit_time(POLL_SECONDS, ended.wait()):
        now = await asyncio.to_thread(take_snapshot, folder)
        if now == seen:
            continue
        changed = sorted({path for path, _ in seen.items() ^ now.items()})
        seen = now
        print_error(f"{', '.join(os.path.relpath(path, folder) for path in changed)} changed", RELOAD_LABEL)
        await server.stop()
        await server.start()
    await server.stop()
    return INTERRUPTED if signal.SIGINT in signals else OK


def _end_on_signals(ended: asyncio.Event) -> Collection[int]:
    """Set `ended` when a signal arrives; return the collection to which received signals are added."""
    received: set[int] = set()
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        received.add(number)
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` ignores SIGHUP
            loop.add_signal_handler(number, on_signal, number)
    return received


_SKIPPED_FOLDERS = ("__pycache__", "node_modules", "site-packages")


def take_snapshot(folder: Path) -> dict[str, int]:
    """Return the modification time of each Python file in a folder and its subfolders, in nanoseconds.

    Hidden folders and virtual environments are left out.
    """
    return dict(_find_files(folder))


def _find_files(folder: str | Path) -> Iterator[tuple[str, int]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # the file was deleted in the meantime
                if entry.is_dir(follow_symlinks=False):
                    if not _is_skipped(entry):
                        yield from _find_files(entry.path)
                elif entry.name.endswith(".py"):
                    yield entry.path, entry.stat().st_mtime_ns


def _is_skipped(folder: os.DirEntry[str]) -> bool:
    is_environment = os.path.exists(os.path.join(folder.path, "pyvenv.cfg"))
    return folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS or is_environment
