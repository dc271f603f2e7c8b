"""Servers of others: start, connection, and the check that their processes have ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.interop import install
from typedmcp.client import Client, connect
from typedmcp.dialect import structs
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.transports.process_parameters import StdioServerParameters

__all__ = [
    "MODERN", "OLDER", "Line", "Server", "connected", "connected_over_http", "node_server", "plain", "processes",
    "program_server", "run", "served",
]  # fmt: skip

T = TypeVar("T")

OLDER, MODERN = "2025-11-25", "2026-07-28"

_PATIENCE = 120.0
"""Seconds that a test may take. On a quiet machine no test needs ten."""

_MARK = "TYPEDMCP_TEST"
"""Environment variable by which the processes of a connection are found."""

_HIDDEN = ("_meta", "resultType", "ttlMs", "cacheScope")


@dataclass(frozen=True)
class Server:
    """A server of others."""

    name: str
    command: tuple[str, ...]
    newest: str
    """The newest revision that the server supports."""

    def __str__(self) -> str:
        return self.name

    def parameters(self, *arguments: str, mark: str = "", **env: str) -> StdioServerParameters:
        """Return the command that starts the server, or skip the test if it is not installed."""
        if not all(Path(part).exists() for part in self.command if part.startswith(str(install.INTEROP))):
            pytest.skip("the servers are not installed: run tests/interop/install.py")
        command, *rest = [*self.command, *arguments]
        # Some do not end while something of their own is still to come.
        return StdioServerParameters(command, rest, env={**env, _MARK: mark}, stderr="capture", close_timeout=1.0)


def node_server(name: str, script: Path, *arguments: str, newest: str = OLDER, options: tuple[str, ...] = ()) -> Server:
    return Server(name, (str(install.node() / "bin" / "node"), *options, str(script), *arguments), newest)


def program_server(language: str) -> Server:
    """Return the server on the SDK of a compiled language."""
    offer = Path(__file__).parent / "offer.json"
    newest = install.PROGRAMS[language].revisions[-1]
    return Server(language, (str(install.program(language)), "serve", str(offer)), newest)


@asynccontextmanager
async def connected(
    server: Server, *arguments: str, odd: tuple[str, ...] = (), **options: Any
) -> AsyncGenerator[Client]:
    """Start a server, and yield a client of it.

    Fails if the process outlives the client, and for diagnostics of other kinds than those in `odd`.
    """
    mark = str(uuid.uuid4())
    reports: list[Diagnostic] = []
    env: dict[str, str] = options.pop("env", {})
    options = {"timeout": 60.0, **options, "on_diagnostic": reports.append}
    async with connect(server.parameters(*arguments, mark=mark, **env), **options) as opened:
        yield opened
    assert processes(mark) == []
    _check_reports(reports, odd)


@asynccontextmanager
async def connected_over_http(
    server: Server, transport: str, *, odd: tuple[str, ...] = (), **options: Any
) -> AsyncGenerator[Client]:
    """Start a server that prints its URL first and ends with its standard input, and yield a client of it."""
    async with served(server, transport) as url:
        reports: list[Diagnostic] = []
        options = {"timeout": 60.0, **options, "on_diagnostic": reports.append}
        async with connect(url, **options) as opened:
            yield opened
        _check_reports(reports, odd)


def _check_reports(reports: list[Diagnostic], odd: tuple[str, ...]) -> None:
    """Check that nothing was reported, but members of newer revisions, which SDKs send on all older ones, once each."""
    newer = [report for report in reports if ": not a member in " in report.text]
    assert len({report.text for report in newer}) == len(newer), newer
    unexpected = [str(report) for report in reports if report.kind not in odd and report not in newer]
    assert unexpected == [], unexpected


@asynccontextmanager
async def served(server: Server, *arguments: str, **env: str) -> AsyncGenerator[str]:
    """Start a server and yield its URL. Fails if the process does not end."""
    started = server.parameters(*arguments)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, **env}}
    process = await asyncio.create_subprocess_exec(started.command, *started.args, **pipes)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield (await asyncio.wait_for(process.stdout.readline(), _PATIENCE)).decode().strip()
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE / 2)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise


def processes(mark: str) -> list[int]:
    """List the processes with a mark and their children. Needs `/proc`."""
    if not Path("/proc/self/environ").exists():
        return []
    wanted = f"{_MARK}={mark}".encode()
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and wanted in _environment(pid)]


def _environment(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "environ").read_bytes()
    except OSError:
        return b""


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop of its own, and check that no task is left."""

    async def checked() -> None:
        await asyncio.wait_for(main(), _PATIENCE)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []

    asyncio.run(checked())


class Line:
    """A connected client for several tests in turn, since its server takes long to start."""

    def __init__(self, server: Server, revision: str, *arguments: str, **options: Any) -> None:
        self.server, self.revision = server, revision
        self._runner = asyncio.Runner()
        self._opened = self.connected(server, *arguments, revisions=[revision], **options)
        try:
            self.client = self.run(self._opened.__aenter__)
        except BaseException:
            self._runner.close()
            raise

    def connected(self, server: Server, *arguments: str, **options: Any) -> AbstractAsyncContextManager[Client]:
        return connected(server, *arguments, **options)

    @property
    def is_modern(self) -> bool:
        return self.revision == MODERN

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._runner.run(asyncio.wait_for(main(), _PATIENCE))

    def close(self) -> None:
        async def main() -> None:
            await self._opened.__aexit__(None, None, None)

        with self._runner:
            self.run(main)


def plain(value: Any) -> Any:
    """Convert a result to JSON, without the members that belong to the protocol."""
    said = structs.to_builtins(value)
    kept = {key: member for key, member in said.items() if key not in _HIDDEN}
    return {key: member for key, member in kept.items() if key != "isError" or member}
