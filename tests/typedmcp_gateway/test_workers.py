"""Gateways on several workers: an attempt that reaches another worker than its call is passed to that one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import typedmcp
import typedmcp_redis
from tests.cases import each
from tests.helpers import LEGACY, run
from tests.redis_server import RedisServer, shared_redis
from tests.serving import serving_http
from typedmcp.dialect import methods, structs
from typedmcp_gateway import Gateway
from typedmcp_gateway import workers as workers_module

__all__ = ["shared_redis"]

KEY = b"a key of all workers"
TOKENS = {"a-token-of-ada-1234": typedmcp.Principal("ada"), "a-token-of-eve-1234": typedmcp.Principal("eve")}


@dataclass
class Answer:
    text: str


class LegacyServer:
    """A server on a revision with sessions, whose tools ask."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.entered = asyncio.Event()
        server = typedmcp.Server("asks")

        @server.tool
        async def ask(ctx: typedmcp.Context, count: int = 1, size: int = 1) -> str:
            texts = [(await ctx.elicit(f"question {number}", Answer)).data for number in range(count)]
            return " ".join(answer.text for answer in texts if answer) * size

        @server.tool
        async def fail(ctx: typedmcp.Context) -> str:
            await ctx.elicit("question", Answer)
            raise typedmcp.RemoteError(-32000, "not today", {"until": "tomorrow"})

        @server.tool
        async def wait(ctx: typedmcp.Context) -> None:
            await ctx.elicit("question", Answer)
            self.entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.append("wait")

        self.config = typedmcp.ServerConfig(server, revisions=[LEGACY[0]])


@asynccontextmanager
async def worker(redis: RedisServer, prefix: str, server: LegacyServer, **options: Any) -> AsyncGenerator[str]:
    """Serve a gateway on a worker, and yield its address."""
    app = typedmcp.asgi(
        Gateway(server.config),
        store=typedmcp_redis.RedisStore(redis.url, prefix=prefix),
        state_signer=typedmcp.StateSigner(KEY),
        grace=0.1,
        **options,
    )
    async with serving_http(app) as url:
        yield f"{url}/mcp"


@asynccontextmanager
async def two_workers(
    redis: RedisServer, server: LegacyServer, **options: Any
) -> AsyncGenerator[tuple[typedmcp.Client, typedmcp.Client]]:
    """Yield a client of each of two workers."""
    prefix = f"{secrets.token_hex(4)}:"
    given: dict[str, Any] = {"elicit": decline}
    async with (
        worker(redis, prefix, server, **options) as first,
        worker(redis, prefix, server, **options) as second,
        typedmcp.connect(first, **given) as one,
        typedmcp.connect(second, **given) as other,
    ):
        yield one, other


def decline(_params: Any) -> None:
    """Declare that the client can be asked. The tests answer by hand."""


async def begin(client: typedmcp.Client, name: str, **arguments: Any) -> structs.InputRequiredResult:
    """Make the first attempt of a call."""
    result: Any = await client.send(methods.TOOLS_CALL, {"name": name, "arguments": arguments}, rounds=0)
    assert isinstance(result, structs.InputRequiredResult)
    return result


async def go_on(
    client: typedmcp.Client, asked: structs.InputRequiredResult, name: str, text: str = "", **arguments: Any
) -> Any:
    """Make another attempt, with an answer to each question."""
    answers = {key: {"action": "accept", "content": {"text": text}} for key in asked.input_requests or {}}
    params = {
        "name": name,
        "arguments": arguments,
        "requestState": asked.request_state,
        "inputResponses": answers,
    }
    return await client.send(methods.TOOLS_CALL, params, rounds=0)


def test_a_call_goes_on_at_any_worker(shared_redis: RedisServer) -> None:
    async def main() -> None:
        server = LegacyServer()
        async with two_workers(shared_redis, server) as (one, other):
            first = await begin(one, "ask", count=3)
            second = await go_on(other, first, "ask", "a", count=3)
            questions: list[Any] = [*second.input_requests.values()]
            assert [question.params.message for question in questions] == ["question 1"]
            third = await go_on(one, second, "ask", "b", count=3)
            assert typedmcp.text_of(await go_on(other, third, "ask", "c", count=3)) == "a b c"

    run(main())


def test_an_error_of_the_call_comes_back(shared_redis: RedisServer) -> None:
    async def main() -> None:
        async with two_workers(shared_redis, LegacyServer()) as (one, other):
            asked = await begin(one, "fail")
            with pytest.raises(typedmcp.RemoteError, match="not today") as caught:
                await go_on(other, asked, "fail")
            assert (caught.value.code, caught.value.data) == (-32000, {"until": "tomorrow"})
            with pytest.raises(typedmcp.RemoteError, match="the call has ended at the server; call again"):
                await go_on(other, asked, "fail")

    run(main())


@each(
    "stranger, why",
    [({"auth": "a-token-of-eve-1234"}, "it belongs to another request"), ({"name": "another"}, "the call has ended")],
    ids=["another principal", "another client"],
)
def test_a_call_belongs_to_its_client_on_all_workers(
    shared_redis: RedisServer, stranger: dict[str, Any], why: str
) -> None:
    async def main() -> None:
        server, prefix = LegacyServer(), f"{secrets.token_hex(4)}:"
        options: dict[str, Any] = {"elicit": decline, "auth": "a-token-of-ada-1234"}
        auth = typedmcp.StaticTokens(TOKENS)
        async with (
            worker(shared_redis, prefix, server, auth=auth) as first,
            worker(shared_redis, prefix, server, auth=auth) as second,
            typedmcp.connect(first, **options) as one,
            typedmcp.connect(second, **options) as other,
            typedmcp.connect(second, **{**options, **stranger}) as third,
        ):
            asked = await begin(one, "ask")
            with pytest.raises(typedmcp.RemoteError, match=why):
                await go_on(third, asked, "ask", "stolen")
            assert typedmcp.text_of(await go_on(other, asked, "ask", "mine")) == "mine"

    run(main())


def test_a_client_that_leaves_ends_its_call_at_the_other_worker(shared_redis: RedisServer) -> None:
    async def main() -> None:
        server = LegacyServer()
        async with two_workers(shared_redis, server) as (one, other):
            asked = await begin(one, "wait")
            attempt = asyncio.create_task(go_on(other, asked, "wait"))
            await server.entered.wait()
            attempt.cancel()
            while not server.ended:
                await asyncio.sleep(0.01)

    run(main())


def test_a_result_that_is_too_large_for_messages_is_an_error(shared_redis: RedisServer) -> None:
    async def main() -> None:
        limits = typedmcp.Limits(http_body_bytes=10_000)
        async with two_workers(shared_redis, LegacyServer(), limits=limits) as (one, other):
            asked = await begin(one, "ask", size=20_000)
            with pytest.raises(typedmcp.RemoteError, match=r"the result has \d+ bytes.* \(http_body_bytes\)"):
                await go_on(other, asked, "ask", "x", size=20_000)

    run(main())


def test_the_death_of_the_worker_that_holds_a_call_is_an_error(
    shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "_SILENCE_SECONDS", 0.3)

    async def main() -> None:
        server, prefix = LegacyServer(), f"{secrets.token_hex(4)}:"
        options: dict[str, Any] = {"elicit": decline}
        async with worker(shared_redis, prefix, server) as second, typedmcp.connect(second, **options) as other:
            async with worker(shared_redis, prefix, server) as first, typedmcp.connect(first, **options) as one:
                asked = await begin(one, "ask")
            with pytest.raises(typedmcp.RemoteError, match="the worker that holds the call has ended; call again"):
                await go_on(other, asked, "ask", "late")

    run(main())


def test_a_worker_that_ends_answers_the_attempts_of_the_others(shared_redis: RedisServer) -> None:
    async def main() -> None:
        server, prefix = LegacyServer(), f"{secrets.token_hex(4)}:"
        options: dict[str, Any] = {"elicit": decline}
        async with worker(shared_redis, prefix, server) as second, typedmcp.connect(second, **options) as other:
            async with worker(shared_redis, prefix, server) as first, typedmcp.connect(first, **options) as one:
                asked = await begin(one, "wait")
                attempt = asyncio.create_task(go_on(other, asked, "wait"))
                await server.entered.wait()
            with pytest.raises(typedmcp.RemoteError, match="has ended; call again"):
                await attempt

    run(main())
