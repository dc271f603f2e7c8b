"""The option `change_error`, which replaces the errors of calls and of attempts to connect."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import Request, Script, Wire, serving
from tests.server.scripted import run

SERVER = """
import os, typedmcp
server = typedmcp.Server("s")

@server.tool
async def wait() -> None:
    os._exit(3)

@server.tool
def fail() -> None:
    raise typedmcp.RemoteError(-32001, "mine")

server.run()
"""


class Changes:
    """Keeps the errors that it changes."""

    def __init__(self) -> None:
        self.errors: list[typedmcp.Error] = []

    def __call__(self, error: typedmcp.Error) -> typedmcp.Error:
        self.errors.append(error)
        return typedmcp.ToolError("changed")


@each("target", [["/nowhere/server"], "unix:/nowhere/socket", "http://127.0.0.1:1/mcp", [sys.executable, "-c", ""]])
def test_an_error_of_an_attempt_to_connect_is_changed(target: Any) -> None:
    async def main() -> None:
        changes = Changes()
        with pytest.raises(typedmcp.ToolError, match="changed") as caught:
            await typedmcp.connect(target, change_error=changes, on_diagnostic=lambda _: None).open()
        assert changes.errors
        assert caught.value.__suppress_context__

    asyncio.run(main())


@each("name", ["fail", "wait"])
@each("revision", ["2025-11-25", "2026-07-28"])
def test_errors_of_calls_over_pipes_are_changed(name: str, revision: str) -> None:
    async def main() -> None:
        changes = Changes()
        target = [sys.executable, "-c", SERVER]
        async with typedmcp.connect(target, change_error=changes, revisions=[revision], restart=False) as client:
            for _ in range(2):  # the second finds a connection that has ended
                with pytest.raises(typedmcp.ToolError, match="changed"):
                    await client.call_tool(name)
        assert changes.errors

    asyncio.run(main())


def test_errors_of_calls_over_http_are_changed() -> None:
    def fail(_request: Request, wire: Wire) -> None:
        wire.reply(500)

    async def main() -> None:
        changes = Changes()
        async with serving(Script(tools__call=fail)) as url, typedmcp.connect(url, change_error=changes) as client:
            with pytest.raises(typedmcp.ToolError, match="changed"):
                await client.call_tool("x")
        assert [type(error) for error in changes.errors] == [typedmcp.HttpStatusError]

    run(main)


def test_a_change_error_must_be_a_function() -> None:
    wrong: Any = "no"
    with pytest.raises(typedmcp.UsageError, match="change_error must be a function"):
        typedmcp.connect(["x"], change_error=wrong)
