"""The share of connections that one client has."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.gateway.test_gateway import REVISION
from tests.gateway.uvicorn import serving_http
from tests.helpers import run
from typedmcp.client.targets import Target
from typedmcp.dialect import structs
from typedmcp.gateway.callers import CallerFinder
from typedmcp.gateway.shares import ConnectionShares

_LATE_SERVER = """
import os, pathlib, typedmcp
(pathlib.Path(__file__).parent / "starts" / str(os.getpid())).touch()
server = typedmcp.Server("late")
@server.tool
async def t() -> str:
    return "done"
server.run()
"""


def test_a_client_waits_for_one_of_its_own_connections_and_not_for_those_of_others() -> None:
    async def main() -> None:
        shares = ConnectionShares(2, 10, lambda target, identity: None)
        for identity in ("one", "two"):
            await shares.enter("ada", identity, identity)
        waiting = asyncio.create_task(shares.enter("ada", "three", "three"))
        await asyncio.sleep(0)
        await shares.enter("alan", "four", "four")
        await shares.enter("ada", "one", "one")  # another call over a connection in use needs no other
        assert not waiting.done()
        shares.leave("ada", "two", "server")
        await waiting

    run(main())


def test_the_oldest_idle_connection_of_a_client_is_closed_for_its_next_one() -> None:
    retired: list[tuple[Target, str]] = []

    async def main() -> None:
        shares = ConnectionShares(2, 10, lambda target, identity: retired.append((target, identity)))
        for client, identity in [("alan", "other"), ("ada", "one"), ("ada", "two"), ("ada", "one"), ("ada", "three")]:
            await shares.enter(client, identity, identity)
            shares.leave(client, identity, "server")

    run(main())
    assert retired == [("server", "two")]


def test_a_wait_that_is_cancelled_takes_no_connection() -> None:
    async def main() -> None:
        shares = ConnectionShares(1, 10, lambda target, identity: None)
        await shares.enter("ada", "one", "one")
        waiting = asyncio.create_task(shares.enter("ada", "two", "two"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        shares.leave("ada", "one", "server")
        await shares.enter("ada", "three", "three")

    run(main())


def test_busy_sessions_of_one_client_leave_connections_to_others() -> None:
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("a"), "b": typedmcp.Principal("b")})
    started = asyncio.Event()

    class Busy:
        async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
            if params.name == "wait":
                started.set()
                await asyncio.sleep(3600)
            return structs.CallToolResult(content=[], result_type="complete")

    async def main() -> None:
        gateway = typedmcp.Gateway(typedmcp.ServerConfig(Busy(), revisions=[REVISION]), max_connections=4)
        async with serving_http(gateway.asgi(auth=auth, grace=0.1)) as url:
            options: Any = {"revisions": [REVISION]}
            clients = [typedmcp.connect(f"{url}/mcp", auth="a", **options) for _ in range(4)]
            for client in clients:
                await client.open()
            calls = [asyncio.create_task(client.call_tool("wait")) for client in clients]
            await started.wait()
            async with typedmcp.connect(f"{url}/mcp", auth="b", **options) as other:
                await other.call_tool("done")  # with all connections in use, it would fail after 30 seconds
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            for client in clients:
                await client.close()

    run(main())


@pytest.mark.parametrize(("one", "other"), [(("a b", "1"), ("a", "b 1")), (("n", "x" * 300), ("n", "x" * 301))])
def test_names_that_read_alike_together_are_different_callers(one: tuple[str, str], other: tuple[str, str]) -> None:
    keys: list[Any] = []

    class Finder:
        async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
            keys.append(CallerFinder().find(ctx).key)
            return structs.CallToolResult(content=[], result_type="complete")

    async def main() -> None:
        async with serving_http(typedmcp.asgi(Finder())) as url:
            for name, version in (one, other):
                async with typedmcp.connect(f"{url}/mcp", name=name, version=version) as client:
                    await client.call_tool("t")

    run(main())
    assert len(set(keys)) == 2


def test_a_server_that_was_down_at_the_start_is_opened_once_for_all_calls(tmp_path: Path) -> None:
    file, starts = tmp_path / "late.py", tmp_path / "starts"
    file.write_text("raise SystemExit(70)")

    async def main() -> None:
        async with typedmcp.connect(typedmcp.Gateway(str(file))) as client:
            starts.mkdir()
            file.write_text(_LATE_SERVER)
            await asyncio.sleep(0.3)  # the pool waits a moment after a failure
            results = await asyncio.gather(*(client.call_tool("t", result_type=str) for _ in range(5)))
            assert results == ["done"] * 5
            assert len([*starts.iterdir()]) <= 2  # a client starts a slow server a second time

    run(main())
