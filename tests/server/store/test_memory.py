"""The store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.helpers import run
from tests.server.store.alike import Clock, StoresBehaveAlike, check
from tests.server.store.suite import StoreSuite, StoreWorld
from typedmcp import MemoryStore
from typedmcp.stores import Store, StoreLimits, StreamNotFoundError


class MemoryWorld(StoreWorld):
    """One store in memory."""

    is_shared = False

    def __init__(self) -> None:
        self._clock = Clock()

    def store(self, **options: Any) -> Store:
        options.pop("lease", None)
        return MemoryStore(limits=StoreLimits(**options), clock=self._clock)

    def advance(self, seconds: float) -> None:
        self._clock.ahead += seconds


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def world(self) -> MemoryWorld:
        return MemoryWorld()


def test_the_memory_store_behaves_like_its_model() -> None:
    check(StoresBehaveAlike, 12)


@pytest.mark.long
def test_the_memory_store_behaves_like_its_model_in_long_runs() -> None:
    check(StoresBehaveAlike, 400)


def objects(store: MemoryStore) -> Sequence[int]:
    """Return the numbers of sessions and of ended streams in memory."""
    private: Any = store
    return len(private._sessions) + len(private._unused), len(private._ended._expires)


def test_an_error_names_the_limit_on_used_states() -> None:
    async def main() -> None:
        store = MemoryStore(limits=StoreLimits(used_states=1))
        assert await store.use_once("a", 60)
        with pytest.raises(ConnectionError, match="1 states were used that have not expired, which is the limit"):
            await store.use_once("b", 60)

    run(main())


def test_a_sweep_drops_sessions_in_the_order_of_their_use() -> None:
    async def main() -> None:
        clock = Clock()
        store = MemoryStore(limits=StoreLimits(ttl=10, keep=5, sessions=3), clock=clock)
        for name in "abc":
            await store.create_session(name, {})
        await store.create_stream("a", "x", b"")
        await store.append_events("a", "x", [b"1"], last=True)
        clock.ahead = 9.0
        assert await store.load_session("a") == {}
        clock.ahead = 10.5
        await store.create_session("d", {})
        assert objects(store) == (2, 0)
        assert [await store.load_session(name) for name in "abcd"] == [{}, None, None, {}]
        with pytest.raises(StreamNotFoundError):
            await store.append_events("a", "x", [b"2"])
        await store.delete_session("a")
        await store.delete_session("d")
        assert objects(store) == (0, 0)
        await store.close()

    run(main())


def test_an_idle_store_sweeps_by_itself_and_then_stops() -> None:
    async def main() -> None:
        store = MemoryStore(limits=StoreLimits(ttl=0.05, keep=0.02))
        for number in range(10):
            await store.create_session(str(number), {})
            await store.create_stream(str(number), "a", b"")
            await store.append_events(str(number), "a", [b"1"], last=True)
        while objects(store) != (0, 0):
            await asyncio.sleep(0.01)
        while any(not handle.cancelled() for handle in timers(store)):
            await asyncio.sleep(0.01)

    run(main())


def timers(store: MemoryStore) -> list[asyncio.TimerHandle]:
    """Return the timer of a store, if it has one."""
    private: Any = store
    return [] if private._sweep_timer is None else [private._sweep_timer]
