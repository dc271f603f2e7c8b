"""Run commands, record a server, and answer from the recording, with nothing but the command line installed."""

import asyncio
import subprocess
import sys
from pathlib import Path

import typedmcp
from typedmcp_cli import Recorder, replay_server

FILE = Path("recorded.jsonl")

server = typedmcp.Server("trial")


@server.tool
async def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello, {name}!"


async def call(target: object, record: Recorder | None = None) -> str:
    async with typedmcp.connect(target, record=record) as client:
        return await client.call_tool("greet", {"name": "Ada"}, result_type=str)


assert asyncio.run(call(server, record=Recorder(FILE))) == "Hello, Ada!"
assert asyncio.run(call(replay_server(FILE))) == "Hello, Ada!"
command = Path(sys.executable).with_name("typedmcp")
for start in ([command], [sys.executable, "-m", "typedmcp"]):
    for arguments in (["diff", "2025-06-18", "2025-11-25"], ["validate", FILE, "--revision", "2026-07-28"], ["--help"]):
        subprocess.run([*start, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
