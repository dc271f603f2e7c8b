"""The behaviour of every store of sessions: tests which the project's stores run, and which yours can run, too.

They need pytest and public names of typedmcp alone. A subclass of `StoreSuite` whose name begins with `Test` has a
fixture `world`: a `StoreWorld`, which makes stores that share one state.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from typedmcp import UsageError
from typedmcp.stores import (
    Store,
    StoredEvent,
    StreamNotFoundError,
    TooManySessionsError,
    TooManySubscriptionsError,
)

__all__ = ["StoreSuite", "StoreWorld", "Worker", "collect", "following", "numbered"]

HOSTILE = "line\r\nline\n\0 \u2028 \ud800 \U0001f600 $3\r\nfoo\r\n"
RAW = bytes(range(256)) + HOSTILE.encode("utf-8", "surrogatepass")
FIELDS = {"revision": "2025-06-18", "client": HOSTILE, "empty": ""}


@dataclass
class Worker:
    """An open store, and the messages that it has received."""

    store: Store
    messages: asyncio.Queue[tuple[int | None, bytes]] = field(default_factory=lambda: asyncio.Queue())

    def on_message(self, number: int | None, message: bytes) -> None:
        self.messages.put_nowait((number, message))


class StoreWorld(ABC):
    """The stores of workers that share one state, which is empty at the beginning of a test."""

    is_shared: bool = True
    """False for a store with a single worker, which then is used under several names."""

    @abstractmethod
    def store(self, **options: Any) -> Store:
        """Make the store of one more worker.

        The options are limits of `StoreLimits`, and `lease`, the seconds without a sign of life after which a worker
        counts as dead. A store with a single worker has no use for the latter.
        """

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Advance the time for sessions and streams, but not for the leases of workers."""

    @asynccontextmanager
    async def worker(self, **options: Any) -> AsyncGenerator[Worker]:
        worker = Worker(self.store(**options))
        await worker.store.open(worker.on_message)
        try:
            yield worker
        finally:
            await worker.store.close()

    @asynccontextmanager
    async def workers(self, **options: Any) -> AsyncGenerator[tuple[Worker, Worker]]:
        """Open two workers, or one that is used twice."""
        async with self.worker(**options) as one:
            if not self.is_shared:
                yield one, one
                return
            async with self.worker(**options) as other:
                yield one, other


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine. Fail if it hangs."""

    async def timed() -> None:
        await asyncio.wait_for(main, 60)

    asyncio.run(timed())


async def collect(store: Store, stream: str, after: int = 0, session: str = "s") -> list[StoredEvent]:
    """Return all events of a stream, up to its last one."""
    found: list[StoredEvent] = []
    batches = 0
    async for events in store.follow_stream(session, stream, after):
        assert events or not batches, "only the first one may be empty"
        batches += 1
        found.extend(events)
    assert batches, "the first one comes at once"
    return found


def numbered(*data: bytes, first: int = 1) -> list[StoredEvent]:
    return [StoredEvent(number, each) for number, each in enumerate(data, first)]


async def following(store: Store, stream: str, after: int = 0) -> asyncio.Task[list[StoredEvent]]:
    """Follow a stream in a task, and give it time to begin to wait."""
    task = asyncio.ensure_future(collect(store, stream, after))
    await asyncio.sleep(0.01)
    return task


async def fill(store: Store, client: str | None, fields: Mapping[str, str]) -> list[str]:
    """Create sessions until there is no room for more, and return them."""
    made = list[str]()
    while len(made) < 100:
        session = secrets.token_hex(4)
        try:
            await store.create_session(session, fields, client)
        except TooManySessionsError:
            return made
        made.append(session)
    raise AssertionError("no limit was reached")


async def store_event(store: Store, session: str, stream: str, size: int) -> None:
    """Store a stream with one event."""
    await store.create_stream(session, stream, b"final_event")
    await store.append_events(session, stream, [b"x" * size], last=True)


async def kept(store: Store, session: str, streams: Sequence[str]) -> list[str]:
    """Return the streams that are still kept."""
    found = list[str]()
    for stream in streams:
        with suppress(StreamNotFoundError):
            await collect(store, stream, session=session)
            found.append(stream)
    return found


class StoreSuite:
    """Tests of one store: a subclass, `TestMyStore`, has the fixture `world`."""

    # Sessions

    def test_a_session_is_visible_to_every_worker(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                await one.store.create_session("s", FIELDS)
                assert await other.store.load_session("s") == FIELDS
                assert await other.store.load_session("t") is None

        run(main())

    def test_a_session_may_have_no_fields(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                await worker.store.create_session("s", {})
                assert await worker.store.load_session("s") == {}
                assert await worker.store.update_session("s", {"a": None})
                assert await worker.store.load_session("s") == {}

        run(main())

    def test_loaded_fields_are_a_copy(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                given = dict(FIELDS)
                await worker.store.create_session("s", given)
                given.clear()
                loaded = await worker.store.load_session("s")
                assert loaded == FIELDS
                assert loaded is not None
                loaded.clear()
                assert await worker.store.load_session("s") == FIELDS

        run(main())

    def test_fields_can_be_set_and_deleted(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                await worker.store.create_session("s", {"a": "1", "b": "2"})
                assert await worker.store.update_session("s", {"a": None, "b": "3", "c": HOSTILE, "d": None})
                assert await worker.store.load_session("s") == {"b": "3", "c": HOSTILE}
                assert await worker.store.update_session("s", {})
                assert not await worker.store.update_session("t", {"a": "1"})
                assert await worker.store.load_session("t") is None

        run(main())

    def test_concurrent_updates_of_different_fields_are_all_kept(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                await one.store.create_session("s", {})
                stores = (one.store, other.store)
                names = [str(number) for number in range(40)]
                changes = [stores[at % 2].update_session("s", {name: name}) for at, name in enumerate(names)]
                assert all(await asyncio.gather(*changes))
                assert await one.store.load_session("s") == {name: name for name in names}

        run(main())

    def test_a_session_can_be_deleted_once(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                await one.store.create_session("s", FIELDS)
                assert await other.store.delete_session("s")
                assert not await one.store.delete_session("s")
                assert await one.store.load_session("s") is None
                assert not await one.store.update_session("s", {"a": "1"})

        run(main())

    def test_an_unused_session_expires_and_its_followers_get_an_error(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(ttl=0.5, lease=0.6) as worker:
                await worker.store.create_session("s", FIELDS)
                await worker.store.create_stream("s", "a", b"final_event")
                with pytest.raises(StreamNotFoundError):  # found by a sweep, since nothing else happens
                    await collect(worker.store, "a")
                assert await worker.store.load_session("s") is None
                assert not await worker.store.update_session("s", {"a": "1"})
                assert not await worker.store.delete_session("s")
                with pytest.raises(StreamNotFoundError):
                    await worker.store.append_events("s", "a", [b"1"])

        run(main())

    @pytest.mark.parametrize("use", ["load", "change", "append"])
    def test_a_session_in_use_does_not_expire(self, world: StoreWorld, use: str) -> None:
        async def main() -> None:
            async with world.worker(ttl=100, unused_ttl=100) as worker:
                store = worker.store
                uses: dict[str, Callable[[], Any]] = {
                    "load": lambda: store.load_session("s"),
                    "change": lambda: store.update_session("s", {"a": "1"}),
                    "append": lambda: store.append_events("s", "a", [b"1"]),
                }
                await store.create_session("s", FIELDS)
                await store.create_stream("s", "a", b"final_event")
                for _ in range(3):
                    world.advance(60)
                    assert await uses[use]()
                assert await store.append_events("s", "a", [b"1"])  # the stream stays with its session
                world.advance(101)
                assert not await uses["change"]()

        run(main())

    def test_sessions_beyond_the_limit_are_rejected(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers(sessions=3) as (one, other):
                for name in "abc":
                    await one.store.create_session(name, {})
                with pytest.raises(TooManySessionsError):
                    await other.store.create_session("d", {})
                assert await one.store.load_session("d") is None
                await one.store.delete_session("b")
                await other.store.create_session("d", {})

        run(main())

    def test_ended_sessions_do_not_count_toward_the_limit(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(sessions=300) as worker:
                await asyncio.gather(*(worker.store.create_session(str(number), {}) for number in range(300)))
                world.advance(1801)
                await asyncio.gather(*(worker.store.create_session(f"new {number}", {}) for number in range(300)))

        run(main())

    def test_a_session_that_is_never_used_ends_early(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(ttl=1000, unused_ttl=100) as worker:
                for name in ("used", "unused"):
                    await worker.store.create_session(name, {})
                world.advance(60)
                assert await worker.store.load_session("used") == {}
                world.advance(60)
                assert await worker.store.load_session("unused") is None
                world.advance(600)
                assert await worker.store.load_session("used") == {}

        run(main())

    def test_the_bytes_of_sessions_are_limited_for_each_client_and_in_total(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers(session_bytes=40_000, client_share_percent=25) as (one, other):
                large = {"client": "x" * 4000}
                made = await fill(one.store, "ann", large)
                assert len(made) == 2, "each counts 6 kB, and the share is 10 kB"
                assert await fill(other.store, "ann", large) == []
                assert len(await fill(other.store, "bob", {"client": "é" * 500})) == 3, (
                    "it counts four bytes for a letter"
                )
                assert len(await fill(one.store, None, {})) == 8, "a client that is not known has no share"
                assert await fill(one.store, "cid", {}) == []
                await one.store.delete_session(made[0])
                assert len(await fill(other.store, "ann", {})) == 2
                world.advance(61)
                assert len(await fill(other.store, "ann", large)) == 2, "the others were never used"

        run(main())

    # Subscriptions

    def test_subscriptions_are_visible_to_every_worker_and_apart_from_the_fields(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                await one.store.create_session("s", FIELDS)
                for uri in ("a:1", HOSTILE, "a:1"):
                    assert await one.store.subscribe("s", uri, 10)
                assert await other.store.load_subscriptions("s") == {"a:1", HOSTILE}
                assert await other.store.unsubscribe("s", HOSTILE)
                assert await other.store.unsubscribe("s", "a:2")
                assert await one.store.load_subscriptions("s") == {"a:1"}
                assert await one.store.load_session("s") == FIELDS
                await one.store.delete_session("s")
                assert await one.store.load_subscriptions("s") == set()
                assert not await one.store.subscribe("s", "a:1", 10)
                assert not await one.store.unsubscribe("s", "a:1")
                await one.store.create_session("s", FIELDS)
                assert await other.store.load_subscriptions("s") == set()

        run(main())

    def test_subscriptions_are_limited_in_number(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                await one.store.create_session("s", {})
                for uri in ("a", "b"):
                    assert await one.store.subscribe("s", uri, 2)
                with pytest.raises(TooManySubscriptionsError):
                    await other.store.subscribe("s", "c", 2)
                assert await other.store.subscribe("s", "a", 2), "it is there already"
                await one.store.unsubscribe("s", "a")
                assert await other.store.subscribe("s", "c", 2)

        run(main())

    def test_the_bytes_of_subscriptions_are_limited_for_each_client(self, world: StoreWorld) -> None:
        async def subscribe_all(store: Store, session: str) -> int:
            for number in range(100):
                try:
                    await store.subscribe(session, f"a:{number:03}{'x' * 867}", 1000)
                except TooManySubscriptionsError:
                    return number
            raise AssertionError("no limit was reached")

        async def main() -> None:
            async with world.workers(session_bytes=40_000, client_share_percent=25) as (one, other):
                for session, client in (("a1", "ann"), ("a2", "ann"), ("b", "bob")):
                    await one.store.create_session(session, {}, client)
                assert await subscribe_all(one.store, "a1") == 6, (
                    "each counts 1 kB, both sessions 4 kB, the share is 10 kB"
                )
                assert await subscribe_all(other.store, "a2") == 0
                assert await subscribe_all(other.store, "b") == 8
                await other.store.unsubscribe("a1", f"a:000{'x' * 867}")
                assert await subscribe_all(other.store, "a2") == 1
                await one.store.delete_session("a1")
                assert await subscribe_all(one.store, "a2") == 8

        run(main())

    # Streams

    def test_a_name_can_be_used_once_on_all_workers(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                assert await one.store.use_once("a", 60)
                assert not await other.store.use_once("a", 60)
                assert not await one.store.use_once("a", 60)
                assert await other.store.use_once("b", 60)
                used = await asyncio.gather(
                    *[store.use_once("c", 60) for store in (one.store, other.store) for _ in range(5)]
                )
                assert used.count(True) == 1

        run(main())

    def test_a_used_name_is_forgotten_in_time(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                assert await worker.store.use_once("a", 0.02)
                assert await worker.store.use_once("b", 60)
                async with asyncio.timeout(60):
                    while not await worker.store.use_once("a", 60):
                        await asyncio.sleep(0.01)
                assert not await worker.store.use_once("b", 60)

        run(main())

    def test_no_used_name_is_forgotten_early_at_the_limit(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(used_states=2) as worker:
                assert await worker.store.use_once("a", 60)
                assert await worker.store.use_once("b", 60)
                with pytest.raises(ConnectionError):
                    await worker.store.use_once("c", 60)
                assert not await worker.store.use_once("a", 60)

        run(main())

    def test_events_are_numbered_from_one(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                assert await worker.store.append_events("s", "a", []) == 0
                assert await worker.store.append_events("s", "a", [RAW]) == 1
                assert await worker.store.append_events("s", "a", [b"", b"3"]) == 3
                assert await worker.store.append_events("s", "a", []) == 3
                assert await worker.store.append_events("s", "a", [b"4"], last=True) == 4
                assert await collect(worker.store, "a") == numbered(RAW, b"", b"3", b"4")
                assert await collect(worker.store, "a", 2) == numbered(b"3", b"4", first=3)
                assert await collect(worker.store, "a", 4) == []

        run(main())

    def test_a_stream_may_end_without_a_further_event(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                assert await worker.store.append_events("s", "a", [], last=True) == 0
                assert await collect(worker.store, "a") == []

        run(main())

    def test_followers_on_any_worker_get_stored_and_new_events(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                await one.store.create_session("s", {})
                await one.store.create_stream("s", "a", b"final_event")
                await one.store.append_events("s", "a", [b"1", b"2"])
                tasks = [await following(store, "a", after) for store in (one.store, other.store) for after in (0, 1)]
                for number in range(3, 50):
                    assert await one.store.append_events("s", "a", [b"%d" % number]) == number
                await one.store.append_events("s", "a", [b"50"], last=True)
                whole = numbered(*(b"%d" % number for number in range(1, 51)))
                assert [await task for task in tasks] == [whole, whole[1:], whole, whole[1:]]

        run(main())

    def test_an_event_reaches_followers_without_delay(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers(lease=600) as (one, other):  # it would look for events itself after as long
                await one.store.create_session("s", {})
                await one.store.create_stream("s", "a", b"final_event")
                follower = aiter(other.store.follow_stream("s", "a", 0))
                assert await asyncio.wait_for(anext(follower), 60) == []
                for number in range(1, 20):
                    coming = asyncio.ensure_future(anext(follower))
                    await asyncio.sleep(0.002 if number % 2 else 0)
                    await one.store.append_events("s", "a", [b"x"])
                    assert await asyncio.wait_for(coming, 60) == [StoredEvent(number, b"x")]
                await one.store.append_events("s", "a", [], last=True)
                assert await anext(follower, None) is None

        run(main())

    def test_a_cancelled_follower_does_not_disturb_others(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                tasks = [await following(worker.store, "a") for _ in range(3)]
                tasks[1].cancel()
                await worker.store.append_events("s", "a", [b"1"], last=True)
                assert await tasks[0] == await tasks[2] == numbered(b"1")
                with pytest.raises(asyncio.CancelledError):
                    await tasks[1]

        run(main())

    def test_streams_are_independent(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                for session in "st":
                    await worker.store.create_session(session, {})
                    for stream in "ab":
                        await worker.store.create_stream(session, stream, b"final_event")
                        await worker.store.append_events(session, stream, [(session + stream).encode()], last=True)
                for session in "st":
                    for stream in "ab":
                        found = await collect(worker.store, stream, session=session)
                        assert found == numbered((session + stream).encode())

        run(main())

    @pytest.mark.parametrize("limits", [{"events": 3}, {"event_bytes": 30}, {"events": 3, "event_bytes": 1000}])
    def test_followers_get_an_error_instead_of_a_gap_after_dropped_events(
        self, world: StoreWorld, limits: dict[str, int]
    ) -> None:
        async def main() -> None:
            async with world.worker(**limits) as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                data = [b"%010d" % number for number in range(1, 8)]
                assert await worker.store.append_events("s", "a", data[:5]) == 5
                assert await worker.store.append_events("s", "a", data[5:], last=True) == 7
                for after in range(4):
                    with pytest.raises(StreamNotFoundError):
                        await collect(worker.store, "a", after)
                assert await collect(worker.store, "a", 4) == numbered(*data[4:], first=5)

        run(main())

    def test_the_newest_event_is_kept_whatever_its_size(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(event_bytes=10) as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                await worker.store.append_events("s", "a", [b"1", b"2" * 100])
                assert await worker.store.append_events("s", "a", [b"3" * 10_000_000], last=True) == 3
                assert await collect(worker.store, "a", 2) == [StoredEvent(3, b"3" * 10_000_000)]
                with pytest.raises(StreamNotFoundError):
                    await collect(worker.store, "a", 1)

        run(main())

    def test_a_follower_that_is_too_slow_gets_an_error(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(events=2) as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                await worker.store.append_events("s", "a", [b"1"])
                follower = aiter(worker.store.follow_stream("s", "a", 0))
                assert await anext(follower) == numbered(b"1")
                await worker.store.append_events("s", "a", [b"2", b"3", b"4"])
                with pytest.raises(StreamNotFoundError):
                    await anext(follower)

        run(main())

    def test_an_ended_stream_rejects_events(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                await worker.store.append_events("s", "a", [b"1"], last=True)
                for last in (False, True):
                    with pytest.raises(StreamNotFoundError):
                        await worker.store.append_events("s", "a", [b"2"], last=last)
                assert await collect(worker.store, "a") == numbered(b"1")

        run(main())

    def test_missing_sessions_and_streams_raise_stream_not_found(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                store = worker.store
                with pytest.raises(StreamNotFoundError):
                    await store.create_stream("s", "a", b"final_event")
                with pytest.raises(StreamNotFoundError):
                    await collect(store, "a")
                await store.create_session("s", {})
                with pytest.raises(StreamNotFoundError):
                    await store.append_events("s", "a", [b"1"])
                with pytest.raises(StreamNotFoundError):
                    await collect(store, "a")
                await store.create_stream("s", "a", b"final_event")
                for after in (-1, 1, 1 << 70):  # numbers that this stream never had
                    with pytest.raises(StreamNotFoundError):
                        await collect(store, "a", after)

        run(main())

    def test_deleting_a_session_deletes_its_streams(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                await one.store.create_session("s", {})
                for name in "abc":
                    await one.store.create_stream("s", name, b"final_event")
                await one.store.append_events("s", "c", [b"1"], last=True)
                tasks = [await following(store, name) for store in (one.store, other.store) for name in "ab"]
                await other.store.delete_session("s")
                for task in tasks:
                    with pytest.raises(StreamNotFoundError):
                        await task
                with pytest.raises(StreamNotFoundError):
                    await one.store.append_events("s", "a", [b"1"])
                await one.store.create_session("s", {})
                for name in "abc":
                    with pytest.raises(StreamNotFoundError):
                        await collect(one.store, name)

        run(main())

    def test_an_ended_stream_is_kept_for_a_time(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as worker:
                await worker.store.create_session("s", {})
                await worker.store.create_stream("s", "a", b"final_event")
                await worker.store.append_events("s", "a", [b"1"], last=True)
                world.advance(100)
                assert await collect(worker.store, "a") == numbered(b"1")
                world.advance(201)
                with pytest.raises(StreamNotFoundError):
                    await collect(worker.store, "a")
                assert await worker.store.load_session("s") == {}

        run(main())

    def test_open_streams_of_a_closing_worker_get_their_final_events(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as other, world.worker() as one:
                store = one.store if one.store.is_shared else other.store
                await store.create_session("s", {})
                for name in "abc":
                    await store.create_stream("s", name, b"will of " + name.encode())
                await store.append_events("s", "a", [b"1"])
                await store.append_events("s", "c", [b"1"], last=True)
                tasks = [await following(other.store, name) for name in "abc"]
                await store.close()
                assert await tasks[0] == numbered(b"1", b"will of a")
                assert await tasks[1] == numbered(b"will of b")
                assert await tasks[2] == numbered(b"1")
                assert await collect(other.store, "b") == numbered(b"will of b")

        run(main())

    # Messages between workers

    def test_a_message_reaches_one_worker(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                for number in range(20):
                    await one.store.send(other.store.worker, b"%d" % number)
                await one.store.send("nobody", b"lost")
                await one.store.send(other.store.worker, RAW)
                received = [await other.messages.get() for _ in range(21)]
                assert received == [*((None, b"%d" % number) for number in range(20)), (None, RAW)]
                await one.store.send(one.store.worker, b"myself")
                assert await one.messages.get() == (None, b"myself")
                assert one.messages.empty()
                assert other.messages.empty()

        run(main())

    def test_published_messages_reach_all_workers_in_the_same_order(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                stores = (one.store, other.store)
                sent = await asyncio.gather(*(stores[at % 2].publish(b"%d" % at) for at in range(100)))
                numbers = {number: b"%d" % at for at, number in enumerate(sent)}
                assert len(numbers) == 100
                for worker in {id(one): one, id(other): other}.values():
                    received = [await worker.messages.get() for _ in range(100)]
                    assert received == sorted(numbers.items())
                    assert worker.messages.empty()

        run(main())

    def test_sent_and_published_messages_arrive_in_the_order_of_sending(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers() as (one, other):
                for number in range(30):
                    message = b"%d" % number
                    await (one.store.publish(message) if number % 3 else one.store.send(other.store.worker, message))
                assert [(await other.messages.get())[1] for _ in range(30)] == [b"%d" % number for number in range(30)]

        run(main())

    def test_published_messages_can_be_fetched_later(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers(backlog=5) as (one, other):
                assert await one.store.messages_after(0) == []
                numbers = [await one.store.publish(b"%d" % at) for at in range(5)]
                whole = [StoredEvent(number, b"%d" % at) for at, number in enumerate(numbers)]
                assert await other.store.messages_after(0) == whole
                numbers.append(await other.store.publish(RAW))
                whole.append(StoredEvent(numbers[-1], RAW))
                assert await one.store.messages_after(0) is None
                for at, number in enumerate(numbers):
                    assert await one.store.messages_after(number) == whole[at + 1 :]
                await one.store.publish(b"7")
                assert await one.store.messages_after(numbers[0]) is None
                assert await one.store.messages_after(numbers[2]) is not None
                for unknown in (-1, numbers[-1] + (1 << 52), 1 << 70):
                    assert await one.store.messages_after(unknown) is None

        run(main())

    def test_a_worker_gets_no_messages_from_before_it_opened(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker() as one:
                await one.store.publish(b"early")
                async with world.worker() as other:
                    await other.store.publish(b"late")
                    assert (await other.messages.get())[1] == b"late"

        run(main())

    def test_a_message_that_cannot_be_handled_is_logged_and_the_next_is_delivered(
        self, world: StoreWorld, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            received: asyncio.Queue[bytes] = asyncio.Queue()

            def on_message(number: int | None, message: bytes) -> None:
                received.put_nowait(message)
                raise RuntimeError("deaf")

            store = world.store()
            await store.open(on_message)
            await store.publish(b"1")
            await store.send(store.worker, b"2")
            assert [await received.get(), await received.get()] == [b"1", b"2"]
            await store.close()

        with caplog.at_level(logging.ERROR, "typedmcp"):
            run(main())
        assert [record.name for record in caplog.records] == ["typedmcp"] * 2

    def test_workers_have_short_unique_names(self, world: StoreWorld) -> None:
        names = [world.store().worker for _ in range(100)]
        assert len(set(names)) == 100
        assert all(name.isalnum() and len(name) <= 12 for name in names)

    @pytest.mark.parametrize("name", ["ttl", "sessions", "events", "event_bytes", "keep", "backlog", "used_states"])
    def test_limits_must_be_positive(self, world: StoreWorld, name: str) -> None:
        with pytest.raises(UsageError, match=f"{name} must be positive"):
            world.store(**cast(Any, {name: 0}))

    def test_streams_beyond_the_limit_of_bytes_are_dropped_in_the_order_of_their_ends(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers(kept_bytes=3 * 552, client_share_percent=100) as (one, other):
                for session in "st":
                    await one.store.create_session(session, {})
                await store_event(one.store, "s", "a", 40)
                for stream in "bc":
                    await store_event(other.store, "t", stream, 40)
                assert await kept(other.store, "s", "a") == []
                assert await kept(one.store, "t", "bc") == ["b", "c"]
                await one.store.delete_session("t")
                for stream in "de":
                    await store_event(one.store, "s", stream, 40)
                assert await kept(one.store, "s", "de") == ["d", "e"]

        run(main())

    def test_a_stream_that_alone_reaches_the_limit_of_bytes_keeps_its_newest_event(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(kept_bytes=1000, client_share_percent=100) as worker:
                store = worker.store
                await store.create_session("s", {})
                await store.create_stream("s", "a", b"final_event")
                for number in range(1, 7):
                    assert await store.append_events("s", "a", [b"x" * 100]) == number
                await store.append_events("s", "a", [b"last"], last=True)
                with pytest.raises(StreamNotFoundError):
                    await collect(store, "a")
                assert await collect(store, "a", 6) == numbered(b"last", first=7)

        run(main())

    def test_the_streams_of_one_client_do_not_push_out_those_of_another(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.workers(kept_bytes=8000, client_share_percent=50) as (one, other):
                for session, client in (("quiet", "ann"), ("loud", "bob")):
                    await one.store.create_session(session, {}, client)
                await store_event(one.store, "quiet", "a", 1000)
                names = [str(number) for number in range(20)]
                for name in names:
                    await store_event(other.store, "loud", name, 1000)
                assert await kept(other.store, "quiet", "a") == ["a"]
                assert await kept(one.store, "loud", names) == ["18", "19"], "each counts 1.5 kB, and the share is 4 kB"

        run(main())

    def test_streams_that_are_dropped_make_room(self, world: StoreWorld) -> None:
        async def main() -> None:
            async with world.worker(kept_bytes=8000, client_share_percent=50, keep=100, lease=0.5) as worker:
                await worker.store.create_session("s", {}, "ann")
                for name in "ab":
                    await store_event(worker.store, "s", name, 1000)
                world.advance(101)
                await asyncio.sleep(0.4)  # Redis drops streams with the next heartbeat
                for name in "cd":
                    await store_event(worker.store, "s", name, 1000)
                assert await kept(worker.store, "s", "abcd") == ["c", "d"]
                await worker.store.delete_session("s")
                await worker.store.create_session("s", {}, "ann")
                for name in "ef":
                    await store_event(worker.store, "s", name, 1000)
                assert await kept(worker.store, "s", "ef") == ["e", "f"]

        run(main())
