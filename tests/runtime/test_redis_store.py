"""What only the store in Redis does: leases, connections that die, other processes."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, cast

import pytest

from tests.paths import ROOT
from tests.redis_server import RedisServer, redis_server, shared_redis
from tests.runtime.helpers import run
from tests.runtime.test_store import LIMITS, Alike, Worker, check, collect, following, numbered
from typedmcp import UsageError
from typedmcp.state import Event, Gone, Store, scripts
from typedmcp.state.memory import MemoryStore
from typedmcp.state.redis import RedisStore

__all__ = ["shared_redis"]


@pytest.fixture
def prefix() -> str:
    return f"{secrets.token_hex(4)}:"


@asynccontextmanager
async def opened(server: RedisServer, prefix: str, **options: Any) -> AsyncGenerator[Worker]:
    """A worker."""
    worker = Worker(RedisStore(server.url, prefix=prefix, **options))
    await worker.store.open(worker.hear)
    try:
        yield worker
    finally:
        await worker.store.close()


@asynccontextmanager
async def process(server: RedisServer, prefix: str, lease: float) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A worker in a process of its own."""
    command = (sys.executable, "-m", "tests.redis_worker", server.url, prefix, str(lease))
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe)
    try:
        assert await said(child)
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        cast(Any, child)._transport.close()
        await child.wait()


async def said(child: asyncio.subprocess.Process) -> str:
    assert child.stdout
    return (await child.stdout.readline()).decode().rstrip("\n")


async def ask(child: asyncio.subprocess.Process, *words: str) -> str:
    """Have a process do something; what it answers."""
    assert child.stdin
    child.stdin.write(" ".join(words).encode() + b"\n")
    return await said(child)


async def until(is_so: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Wait for something that nobody tells."""
    while not await is_so():
        await asyncio.sleep(0.02)


def calls(server: RedisServer, command: str = "evalsha") -> int:
    """How many times Redis was asked to do something."""
    with server.client() as client:
        stats = client.info("commandstats")
        return int(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"])


# Construction


def test_without_the_library_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.exceptions", None)
    with pytest.raises(UsageError, match=r"typedmcp\[redis\]"):
        RedisStore()


def test_a_client_that_cannot_serve_is_refused() -> None:
    library: Any = import_module("redis.asyncio")
    with pytest.raises(UsageError, match="decode_responses"):
        RedisStore(library.Redis(decode_responses=True))
    with pytest.raises(UsageError, match="RedisCluster"):
        RedisStore(library.RedisCluster.__new__(library.RedisCluster))


@pytest.mark.parametrize("name", ["lease", "connections", "timeout"])
def test_options_are_positive(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} must be positive"):
        RedisStore(**cast(Any, {name: 0}))


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_client_of_ones_own_is_used_and_stays_open(shared_redis: RedisServer, prefix: str, protocol: int) -> None:
    async def main() -> None:
        client: Any = import_module("redis.asyncio").Redis.from_url(shared_redis.url, protocol=protocol)
        worker = Worker(RedisStore(client, prefix=prefix))
        await worker.store.open(worker.hear)
        await worker.store.publish(b"1")
        await worker.store.tell(worker.store.worker, b"2")
        assert [(await worker.news.get())[1] for _ in range(2)] == [b"1", b"2"]
        await worker.store.create("s", {"a": "1"})
        assert await worker.store.load("s") == {"a": "1"}
        await worker.store.close()
        assert await client.ping()
        await client.aclose()

    run(main())


def test_a_worker_may_close_as_soon_as_it_is_open(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        for turns in range(25):
            async with opened(shared_redis, prefix):
                for _ in range(turns):
                    await asyncio.sleep(0)

    run(main())


# Cost


def test_each_operation_is_one_round_trip(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix, lease=1000.0) as worker:
            store = worker.store
            operations: list[Awaitable[Any]] = [
                store.create("s", {"a": "1"}),
                store.load("s"),
                store.change("s", {"a": "2", "b": None}),
                store.begin("s", "a", b"will"),
                store.append("s", "a", [b"1", b"2"]),
                first(store.follow("s", "a", 0)),
                store.append("s", "a", [b"3"], last=True),
                store.published(0),
                store.publish(b"news"),
                store.tell(worker.store.worker, b"news"),
                store.delete("s"),
            ]
            for warm_up in ("warm", "s"):
                await store.delete(warm_up)
            for operation in operations:
                before = calls(shared_redis), calls(shared_redis, "eval")
                await operation
                after = calls(shared_redis), calls(shared_redis, "eval")
                assert after[0] - before[0] == 1, operation
                assert after[1] - before[1] <= 1, operation  # what Redis does not know yet is sent once

    run(main())


async def first(events: AsyncIterator[Sequence[Event]]) -> Sequence[Event]:
    return await anext(aiter(events))


def test_thousand_followers_need_a_few_connections(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            await one.store.create("s", {})
            for stream in range(100):
                await one.store.begin("s", str(stream), b"will")
            tasks = [asyncio.ensure_future(collect(other.store, str(at % 100))) for at in range(1000)]
            await until(lambda: asyncio.sleep(0, all_wait(other.store, 1000)))
            for stream in range(100):
                await one.store.append("s", str(stream), [b"1"], last=stream % 2 == 0)
            await asyncio.gather(*(one.store.append("s", str(stream), [], last=True) for stream in range(1, 100, 2)))
            assert all([await task == numbered(b"1") for task in tasks])
            with shared_redis.client() as client:
                assert len(client.client_list()) <= 2 * 10 + 2

    run(main())


def all_wait(store: Store, number: int) -> bool:
    private: Any = store
    waiting = private._wakes._waiting
    return sum(map(len, waiting.values())) == number and not private._link._places._getters


def test_nothing_is_left_of_what_is_over(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            for name in "abc":
                await one.store.create(name, {"a": "1"})
                await one.store.begin(name, "x", b"will")
                await other.store.begin(name, "y", b"will")
                await one.store.append(name, "x", [b"1"], last=True)
                await other.store.tell(one.store.worker, b"1")
            tasks = [await following(one.store, "y") for _ in range(3)]
            for name in "abc":
                await one.store.delete(name)
            await asyncio.gather(*tasks, return_exceptions=True)
            await one.store.publish(b"1")
        with shared_redis.client() as client:
            left = {key.decode().removeprefix(prefix) for key in client.keys(prefix + "*") if client.ttl(key) < 0}
        assert left == {"clock", "bus"}

    run(main())


# Leases


@pytest.mark.long
def test_a_worker_that_is_killed_loses_nothing_that_was_stored(shared_redis: RedisServer, prefix: str) -> None:
    lease, count = 1.0, 200

    async def main() -> None:
        async with opened(shared_redis, prefix, lease=lease) as worker, process(shared_redis, prefix, lease) as child:
            await worker.store.create("s", {})
            assert child.stdin
            child.stdin.write(b"flood %d\n" % count)
            stored = Counter([await said(child) for _ in range(3 * count)])
            assert len(stored) == count
            tasks = [asyncio.ensure_future(collect(worker.store, str(stream))) for stream in range(count)]
            stored.update([await said(child) for _ in range(count)])
            child.kill()
            async with asyncio.timeout(lease * 2 + 5):  # Redis and this process share a busy machine
                found = await asyncio.gather(*tasks)
            while line := await said(child):
                stored[line] += 1
            for stream, events in enumerate(found):
                assert len(events) > stored[str(stream)]
                data = [b"%d" % number for number in range(1, len(events))]
                assert events == numbered(*data, b"will")
            with pytest.raises(Gone):
                await worker.store.append("s", "0", [b"late"])
            assert await collect(worker.store, "7", 1) == found[7][1:]

    run(main())


@pytest.mark.long
def test_a_worker_that_was_only_slow_finds_its_streams_ended(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix, lease=1.0) as worker, process(shared_redis, prefix, 1.0) as child:
            await worker.store.create("s", {})
            assert await ask(child, "begin", "a") == "done"
            assert await ask(child, "append", "a", "1") == "1"
            task = await following(worker.store, "a")
            child.send_signal(signal.SIGSTOP)
            assert await task == numbered(b"1", b"will")
            child.send_signal(signal.SIGCONT)
            assert await ask(child, "append", "a", "2") == "gone"
            assert await collect(worker.store, "a") == numbered(b"1", b"will")
            assert await ask(child, "begin", "b") == "done"
            task = await following(worker.store, "b")
            assert await ask(child, "append", "b", "1") == "1"
            assert await ask(child, "close") == "done"
            assert await task == numbered(b"1", b"will")

    run(main())


def test_the_will_of_a_dead_worker_is_found_by_who_comes_later(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as worker:
            await worker.store.create("s", {})
            dead = RedisStore(shared_redis.url, prefix=prefix)
            await dead.open(worker.hear)
            await dead.begin("s", "a", b"will")
            await dead.append("s", "a", [b"1"])
            expire_lease(shared_redis, prefix, dead.worker)
            assert await collect(worker.store, "a") == numbered(b"1", b"will")
            with pytest.raises(Gone):
                await dead.append("s", "a", [b"2"])
            await dead.close()

    run(main())


def expire_lease(server: RedisServer, prefix: str, worker: str) -> None:
    """As if a worker had been silent for long, while others were not."""
    with server.client() as client:
        client.zadd(prefix + "workers", {worker: 1})
        client.delete(prefix + "grace")


def test_followers_of_the_worker_that_closes_get_its_wills_too(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as other, opened(shared_redis, prefix) as one:
            await one.store.create("s", {})
            await one.store.begin("s", "a", b"will")
            await other.store.begin("s", "b", b"will")
            mine, others = await following(one.store, "a"), await following(one.store, "b")
            await until(lambda: asyncio.sleep(0, all_wait(one.store, 2)))
            await one.store.close()
            assert await mine == numbered(b"will")
            with pytest.raises(ConnectionError):
                await others
            with pytest.raises(ConnectionError):
                await one.store.load("s")

    run(main())


def test_a_follower_can_be_cancelled_at_any_moment(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as worker:
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            for turns in range(30):
                task = asyncio.ensure_future(collect(worker.store, "a"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                done, _ = await asyncio.wait((task,), timeout=5)
                assert done
            assert not cast(Any, worker.store)._wakes._waiting

    run(main())


def test_what_a_dead_worker_is_told_is_dropped(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as one:
            async with opened(shared_redis, prefix) as other:
                pass
            await one.store.tell(other.store.worker, b"1")
            with shared_redis.client() as client:
                assert client.exists(f"{prefix}inbox:{other.store.worker}") == 0

    run(main())


# Connections that die


@pytest.mark.long
def test_nothing_is_lost_or_doubled_where_connections_die(shared_redis: RedisServer, prefix: str) -> None:
    number = 400

    def kill(is_due: bool) -> None:
        with shared_redis.client() as client:
            if is_due:
                client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            await one.store.create("s", {})
            await one.store.begin("s", "a", b"will")
            task = await following(other.store, "a")
            for at in range(1, number + 1):
                killing = asyncio.ensure_future(asyncio.to_thread(kill, at % 4 == 0))
                news = b"%d" % at
                await (one.store.publish(news) if at % 2 else one.store.tell(other.store.worker, news))
                assert await one.store.append("s", "a", [news]) == at
                await killing
            await one.store.append("s", "a", [], last=True)
            whole = [b"%d" % at for at in range(1, number + 1)]
            assert await task == numbered(*whole)
            assert [(await other.news.get())[1] for _ in whole] == whole
            assert [(await one.news.get())[1] for _ in whole[::2]] == whole[::2]
            assert one.news.empty()
            assert other.news.empty()

    run(main())


def test_a_command_that_is_sent_again_is_not_done_again(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as worker:
            link = cast(Any, worker.store)._link
            evaluate = link._client.evalsha

            async def twice(*args: Any) -> Any:
                first = await evaluate(*args)
                again = await evaluate(*args)
                assert again == first or args[0] in (scripts.BEAT.digest, scripts.BURY.digest)
                return first

            link._client.evalsha = twice
            await worker.store.create("s", {})
            await worker.store.begin("s", "a", b"will")
            assert await worker.store.append("s", "a", [b"1"]) == 1
            assert await worker.store.append("s", "a", [b"2"], last=True) == 2
            assert await collect(worker.store, "a") == numbered(b"1", b"2")
            number = await worker.store.publish(b"1")
            await worker.store.tell(worker.store.worker, b"2")
            assert await worker.store.delete("s")
            assert not await worker.store.delete("s")
            await worker.store.tell(worker.store.worker, b"3")
            heard = [await worker.news.get() for _ in range(3)]
            assert heard == [(number, b"1"), (None, b"2"), (None, b"3")]

    run(main())


@pytest.mark.long
@pytest.mark.parametrize("is_saved", [True, False])
def test_when_redis_comes_back_everything_goes_on(
    prefix: str, is_saved: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(server: RedisServer) -> None:
        async with opened(server, prefix, lease=1.0) as one, opened(server, prefix, lease=1.0) as other:
            await one.store.create("s", {})
            await one.store.begin("s", "a", b"will")
            await one.store.append("s", "a", [b"1"])
            early = await one.store.publish(b"early")
            follower = aiter(other.store.follow("s", "a", 0))
            assert await anext(follower) == numbered(b"1")
            rest = asyncio.ensure_future(drained(follower))
            for worker in (one, other):
                assert await worker.news.get() == (early, b"early")
            if is_saved:
                server.save()
            server.stop()
            for operation in (one.store.load("s"), one.store.publish(b"lost"), collect(one.store, "a")):
                with pytest.raises(ConnectionError):
                    await operation
            await asyncio.sleep(1.2)  # longer than the lease: nobody is dead for that
            server.start()
            late = await published(one.store, b"late")
            assert late > early
            for worker in (one, other):
                assert await worker.news.get() == (late, b"late")
            if is_saved:
                assert await one.store.published(early) == [Event(late, b"late")]
                assert await one.store.append("s", "a", [b"2"], last=True) == 2
                assert await rest == [Event(2, b"2")]
            else:
                assert await one.store.published(early) is None
                assert await one.store.load("s") is None
                with pytest.raises(Gone):
                    await rest

    with redis_server() as server, caplog.at_level(logging.WARNING, "typedmcp"):
        run(main(server))
    assert {record.name for record in caplog.records} == {"typedmcp"}
    assert len(caplog.records) <= 8  # once each time, not once each attempt


async def drained(follower: AsyncIterator[Sequence[Event]]) -> list[Event]:
    return [event async for events in follower for event in events]


async def published(store: Store, news: bytes) -> int:
    """Publish as soon as Redis is there."""
    while True:
        try:
            return await store.publish(news)
        except ConnectionError:
            await asyncio.sleep(0.02)


def test_a_store_that_cannot_be_reached_says_so() -> None:
    async def main() -> None:
        store = RedisStore("redis://127.0.0.1:1", prefix="x:")
        with pytest.raises(ConnectionError):
            await store.open(lambda number, news: None)
        await store.close()

    run(main())


def test_a_redis_that_hangs_is_not_waited_for(prefix: str) -> None:
    async def main(server: RedisServer) -> None:
        async with opened(server, prefix, timeout=0.3) as worker:
            await worker.store.create("s", {})
            with server.paused():
                with pytest.raises(ConnectionError):
                    await worker.store.load("s")
                loads = [worker.store.load("s") for _ in range(50)]
                answers = await asyncio.gather(*loads, return_exceptions=True)
                assert {type(answer) for answer in answers} == {ConnectionError}
            assert await worker.store.load("s") == {}

    with redis_server() as server:
        run(main(server))


# News


def test_news_that_are_read_in_pieces_keep_their_order(
    shared_redis: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typedmcp.state.redis._BATCH", 3)

    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            async with held_up(other):
                for number in range(40):
                    told = number % 7 > 2
                    news = b"%d" % number
                    await (one.store.tell(other.store.worker, news) if told else one.store.publish(news))
            assert await heard(other, 40) == [b"%d" % number for number in range(40)]

    run(main())


@asynccontextmanager
async def held_up(worker: Worker) -> AsyncGenerator[None]:
    """Have a worker read no news for a while."""
    link = cast(Any, worker.store)._link
    read, gate, is_held = link.read, asyncio.Event(), asyncio.Event()

    async def wait(*args: Any) -> Any:
        is_held.set()
        await gate.wait()
        return await read(*args)

    link.read = wait
    await worker.store.tell(worker.store.worker, b"nudge")  # ends the reading that is under way, if one is
    await is_held.wait()
    yield
    gate.set()


async def heard(worker: Worker, number: int) -> list[bytes]:
    """So many news."""
    found: list[bytes] = []
    while len(found) < number:
        news = (await worker.news.get())[1]
        found += [news] * (news != b"nudge")
    return found


def test_news_that_were_dropped_unread_are_logged(
    shared_redis: RedisServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix, backlog=2) as one, opened(shared_redis, prefix, backlog=2) as other:
            await one.store.publish(b"0")
            assert await heard(other, 1) == [b"0"]
            async with held_up(other):
                for number in range(1, 7):
                    await one.store.publish(b"%d" % number)
            assert await heard(other, 2) == [b"5", b"6"]

    with caplog.at_level(logging.WARNING, "typedmcp"):
        run(main())
    assert "were dropped before this worker could read them" in caplog.text


# Both stores alike


class MemoryAndRedis(Alike):
    """A store in memory and one in Redis."""

    server: RedisServer

    def stores(self) -> tuple[Store, Store]:
        self.prefix = f"{secrets.token_hex(4)}:"
        return MemoryStore(clock=self.clock, **LIMITS), RedisStore(self.server.url, prefix=self.prefix, **LIMITS)

    def age(self, seconds: float) -> None:
        super().age(seconds)
        self.server.let_pass(self.prefix, seconds)


def test_both_stores_answer_alike(shared_redis: RedisServer) -> None:
    MemoryAndRedis.server = shared_redis
    check(MemoryAndRedis, 15)


@pytest.mark.long
def test_both_stores_answer_alike_for_long(shared_redis: RedisServer) -> None:
    MemoryAndRedis.server = shared_redis
    check(MemoryAndRedis, 200)
