"""Several workers that share a store in Redis: each of them can serve every request of a session."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from importlib import import_module
from typing import Any

import pytest

import typedmcp
import typedmcp_redis
from tests.listening import Listening, listening
from tests.nginx import nginx
from tests.paths import ROOT
from tests.ports import reserved_port
from tests.redis_server import RedisServer, redis_server, shared_redis
from tests.server.http.asgi_driver import Served, SessionClient, in_loop, make_served, messages, serving

__all__ = ["shared_redis"]

KEY = b"a key of all workers"
WORKER = ROOT / "tests" / "servers" / "worker.py"


@asynccontextmanager
async def workers(redis: RedisServer, **options: Any) -> AsyncGenerator[tuple[Served, Served]]:
    """Open two workers."""
    prefix = f"{secrets.token_hex(4)}:"

    def own_options() -> dict[str, Any]:
        return {
            "store": typedmcp_redis.RedisStore(redis.url, prefix=prefix),
            "state_signer": typedmcp.StateSigner(KEY),
            **options,
        }

    async with serving(**own_options()) as one, serving(**own_options()) as other:
        yield one, other
        one.handler.go.set()
        for opened in one.opened:
            opened.disconnect()
        await asyncio.wait([asyncio.ensure_future(opened.done()) for opened in one.opened])


def on(worker: Served, session: SessionClient) -> SessionClient:
    """Return the same session on another worker."""
    return SessionClient(worker, session.revision, session.id, None)


def test_a_session_is_used_and_ended_on_any_worker(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session(ready=False)
            assert (await on(other, session).notify("notifications/initialized")).status == 202
            for worker in (one, other):
                assert (await on(worker, session).call("echo", {"text": "hello"}).reply()).text == "hello"
            assert (await on(other, session).delete()).status == 204
            for worker in (one, other):
                assert (await on(worker, session).call("echo").reply()).status == 404

    main()


def test_a_session_is_used_on_any_worker_before_initialized(shared_redis: RedisServer) -> None:
    """Clients send the notification, the GET and the first request at once, and each may reach another worker."""

    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            for number in range(20):
                session = await one.session(ready=False)
                elsewhere = on(other, session)
                notified = asyncio.ensure_future(session.notify("notifications/initialized"))
                stream, call = elsewhere.get(), elsewhere.call("echo", {"text": f"{number}"})
                assert await stream.head() == 200
                assert (await call.reply()).text == f"{number}"
                assert (await notified).status == 202
                one.app.config.changes.tools_changed()
                assert (await stream.next_message())["method"] == "notifications/tools/list_changed"
                stream.disconnect()
                await stream.done()

    main()


def test_a_damaged_session_is_not_found(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with serving(
            store=typedmcp_redis.RedisStore(shared_redis.url, prefix="damaged:"), state_signer=typedmcp.StateSigner(KEY)
        ) as served:
            session = await served.session()
            with shared_redis.client() as client:
                client.hset(f"damaged:session:{session.id}", "client", b"\xff")
            assert (await session.call("echo").reply()).status == 404
            assert served.kinds == ["invalid data"]

    main()


def test_the_subscriptions_of_a_session_apply_on_all_workers(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session()
            listener = await session.listening()
            for uri in ("a:1", "a:2"):
                assert (await on(other, session).ask("resources/subscribe", {"uri": uri}).reply()).status == 200
            await on(other, session).ask("resources/unsubscribe", {"uri": "a:2"}).reply()
            await on(other, session).ask("logging/setLevel", {"level": "error"}).reply()
            for uri in ("a:2", "a:1"):
                await on(other, session).call("change", {"uri": uri}).reply()
            notification = await listener.next_message()
            assert (notification["method"], notification["params"]["uri"]) == ("notifications/resources/updated", "a:1")
            assert not (await session.call("log", {"level": "warning"}).reply()).is_stream
            assert (await session.call("log", {"level": "error"}).reply()).is_stream

    main()


def test_a_response_reaches_the_worker_that_sent_the_request(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session(capabilities={"roots": {}})
            call = session.call("roots")
            asked = await call.next_message()
            result = {"roots": [{"uri": "file:///a"}]}
            assert (await on(other, session).answer(asked["id"], result=result)).status == 202
            assert (await call.reply()).text == "file:///a"

    main()


def test_a_cancellation_reaches_the_worker_that_handles_the_call(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session()
            call = session.call("wait", id=7)
            await one.handler.entered.wait()
            assert (await on(other, session).notify("notifications/cancelled", {"requestId": 7})).status == 202
            await call.reply()
            assert one.handler.ended == ["cancelled"]

    main()


def test_the_end_of_a_session_reaches_the_worker_that_handles_a_call(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session()
            call, listener = session.call("wait"), await session.listening()
            await one.handler.entered.wait()
            await on(other, session).delete()
            await call.reply()
            await listener.reply()
            assert one.handler.ended == ["cancelled"]

    main()


def test_a_change_reaches_every_listener_on_every_worker_once(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            listeners: list[Any] = []
            for worker in (one, other):
                listeners.append(await (await worker.session()).listening())
                listeners.append(worker.listen(toolsListChanged=True))
                assert (await listeners[-1].next_message())["method"] == "notifications/subscriptions/acknowledged"
            await other.call("change").reply()
            for listener in listeners:
                assert (await listener.next_message())["method"] == "notifications/tools/list_changed"
            assert all(not listener.arrived() for listener in listeners)

    main()


def test_a_listener_that_reconnects_to_another_worker_misses_nothing(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session()
            listener = await session.listening()
            await on(other, session).call("change").reply()
            while not (event := await listener.event()).data:
                pass
            listener.disconnect()
            for uri in ("a:1", "a:2"):
                await session.ask("resources/subscribe", {"uri": uri}).reply()
                await session.call("change", {"uri": uri}).reply()
            again = await on(other, session).listening(event.id)
            assert [(await again.next_message())["params"]["uri"] for _ in range(2)] == ["a:1", "a:2"]

    main()


def test_a_standalone_stream_ends_when_it_is_opened_on_another_worker(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session()
            before = await session.listening()
            after = await on(other, session).listening()
            await before.reply()
            await session.call("change").reply()
            assert (await after.next_message())["method"] == "notifications/tools/list_changed"

    main()


def test_a_call_is_resumed_on_another_worker(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session()
            call = session.call("report_and_wait", meta={"progressToken": 1})
            first = await call.event()
            await call.next_message()
            resumed = on(other, session).get(first.id)
            assert [(await resumed.next_message())["params"]["progress"] for _ in range(2)] == [0, 1]
            one.handler.go.set()
            assert (await resumed.next_message())["result"]["content"][0]["text"] == "waited"
            assert (await resumed.reply()).status == 200

    main()


def test_request_state_of_one_worker_is_valid_on_another(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            meta: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
            params: dict[str, Any] = {"name": "name", "arguments": {}}
            asked = (await one.ask("tools/call", params, meta=meta).reply()).answer["result"]
            key = next(iter(asked["inputRequests"]))
            answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
            again = {**params, "inputResponses": answers, "requestState": asked["requestState"]}
            assert (await other.ask("tools/call", again, meta=meta).reply()).text == "accept {'name': 'Ada'}"

    main()


def test_a_state_for_single_use_is_used_once_on_all_workers(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis, state_signer=typedmcp.StateSigner(KEY, single_use=True)) as (one, other):
            meta: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
            params: dict[str, Any] = {"name": "name", "arguments": {}}
            asked = (await one.ask("tools/call", params, meta=meta).reply()).answer["result"]
            answers = {key: {"action": "decline"} for key in asked["inputRequests"]}
            again = {**params, "inputResponses": answers, "requestState": asked["requestState"]}
            assert (await other.ask("tools/call", again, meta=meta).reply()).text == "decline None"
            assert (await one.ask("tools/call", again, meta=meta).reply()).code == -32602

    main()


def test_without_redis_only_sessions_are_unavailable() -> None:
    @in_loop
    async def main() -> None:
        with redis_server() as redis:
            store = typedmcp_redis.RedisStore(redis.url, timeout=60)
            async with serving(store=store, state_signer=typedmcp.StateSigner(KEY)) as served:
                session = await served.session()
                redis.stop()
                reply = await session.call("echo").reply()
                assert (reply.status, reply.headers["retry-after"]) == (503, "10")
                assert (await served.call("echo", {"text": "here"}).reply()).text == "here"

    main()


def test_a_call_can_be_resumed_after_redis_was_unreachable() -> None:
    @in_loop
    async def main() -> None:
        with redis_server() as redis:
            store = typedmcp_redis.RedisStore(redis.url, timeout=0.5)
            async with serving(store=store, state_signer=typedmcp.StateSigner(KEY)) as served:
                session = await served.session()
                call = session.call("report_and_wait", meta={"progressToken": 1})
                first = await call.event()
                for _ in range(2):
                    await call.next_message()
                call.disconnect()
                with redis.paused():
                    served.handler.go.set()
                    await asyncio.sleep(1)  # longer than the timeout
                (*_, last) = messages(await session.get(first.id).rest())
                assert last["id"] == 1

    main()


def test_a_long_request_id_is_not_sent_to_other_workers(shared_redis: RedisServer) -> None:
    @in_loop
    async def main() -> None:
        async with workers(shared_redis) as (one, other):
            session = await one.session()
            number = one.app.state.last_number
            await on(other, session).notify("notifications/cancelled", {"requestId": "x" * 100_000})
            assert one.app.state.last_number == number

    main()


def test_a_worker_that_cannot_reach_redis_at_its_start_can_be_opened_later() -> None:
    @in_loop
    async def main() -> None:
        with redis_server() as redis:
            redis.stop()
            store = typedmcp_redis.RedisStore(redis.url, timeout=60)
            served = make_served(store=store, state_signer=typedmcp.StateSigner(KEY))
            assert (await served.call("echo").reply()).status == 503
            redis.start()
            assert (await served.call("echo").reply()).status == 200
            await served.app.close()

    main()


# Real processes behind a real load balancer


@contextmanager
def balanced(ports: list[int]) -> Generator[str]:
    """Run nginx in front of two workers, as in `docs/deploying.md`."""
    server = (ROOT / "examples" / "deploy" / "nginx.conf").read_text()
    with reserved_port() as front:
        for old, new in ((":8001", f":{ports[0]}"), (":8002", f":{ports[1]}"), (":8000", f":{front}")):
            assert old in server
            server = server.replace(old, new)
        with nginx(server, front):
            yield f"http://127.0.0.1:{front}/mcp"


@contextmanager
def two_worker_processes(redis: RedisServer, prefix: str, lease: float) -> Generator[list[Listening]]:
    environment = {"WORKER_REDIS": redis.url, "WORKER_PREFIX": prefix, "WORKER_LEASE": str(lease)}
    os.environ.update(environment)
    with ExitStack() as stack:
        yield [stack.enter_context(server_to_kill([sys.executable, str(WORKER)])) for _ in range(2)]


@contextmanager
def server_to_kill(command: list[str]) -> Generator[Listening]:
    """Run a server that the test may kill."""
    try:
        with listening(command) as server:
            yield server
    except RuntimeError as error:
        if "exited by itself with status -9" not in str(error):
            raise


CALLS, STEPS = 1000, 10


class Outcome:
    """The outcome of one call."""

    def __init__(self) -> None:
        self.progress: list[float] = []
        self.ended: list[str] = []


async def _call(client: typedmcp.Client, number: int, outcome: Outcome) -> None:
    arguments = {"number": number, "steps": STEPS, "pause": 0.8}
    try:
        result = await client.call_tool(
            "steps", arguments, on_progress=lambda progress: outcome.progress.append(progress.progress)
        )
    except typedmcp.CallLostError:
        outcome.ended.append("lost")
    else:
        assert not result.is_error
        outcome.ended.append("done")


async def _stored_steps(url: str, prefix: str) -> dict[int, list[int]]:
    """Return the stored steps of every call, by the call's number."""
    redis: Any = import_module("redis.asyncio").Redis.from_url(url)
    found: dict[int, list[int]] = {}
    async with redis:
        async for key in redis.scan_iter(f"{prefix}events:*"):
            for _, fields in await redis.xrange(key):
                for value in fields.values():
                    said: Any = json.loads(value) if value.startswith(b"{") else {}
                    if said.get("method") == "notifications/progress":
                        found.setdefault(int(said["params"]["message"]), []).append(int(said["params"]["progress"]))
    return found


def _ignore_broken_connections(_report: typedmcp.Diagnostic) -> None:
    """Ignore broken connections, which this test causes."""


@pytest.mark.long
def test_a_thousand_calls_end_properly_when_a_worker_is_killed(shared_redis: RedisServer) -> None:
    prefix = f"{secrets.token_hex(4)}:"

    async def main(url: str, victim: Listening) -> None:
        options: dict[str, Any] = {
            "revisions": ["2025-11-25"],
            "timeout": 60.0,
            "on_diagnostic": _ignore_broken_connections,
        }
        async with typedmcp.connect(url, **options) as client:
            outcomes = [Outcome() for _ in range(CALLS)]
            calls = [asyncio.ensure_future(_call(client, *each)) for each in enumerate(outcomes)]
            while not all(outcome.progress for outcome in outcomes):  # so that all of them can be resumed
                await asyncio.sleep(0.05)
            victim.process.kill()
            await asyncio.wait_for(asyncio.gather(*calls), 120)
            kept = await _stored_steps(shared_redis.url, prefix)
            assert (await client.call_tool("steps", {"number": -1, "steps": 1, "pause": 0.0})).is_error is not True
        ends = Counter(outcome.ended[0] for outcome in outcomes)
        assert set(ends) == {"done", "lost"}, ends
        for number, outcome in enumerate(outcomes):
            assert len(outcome.ended) == 1
            assert outcome.progress == list(range(1, len(outcome.progress) + 1)), (number, outcome.progress)
            stored = kept.get(number, [])
            assert outcome.progress[: len(stored)] == stored, number  # events that could not be stored were still sent
            assert outcome.ended == ["lost"] or len(outcome.progress) == STEPS

    with two_worker_processes(shared_redis, prefix, lease=2.0) as (one, other):
        ports = [int(worker.address.rpartition(":")[2]) for worker in (one, other)]
        with balanced(ports) as url:
            asyncio.run(main(url, one))
