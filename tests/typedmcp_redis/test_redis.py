"""The features of the store in Redis alone: leases, broken connections, other processes."""

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

from tests.cases import each
from tests.helpers import run
from tests.paths import ROOT
from tests.redis_server import RedisServer, redis_server, shared_redis
from tests.server.store.alike import LIMITS, StoresBehaveAlike, check
from tests.server.store.suite import Worker, collect, following, numbered
from typedmcp import MemoryStore, UsageError
from typedmcp.stores import Store, StoredEvent, StoreLimits, StreamNotFoundError
from typedmcp_redis import RedisStore
from typedmcp_redis import store_scripts as scripts

__all__ = ["shared_redis"]


@pytest.fixture
def prefix() -> str:
    return f"{secrets.token_hex(4)}:"


@asynccontextmanager
async def opened(server: RedisServer, prefix: str, **options: Any) -> AsyncGenerator[Worker]:
    """Open a worker."""
    worker = Worker(RedisStore(server.url, prefix=prefix, **options))
    await worker.store.open(worker.on_message)
    try:
        yield worker
    finally:
        await worker.store.close()


@asynccontextmanager
async def process(server: RedisServer, prefix: str, lease: float) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run a worker in a process of its own."""
    command = (sys.executable, "-m", "tests.typedmcp_redis.store_worker", server.url, prefix, str(lease))
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


async def command(child: asyncio.subprocess.Process, *words: str) -> str:
    """Send a command to a process, and return its answer."""
    assert child.stdin
    child.stdin.write(" ".join(words).encode() + b"\n")
    return await said(child)


async def until(is_so: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    """Poll until a condition holds."""
    while not await is_so():
        await asyncio.sleep(0.02)


def calls(server: RedisServer, command: str = "evalsha") -> int:
    """Return the number of commands that Redis has run."""
    with server.client() as client:
        stats = client.info("commandstats")
        return int(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"])


# Construction


def test_an_unsuitable_client_is_rejected() -> None:
    library: Any = import_module("redis.asyncio")
    with pytest.raises(UsageError, match="decode_responses"):
        RedisStore(library.Redis(decode_responses=True))
    with pytest.raises(UsageError, match="RedisCluster"):
        RedisStore(library.RedisCluster.__new__(library.RedisCluster))


@each("name", ["lease", "connections", "timeout"])
def test_options_must_be_positive(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} must be positive"):
        RedisStore(**cast(Any, {name: 0}))


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_given_client_is_used_and_stays_open(shared_redis: RedisServer, prefix: str, protocol: int) -> None:
    async def main() -> None:
        client: Any = import_module("redis.asyncio").Redis.from_url(shared_redis.url, protocol=protocol)
        worker = Worker(RedisStore(client, prefix=prefix))
        await worker.store.open(worker.on_message)
        await worker.store.publish(b"1")
        await worker.store.send(worker.store.worker, b"2")
        assert [(await worker.messages.get())[1] for _ in range(2)] == [b"1", b"2"]
        await worker.store.create_session("s", {"a": "1"})
        assert await worker.store.load_session("s") == {"a": "1"}
        await worker.store.close()
        assert await client.ping()
        await client.aclose()

    run(main())


def test_a_worker_may_be_closed_as_soon_as_it_is_open(shared_redis: RedisServer, prefix: str) -> None:
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
                store.create_session("s", {"a": "1"}),
                store.load_session("s"),
                store.update_session("s", {"a": "2", "b": None}),
                store.create_stream("s", "a", b"final_event"),
                store.append_events("s", "a", [b"1", b"2"]),
                first(store.follow_stream("s", "a", 0)),
                store.append_events("s", "a", [b"3"], last=True),
                store.messages_after(0),
                store.publish(b"message"),
                store.send(worker.store.worker, b"message"),
                store.delete_session("s"),
            ]
            for warm_up in ("warm", "s"):
                await store.delete_session(warm_up)
            for operation in operations:
                before = calls(shared_redis), calls(shared_redis, "eval")
                await operation
                after = calls(shared_redis), calls(shared_redis, "eval")
                assert after[0] - before[0] == 1, operation
                assert after[1] - before[1] <= 1, operation  # a script that Redis does not know yet is sent once

    run(main())


async def first(events: AsyncIterator[Sequence[StoredEvent]]) -> Sequence[StoredEvent]:
    return await anext(aiter(events))


def test_a_thousand_followers_need_few_connections(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            await one.store.create_session("s", {})
            for stream in range(100):
                await one.store.create_stream("s", str(stream), b"final_event")
            tasks = [asyncio.ensure_future(collect(other.store, str(at % 100))) for at in range(1000)]
            await until(lambda: asyncio.sleep(0, all_are_waiting(other.store, 1000)))
            for stream in range(100):
                await one.store.append_events("s", str(stream), [b"1"], last=stream % 2 == 0)
            await asyncio.gather(
                *(one.store.append_events("s", str(stream), [], last=True) for stream in range(1, 100, 2))
            )
            assert all([await task == numbered(b"1") for task in tasks])
            with shared_redis.client() as client:
                assert len(client.client_list()) <= 2 * 10 + 2

    run(main())


def all_are_waiting(store: Store, number: int) -> bool:
    private: Any = store
    waiting = private._followers._waiting
    return sum(map(len, waiting.values())) == number and not private._link._slots._getters


def test_ended_sessions_and_streams_leave_no_keys_behind(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            for name in "abc":
                await one.store.create_session(name, {"a": "1"})
                await one.store.create_stream(name, "x", b"final_event")
                await other.store.create_stream(name, "y", b"final_event")
                await one.store.append_events(name, "x", [b"1"], last=True)
                await other.store.send(one.store.worker, b"1")
            tasks = [await following(one.store, "y") for _ in range(3)]
            for name in "abc":
                await one.store.delete_session(name)
            await asyncio.gather(*tasks, return_exceptions=True)
            await one.store.publish(b"1")
        with shared_redis.client() as client:
            left = {key.decode().removeprefix(prefix) for key in client.keys(prefix + "*") if client.ttl(key) < 0}
        assert left == {"clock", "bus"}

    run(main())


# Work


def commands(server: RedisServer) -> int:
    """Return the number of commands that Redis has run, in scripts and outside."""
    with server.client() as client:
        stats = client.info("commandstats")
        stats.pop("cmdstat_xread", None)  # it waits for messages
        return sum(int(each["calls"]) for each in stats.values())


def test_the_work_of_a_session_does_not_grow_with_its_subscriptions_and_streams(prefix: str) -> None:
    async def main(server: RedisServer) -> None:
        async with opened(server, prefix, lease=60) as worker:  # it renews its lease only at the start
            store = worker.store

            async def cost(operation: Awaitable[object]) -> int:
                before = commands(server)
                await operation
                return commands(server) - before

            async def costs(name: str) -> list[int]:
                return [await cost(store.load_session("s")), await cost(store.subscribe("s", name, 1000))]

            await store.create_session("s", {"a": "1"})
            await costs("the first, which loads the scripts")
            few = await costs("few")
            for number in range(100):
                await store.subscribe("s", f"a:{number}", 1000)
                await store.create_stream("s", f"{number}", b"final_event")
            assert await costs("many") == few

    with redis_server() as server:
        run(main(server))


# Leases


@pytest.mark.long
def test_stored_events_survive_the_worker_that_wrote_them(shared_redis: RedisServer, prefix: str) -> None:
    lease, count = 1.0, 200

    async def main() -> None:
        async with opened(shared_redis, prefix, lease=lease) as worker, process(shared_redis, prefix, lease) as child:
            await worker.store.create_session("s", {})
            assert child.stdin
            child.stdin.write(b"flood %d\n" % count)
            stored = Counter([await said(child) for _ in range(3 * count)])
            assert len(stored) == count
            tasks = [asyncio.ensure_future(collect(worker.store, str(stream))) for stream in range(count)]
            stored.update([await said(child) for _ in range(count)])
            child.kill()
            async with asyncio.timeout(lease * 2 + 5):  # Redis and this process may share a busy machine
                found = await asyncio.gather(*tasks)
            while line := await said(child):
                stored[line] += 1
            for stream, events in enumerate(found):
                assert len(events) > stored[str(stream)]
                data = [b"%d" % number for number in range(1, len(events))]
                assert events == numbered(*data, b"final_event")
            with pytest.raises(StreamNotFoundError):
                await worker.store.append_events("s", "0", [b"late"])
            assert await collect(worker.store, "7", 1) == found[7][1:]

    run(main())


@pytest.mark.long
def test_a_slow_worker_that_counted_as_dead_finds_its_streams_ended(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix, lease=1.0) as worker, process(shared_redis, prefix, 1.0) as child:
            await worker.store.create_session("s", {})
            assert await command(child, "begin", "a") == "done"
            assert await command(child, "append", "a", "1") == "1"
            task = await following(worker.store, "a")
            child.send_signal(signal.SIGSTOP)
            assert await task == numbered(b"1", b"final_event")
            child.send_signal(signal.SIGCONT)
            assert await command(child, "append", "a", "2") == "gone"
            assert await collect(worker.store, "a") == numbered(b"1", b"final_event")
            assert await command(child, "begin", "b") == "done"
            task = await following(worker.store, "b")
            assert await command(child, "append", "b", "1") == "1"
            assert await command(child, "close") == "done"
            assert await task == numbered(b"1", b"final_event")

    run(main())


def test_a_later_follower_gets_the_final_event_of_a_dead_worker(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as worker:
            await worker.store.create_session("s", {})
            dead = RedisStore(shared_redis.url, prefix=prefix)
            await dead.open(worker.on_message)
            await dead.create_stream("s", "a", b"final_event")
            await dead.append_events("s", "a", [b"1"])
            expire_lease(shared_redis, prefix, dead.worker)
            assert await collect(worker.store, "a") == numbered(b"1", b"final_event")
            with pytest.raises(StreamNotFoundError):
                await dead.append_events("s", "a", [b"2"])
            await dead.close()

    run(main())


def expire_lease(server: RedisServer, prefix: str, worker: str) -> None:
    """Expire the lease of one worker, as if it alone had been silent."""
    with server.client() as client:
        client.zadd(prefix + "workers", {worker: 1})
        client.delete(prefix + "grace")


def test_followers_on_a_closing_worker_get_the_final_events(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as other, opened(shared_redis, prefix) as one:
            await one.store.create_session("s", {})
            await one.store.create_stream("s", "a", b"final_event")
            await other.store.create_stream("s", "b", b"final_event")
            mine, others = await following(one.store, "a"), await following(one.store, "b")
            await until(lambda: asyncio.sleep(0, all_are_waiting(one.store, 2)))
            await one.store.close()
            assert await mine == numbered(b"final_event")
            with pytest.raises(ConnectionError):
                await others
            with pytest.raises(ConnectionError):
                await one.store.load_session("s")

    run(main())


def test_a_follower_can_be_cancelled_at_any_moment(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as worker:
            await worker.store.create_session("s", {})
            await worker.store.create_stream("s", "a", b"final_event")
            for turns in range(30):
                task = asyncio.ensure_future(collect(worker.store, "a"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                done, _ = await asyncio.wait((task,), timeout=60)
                assert done
            assert not cast(Any, worker.store)._followers._waiting

    run(main())


def test_a_message_to_a_dead_worker_is_dropped(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as one:
            async with opened(shared_redis, prefix) as other:
                pass
            await one.store.send(other.store.worker, b"1")
            with shared_redis.client() as client:
                assert client.exists(f"{prefix}inbox:{other.store.worker}") == 0

    run(main())


# Broken connections


@pytest.mark.long
def test_nothing_is_lost_or_repeated_when_connections_break(shared_redis: RedisServer, prefix: str) -> None:
    number = 400

    def kill(is_due: bool) -> None:
        with shared_redis.client() as client:
            if is_due:
                client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            await one.store.create_session("s", {})
            await one.store.create_stream("s", "a", b"final_event")
            task = await following(other.store, "a")
            for at in range(1, number + 1):
                killing = asyncio.ensure_future(asyncio.to_thread(kill, at % 4 == 0))
                message = b"%d" % at
                await (one.store.publish(message) if at % 2 else one.store.send(other.store.worker, message))
                assert await one.store.append_events("s", "a", [message]) == at
                await killing
            await one.store.append_events("s", "a", [], last=True)
            whole = [b"%d" % at for at in range(1, number + 1)]
            assert await task == numbered(*whole)
            assert [(await other.messages.get())[1] for _ in whole] == whole
            assert [(await one.messages.get())[1] for _ in whole[::2]] == whole[::2]
            assert one.messages.empty()
            assert other.messages.empty()

    run(main())


def test_a_repeated_command_has_no_second_effect(shared_redis: RedisServer, prefix: str) -> None:
    async def main() -> None:
        async with opened(shared_redis, prefix) as worker:
            link = cast(Any, worker.store)._link
            evaluate = link._client.evalsha

            async def twice(*args: Any) -> Any:
                first = await evaluate(*args)
                again = await evaluate(*args)
                assert again == first or args[0] in (scripts.RENEW_LEASE.digest, scripts.END_STREAMS.digest)
                return first

            link._client.evalsha = twice
            await worker.store.create_session("s", {})
            await worker.store.create_stream("s", "a", b"final_event")
            assert await worker.store.append_events("s", "a", [b"1"]) == 1
            assert await worker.store.append_events("s", "a", [b"2"], last=True) == 2
            assert await collect(worker.store, "a") == numbered(b"1", b"2")
            number = await worker.store.publish(b"1")
            await worker.store.send(worker.store.worker, b"2")
            assert await worker.store.delete_session("s")
            assert not await worker.store.delete_session("s")
            await worker.store.send(worker.store.worker, b"3")
            received = [await worker.messages.get() for _ in range(3)]
            assert received == [(number, b"1"), (None, b"2"), (None, b"3")]

    run(main())


@pytest.mark.long
@pytest.mark.parametrize("is_saved", [True, False])
def test_everything_continues_when_redis_comes_back(
    prefix: str, is_saved: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(server: RedisServer) -> None:
        async with opened(server, prefix, lease=1.0) as one, opened(server, prefix, lease=1.0) as other:
            await one.store.create_session("s", {})
            await one.store.create_stream("s", "a", b"final_event")
            await one.store.append_events("s", "a", [b"1"])
            early = await one.store.publish(b"early")
            follower = aiter(other.store.follow_stream("s", "a", 0))
            assert await anext(follower) == numbered(b"1")
            rest = asyncio.ensure_future(drained(follower))
            for worker in (one, other):
                assert await worker.messages.get() == (early, b"early")
            if is_saved:
                server.save()
            server.stop()
            for operation in (one.store.load_session("s"), one.store.publish(b"lost"), collect(one.store, "a")):
                with pytest.raises(ConnectionError):
                    await operation
            await asyncio.sleep(1.2)  # longer than the lease, but no worker counts as dead for it
            server.start()
            late = await published(one.store, b"late")
            assert late > early
            for worker in (one, other):
                assert await worker.messages.get() == (late, b"late")
            if is_saved:
                assert await one.store.messages_after(early) == [StoredEvent(late, b"late")]
                assert await one.store.append_events("s", "a", [b"2"], last=True) == 2
                assert await rest == [StoredEvent(2, b"2")]
            else:
                assert await one.store.messages_after(early) is None
                assert await one.store.load_session("s") is None
                with pytest.raises(StreamNotFoundError):
                    await rest

    with redis_server() as server, caplog.at_level(logging.WARNING, "typedmcp"):
        run(main(server))
    assert {record.name for record in caplog.records} == {"typedmcp"}
    assert len(caplog.records) <= 8  # once for each outage, not for each attempt


async def drained(follower: AsyncIterator[Sequence[StoredEvent]]) -> list[StoredEvent]:
    return [event async for events in follower for event in events]


async def published(store: Store, message: bytes) -> int:
    """Publish a message as soon as Redis can be reached."""
    while True:
        try:
            return await store.publish(message)
        except ConnectionError:
            await asyncio.sleep(0.02)


def test_an_unreachable_store_raises_a_connection_error() -> None:
    async def main() -> None:
        store = RedisStore("redis://127.0.0.1:1", prefix="x:")
        with pytest.raises(ConnectionError):
            await store.open(lambda number, message: None)
        await store.close()

    run(main())


def test_an_operation_times_out_if_redis_hangs(prefix: str) -> None:
    async def main(server: RedisServer) -> None:
        async with opened(server, prefix, timeout=1) as worker:
            await worker.store.create_session("s", {})
            with server.paused():
                with pytest.raises(ConnectionError):
                    await worker.store.load_session("s")
                loads = [worker.store.load_session("s") for _ in range(50)]
                answers = await asyncio.gather(*loads, return_exceptions=True)
                assert {type(answer) for answer in answers} == {ConnectionError}
            assert await worker.store.load_session("s") == {}

    with redis_server() as server:
        run(main(server))


# Messages


def test_messages_keep_their_order_if_they_are_read_in_batches(
    shared_redis: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("store", "link"):
        monkeypatch.setattr(f"typedmcp_redis.{module}.READ_BATCH", 3)

    async def main() -> None:
        async with opened(shared_redis, prefix) as one, opened(shared_redis, prefix) as other:
            async with reading_paused(other):
                for number in range(40):
                    is_direct = number % 7 > 2
                    message = b"%d" % number
                    await (one.store.send(other.store.worker, message) if is_direct else one.store.publish(message))
            assert await wait_for_messages(other, 40) == [b"%d" % number for number in range(40)]

    run(main())


@asynccontextmanager
async def reading_paused(worker: Worker) -> AsyncGenerator[None]:
    """Keep a worker from reading messages for a while."""
    link = cast(Any, worker.store)._link
    read, gate, is_held = link.read, asyncio.Event(), asyncio.Event()

    async def wait(*args: Any) -> Any:
        is_held.set()
        await gate.wait()
        return await read(*args)

    link.read = wait
    await worker.store.send(worker.store.worker, b"nudge")  # ends a read that is under way
    await is_held.wait()
    yield
    gate.set()


async def wait_for_messages(worker: Worker, number: int) -> list[bytes]:
    """Wait for this many messages."""
    found: list[bytes] = []
    while len(found) < number:
        message = (await worker.messages.get())[1]
        found += [message] * (message != b"nudge")
    return found


def test_messages_that_were_dropped_unread_are_logged(
    shared_redis: RedisServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        limits = StoreLimits(backlog=2)
        async with (
            opened(shared_redis, prefix, limits=limits) as one,
            opened(shared_redis, prefix, limits=limits) as other,
        ):
            await one.store.publish(b"0")
            assert await wait_for_messages(other, 1) == [b"0"]
            async with reading_paused(other):
                for number in range(1, 7):
                    await one.store.publish(b"%d" % number)
            assert await wait_for_messages(other, 2) == [b"5", b"6"]

    with caplog.at_level(logging.WARNING, "typedmcp"):
        run(main())
    assert "were dropped before this worker could read them" in caplog.text


# Both stores


class MemoryAndRedisBehaveAlike(StoresBehaveAlike):
    """A store in memory, and one in Redis."""

    server: RedisServer

    def stores(self) -> tuple[Store, Store]:
        self.prefix = f"{secrets.token_hex(4)}:"
        limits = StoreLimits(**LIMITS)
        return (
            MemoryStore(limits=limits, clock=self.clock),
            RedisStore(self.server.url, prefix=self.prefix, limits=limits),
        )

    def age(self, seconds: float) -> None:
        super().age(seconds)
        self.server.advance(self.prefix, seconds)


def test_both_stores_behave_alike(shared_redis: RedisServer) -> None:
    MemoryAndRedisBehaveAlike.server = shared_redis
    check(MemoryAndRedisBehaveAlike, 6)


@pytest.mark.long
def test_both_stores_behave_alike_in_long_runs(shared_redis: RedisServer) -> None:
    MemoryAndRedisBehaveAlike.server = shared_redis
    check(MemoryAndRedisBehaveAlike, 200)
