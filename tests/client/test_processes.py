"""Server processes that die, hang, flood or leave children: every call ends, and no process stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.interop.peers import COMMAND
from tests.paths import ROOT
from tests.server.scripted import run
from typedmcp.client import ChangeEvent, connect
from typedmcp.dialect import structs
from typedmcp.transports.process import StdioServerParameters

SERVERS = ROOT / "tests" / "servers"
TALKATIVE = [sys.executable, str(SERVERS / "talkative.py")]
STUBBORN = [sys.executable, str(SERVERS / "stubborn.py")]


def text(result: structs.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, structs.TextContent)
    return content.text


def pid_of(client: Any) -> int:
    pid: int = client._connection.session.transport.pid
    return pid


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ignore(_report: typedmcp.Diagnostic) -> None:
    """Ignore the diagnostics of a dying server."""


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_server_process_ends_with_its_client() -> None:
    async def main() -> None:
        before = descriptors()
        for _ in range(3):
            async with connect(COMMAND) as client:
                assert text(await client.call_tool("test_x_mcp_header", {"region": "north"})) == "Region: north"
                pid = pid_of(client)
            assert not is_alive(pid)
        assert descriptors() <= before + 1  # of the event loop

    run(main)


@pytest.mark.parametrize("calls", [1, 64])
def test_killing_the_server_fails_its_calls_at_once_with_the_signal(calls: int) -> None:
    async def main() -> None:
        async with connect(COMMAND) as client:
            started = asyncio.Event()
            tasks = [
                asyncio.create_task(client.call_tool("test_wait", on_progress=lambda _: started.set()))
                for _ in range(calls)
            ]
            await started.wait()
            start = time.monotonic()
            os.kill(pid_of(client), signal.SIGKILL)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert time.monotonic() - start < 2
            assert all(isinstance(result, typedmcp.ConnectionLostError) for result in results)
            assert all("SIGKILL" in str(result) for result in results)
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.ping()

    run(main)


def test_a_server_that_exits_at_once_is_named_with_its_output() -> None:
    code = "import sys; print('no such configuration', file=sys.stderr); sys.exit(3)"
    target = StdioServerParameters(sys.executable, ["-c", code], stderr="capture")

    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match=r"exit status 3.*no such configuration"):
            await connect(target)

    run(main)


def test_an_unknown_command_is_named() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match="no-such-command"):
            await connect(["no-such-command"])

    run(main)


@pytest.mark.long
def test_a_server_that_ignores_the_end_is_killed() -> None:
    parameters = StdioServerParameters(
        STUBBORN[0], STUBBORN[1:], close_timeout=0.1, terminate_timeout=0.1, stderr="drop"
    )

    async def main() -> None:
        async with connect(parameters) as client:
            started = asyncio.Event()
            call = asyncio.create_task(client.call_tool("x", on_progress=lambda _: started.set()))
            await started.wait()
            pid = pid_of(client)
        assert not is_alive(pid)
        with pytest.raises(typedmcp.ConnectionLostError):
            await call

    run(main)


def test_a_server_is_restarted_with_the_option_restart() -> None:
    async def main() -> None:
        async with connect(COMMAND, restart=True) as client, client.listen(tools=True) as changes:
            first = pid_of(client)
            call = asyncio.create_task(client.call_tool("test_wait"))
            await client.ping()
            os.kill(first, signal.SIGKILL)
            with pytest.raises(typedmcp.ConnectionLostError):
                await call
            assert text(await client.call_tool("test_simple_text")).startswith("This is")
            assert pid_of(client) != first
            assert await anext(changes) == ChangeEvent("tools")  # changes may have been missed
            await client.call_tool("test_trigger_tool_change")
            assert await anext(changes) == ChangeEvent("tools")

    run(main)


def test_the_revision_of_a_server_process_is_remembered() -> None:
    async def main() -> None:
        for _ in range(2):
            async with connect(COMMAND, revisions=["2025-06-18"]) as client:
                assert client.revision == "2025-06-18"
        async with connect(COMMAND) as client:
            assert client.revision == "2026-07-28" or client.revision in client.server.supported

    run(main)


@pytest.mark.skipif(not hasattr(asyncio, "start_unix_server"), reason="there are no unix sockets here")
def test_a_server_can_be_reached_over_a_socket(tmp_path: Path) -> None:
    from typedmcp.transports.streams import StreamTransport

    path = str(tmp_path / "s")

    class Handler:
        def call_tool(self, params: Any, ctx: Any) -> structs.CallToolResult:
            return structs.CallToolResult(content=[structs.TextContent(text="socket")], result_type="complete")

    async def main() -> None:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            descriptor = writer.get_extra_info("socket").fileno()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await typedmcp.serve_async(Handler(), StreamTransport(descriptor, descriptor))
            writer.close()

        listening = await asyncio.start_unix_server(serve, path)
        async with connect(f"unix:{path}") as client:
            assert text(await client.call_tool("x")) == "socket"
        listening.close()
        await listening.wait_closed()
        await asyncio.sleep(0.05)

    run(main)


def test_an_invalid_address_is_named() -> None:
    async def main() -> None:
        faults = {
            "python server.py": r"a command is a list, such as \['python', 'server.py'\]$",
            "server.py": r"such as \['python', 'server.py'\]$",
            "ws://host/mcp": r"or tcp://host:port$",
        }
        for target, fault in faults.items():
            with pytest.raises(typedmcp.UsageError, match=fault):
                await connect(target)
        with pytest.raises(typedmcp.ConnectionLostError, match="refused"):
            await connect("tcp://127.0.0.1:1")

    run(main)


def test_the_conformance_client_runs_over_stdio() -> None:
    script = Path(__file__).parents[1] / "conformance" / "client.py"
    environment = {**os.environ, "MCP_CONFORMANCE_SCENARIO": "initialize"}
    subprocess.run([sys.executable, str(script), "--", *COMMAND], check=True, timeout=30, env=environment)


def test_every_subscription_gets_all_changes_after_a_restart_of_a_legacy_server() -> None:
    async def main() -> None:
        options: dict[str, Any] = {"restart": True, "revisions": ["2025-06-18"], "on_diagnostic": ignore}
        uri = "test://watched-resource"
        async with (
            connect(COMMAND, **options) as client,
            client.listen(uris=[uri]) as first,
            client.listen(uris=[uri]) as second,
        ):
            os.kill(pid_of(client), signal.SIGKILL)
            for changes in (first, second):
                assert await anext(changes) == ChangeEvent("resource", uri)  # changes may have been missed
            await client.ping()
            await asyncio.sleep(0.1)
            await client.call_tool("test_trigger_resource_change")
            for changes in (first, second):
                assert await anext(changes) == ChangeEvent("resource", uri)

    run(main)


def test_repeated_restarts_of_a_server_are_delayed() -> None:
    async def main() -> None:
        starts = 0
        async with connect(COMMAND, restart=True, on_diagnostic=lambda _: None) as client:
            start = time.monotonic()
            while time.monotonic() - start < 2:
                os.kill(pid_of(client), signal.SIGKILL)
                await asyncio.sleep(0.01)
                try:
                    await client.ping()
                except typedmcp.ConnectionLostError:
                    continue
                starts += 1
        assert starts <= 5

    run(main)
