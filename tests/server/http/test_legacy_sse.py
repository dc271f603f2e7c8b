"""The two endpoints of 2024-11-05: one for the event stream, one for posted messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import (
    CompleteResponse,
    OpenRequest,
    Served,
    ToolHandler,
    in_loop,
    message,
    messages,
    run_loop,
    serving,
    verify,
)
from typedmcp import Auth, Principal, UsageError
from typedmcp.dialect import structs

CLIENT: dict[str, Any] = {"capabilities": {"sampling": {}, "roots": {}}, "clientInfo": {"name": "test", "version": "1"}}


class SseClient:
    """A client with an open stream, which posts to the path that the stream names."""

    def __init__(self, served: Served, stream: OpenRequest, endpoint: str) -> None:
        self.served = served
        self.stream = stream
        self.endpoint = endpoint

    async def post(self, content: bytes, **options: Any) -> CompleteResponse:
        parts = urlsplit(self.endpoint)
        return await self.served.post(content, path=parts.path, query=parts.query.encode(), **options)

    async def ask(self, method: str, id: Any = 1, **params: Any) -> Any:
        """Post a request, and return the next message."""
        assert (await self.post(message(id=id, method=method, params=params))).status == 202
        return await self.stream.next_message()

    async def call(self, name: str, id: Any = 1, **arguments: Any) -> Any:
        return await self.ask("tools/call", id, name=name, arguments=arguments)


async def connected(served: Served, **options: Any) -> SseClient:
    """Return a client that has opened its stream."""
    options.setdefault("path", "/sse")
    stream = served.open("GET", {"accept": "text/event-stream"}, **options)
    first = await stream.event()
    assert first.event == "endpoint"
    assert isinstance(first.data, bytes)
    return SseClient(served, stream, first.data.decode())


async def initialized(served: Served, revision: str = "2024-11-05") -> SseClient:
    """Return a client after its handshake."""
    client = await connected(served)
    answer = await client.ask("initialize", 0, **CLIENT, protocolVersion=revision)
    assert answer["result"]["protocolVersion"] == revision
    assert (await client.post(message(method="notifications/initialized"))).status == 202
    return client


@asynccontextmanager
async def serving_sse_client(**options: Any) -> AsyncGenerator[tuple[Served, SseClient]]:
    async with serving(**{"sse_path": "/sse", "grace": 0.2, **options}) as served:
        yield served, await initialized(served)


@in_loop
async def test_the_first_event_names_the_path_to_post_to() -> None:
    async with serving(sse_path="/sse", messages_path="/m") as served:
        client = await connected(served)
        parts = urlsplit(client.endpoint)
        assert (parts.scheme, parts.netloc, parts.path) == ("", "", "/m")
        ((name, (id,)),) = parse_qs(parts.query).items()
        assert name == "session_id"
        assert len(id) > 32
        assert client.stream.is_stream
        assert (b"x-accel-buffering", b"no") in client.stream.sent[0]["headers"]
        assert (await connected(served)).endpoint != client.endpoint


@in_loop
async def test_the_first_event_includes_the_root_path() -> None:
    async with serving(sse_path="/sse") as served:
        client = await connected(served, path="/api/sse", root_path="/api")
        assert client.endpoint.startswith("/api/messages?")


@in_loop
async def test_responses_and_notifications_come_on_the_stream() -> None:
    async with serving_sse_client() as (_, client):
        assert (await client.call("echo", "x", text="a"))["result"]["content"][0]["text"] == "a"
        assert (await client.call("turn", 2))["result"]["content"][0]["text"] == "turned"
        assert (await client.call("fail", 3))["error"]["code"] == -32603
        assert (await client.ask("x/y", 4))["error"]["code"] == -32601
        params = {"name": "report", "arguments": {}, "_meta": {"progressToken": 1}}
        assert (await client.ask("tools/call", 5, **params))["params"]["progress"] == 0
        assert (await client.stream.next_message())["params"]["progress"] == 1
        assert (await client.stream.next_message())["id"] == 5


@in_loop
async def test_a_large_response_is_one_event() -> None:
    async with serving_sse_client() as (_, client):
        large = "a" * 100_000
        assert (await client.call("echo", 1, text=large))["result"]["content"][0]["text"] == large
        assert (await client.call("echo", 2, text="b"))["id"] == 2


@in_loop
async def test_the_client_can_be_asked_for_input() -> None:
    async with serving_sse_client() as (_, client):
        asked = await client.call("roots", 7)
        assert asked["method"] == "roots/list"
        assert (await client.post(message(id=asked["id"], result={"roots": [{"uri": "file:///a"}]}))).status == 202
        assert (await client.stream.next_message())["result"]["content"][0]["text"] == "file:///a"


@in_loop
async def test_changes_come_without_a_subscription() -> None:
    async with serving_sse_client() as (served, client):
        assert (await client.ask("resources/subscribe", uri="a://1"))["result"] == {}
        served.app.config.changes.resource_updated("a://1")
        assert (await client.stream.next_message())["params"]["uri"] == "a://1"
        served.app.config.changes.tools_changed()
        assert (await client.stream.next_message())["method"] == "notifications/tools/list_changed"


@in_loop
async def test_newer_legacy_revisions_can_be_negotiated() -> None:
    async with serving(sse_path="/sse") as served:
        client = await initialized(served, "2025-03-26")
        both = b"[" + message(id=1, method="ping") + b",\n" + message(id=2, method="ping") + b"]"
        assert (await client.post(both)).status == 202
        assert {each["id"] for each in await client.stream.next_message()} == {1, 2}


@each("content", [b"{", b"[]", b"3", b'{"jsonrpc": "2.0", "id": 1}'])
@in_loop
async def test_an_invalid_message_gets_its_error_on_the_stream(content: bytes) -> None:
    async with serving_sse_client() as (_, client):
        assert (await client.post(content)).status in (202, 400)
        assert (await client.stream.next_message())["error"]["code"] in (-32700, -32600)
        assert (await client.call("echo"))["result"]


@each("content", [b"", b" \n\r\n "])
@in_loop
async def test_an_empty_body_is_ignored(content: bytes) -> None:
    async with serving_sse_client() as (_, client):
        assert (await client.post(content)).status in (202, 400)
        assert (await client.call("echo"))["result"]


@in_loop
async def test_a_body_is_one_message_even_with_line_ends_in_it() -> None:
    async with serving_sse_client() as (_, client):
        written = b'\n{"jsonrpc":\r\n"2.0",\n"id": 1,\n"method":\n"ping"\r}\n\n'
        assert (await client.post([written[:9], written[9:]])).status == 202  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert await client.stream.next_message() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        two = message(id=2, method="ping") + b"\n" + message(id=3, method="ping")
        assert (await client.post(two)).status in (202, 400)
        assert (await client.stream.next_message())["error"]["code"] == -32700


@each("query", [b"", b"session_id=", b"session_id=x", b"session_id=x.y", b"a=b", b"session_id=%00", b"\xff"])
@in_loop
async def test_a_message_without_an_open_stream_is_rejected(query: bytes) -> None:
    async with serving(sse_path="/sse") as served:
        reply = await served.post(message(id=1, method="ping"), path="/messages", query=query)
        assert reply.status == 404
        assert "error" in reply.json


@in_loop
async def test_a_message_for_a_stream_that_has_ended_is_rejected() -> None:
    async with serving_sse_client() as (served, client):
        other = await initialized(served)
        client.stream.disconnect()
        await client.stream.done()
        assert (await client.post(message(id=1, method="ping"))).status == 404
        assert (await other.call("echo"))["result"]
        assert served.streams == 1


METHODS = [
    ("POST", "/sse", "GET"),
    ("DELETE", "/sse", "GET"),
    ("GET", "/messages", "POST"),
    ("PUT", "/messages", "POST"),
]


@each("method, path, allowed", METHODS)
@in_loop
async def test_each_endpoint_allows_one_method(method: str, path: str, allowed: str) -> None:
    async with serving(sse_path="/sse") as served:
        reply = await served.request(method, path=path)
        assert (reply.status, reply.headers["allow"]) == (405, allowed)


@in_loop
async def test_the_endpoints_exist_only_with_sse_path() -> None:
    async with serving() as served:
        assert (await served.request("GET", path="/sse")).status == 404
        assert (await served.post(message(id=1, method="ping"), path="/messages")).status == 404


@in_loop
async def test_a_slash_at_the_end_changes_nothing() -> None:
    async with serving(sse_path="/sse/", messages_path="/messages/") as served:
        client = await connected(served, path="/sse/")
        assert (await client.ask("ping"))["result"] == {}
        assert (await connected(served, path="/sse")).endpoint


@in_loop
async def test_only_json_within_the_limit_is_accepted() -> None:
    async with serving_sse_client(limits=typedmcp.Limits(http_body_bytes=500)) as (_, client):
        content = message(id=1, method="ping")
        assert (await client.post(content, headers={"content-type": "text/plain"})).status == 415
        assert (await client.post(content + b" " * 500)).status == 413
        assert (await client.call("echo"))["result"]


@in_loop
async def test_only_its_own_principal_can_post_to_a_stream() -> None:
    auth = Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(sse_path="/sse", auth=auth) as served:
        served.bearer = "ann"
        client = await initialized(served)
        assert (await client.call("who"))["result"]["content"][0]["text"] == "ann"
        for bearer, status in (("bob", 404), ("nobody", 401), (None, 401)):
            served.bearer = bearer
            assert (await client.post(message(id=1, method="ping"))).status == status
            if bearer != "bob":
                assert (await served.request("GET", path="/sse")).status == status
        served.bearer = "ann"
        assert (await client.call("who"))["result"]["content"][0]["text"] == "ann"
        assert messages(client.stream.arrived()) == []


class Headers(ToolHandler):
    async def tenant(self, ctx: Any) -> str:
        return str(ctx.headers.get("x-tenant"))


@in_loop
async def test_handlers_see_the_headers_of_the_request_that_opened_the_stream() -> None:
    async with serving(Headers(), sse_path="/sse") as served:
        stream = served.open("GET", {"accept": "text/event-stream", "X-Tenant": "a"}, path="/sse")
        endpoint = (await stream.event()).data
        assert isinstance(endpoint, bytes)
        client = SseClient(served, stream, endpoint.decode())
        await client.ask("initialize", 0, **CLIENT, protocolVersion="2024-11-05")
        assert (await client.call("tenant"))["result"]["content"][0]["text"] == "a"


@in_loop
async def test_a_connection_ends_when_its_newest_token_expires() -> None:
    tokens: dict[str, float | None] = {"short": 1, "shorter": 0.5, "long": 3600, "endless": None}

    def check(token: str) -> Principal:
        left = tokens[token]
        return Principal("ann", expires=None if left is None else time.time() + left)

    auth = Auth(check, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(sse_path="/sse", auth=auth) as served:
        others: list[SseClient] = []
        for bearer in ("long", "endless"):
            served.bearer = "short"
            others.append(await initialized(served))
            served.bearer = bearer
            await others[-1].ask("ping")
            served.bearer = "shorter"
            await others[-1].ask("ping", 2)
        served.bearer = "short"
        ending = await initialized(served)
        await ending.stream.rest()
        await ending.stream.done()
        assert (await ending.post(message(id=1, method="ping"))).status == 404
        for other in others:  # whose short tokens expired before
            assert (await other.call("echo"))["result"]


@in_loop
async def test_streams_beyond_the_limit_get_503() -> None:
    async with serving(sse_path="/sse", limits=typedmcp.Limits(http_streams=1)) as served:
        client = await connected(served)
        reply = await served.request("GET", path="/sse")
        assert reply.status == 503
        assert "retry-after" in reply.headers
        client.stream.disconnect()
        await client.stream.done()
        await connected(served)


@each("name", ["wait", "roots"])
@in_loop
async def test_calls_are_cancelled_when_the_client_disconnects(name: str) -> None:
    async with serving_sse_client() as (served, client):
        assert (await client.post(message(id=1, method="tools/call", params={"name": name}))).status == 202
        await (served.handler.entered.wait() if name == "wait" else client.stream.next_message())
        client.stream.disconnect()
        await client.stream.done()
        assert served.handler.ended == (["cancelled"] if name == "wait" else [])
        await served.assert_settled()


@in_loop
async def test_a_call_can_be_cancelled() -> None:
    async with serving_sse_client() as (served, client):
        assert (await client.post(message(id=1, method="tools/call", params={"name": "wait"}))).status == 202
        await served.handler.entered.wait()
        await client.post(message(method="notifications/cancelled", params={"requestId": 1}))
        assert (await client.call("echo", 2))["id"] == 2
        assert served.handler.ended == ["cancelled"]


@in_loop
async def test_posts_wait_while_the_client_does_not_read_its_stream() -> None:
    """The messages wait, and memory does not grow without limit."""
    async with serving_sse_client(limits=typedmcp.Limits(http_stream_buffer_bytes=2000)) as (served, client):
        client.stream.hold()
        content = message(id=1, method="tools/call", params={"name": "echo", "arguments": {"text": "x" * 100_000}})
        accepted = 0
        while True:
            post = asyncio.ensure_future(client.post(content))
            await asyncio.wait([post], timeout=0.1)
            if not post.done():
                break
            accepted += 1
            assert accepted < 40
        assert sum(stream.size for stream in served.app.state.streams) < 1_500_000
        client.stream.release()
        assert (await post).status == 202
        for _ in range(accepted + 1):
            assert (await client.stream.next_message())["id"] == 1


async def fill(client: SseClient) -> None:
    """Post to a stream that is not read until a post waits, and let that one go."""
    client.stream.hold()
    large = message(id=1, method="tools/call", params={"name": "echo", "arguments": {"text": "x" * 60_000}})
    while True:
        post = asyncio.ensure_future(client.post(large))
        await asyncio.wait([post], timeout=0.1)
        if not post.done():
            post.cancel()
            return


@in_loop
async def test_a_post_that_waits_counts_with_its_headers_until_its_client_leaves() -> None:
    limits = typedmcp.Limits(http_stream_buffer_bytes=2000, sse_queue_bytes=50_000, call_bytes=800_000)
    async with serving_sse_client(limits=limits) as (served, client):
        served.address = "10.0.0.1"
        await fill(client)
        path, _, query = client.endpoint.partition("?")
        await run_loop()
        before = served.app.limits_in_use()["call_bytes"]
        padded = {"x-padding": "p" * 30_000}
        posts = [
            served.open("POST", padded, message(method="ping"), path=path, query=query.encode()) for _ in range(20)
        ]
        await run_loop()
        assert served.app.limits_in_use()["call_bytes"] - before > 4 * 34_000
        assert sum(post.is_done and post.status == 503 for post in posts) > 10
        for post in posts:
            post.disconnect()
        await run_loop()
        assert all(post.is_done for post in posts)
        assert served.app.limits_in_use()["call_bytes"] <= before
        client.stream.release()


@in_loop
async def test_dropped_messages_of_other_workers_are_reported_once_until_the_queue_has_been_read() -> None:
    limits = typedmcp.Limits(http_stream_buffer_bytes=2000, sse_queue_bytes=50_000)
    async with serving_sse_client(limits=limits) as (served, client):
        id = parse_qs(urlsplit(client.endpoint).query)["session_id"][0]
        deliver = served.app.state.message_handlers["message posted"]
        large = message(
            id=1, method="tools/call", params={"name": "echo", "arguments": {"text": "x" * 60_000}}
        ).decode()
        for reports in (1, 2):
            client.stream.hold()
            await fill(client)
            for _ in range(20):
                deliver(id, large, None, None)
            assert served.kinds == ["limit reached"] * reports
            client.stream.release()
            await client.stream.until(lambda: served.app.limits_in_use()["call_bytes"] == 0)
            await run_loop()


@in_loop
async def test_another_principal_does_not_wait_for_a_stream_to_which_it_cannot_post() -> None:
    auth = Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    limits = typedmcp.Limits(http_stream_buffer_bytes=2000, sse_queue_bytes=50_000)
    async with serving(sse_path="/sse", auth=auth, limits=limits, grace=0.2) as served:
        served.bearer = "ann"
        client = await initialized(served)
        await fill(client)
        served.bearer = "bob"
        assert (await client.post(message(id=1, method="ping"))).status == 404
        client.stream.release()


@in_loop
async def test_streams_end_with_the_application() -> None:
    async with serving_sse_client() as (served, client):
        await served.app.close()
        await client.stream.rest()
        await client.stream.done()
        await served.app.open()


@in_loop
async def test_a_quiet_stream_gets_comments() -> None:
    async with serving(sse_path="/sse", keep_alive=0.02) as served:
        client = await connected(served)
        await client.stream.until(lambda: sum(part.get("body") == b":\n\n" for part in client.stream.sent) >= 3)


class Threaded:
    @typedmcp.in_thread
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Any) -> structs.CallToolResult:
        ctx.progress(1)
        return structs.CallToolResult(content=[structs.TextContent(text=params.name)], result_type="complete")


@in_loop
async def test_handlers_in_threads_are_served() -> None:
    async with serving(Threaded(), sse_path="/sse") as served:
        client = await initialized(served)
        progress = await client.ask("tools/call", name="a", _meta={"progressToken": 1})
        assert progress["method"] == "notifications/progress"
        assert (await client.stream.next_message())["result"]["content"][0]["text"] == "a"


def test_the_two_endpoints_must_differ() -> None:
    with pytest.raises(UsageError, match="must differ"):
        typedmcp.asgi(Threaded(), sse_path="/a", messages_path="/a")
