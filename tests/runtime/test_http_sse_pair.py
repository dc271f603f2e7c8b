"""The two endpoints of 2024-11-05: one that streams, one that messages are posted to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import typedmcp
from tests.runtime.asgi_driver import Open, Reply, Served, in_loop, message, messages, serving, verify
from typedmcp import Auth, UsageError
from typedmcp.dialect import structs

CLIENT: dict[str, Any] = {"capabilities": {"sampling": {}, "roots": {}}, "clientInfo": {"name": "test", "version": "1"}}


class Pair:
    """A client that has the stream, and posts to where that says."""

    def __init__(self, served: Served, stream: Open, endpoint: str) -> None:
        self.served = served
        self.stream = stream
        self.endpoint = endpoint

    async def post(self, content: bytes, **options: Any) -> Reply:
        parts = urlsplit(self.endpoint)
        return await self.served.post(content, path=parts.path, query=parts.query.encode(), **options)

    async def ask(self, method: str, id: Any = 1, **params: Any) -> Any:
        """A request, and the next message."""
        assert (await self.post(message(id=id, method=method, params=params))).status == 202
        return await self.stream.said()

    async def call(self, name: str, id: Any = 1, **arguments: Any) -> Any:
        return await self.ask("tools/call", id, name=name, arguments=arguments)


async def connected(served: Served, **options: Any) -> Pair:
    """A client that has just come."""
    options.setdefault("path", "/sse")
    stream = served.open("GET", {"accept": "text/event-stream"}, **options)
    first = await stream.event()
    assert first.event == "endpoint"
    assert isinstance(first.data, bytes)
    return Pair(served, stream, first.data.decode())


async def shaken(served: Served, revision: str = "2024-11-05") -> Pair:
    """A client that has shaken hands."""
    pair = await connected(served)
    answer = await pair.ask("initialize", 0, **CLIENT, protocolVersion=revision)
    assert answer["result"]["protocolVersion"] == revision
    assert (await pair.post(message(method="notifications/initialized"))).status == 202
    return pair


@asynccontextmanager
async def paired(**options: Any) -> AsyncGenerator[tuple[Served, Pair]]:
    async with serving(**{"sse_path": "/sse", "grace": 0.2, **options}) as served:
        yield served, await shaken(served)


@in_loop
async def test_the_stream_says_first_where_to_post() -> None:
    async with serving(sse_path="/sse", messages_path="/m") as served:
        pair = await connected(served)
        parts = urlsplit(pair.endpoint)
        assert (parts.scheme, parts.netloc, parts.path) == ("", "", "/m")
        ((name, (id,)),) = parse_qs(parts.query).items()
        assert name == "session_id"
        assert len(id) > 32
        assert pair.stream.is_stream
        assert (b"x-accel-buffering", b"no") in pair.stream.sent[0]["headers"]
        assert (await connected(served)).endpoint != pair.endpoint


@in_loop
async def test_below_a_root_path_it_says_so() -> None:
    async with serving(sse_path="/sse") as served:
        pair = await connected(served, path="/api/sse", root_path="/api")
        assert pair.endpoint.startswith("/api/messages?")


@in_loop
async def test_answers_and_all_else_come_on_the_stream() -> None:
    async with paired() as (_, pair):
        assert (await pair.call("echo", "x", text="a"))["result"]["content"][0]["text"] == "a"
        assert (await pair.call("turn", 2))["result"]["content"][0]["text"] == "turned"
        assert (await pair.call("fail", 3))["error"]["code"] == -32603
        assert (await pair.ask("x/y", 4))["error"]["code"] == -32601
        params = {"name": "report", "arguments": {}, "_meta": {"progressToken": 1}}
        assert (await pair.ask("tools/call", 5, **params))["params"]["progress"] == 0
        assert (await pair.stream.said())["params"]["progress"] == 1
        assert (await pair.stream.said())["id"] == 5


@in_loop
async def test_the_client_can_be_asked() -> None:
    async with paired() as (_, pair):
        asked = await pair.call("roots", 7)
        assert asked["method"] == "roots/list"
        assert (await pair.post(message(id=asked["id"], result={"roots": [{"uri": "file:///a"}]}))).status == 202
        assert (await pair.stream.said())["result"]["content"][0]["text"] == "file:///a"


@in_loop
async def test_changes_come_without_being_asked_for() -> None:
    async with paired() as (served, pair):
        assert (await pair.ask("resources/subscribe", uri="a://1"))["result"] == {}
        served.app.service.changes.resource_updated("a://1")
        assert (await pair.stream.said())["params"]["uri"] == "a://1"
        served.app.service.changes.tools_changed()
        assert (await pair.stream.said())["method"] == "notifications/tools/list_changed"


@in_loop
async def test_newer_revisions_are_agreed_on_too() -> None:
    async with serving(sse_path="/sse") as served:
        pair = await shaken(served, "2025-03-26")
        both = b"[" + message(id=1, method="ping") + b",\n" + message(id=2, method="ping") + b"]"
        assert (await pair.post(both)).status == 202
        assert {each["id"] for each in await pair.stream.said()} == {1, 2}


@pytest.mark.parametrize("content", [b"{", b"[]", b"3", b'{"jsonrpc": "2.0", "id": 1}'])
@in_loop
async def test_what_is_no_message_is_answered_on_the_stream(content: bytes) -> None:
    async with paired() as (_, pair):
        assert (await pair.post(content)).status in (202, 400)
        assert (await pair.stream.said())["error"]["code"] in (-32700, -32600)
        assert (await pair.call("echo"))["result"]


@pytest.mark.parametrize("content", [b"", b" \n\r\n "])
@in_loop
async def test_what_is_nothing_is_passed_over(content: bytes) -> None:
    async with paired() as (_, pair):
        assert (await pair.post(content)).status in (202, 400)
        assert (await pair.call("echo"))["result"]


@in_loop
async def test_a_body_is_one_message_however_it_is_written() -> None:
    async with paired() as (_, pair):
        written = b'\n{"jsonrpc":\r\n"2.0",\n"id": 1,\n"method":\n"ping"\r}\n\n'
        assert (await pair.post([written[:9], written[9:]])).status == 202  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert await pair.stream.said() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        two = message(id=2, method="ping") + b"\n" + message(id=3, method="ping")
        assert (await pair.post(two)).status in (202, 400)
        assert (await pair.stream.said())["error"]["code"] == -32700


@pytest.mark.parametrize(
    "query", [b"", b"session_id=", b"session_id=x", b"session_id=x.y", b"a=b", b"session_id=%00", b"\xff"]
)
@in_loop
async def test_messages_need_a_stream_that_is_open(query: bytes) -> None:
    async with serving(sse_path="/sse") as served:
        reply = await served.post(message(id=1, method="ping"), path="/messages", query=query)
        assert reply.status == 404
        assert "error" in reply.json


@in_loop
async def test_messages_go_to_no_stream_that_has_ended() -> None:
    async with paired() as (served, pair):
        other = await shaken(served)
        pair.stream.disconnect()
        await pair.stream.done()
        assert (await pair.post(message(id=1, method="ping"))).status == 404
        assert (await other.call("echo"))["result"]
        assert served.streams == 1


METHODS = [
    ("POST", "/sse", "GET"),
    ("DELETE", "/sse", "GET"),
    ("GET", "/messages", "POST"),
    ("PUT", "/messages", "POST"),
]


@pytest.mark.parametrize(("method", "path", "allowed"), METHODS)
@in_loop
async def test_each_endpoint_has_its_method(method: str, path: str, allowed: str) -> None:
    async with serving(sse_path="/sse") as served:
        reply = await served.request(method, path=path)
        assert (reply.status, reply.headers["allow"]) == (405, allowed)


@in_loop
async def test_there_are_no_such_endpoints_unless_they_are_asked_for() -> None:
    async with serving() as served:
        assert (await served.request("GET", path="/sse")).status == 404
        assert (await served.post(message(id=1, method="ping"), path="/messages")).status == 404


@in_loop
async def test_a_slash_at_the_end_changes_nothing() -> None:
    async with serving(sse_path="/sse/", messages_path="/messages/") as served:
        pair = await connected(served, path="/sse/")
        assert (await pair.ask("ping"))["result"] == {}
        assert (await connected(served, path="/sse")).endpoint


@in_loop
async def test_only_json_of_a_certain_length_is_taken() -> None:
    async with paired(body_limit=500) as (_, pair):
        content = message(id=1, method="ping")
        assert (await pair.post(content, headers={"content-type": "text/plain"})).status == 415
        assert (await pair.post(content + b" " * 500)).status == 413
        assert (await pair.call("echo"))["result"]


@in_loop
async def test_a_stream_is_its_principals_alone() -> None:
    auth = Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(sse_path="/sse", auth=auth) as served:
        served.bearer = "ann"
        pair = await shaken(served)
        assert (await pair.call("who"))["result"]["content"][0]["text"] == "ann"
        for bearer, status in (("bob", 404), ("nobody", 401), (None, 401)):
            served.bearer = bearer
            assert (await pair.post(message(id=1, method="ping"))).status == status
            if bearer != "bob":
                assert (await served.request("GET", path="/sse")).status == status
        served.bearer = "ann"
        assert (await pair.call("who"))["result"]["content"][0]["text"] == "ann"
        assert messages(pair.stream.arrived()) == []


@in_loop
async def test_as_many_streams_are_open_as_there_may_be() -> None:
    async with serving(sse_path="/sse", streams=1) as served:
        pair = await connected(served)
        reply = await served.request("GET", path="/sse")
        assert reply.status == 503
        assert "retry-after" in reply.headers
        pair.stream.disconnect()
        await pair.stream.done()
        await connected(served)


@pytest.mark.parametrize("name", ["wait", "roots"])
@in_loop
async def test_calls_of_who_leaves_end(name: str) -> None:
    async with paired() as (served, pair):
        assert (await pair.post(message(id=1, method="tools/call", params={"name": name}))).status == 202
        await (served.handler.entered.wait() if name == "wait" else pair.stream.said())
        pair.stream.disconnect()
        async with asyncio.timeout(4):
            await pair.stream.done()
        assert served.handler.ended == (["cancelled"] if name == "wait" else [])
        await served.settled()


@in_loop
async def test_a_call_can_be_cancelled() -> None:
    async with paired() as (served, pair):
        assert (await pair.post(message(id=1, method="tools/call", params={"name": "wait"}))).status == 202
        await served.handler.entered.wait()
        await pair.post(message(method="notifications/cancelled", params={"requestId": 1}))
        assert (await pair.call("echo", 2))["id"] == 2
        assert served.handler.ended == ["cancelled"]


@in_loop
async def test_who_does_not_read_is_not_read_either() -> None:
    """What is posted waits, and nothing grows without end."""
    async with paired(high_water=2000) as (served, pair):
        pair.stream.hold()
        content = message(id=1, method="tools/call", params={"name": "echo", "arguments": {"text": "x" * 100_000}})
        taken = 0
        while True:
            post = asyncio.ensure_future(pair.post(content))
            await asyncio.wait([post], timeout=0.1)
            if not post.done():
                break
            taken += 1
            assert taken < 40
        assert sum(stream.size for stream in served.app._streams) < 1_500_000  # pyright: ignore[reportPrivateUsage]
        pair.stream.release()
        assert (await post).status == 202
        for _ in range(taken + 1):
            assert (await pair.stream.said())["id"] == 1


@in_loop
async def test_streams_end_with_the_application() -> None:
    async with paired() as (served, pair):
        async with asyncio.timeout(4):
            await served.app.close()
            await pair.stream.rest()
            await pair.stream.done()
        await served.app.open()


@in_loop
async def test_a_quiet_stream_shows_that_it_is_alive() -> None:
    async with serving(sse_path="/sse", keep_alive=0.02) as served:
        pair = await connected(served)
        await pair.stream.until(lambda: sum(part.get("body") == b":\n\n" for part in pair.stream.sent) >= 3)


class Threaded:
    @typedmcp.in_thread
    def call_tool(self, params: structs.CallToolRequestParams, ctx: Any) -> structs.CallToolResult:
        ctx.progress(1)
        return structs.CallToolResult(content=[structs.TextContent(text=params.name)], result_type="complete")


@in_loop
async def test_handlers_in_threads_serve_them_too() -> None:
    async with serving(Threaded(), sse_path="/sse") as served:
        pair = await shaken(served)
        told = await pair.ask("tools/call", name="a", _meta={"progressToken": 1})
        assert told["method"] == "notifications/progress"
        assert (await pair.stream.said())["result"]["content"][0]["text"] == "a"


def test_the_two_endpoints_are_two() -> None:
    with pytest.raises(UsageError, match="same"):
        typedmcp.asgi(Threaded(), sse_path="/a", messages_path="/a")
