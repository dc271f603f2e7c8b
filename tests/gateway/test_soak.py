"""Many clients use servers that die again and again: every call ends, and no process is left."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import typedmcp
from tests.gateway.uvicorn import serving_http
from tests.spoken import LEGACY, MODERN_REVISION

CLIENTS = 10
SECONDS = 6.0
SERVER = """
import asyncio, os, pathlib, sys, typedmcp
revision, folder = sys.argv[1:]
pathlib.Path(folder, str(os.getpid())).touch()
server = typedmcp.Server("mortal")
@server.tool
async def quick() -> str:
    return "quick"
@server.tool
async def slow() -> str:
    await asyncio.sleep(0.3)
    return "slow"
@server.tool
async def ask(ctx: typedmcp.Context) -> str:
    return (await ctx.list_roots())[0].uri
server.run(revisions=[revision])
"""


def pids(folder: Path) -> list[int]:
    """Return the processes of servers that were started and still run."""
    return [int(file.name) for file in folder.iterdir() if is_running(int(file.name))]


def is_running(pid: int) -> bool:
    """Return whether a process runs, and is no zombie."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")
def test_every_call_ends_while_servers_are_killed_and_no_process_is_left(tmp_path: Path) -> None:
    file, folder = tmp_path / "mortal.py", tmp_path / "pids"
    file.write_text(SERVER)
    folder.mkdir()
    outcomes: Counter[str] = Counter()
    servers = {
        f"s{number}": [sys.executable, str(file), revision, str(folder)]
        for number, revision in enumerate((MODERN_REVISION, LEGACY[0], MODERN_REVISION, LEGACY[-1]))
    }
    gateway = typedmcp.Gateway(servers=servers, max_connections=40, answer_seconds=5.0, connect={"timeout": 5.0})
    reports: list[typedmcp.Diagnostic] = []

    async def use(url: str, number: int, end: float) -> None:
        generator = random.Random(number)
        loop = asyncio.get_running_loop()
        revision = generator.choice([MODERN_REVISION, LEGACY[0]])
        roots = f"file:///{number}"
        async with typedmcp.connect(f"{url}/mcp", revisions=[revision], roots=[roots], timeout=60.0) as client:
            while loop.time() < end:
                tool = generator.choice(["quick", "slow", "ask"])
                try:
                    result = await client.call_tool(f"{generator.choice([*servers])}_{tool}")
                except typedmcp.RemoteError:  # such as that the connection to the server was lost
                    outcomes["error"] += 1
                    await asyncio.sleep(0.05)
                else:
                    assert typedmcp.text_of(result) == (roots if tool == "ask" else tool)
                    outcomes["result"] += 1

    async def kill(end: float) -> None:
        loop, generator = asyncio.get_running_loop(), random.Random(0)
        while loop.time() < end:
            await asyncio.sleep(0.5)
            if found := pids(folder):
                with suppress(ProcessLookupError):
                    os.kill(generator.choice(found), signal.SIGKILL)
                    outcomes["killed"] += 1

    async def main() -> None:
        async with serving_http(gateway.asgi(on_diagnostic=reports.append)) as url:
            end = asyncio.get_running_loop().time() + SECONDS
            async with asyncio.timeout(90), asyncio.TaskGroup() as tasks:
                tasks.create_task(kill(end))
                for number in range(CLIENTS):
                    tasks.create_task(use(url, number, end))

    asyncio.run(main())
    assert pids(folder) == []
    assert outcomes["killed"] >= 3
    assert outcomes["result"] > outcomes["error"]
    assert any("connection" in report.text for report in reports)
