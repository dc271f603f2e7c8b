"""`run --reload`: a server whose file changes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.helpers import run
from tests.typedmcp_cli.command import COMMAND, ENVIRONMENT
from typedmcp_cli.reloader import take_snapshot

SERVER = """
import asyncio
from typedmcp import Server
server = Server("changing")

@server.tool
async def {name}() -> str:
    await asyncio.sleep({pause})
    return "{name}"

@server.tool
async def forever() -> str:
    import os
    os._exit(3)
"""


def _write(file: Path, name: str, pause: float = 0) -> None:
    file.write_text(SERVER.format(name=name, pause=pause), encoding="utf-8")


async def _wait_until(condition: Callable[[], Any]) -> None:
    for _ in range(400):
        if await condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen in time")


async def _fails(client: typedmcp.Client) -> bool:
    try:
        await client.call_tool("after")
    except typedmcp.RemoteError as error:
        return error.message == "the server ended before it responded"
    return False


@asynccontextmanager
async def _connect(file: Path, revision: str) -> AsyncGenerator[typedmcp.Client]:
    parameters = typedmcp.StdioServerParameters(
        COMMAND[0], [*COMMAND[1:], "run", str(file), "--reload"], env=ENVIRONMENT
    )
    async with typedmcp.connect(parameters, revisions=[revision]) as client:
        yield client


async def _list_names(client: typedmcp.Client) -> list[str]:
    return [tool.name async for tool in client.tools(fresh=True)]


@pytest.mark.long
@each("revision", ["2025-11-25", "2026-07-28"])
def test_a_client_keeps_its_connection_while_the_server_changes(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        file = tmp_path / "server.py"
        _write(file, "before", 1.0)
        async with _connect(file, revision) as client:
            assert await _list_names(client) == ["before", "forever"]
            waiting = asyncio.create_task(client.call_tool("before"))
            await asyncio.sleep(0.2)  # until the old server has it
            _write(file, "after")

            async def changed() -> bool:
                return "after" in await _list_names(client)

            await _wait_until(changed)
            assert typedmcp.text_of(await waiting) == "before"
            assert typedmcp.text_of(await client.call_tool("after")) == "after"

    run(main())


@pytest.mark.long
def test_a_client_with_a_handshake_is_notified_of_changed_lists(tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "server.py"
        _write(file, "before")
        async with _connect(file, "2025-11-25") as client, client.listen(tools=True) as changes:
            _write(file, "after")
            assert (await anext(aiter(changes))).kind == "tools"
            assert await _list_names(client) == ["after", "forever"]

    run(main())


@pytest.mark.long
def test_a_crashed_server_fails_its_calls_and_restarts_with_the_next_change(tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "server.py"
        _write(file, "before")
        async with _connect(file, "2026-07-28") as client:
            with pytest.raises(typedmcp.RemoteError, match="the server ended before it responded"):
                await client.call_tool("forever")
            waiting = asyncio.create_task(client.call_tool("after"))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            _write(file, "after")
            assert typedmcp.text_of(await waiting) == "after"
            file.write_text("1 / 0", encoding="utf-8")
            await _wait_until(lambda: _fails(client))
            _write(file, "again")
            assert typedmcp.text_of(await client.call_tool("again")) == "again"

    run(main())


@pytest.mark.long
def test_a_message_that_is_too_deep_gets_the_error_of_the_server(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    _write(file, "before")
    deep = b'{"jsonrpc":"2.0","method":"tools/list","params":' + b"[" * 200 + b"]" * 200 + b',"id":7}\n'
    done = subprocess.run(
        [*COMMAND, "run", str(file), "--reload"], input=deep, capture_output=True, timeout=60, check=True,
        env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    error = json.loads(done.stdout)
    assert (error["id"], error["error"]["code"]) == (7, -32700)


@pytest.mark.long
def test_a_change_restarts_the_server_over_http(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    _write(file, "before")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    command = [*COMMAND, "run", str(file), "--transport", "http", "--port", port, "--reload"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as server:
        assert server.stderr is not None
        try:
            assert any("running on" in line for line in server.stderr)
            _write(file, "after")
            assert any("server.py changed" in line for line in server.stderr)
            assert any("running on" in line for line in server.stderr)
            with typedmcp.sync.connect(f"http://127.0.0.1:{port}/mcp") as client:
                assert [tool.name for tool in client.tools()] == ["after", "forever"]
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) == 0
            server.stderr.read()


@pytest.mark.long
@each(
    "number, status",
    [
        (signal.SIGTERM, 0),
        (signal.SIGHUP, 0),
        (signal.SIGINT, 130),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_the_server_ends_with_the_reloader(number: int, status: int, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    _write(file, "before")
    command = [*COMMAND, "run", str(file), "--transport", "http", "--port", "0", "--reload"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as parent:
        assert parent.stderr is not None
        line = next(line for line in parent.stderr if "running on" in line)
        parent.send_signal(number)
        try:
            assert parent.wait(20) == status
        finally:
            parent.kill()
        parent.stderr.read()  # which the server holds open, too
    port = int(re.findall(r":(\d+)", line)[-1])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_snapshot_shows_new_changed_and_deleted_python_files(tmp_path: Path) -> None:
    first, nested = tmp_path / "a.py", tmp_path / "sub" / "b.py"
    first.touch()
    before = take_snapshot(tmp_path)
    assert [*before] == [str(first)]
    nested.parent.mkdir()
    nested.touch()
    (tmp_path / "c.txt").touch()
    assert {*take_snapshot(tmp_path)} == {str(first), str(nested)}
    os.utime(first, ns=(0, time.time_ns() + 1))
    assert take_snapshot(tmp_path)[str(first)] != before[str(first)]
    first.unlink()
    assert {*take_snapshot(tmp_path)} == {str(nested)}


@each("name", [".hidden", "__pycache__", "node_modules", "environment"])
def test_a_snapshot_leaves_out_hidden_and_installed_files(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "a.py").touch()
    (tmp_path / "environment").mkdir(exist_ok=True)
    (tmp_path / "environment" / "pyvenv.cfg").touch()
    assert take_snapshot(tmp_path) == {}


def test_a_snapshot_of_a_missing_folder_is_empty(tmp_path: Path) -> None:
    assert take_snapshot(tmp_path / "nowhere") == {}
