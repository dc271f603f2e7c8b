"""Calls of several rounds at a server's process behind a gateway: the key for their state lives in that process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.helpers import run
from typedmcp_gateway import Gateway

SERVER = """
import os
from dataclasses import dataclass
import typedmcp

server = typedmcp.Server("asks")

@dataclass
class Answer:
    text: str

@server.tool
async def ask(ctx: typedmcp.Context) -> str:
    answer = await ctx.elicit(str(os.getpid()), Answer)
    return answer.data.text if answer.data else "declined"

@server.tool
def pid() -> int:
    return os.getpid()

server.run()
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return the command of a modern server that asks."""
    script = tmp_path / "asks.py"
    script.write_text(SERVER, encoding="utf-8")
    return [sys.executable, str(script)]


def test_a_process_is_not_idle_while_its_call_waits_between_rounds(command: list[str]) -> None:
    async def main() -> None:
        async def elicit(params: Any) -> dict[str, str]:
            await asyncio.sleep(0.5)
            return {"text": "later"}

        gateway = Gateway(command, idle_seconds=0.05)
        async with typedmcp.connect(gateway, elicit=elicit) as client:
            assert await client.call_tool("ask", result_type=str) == "later"

    run(main())


def test_an_error_says_that_the_process_has_died_between_rounds(command: list[str]) -> None:
    async def main() -> None:
        async def elicit(params: Any) -> dict[str, str]:
            os.kill(int(params.message), signal.SIGKILL)
            while await pid_of(client) in (None, int(params.message)):
                await asyncio.sleep(0.02)
            return {"text": "late"}

        async with typedmcp.connect(Gateway(command), elicit=elicit) as client:
            with pytest.raises(typedmcp.RemoteError, match=r"the server was restarted .* call again") as caught:
                await client.call_tool("ask")
            assert caught.value.code == -32602

    run(main())


async def pid_of(client: typedmcp.Client) -> int | None:
    """Return the process of the server; None if the connection breaks meanwhile."""
    try:
        return await client.call_tool("pid", result_type=int)
    except typedmcp.RemoteError:
        return None
