"""What every store does: one suite, run against each of them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.redis_server import RedisServer, shared_redis
from tests.runtime.helpers import run
from typedmcp import UsageError
from typedmcp.state import Event, Gone, Hear, Store, TooMany
from typedmcp.state.memory import MemoryStore
from typedmcp.state.redis import RedisStore

__all__ = ["shared_redis"]

HOSTILE = "line\r\nline\n\0 \u2028 \ud800 \U0001f600 $3\r\nfoo\r\n"
RAW = bytes(range(256)) + HOSTILE.encode("utf-8", "surrogatepass")
FIELDS = {"revision": "2025-06-18", "client": HOSTILE, "empty": ""}


@dataclass
class Worker:
    """A store that is open, and what it has heard."""

    store: Store
    news: asyncio.Queue[tuple[int | None, bytes]] = field(default_factory=lambda: asyncio.Queue())

    def hear(self, number: int | None, news: bytes) -> None:
        self.news.put_nowait((number, news))


class Clock:
    """Time that goes on, and can be put ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class World:
    """Workers that share a state. In memory there is only one, under several names."""

    def __init__(self, server: RedisServer | None) -> None:
        self._server = server
        self._prefix = f"{secrets.token_hex(4)}:"
        self._clock = Clock()

    def store(self, **options: Any) -> Store:
        if self._server is None:
            options.pop("lease", None)
            return MemoryStore(clock=self._clock, **options)
        options.setdefault("lease", 5.0)
        return RedisStore(self._server.url, prefix=self._prefix, **options)

    def let_pass(self, seconds: float) -> None:
        """Have time pass for sessions and streams; workers do not age."""
        if self._server is None:
            self._clock.ahead += seconds
        else:
            self._server.let_pass(self._prefix, seconds)

    @asynccontextmanager
    async def worker(self, **options: Any) -> AsyncGenerator[Worker]:
        worker = Worker(self.store(**options))
        await worker.store.open(worker.hear)
        try:
            yield worker
        finally:
            await worker.store.close()

    @asynccontextmanager
    async def workers(self, **options: Any) -> AsyncGenerator[tuple[Worker, Worker]]:
        """Two workers, or one that counts twice."""
        async with self.worker(**options) as one:
            if self._server is None:
                yield one, one
                return
            async with self.worker(**options) as other:
                yield one, other


@pytest.fixture(params=["memory", "redis"])
def world(request: pytest.FixtureRequest) -> World:
    return World(None if request.param == "memory" else request.getfixturevalue("shared_redis"))


async def collect(store: Store, stream: str, after: int = 0, session: str = "s") -> list[Event]:
    """All events of a stream, up to its last one."""
    found: list[Event] = []
    batches = 0
    async for events in store.follow(session, stream, after):
        assert events or not batches, "only the first one may be empty"
        batches += 1
        found.extend(events)
    assert batches, "the first one comes at once"
    return found


def numbered(*data: bytes, first: int = 1) -> list[Event]:
    return [Event(number, each) for number, each in enumerate(data, first)]


async def following(store: Store, stream: str, after: int = 0) -> asyncio.Task[list[Event]]:
    """Follow in a task that has begun to wait, as far as one can tell."""
    task = asyncio.ensure_future(collect(store, stream, after))
    await asyncio.sleep(0.01)
    return task


# Sessions


def test_a_session_is_kept_for_every_worker(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            await one.store.create("s", FIELDS)
            assert await other.store.load("s") == FIELDS
            assert await other.store.load("t") is None

    run(main())


def test_a_session_may_have_no_fields(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            await worker.store.create("s", {})
            assert await worker.store.load("s") == {}
            assert await worker.store.change("s", {"a": None})
            assert await worker.store.load("s") == {}

    run(main())


def test_what_was_loaded_is_a_copy(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            given = dict(FIELDS)
            await worker.store.create("s", given)
            given.clear()
            loaded = await worker.store.load("s")
            assert loaded == FIELDS
            assert loaded is not None
            loaded.clear()
            assert await worker.store.load("s") == FIELDS

    run(main())


def test_fields_are_set_and_dropped(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            await worker.store.create("s", {"a": "1", "b": "2"})
            assert await worker.store.change("s", {"a": None, "b": "3", "c": HOSTILE, "d": None})
            assert await worker.store.load("s") == {"b": "3", "c": HOSTILE}
            assert await worker.store.change("s", {})
            assert not await worker.store.change("t", {"a": "1"})
            assert await worker.store.load("t") is None

    run(main())


def test_changes_of_different_fields_at_once_are_all_kept(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            await one.store.create("s", {})
            stores = (one.store, other.store)
            names = [str(number) for number in range(40)]
            changes = [stores[at % 2].change("s", {name: name}) for at, name in enumerate(names)]
            assert all(await asyncio.gather(*changes))
            assert await one.store.load("s") == {name: name for name in names}

    run(main())


def test_a_session_ends_once(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            await one.store.create("s", FIELDS)
            assert await other.store.delete("s")
            assert not await one.store.delete("s")
            assert await one.store.load("s") is None
            assert not await one.store.change("s", {"a": "1"})

    run(main())


def test_a_session_that_is_not_used_expires_and_its_followers_are_told(world: World) -> None:
    async def main() -> None:
        async with world.worker(ttl=0.5, lease=0.6) as worker:
            await worker.store.create("s", FIELDS)
            await worker.store.begin("s", "a", b"will")
            with pytest.raises(Gone):  # found by a sweep: nothing else happens
                await collect(worker.store, "a")
            assert await worker.store.load("s") is None
            assert not await worker.store.change("s", {"a": "1"})
            assert not await worker.store.delete("s")
            with pytest.raises(Gone):
                await worker.store.append("s", "a", [b"1"])

    run(main())


@pytest.mark.parametrize("use", ["load", "change", "append"])
def test_a_session_that_is_used_stays(world: World, use: str) -> None:
    async def main() -> None:
        async with world.worker(ttl=100) as worker:
            store = worker.store
            uses: dict[str, Callable[[], Any]] = {
                "load": lambda: store.load("s"),
                "change": lambda: store.change("s", {"a": "1"}),
                "append": lambda: store.append("s", "a", [b"1"]),
            }
            await store.create("s", FIELDS)
            await store.begin("s", "a", b"will")
            for _ in range(3):
                world.let_pass(60)
                assert await uses[use]()
            assert await store.append("s", "a", [b"1"])  # the stream stays with its session
            world.let_pass(101)
            assert not await uses["change"]()

    run(main())


def test_there_are_only_so_many_sessions(world: World) -> None:
    async def main() -> None:
        async with world.workers(sessions=3) as (one, other):
            for name in "abc":
                await one.store.create(name, {})
            with pytest.raises(TooMany):
                await other.store.create("d", {})
            assert await one.store.load("d") is None
            await one.store.delete("b")
            await other.store.create("d", {})

    run(main())


def test_sessions_that_are_over_make_room(world: World) -> None:
    async def main() -> None:
        async with world.worker(sessions=300) as worker:
            await asyncio.gather(*(worker.store.create(str(number), {}) for number in range(300)))
            world.let_pass(1801)
            await asyncio.gather(*(worker.store.create(f"new {number}", {}) for number in range(300)))

    run(main())


# Streams


def test_events_are_numbered_from_one(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            assert await worker.store.append("s", "a", []) == 0
            assert await worker.store.append("s", "a", [RAW]) == 1
            assert await worker.store.append("s", "a", [b"", b"3"]) == 3
            assert await worker.store.append("s", "a", []) == 3
            assert await worker.store.append("s", "a", [b"4"], last=True) == 4
            assert await collect(worker.store, "a") == numbered(RAW, b"", b"3", b"4")
            assert await collect(worker.store, "a", 2) == numbered(b"3", b"4", first=3)
            assert await collect(worker.store, "a", 4) == []

    run(main())


def test_a_stream_may_end_without_a_last_event(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            assert await worker.store.append("s", "a", [], last=True) == 0
            assert await collect(worker.store, "a") == []

    run(main())


def test_followers_on_any_worker_get_what_is_kept_and_then_what_comes(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            await one.store.create("s", {})
            await one.store.begin("s", "a", b"will")
            await one.store.append("s", "a", [b"1", b"2"])
            tasks = [await following(store, "a", after) for store in (one.store, other.store) for after in (0, 1)]
            for number in range(3, 50):
                assert await one.store.append("s", "a", [b"%d" % number]) == number
            await one.store.append("s", "a", [b"50"], last=True)
            whole = numbered(*(b"%d" % number for number in range(1, 51)))
            assert [await task for task in tasks] == [whole, whole[1:], whole, whole[1:]]

    run(main())


def test_an_event_comes_without_delay(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            await one.store.create("s", {})
            await one.store.begin("s", "a", b"will")
            follower = aiter(other.store.follow("s", "a", 0))
            assert await asyncio.wait_for(anext(follower), 1) == []
            for number in range(1, 20):
                coming = asyncio.ensure_future(anext(follower))
                await asyncio.sleep(0.002 if number % 2 else 0)
                await one.store.append("s", "a", [b"x"])
                assert await asyncio.wait_for(coming, 1) == [Event(number, b"x")]
            await one.store.append("s", "a", [], last=True)
            assert await anext(follower, None) is None

    run(main())


def test_a_follower_that_gives_up_disturbs_nobody(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            tasks = [await following(worker.store, "a") for _ in range(3)]
            tasks[1].cancel()
            await worker.store.append("s", "a", [b"1"], last=True)
            assert await tasks[0] == await tasks[2] == numbered(b"1")
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]

    run(main())


def test_streams_are_apart(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            for session in "st":
                await worker.store.create(session, {})
                for stream in "ab":
                    await worker.store.begin(session, stream, b"will")
                    await worker.store.append(session, stream, [(session + stream).encode()], last=True)
            for session in "st":
                for stream in "ab":
                    found = await collect(worker.store, stream, session=session)
                    assert found == numbered((session + stream).encode())

    run(main())


@pytest.mark.parametrize("limits", [{"events": 3}, {"event_bytes": 30}, {"events": 3, "event_bytes": 1000}])
def test_the_oldest_events_are_dropped_and_never_skipped(world: World, limits: dict[str, int]) -> None:
    async def main() -> None:
        async with world.worker(**limits) as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            data = [b"%010d" % number for number in range(1, 8)]
            assert await worker.store.append("s", "a", data[:5]) == 5
            assert await worker.store.append("s", "a", data[5:], last=True) == 7
            for after in range(4):
                with pytest.raises(Gone):
                    await collect(worker.store, "a", after)
            assert await collect(worker.store, "a", 4) == numbered(*data[4:], first=5)

    run(main())


def test_the_newest_event_is_kept_whatever_its_size(world: World) -> None:
    async def main() -> None:
        async with world.worker(event_bytes=10) as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            await worker.store.append("s", "a", [b"1", b"2" * 100])
            assert await worker.store.append("s", "a", [b"3" * 10_000_000], last=True) == 3
            assert await collect(worker.store, "a", 2) == [Event(3, b"3" * 10_000_000)]
            with pytest.raises(Gone):
                await collect(worker.store, "a", 1)

    run(main())


def test_a_follower_that_is_too_slow_is_told(world: World) -> None:
    async def main() -> None:
        async with world.worker(events=2) as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            await worker.store.append("s", "a", [b"1"])
            follower = aiter(worker.store.follow("s", "a", 0))
            assert await anext(follower) == numbered(b"1")
            await worker.store.append("s", "a", [b"2", b"3", b"4"])
            with pytest.raises(Gone):
                await anext(follower)

    run(main())


def test_a_stream_that_has_ended_takes_no_more(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            await worker.store.append("s", "a", [b"1"], last=True)
            for last in (False, True):
                with pytest.raises(Gone):
                    await worker.store.append("s", "a", [b"2"], last=last)
            assert await collect(worker.store, "a") == numbered(b"1")

    run(main())


def test_what_is_not_there_is_gone(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            store = worker.store
            with pytest.raises(Gone):
                await store.begin("s", "a", b"will")
            with pytest.raises(Gone):
                await collect(store, "a")
            await store.create("s", {})
            with pytest.raises(Gone):
                await store.append("s", "a", [b"1"])
            with pytest.raises(Gone):
                await collect(store, "a")
            await store.begin("s", "a", b"will")
            for after in (-1, 1, 1 << 70):  # never numbers of this stream
                with pytest.raises(Gone):
                    await collect(store, "a", after)

    run(main())


def test_a_session_that_ends_takes_its_streams_along(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            await one.store.create("s", {})
            for name in "abc":
                await one.store.begin("s", name, b"will")
            await one.store.append("s", "c", [b"1"], last=True)
            tasks = [await following(store, name) for store in (one.store, other.store) for name in "ab"]
            await other.store.delete("s")
            for task in tasks:
                with pytest.raises(Gone):
                    await task
            with pytest.raises(Gone):
                await one.store.append("s", "a", [b"1"])
            await one.store.create("s", {})
            for name in "abc":
                with pytest.raises(Gone):
                    await collect(one.store, name)

    run(main())


def test_a_stream_that_has_ended_is_kept_for_a_time(world: World) -> None:
    async def main() -> None:
        async with world.worker() as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            await worker.store.append("s", "a", [b"1"], last=True)
            world.let_pass(100)
            assert await collect(worker.store, "a") == numbered(b"1")
            world.let_pass(201)
            with pytest.raises(Gone):
                await collect(worker.store, "a")
            assert await worker.store.load("s") == {}

    run(main())


def test_streams_that_are_open_when_a_worker_closes_end_with_their_wills(world: World) -> None:
    async def main() -> None:
        async with world.worker() as other, world.worker() as one:
            store = one.store if one.store.is_shared else other.store
            await store.create("s", {})
            for name in "abc":
                await store.begin("s", name, b"will of " + name.encode())
            await store.append("s", "a", [b"1"])
            await store.append("s", "c", [b"1"], last=True)
            tasks = [await following(other.store, name) for name in "abc"]
            await store.close()
            assert await tasks[0] == numbered(b"1", b"will of a")
            assert await tasks[1] == numbered(b"will of b")
            assert await tasks[2] == numbered(b"1")
            assert await collect(other.store, "b") == numbered(b"will of b")

    run(main())


# Between workers


def test_one_worker_is_told(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            for number in range(20):
                await one.store.tell(other.store.worker, b"%d" % number)
            await one.store.tell("nobody", b"lost")
            await one.store.tell(other.store.worker, RAW)
            heard = [await other.news.get() for _ in range(21)]
            assert heard == [*((None, b"%d" % number) for number in range(20)), (None, RAW)]
            await one.store.tell(one.store.worker, b"myself")
            assert await one.news.get() == (None, b"myself")
            assert one.news.empty()
            assert other.news.empty()

    run(main())


def test_what_is_published_is_heard_by_all_in_the_same_order(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            stores = (one.store, other.store)
            sent = await asyncio.gather(*(stores[at % 2].publish(b"%d" % at) for at in range(100)))
            numbers = {number: b"%d" % at for at, number in enumerate(sent)}
            assert len(numbers) == 100
            for worker in {id(one): one, id(other): other}.values():
                heard = [await worker.news.get() for _ in range(100)]
                assert heard == sorted(numbers.items())
                assert worker.news.empty()

    run(main())


def test_told_and_published_are_heard_in_the_order_of_asking(world: World) -> None:
    async def main() -> None:
        async with world.workers() as (one, other):
            for number in range(30):
                news = b"%d" % number
                await (one.store.publish(news) if number % 3 else one.store.tell(other.store.worker, news))
            assert [(await other.news.get())[1] for _ in range(30)] == [b"%d" % number for number in range(30)]

    run(main())


def test_what_was_published_can_be_asked_for(world: World) -> None:
    async def main() -> None:
        async with world.workers(backlog=5) as (one, other):
            assert await one.store.published(0) == []
            numbers = [await one.store.publish(b"%d" % at) for at in range(5)]
            whole = [Event(number, b"%d" % at) for at, number in enumerate(numbers)]
            assert await other.store.published(0) == whole
            numbers.append(await other.store.publish(RAW))
            whole.append(Event(numbers[-1], RAW))
            assert await one.store.published(0) is None
            for at, number in enumerate(numbers):
                assert await one.store.published(number) == whole[at + 1 :]
            await one.store.publish(b"7")
            assert await one.store.published(numbers[0]) is None
            assert await one.store.published(numbers[2]) is not None
            for unknown in (-1, numbers[-1] + (1 << 52), 1 << 70):
                assert await one.store.published(unknown) is None

    run(main())


def test_a_worker_hears_nothing_from_before_it_was_there(world: World) -> None:
    async def main() -> None:
        async with world.worker() as one:
            await one.store.publish(b"early")
            async with world.worker() as other:
                await other.store.publish(b"late")
                assert (await other.news.get())[1] == b"late"

    run(main())


def test_news_that_cannot_be_taken_in_are_logged_and_the_next_is_heard(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        heard: asyncio.Queue[bytes] = asyncio.Queue()

        def hear(number: int | None, news: bytes) -> None:
            heard.put_nowait(news)
            raise RuntimeError("deaf")

        store = world.store()
        await store.open(hear)
        await store.publish(b"1")
        await store.tell(store.worker, b"2")
        assert [await heard.get(), await heard.get()] == [b"1", b"2"]
        await store.close()

    with caplog.at_level(logging.ERROR, "typedmcp"):
        run(main())
    assert [record.name for record in caplog.records] == ["typedmcp"] * 2


def test_workers_have_short_names_of_their_own(world: World) -> None:
    names = [world.store().worker for _ in range(100)]
    assert len(set(names)) == 100
    assert all(name.isalnum() and len(name) <= 12 for name in names)


@pytest.mark.parametrize("name", ["ttl", "sessions", "events", "event_bytes", "keep", "backlog"])
def test_limits_are_positive(world: World, name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} must be positive"):
        world.store(**cast(Any, {name: 0}))


# Random operations


LIMITS: dict[str, Any] = {"ttl": 1000, "keep": 500, "sessions": 2, "events": 4, "event_bytes": 30, "backlog": 3}


@dataclass
class ModelStream:
    events: list[bytes] = field(default_factory=lambda: list[bytes]())
    ended: float | None = None

    def after(self, number: int) -> list[Event]:
        """What is kept is a function of all that there was: the newest within the limits, and at least one."""
        kept = len(self.events)
        while kept > 1 and (kept > LIMITS["events"] or sum(map(len, self.events[-kept:])) > LIMITS["event_bytes"]):
            kept -= 1
        if not len(self.events) - kept <= number <= len(self.events):
            raise Gone
        return numbered(*self.events[number:], first=number + 1)


@dataclass
class ModelSession:
    fields: dict[str, str]
    used: float
    streams: dict[str, ModelStream] = field(default_factory=lambda: dict[str, ModelStream]())


class Model:
    """A store that keeps everything and looks at the clock."""

    worker = "model"
    is_shared = False

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sessions: dict[str, ModelSession] = {}
        self.news: list[bytes] = []

    async def open(self, hear: Hear) -> None:
        self.hear = hear

    async def close(self) -> None:
        pass

    def alive(self) -> dict[str, ModelSession]:
        now = self.clock()
        return {name: session for name, session in self.sessions.items() if session.used + LIMITS["ttl"] > now}

    def used(self, name: str) -> ModelSession:
        if name not in self.alive():
            raise Gone
        self.sessions[name].used = self.clock()
        return self.sessions[name]

    def stream(self, session: str, name: str) -> ModelStream:
        found = self.alive()[session].streams.get(name) if session in self.alive() else None
        if found is None or (found.ended is not None and found.ended + LIMITS["keep"] <= self.clock()):
            raise Gone
        return found

    async def create(self, session: str, fields: Mapping[str, str]) -> None:
        self.sessions.pop(session, None)
        if len(self.alive()) >= LIMITS["sessions"]:
            raise TooMany
        self.sessions[session] = ModelSession(dict(fields), self.clock())

    async def load(self, session: str) -> dict[str, str] | None:
        return dict(self.used(session).fields) if session in self.alive() else None

    async def change(self, session: str, fields: Mapping[str, str | None]) -> bool:
        if session not in self.alive():
            return False
        found = self.used(session)
        whole = {**found.fields, **fields}
        found.fields = {name: value for name, value in whole.items() if value is not None}
        return True

    async def delete(self, session: str) -> bool:
        was_there = session in self.alive()
        self.sessions.pop(session, None)
        return was_there

    async def begin(self, session: str, stream: str, will: bytes) -> None:
        self.used(session).streams[stream] = ModelStream()

    async def append(self, session: str, stream: str, events: Sequence[bytes], *, last: bool = False) -> int:
        self.used(session)
        found = self.stream(session, stream)
        if found.ended is not None:
            raise Gone
        found.events.extend(events)
        found.ended = self.clock() if last else None
        return len(found.events)

    async def follow(self, session: str, stream: str, after: int) -> AsyncIterator[Sequence[Event]]:
        found = self.stream(session, stream)
        yield found.after(after)
        if found.ended is None:
            await asyncio.Event().wait()

    async def tell(self, worker: str, news: bytes) -> None:
        self.hear(None, news)

    async def publish(self, news: bytes) -> int:
        self.news.append(news)
        self.hear(len(self.news), news)
        return len(self.news)

    async def published(self, after: int) -> list[Event] | None:
        if not len(self.news) - LIMITS["backlog"] <= after <= len(self.news):
            return None
        return numbered(*self.news[after:], first=after + 1)


class Alike(RuleBasedStateMachine):
    """Random operations on two stores: their answers are the same. The first is known to wait only where it must."""

    names = st.sampled_from("ab")
    data = st.lists(st.binary(max_size=12), max_size=3)

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.one, self.other = map(Worker, self.stores())
        self.numbers: list[tuple[int, int]] = [(0, 0)]
        for worker in (self.one, self.other):
            self.runner.run(worker.store.open(worker.hear))

    def stores(self) -> tuple[Store, Store]:
        return Model(self.clock), MemoryStore(clock=self.clock, **LIMITS)

    def age(self, seconds: float) -> None:
        self.clock.ahead += seconds

    def teardown(self) -> None:
        for worker in (self.one, self.other):
            self.runner.run(worker.store.close())
        self.runner.close()

    def same(self, operation: Callable[[Store], Coroutine[Any, Any, Any]]) -> Any:
        async def answer(store: Store) -> Any:
            try:
                return await operation(store)
            except (Gone, TooMany) as error:
                return type(error)

        expected = self.runner.run(answer(self.one.store))
        assert self.runner.run(answer(self.other.store)) == expected
        return expected

    @rule(session=names, fields=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2))
    def create(self, session: str, fields: dict[str, str]) -> None:
        self.same(lambda store: store.create(session, fields))

    @rule(session=names)
    def load(self, session: str) -> None:
        self.same(lambda store: store.load(session))

    @rule(session=names, fields=st.dictionaries(st.text(max_size=1), st.none() | st.text(max_size=3), max_size=3))
    def change(self, session: str, fields: dict[str, str | None]) -> None:
        self.same(lambda store: store.change(session, fields))

    @rule(session=names)
    def delete(self, session: str) -> None:
        self.same(lambda store: store.delete(session))

    @rule(session=names, stream=names)
    def begin(self, session: str, stream: str) -> None:
        self.same(lambda store: store.begin(session, stream, b"will"))

    @rule(session=names, stream=names, events=data, last=st.booleans())
    def append(self, session: str, stream: str, events: list[bytes], last: bool) -> None:
        self.same(lambda store: store.append(session, stream, events, last=last))

    @rule(session=names, stream=names, after=st.integers(-1, 8))
    def follow(self, session: str, stream: str, after: int) -> None:
        async def first(store: Store) -> Any:
            events = aiter(store.follow(session, stream, after))
            coming = asyncio.ensure_future(anext(events, None))
            if store is self.one.store:
                await asyncio.sleep(0)  # enough for what does not wait
                coming.cancel()
            try:
                return await coming
            except asyncio.CancelledError:
                return "waits"

        async def alike() -> None:
            expected = await attempt(first(self.one.store))
            if expected != "waits":
                assert await attempt(first(self.other.store)) == expected

        async def attempt(coming: Coroutine[Any, Any, Any]) -> Any:
            try:
                return await coming
            except Gone:
                return Gone

        self.runner.run(alike())

    @rule(news=st.binary(max_size=5))
    def publish(self, news: bytes) -> None:
        numbers = [self.runner.run(worker.store.publish(news)) for worker in (self.one, self.other)]
        self.numbers.append((numbers[0], numbers[1]))
        for worker, number in zip((self.one, self.other), numbers, strict=True):
            assert self.runner.run(worker.news.get()) == (number, news)

    @rule(at=st.integers(0, 10))
    def published(self, at: int) -> None:
        after = self.numbers[at % len(self.numbers)]
        answers = [
            self.runner.run(worker.store.published(number))
            for worker, number in zip((self.one, self.other), after, strict=True)
        ]
        texts = [None if answer is None else [event.data for event in answer] for answer in answers]
        assert texts[0] == texts[1]

    @rule()
    def let_pass(self) -> None:
        self.age(300)  # no sum of these is near a limit, so it does not matter how long a step takes


def check(machine: type[RuleBasedStateMachine], examples: int) -> None:
    """Run a state machine, the same way each time."""
    case: Any = cast(Any, machine).TestCase
    case.settings = settings(
        max_examples=examples,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # to shrink a case takes longer than to read it
        suppress_health_check=[*cast(Any, HealthCheck)],
    )
    case("runTest").runTest()


def test_the_store_in_memory_is_like_its_model() -> None:
    check(Alike, 30)


@pytest.mark.long
def test_the_store_in_memory_is_like_its_model_for_long() -> None:
    check(Alike, 400)


# What only the one in memory has


def objects(store: MemoryStore) -> Sequence[int]:
    """How many sessions and ended streams are held."""
    private: Any = store
    return len(private._sessions), len(private._ended)


def test_what_is_over_is_swept_in_the_order_of_its_use() -> None:
    async def main() -> None:
        clock = Clock()
        store = MemoryStore(ttl=10, keep=5, sessions=3, clock=clock)
        for name in "abc":
            await store.create(name, {})
        await store.begin("a", "x", b"")
        await store.append("a", "x", [b"1"], last=True)
        clock.ahead = 9.0
        assert await store.load("a") == {}
        clock.ahead = 10.5
        await store.create("d", {})
        assert objects(store) == (2, 0)
        assert [await store.load(name) for name in "abcd"] == [{}, None, None, {}]
        with pytest.raises(Gone):
            await store.append("a", "x", [b"2"])
        await store.delete("a")
        await store.delete("d")
        assert objects(store) == (0, 0)
        await store.close()

    run(main())


def test_a_quiet_store_sweeps_on_its_own_and_then_rests() -> None:
    async def main() -> None:
        store = MemoryStore(ttl=0.05, keep=0.02)
        for number in range(10):
            await store.create(str(number), {})
            await store.begin(str(number), "a", b"")
            await store.append(str(number), "a", [b"1"], last=True)
        while objects(store) != (0, 0):
            await asyncio.sleep(0.01)
        while any(not handle.cancelled() for handle in timers(store)):
            await asyncio.sleep(0.01)

    run(main())


def timers(store: MemoryStore) -> list[asyncio.TimerHandle]:
    """The timer of a store, where it has one."""
    private: Any = store
    return [] if private._sweeping is None else [private._sweeping]


def test_of_streams_that_have_ended_only_so_many_bytes_are_kept_in_memory() -> None:
    async def main() -> None:
        store = MemoryStore(ended_bytes=100)
        await store.open(lambda _number, _news: None)
        await store.create("s", {})
        for name in "abc":
            await store.begin("s", name, b"will")
            await store.append("s", name, [b"x" * 40], last=True)
        with pytest.raises(Gone):
            await collect(store, "a")
        assert await collect(store, "c") == numbered(b"x" * 40)
        await store.close()

    run(main())
