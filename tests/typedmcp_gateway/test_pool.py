"""Pools of clients: sharing, bounds, turns, health and reconnection."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import typedmcp
import typedmcp_hosts
from tests.cases import each
from tests.helpers import LEGACY, run
from typedmcp.transports.concurrency import FairLimit
from typedmcp_gateway import ClientPool
from typedmcp_gateway import pool as pool_module

SERVER = """
import os, typedmcp
server = typedmcp.Server("numbers")
@server.tool
def pid() -> int:
    return os.getpid()
server.run()
"""


class Counted:
    """A server that counts its connections: all that were opened, and those that are open."""

    def __init__(self) -> None:
        self.opened = self.open = 0

        @asynccontextmanager
        async def lifespan(_server: object) -> AsyncGenerator[int]:
            self.opened += 1
            self.open += 1
            yield self.opened
            self.open -= 1

        self.server = typedmcp.Server("counted", lifespan=lifespan)

        @self.server.tool
        async def number(ctx: typedmcp.Context[int]) -> int:
            return ctx.lifespan

    @property
    def target(self) -> Any:
        return self.server


async def number_of(client: typedmcp.Client) -> int:
    return await client.call_tool("number", result_type=int)


async def eventually(is_true: Callable[[], bool]) -> None:
    """Wait until something is true. `run` ends a test that waits too long."""
    while not is_true():
        await asyncio.sleep(0.01)


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return the command of a server whose tool `pid` returns its process."""
    file = tmp_path / "numbers_server.py"
    file.write_text(SERVER)
    return [sys.executable, str(file)]


def test_callers_of_one_identity_share_a_connection_and_others_have_their_own() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool() as pool:

            async def call(identity: str) -> int:
                async with pool.lease(counted.target, identity=identity) as client:
                    return await number_of(client)

            numbers = await asyncio.gather(*(call(name) for name in ["alice", "bob"] * 20))
            assert len(set(numbers[::2])) == len(set(numbers[1::2])) == 1
            assert set(numbers) == {1, 2}
        await eventually(lambda: counted.open == 0)

    run(main())
    assert counted.opened == 2


def test_exclusive_leases_share_nothing_while_they_are_held() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool() as pool:
            async with (
                pool.lease(counted.target, exclusive=True) as first,
                pool.lease(counted.target, exclusive=True) as second,
                pool.lease(counted.target) as shared,
            ):
                numbers = {await number_of(client) for client in (first, second, shared)}
            async with pool.lease(counted.target, exclusive=True) as third:
                assert await number_of(third) in numbers

    run(main())
    assert counted.opened == 3


def test_a_full_pool_closes_the_client_that_was_idle_longest() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool(max_clients=2) as pool:
            for identity in ("a", "b", "a", "c"):
                async with pool.lease(counted.target, identity=identity) as client:
                    await number_of(client)
            assert {member.identity for member in pool.members} == {"a", "c"}
            await eventually(lambda: counted.open == 2)

    run(main())


def test_a_caller_of_a_full_pool_waits_for_a_place() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool(max_clients=1) as pool:
            async with pool.lease(counted.target, identity="a") as client:

                async def call() -> int:
                    async with pool.lease(counted.target, identity="b") as other:
                        return await number_of(other)

                waiting = asyncio.ensure_future(call())
                await asyncio.sleep(0.05)
                assert not waiting.done()
                assert await number_of(client) == 1
            assert await waiting == 2
            assert counted.open <= 1

    run(main())


def test_a_caller_that_waits_too_long_gets_an_error_that_names_the_bound() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool(max_clients=1, max_leases=1, wait_seconds=0.05) as pool:
            async with pool.lease(counted.target, identity="a"):
                with pytest.raises(typedmcp.RequestTimeoutError, match="max_clients"):
                    async with pool.lease(counted.target, identity="b"):
                        pass
                with pytest.raises(typedmcp.RequestTimeoutError, match="max_leases"):
                    async with pool.lease(counted.target, identity="a"):
                        pass
            async with pool.lease(counted.target, identity="a") as client:
                assert await number_of(client) == 1
            assert [member.waiting for member in pool.members] == [0]

    run(main())


def test_callers_that_wait_take_turns() -> None:
    order: list[str] = []

    async def main() -> None:
        limit = FairLimit(1)
        await limit.acquire("", None, "")

        async def use(caller: str) -> None:
            await limit.acquire(caller, None, "")
            order.append(caller)
            await asyncio.sleep(0)
            limit.release()

        tasks = [asyncio.ensure_future(use(caller)) for caller in ("greedy",) * 5 + ("modest", "modest", "other")]
        await asyncio.sleep(0)
        limit.release()
        await asyncio.gather(*tasks)
        assert limit.has_room
        assert limit.used == limit.waiting == 0

    run(main())
    assert order == ["greedy", "modest", "other", "greedy", "modest", "greedy", "greedy", "greedy"]


@each("is_admitted", [False, True])
def test_a_caller_that_is_cancelled_while_it_waits_takes_no_turn(is_admitted: bool) -> None:
    async def main() -> None:
        limit = FairLimit(1)
        await limit.acquire("", None, "")
        first, second = (asyncio.ensure_future(limit.acquire(name, None, "")) for name in ("a", "b"))
        await asyncio.sleep(0)
        if is_admitted:
            limit.release()
        first.cancel()
        if not is_admitted:
            limit.release()
        await second
        limit.release()
        assert limit.has_room

    run(main())


@each("is_leased", [False, True])
def test_a_client_whose_server_died_is_replaced(command: list[str], is_leased: bool) -> None:
    async def main() -> None:
        async with ClientPool(revisions=LEGACY) as pool:
            async with pool.lease(command) as client:
                first = await client.call_tool("pid", result_type=int)
                if is_leased:
                    os.kill(first, signal.SIGKILL)
                    with pytest.raises(typedmcp.ConnectionLostError):
                        await client.call_tool("pid", result_type=int)
            if not is_leased:
                os.kill(first, signal.SIGKILL)
                await eventually(lambda: not pool.members[0].is_connected)
            async with pool.lease(command) as client:
                assert await client.call_tool("pid", result_type=int) != first

    run(main())


def test_a_server_that_does_not_answer_a_check_is_replaced(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_CHECK_SECONDS", 0.2)

    async def main() -> None:
        async with ClientPool(check_after=0.0) as pool:
            async with pool.lease(command) as client:
                first = await client.call_tool("pid", result_type=int)
            os.kill(first, signal.SIGSTOP)
            try:
                async with pool.lease(command) as client:
                    assert await client.call_tool("pid", result_type=int) != first
            finally:
                os.kill(first, signal.SIGCONT)

    run(main())


def test_a_check_closes_connections_that_do_not_answer(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_CHECK_SECONDS", 0.2)
    counted = Counted()

    async def main() -> None:
        async with ClientPool() as pool:
            async with pool.lease(counted.target), pool.lease(command) as client:
                pid = await client.call_tool("pid", result_type=int)
            assert [member.is_connected for member in await pool.check()] == [True, True]
            os.kill(pid, signal.SIGSTOP)
            try:
                alive, silent = await pool.check()
            finally:
                os.kill(pid, signal.SIGCONT)
            assert alive.is_connected
            assert not silent.is_connected
            assert isinstance(silent.error, typedmcp.RequestTimeoutError)

    run(main())


def test_a_failure_to_connect_is_shared_for_a_moment(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x'); raise SystemExit(70)"

    async def main() -> None:
        async with ClientPool(revisions=LEGACY) as pool:

            async def call() -> None:
                async with pool.lease([sys.executable, "-c", code]):
                    pass

            errors = await asyncio.gather(*(call() for _ in range(20)), return_exceptions=True)
            assert all(isinstance(error, typedmcp.ConnectionLostError) for error in errors)
            assert starts.read_text() == "x"
            (member,) = pool.members
            assert member.error is errors[0]
            await asyncio.sleep(0.15)
            with pytest.raises(typedmcp.ConnectionLostError):
                await call()
            assert starts.read_text() == "xx"

    run(main())


def test_a_member_does_not_show_the_values_of_variables() -> None:
    async def main() -> None:
        servers = {"mcpServers": {"it": {"url": "http://127.0.0.1:1/${SECRET}/mcp"}}}
        entry = typedmcp_hosts.load_config(servers, variables={"SECRET": "hunter2"})["it"]
        async with ClientPool() as pool:
            with pytest.raises(typedmcp.ConnectionLostError):
                async with pool.lease(entry):
                    pass
            (member,) = pool.members
        assert member.target == "http://127.0.0.1:1/…/mcp"
        assert "hunter2" not in repr(member)

    run(main())


def test_a_failure_to_connect_is_remembered_after_its_target_is_retired(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    target = [sys.executable, "-c", f"open({str(starts)!r}, 'a').write('x'); raise SystemExit(70)"]

    async def main() -> None:
        async with ClientPool(revisions=LEGACY) as pool:
            for _ in range(20):
                with pytest.raises(typedmcp.ConnectionLostError):
                    async with pool.lease(target):
                        pass
                pool.retire(target)
            (member,) = pool.members
            assert isinstance(member.error, typedmcp.ConnectionLostError)

    run(main())
    assert len(starts.read_text()) < 20


def test_an_idle_client_is_closed() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool(idle_seconds=0.1) as pool:
            async with pool.lease(counted.target) as client:
                await number_of(client)
                await asyncio.sleep(0.2)
                assert counted.open == 1
            await eventually(lambda: counted.open == 0)
            assert pool.members == []
            async with pool.lease(counted.target) as client:
                assert await number_of(client) == 2

    run(main())


def test_a_client_that_is_kept_is_closed_after_the_others() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool(max_clients=2, idle_seconds=0.1) as pool:
            first = pool.lease(counted.target, identity="kept")
            slot = await pool.acquire(first, "kept")
            pool.release(slot, None)
            pool.keep(slot, 60)
            async with pool.lease(counted.target, identity="other"):
                pass
            await eventually(lambda: counted.open == 1)
            assert [member.identity for member in pool.members] == ["kept"]
            for identity in ("a", "b"):
                async with pool.lease(counted.target, identity=identity):
                    pass
            assert "kept" in {member.identity for member in pool.members}
            async with pool.lease(counted.target, identity="a"), pool.lease(counted.target, identity="b"):
                assert "kept" not in {member.identity for member in pool.members}

    run(main())


def test_a_client_is_kept_for_a_time() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool(idle_seconds=0.05) as pool:
            slot = await pool.acquire(pool.lease(counted.target), "a caller")
            pool.keep(slot, 1.5)
            pool.keep(slot, 0.1)
            pool.release(slot, None)
            await asyncio.sleep(0.15)
            assert counted.open == 1
            await eventually(lambda: counted.open == 0)

    run(main())


def test_a_retired_client_ends_with_its_last_lease() -> None:
    counted = Counted()

    async def main() -> None:
        async with ClientPool() as pool:
            async with pool.lease(counted.target, identity="idle"):
                pass
            async with pool.lease(counted.target, identity="busy") as client:
                pool.retire(counted.target)
                await eventually(lambda: counted.open == 1)
                assert await number_of(client) == 2
                async with pool.lease(counted.target, identity="busy") as fresh:
                    assert await number_of(fresh) == 3
            await eventually(lambda: counted.open == 1)

    run(main())


def test_closing_a_pool_ends_callers_that_wait() -> None:
    counted = Counted()

    async def main() -> None:
        pool = ClientPool(max_clients=1)
        is_used, is_closed = asyncio.Event(), asyncio.Event()

        async def use(identity: str) -> None:
            async with pool.lease(counted.target, identity=identity):
                is_used.set()
                await is_closed.wait()

        tasks = [asyncio.ensure_future(use(name)) for name in ("a", "b")]
        await is_used.wait()
        await pool.close()
        is_closed.set()
        first, second = await asyncio.gather(*tasks, return_exceptions=True)
        assert first is None
        assert isinstance(second, typedmcp.ConnectionLostError)
        assert counted.open == 0
        with pytest.raises(typedmcp.ConnectionLostError, match="closed"):
            await use("c")
        with pytest.raises(typedmcp.UsageError, match="closed"):
            await pool.__aenter__()

    run(main())


def test_entries_of_a_configuration_are_targets(command: list[str]) -> None:
    entries = typedmcp_hosts.load_config({"mcpServers": {"numbers": {"command": command[0], "args": command[1:]}}})

    async def main() -> None:
        async with ClientPool() as pool, pool.lease(entries["numbers"]) as client:
            assert await client.call_tool("pid", result_type=int) != os.getpid()

    run(main())


@each(
    "options, text",
    [
        ({"max_clients": 0}, "max_clients must be at least 1"),
        ({"max_leases": 0}, "max_leases must be at least 1"),
        ({"idle_seconds": "x"}, "idle_seconds"),
        ({"revisions": ["1"]}, "unknown revision"),
    ],
)
def test_bounds_that_make_no_sense_are_rejected(options: dict[str, Any], text: str) -> None:
    with pytest.raises(typedmcp.UsageError, match=text):
        ClientPool(**options)
