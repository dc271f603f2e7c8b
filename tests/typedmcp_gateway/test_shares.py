"""The shares that one client has of the connections, and of the calls over each."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.helpers import MODERN_REVISION, run
from tests.serving import serving_http
from tests.typedmcp_gateway.test_gateway import REVISION
from typedmcp.client.connection.targets import Target
from typedmcp.dialect import structs
from typedmcp_gateway import ClientPool, Gateway, NameRules
from typedmcp_gateway import servers as servers_module
from typedmcp_gateway import shares as shares_module
from typedmcp_gateway.callers import GatewayCaller, find_caller
from typedmcp_gateway.servers import GatewayServer, Leases, encode_identity
from typedmcp_gateway.shares import CallShares, ConnectionNumbers, ConnectionShares
from typedmcp_hosts import ServerEntry

_LATE_SERVER = """
import os, pathlib, typedmcp
(pathlib.Path(__file__).parent / "starts" / str(os.getpid())).touch()
server = typedmcp.Server("late")
@server.tool
async def t() -> str:
    return "done"
server.run()
"""

AUTH = typedmcp.StaticTokens({"a": typedmcp.Principal("a"), "b": typedmcp.Principal("b")})


class Busy:
    """A server whose tool `wait` does not end. `waiting` gets an item for each of its calls."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[None] = asyncio.Queue()
        self.connections: set[object] = set()

    async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
        self.connections.add(ctx.connection)
        if params.name == "wait":
            self.waiting.put_nowait(None)
            await asyncio.sleep(3600)
        return structs.CallToolResult(content=[], result_type="complete")


class BehindProxy:
    """An application that reads the addresses of its clients from a header, as behind a proxy."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        address = dict(scope.get("headers", ())).get(b"x-address")
        await self._app(scope if address is None else {**scope, "client": (address.decode(), 1)}, receive, send)


def client_of(name: str, key: str = "") -> GatewayCaller:
    """Return a client over HTTP, under one of the names that it gives itself."""
    return GatewayCaller(("client", key), False, None, name)


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


def test_a_client_waits_for_its_own_calls_over_a_connection_and_not_for_those_of_others() -> None:
    async def main() -> None:
        shares = CallShares(4, 2, "max_calls")
        ada, alan = client_of("ada"), client_of("alan")
        await shares.enter(ada)
        await shares.enter(ada)
        waiting, cancelled = (asyncio.create_task(shares.enter(ada)) for _ in range(2))
        await asyncio.sleep(0)
        await shares.enter(alan)
        assert not waiting.done()
        cancelled.cancel()
        await asyncio.wait([cancelled])
        shares.leave(ada)
        await waiting
        await shares.enter(alan)

    run(main())


def test_a_client_with_many_names_has_one_turn() -> None:
    admitted: list[GatewayCaller] = []

    async def main() -> None:
        shares = CallShares(2, 2, "max_calls")
        first, *wanted = client_of("first"), client_of("ada", "one"), client_of("ada", "two"), client_of("alan")
        await shares.enter(first)
        await shares.enter(first)

        async def enter(client: GatewayCaller) -> None:
            await shares.enter(client)
            admitted.append(client)

        waiting = [asyncio.create_task(enter(client)) for client in wanted]
        await asyncio.sleep(0)
        shares.leave(first)
        shares.leave(first)
        await asyncio.gather(waiting[0], waiting[2])
        assert admitted == [wanted[0], wanted[2]]
        shares.leave(wanted[0])
        await waiting[1]

    run(main())


@each("upstream", ["modern", "legacy", "over HTTP"])
def test_calls_of_one_client_leave_a_shared_connection_to_others(
    upstream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares_module, "_WAIT_SECONDS", 0.05)
    busy = Busy()

    async def main() -> None:
        async with AsyncExitStack() as stack:
            target: Any = typedmcp.ServerConfig(busy, revisions=[REVISION if upstream == "legacy" else MODERN_REVISION])
            options: Any = {"max_calls": 4}
            if upstream == "over HTTP":
                target = f"{await stack.enter_async_context(serving_http(typedmcp.asgi(busy, grace=0.1)))}/mcp"
                options = {"connect": {"limits": typedmcp.Limits(http_calls_in_flight=4)}}
            gateway = Gateway(target, **options)
            url = await stack.enter_async_context(serving_http(BehindProxy(gateway.asgi(grace=0.1))))
            first, second = [
                await stack.enter_async_context(typedmcp.connect(f"{url}/mcp", headers={"x-address": address}))
                for address in ("10.0.0.1", "10.0.0.2")
            ]
            call = asyncio.create_task(first.call_tool("wait"))
            await busy.waiting.get()
            refused = await asyncio.gather(*(first.call_tool("wait") for _ in range(3)), return_exceptions=True)
            await second.call_tool("done")
            name = "http_calls_in_flight" if upstream == "over HTTP" else "max_calls"
            assert {str(error).partition(": ")[2] for error in refused} == {
                "the server 'server' was not asked within 0.05 s: this client has 1 calls over the connection "
                f"({name}, client_share_percent): wait for some of them, or cancel them (-32603)"
            }
            assert busy.waiting.empty()
            assert len(busy.connections) == 1
            assert gateway.status[0].is_up
            monkeypatch.setattr(shares_module, "_WAIT_SECONDS", 20.0)
            call.cancel()  # the gateway notices it a moment later
            await first.call_tool("done")

    run(main())


def test_a_client_has_all_calls_of_a_connection_that_no_other_client_uses() -> None:
    busy = Busy()

    async def main() -> None:
        gateway = Gateway(typedmcp.ServerConfig(busy, revisions=[REVISION]), max_calls=4)
        async with (
            serving_http(gateway.asgi(auth=AUTH, grace=0.1)) as url,
            typedmcp.connect(f"{url}/mcp", auth="a") as client,
        ):
            calls = [asyncio.create_task(client.call_tool("wait")) for _ in range(4)]
            for _ in calls:
                await busy.waiting.get()
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)

    run(main())


def test_a_principal_with_credentials_at_many_servers_leaves_connections_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shares_module, "_WAIT_SECONDS", 0.05)
    names = ["n", "e", "s", "w"]

    async def main() -> None:
        servers = {name: typedmcp.ServerConfig(Busy()) for name in names}
        gateway = Gateway(servers=servers, credentials=lambda principal, server: None, max_connections=4)
        async with (
            serving_http(gateway.asgi(auth=AUTH, grace=0.1)) as url,
            typedmcp.connect(f"{url}/mcp", auth="a") as first,
            typedmcp.connect(f"{url}/mcp", auth="b") as second,
        ):
            calls = [asyncio.create_task(first.call_tool(f"{name}_wait")) for name in names]
            open_calls = {*calls}
            while len(open_calls) > 1:
                done, open_calls = await asyncio.wait(open_calls, return_when=asyncio.FIRST_COMPLETED)
                for refused in done:
                    assert "this client uses 1 connections to servers (max_connections" in str(refused.exception())
            await second.call_tool("n_done")
            open_calls.pop().cancel()
            await asyncio.wait(calls)

    run(main())


def test_a_call_finds_a_connection_for_itself_however_many_others_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []

    def encode(parts: list[Any]) -> str:
        encoded.append(encode_identity(parts))
        return encoded[-1]

    monkeypatch.setattr(servers_module, "encode_identity", encode)
    shares = ConnectionShares(25, 100, lambda target, identity: None)
    leases = Leases(ClientPool(), None, {}, lambda diagnostic: None, shares, 1000, 25)
    server = GatewayServer("server", ServerEntry("server", Busy()), NameRules())
    call: Any = object()
    made = [leases.lease(server, client_of("ada"), {"elicitation": {}}, call, wants_logs=False) for _ in range(100)]
    assert len(encoded) == 2 * len(made)
    assert len({*encoded}) == 1 + len(made)


def test_the_connection_of_a_call_that_has_ended_is_the_next_ones() -> None:
    numbers = ConnectionNumbers()
    assert [numbers.take() for _ in range(3)] == [0, 1, 2]
    numbers.give_back(1)
    numbers.give_back(0)
    assert [numbers.take() for _ in range(3)] == [0, 1, 3]


@each("name", ["max_calls", "max_connections", "max_parked"])
@each("value", [0, "10"])
def test_a_limit_that_makes_no_sense_is_rejected(name: str, value: Any) -> None:
    options: Any = {name: value}
    with pytest.raises(typedmcp.UsageError, match=name):
        Gateway("server.py", **options)


def test_busy_sessions_of_one_client_leave_connections_to_others() -> None:
    busy = Busy()

    async def main() -> None:
        gateway = Gateway(typedmcp.ServerConfig(busy, revisions=[REVISION]), max_connections=4)
        async with serving_http(gateway.asgi(auth=AUTH, grace=0.1)) as url:
            options: Any = {"revisions": [REVISION]}
            clients = [typedmcp.connect(f"{url}/mcp", auth="a", **options) for _ in range(4)]
            for client in clients:
                await client.open()
            calls = [asyncio.create_task(client.call_tool("wait")) for client in clients]
            await busy.waiting.get()
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
            keys.append(find_caller(ctx).key)
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
        async with typedmcp.connect(Gateway(str(file))) as client:
            starts.mkdir()
            file.write_text(_LATE_SERVER)
            await asyncio.sleep(0.3)  # the pool waits a moment after a failure
            results = await asyncio.gather(*(client.call_tool("t", result_type=str) for _ in range(5)))
            assert results == ["done"] * 5
            assert len([*starts.iterdir()]) <= 2  # a client starts a slow server a second time

    run(main())
