"""The client over HTTP in a session of a revision with a handshake: which requests it sends, with which headers."""

from __future__ import annotations

from mcpspec.support.objects import is_object
from tests.client.http.scripted_http import OLDER, Request, Script, Wire, connected, result
from tests.server.scripted import run


def test_every_message_is_a_post_of_its_own() -> None:
    script = Script(OLDER)

    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        wire.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await script.until("answer")
        wire.event({"jsonrpc": "2.0", "id": request.json["id"], "result": result("asked")})
        wire.end()

    async def main() -> None:
        script.handlers["tools/call"] = call
        async with connected(script, auth="the-token", roots=["file:///a"], revisions=[OLDER]) as client:
            await script.until("GET")
            await client.call_tool("x")
            await client.list_tools()
            await client.notify_roots_changed()
        posts = [request for request in script.requests if request.method == "POST"]
        assert [post.what for post in posts] == [
            "initialize", "notifications/initialized", "tools/call", "answer", "tools/list",
            "notifications/roots/list_changed",
        ]  # fmt: skip
        for post in posts:
            assert is_object(post.json)
            assert post.headers["accept"] == "application/json, text/event-stream"
            assert post.headers["content-type"] == "application/json"
        assert all("text/event-stream" in get.headers["accept"] for get in script.of("GET"))
        for request in script.requests:
            assert request.headers["authorization"] == "Bearer the-token"
            assert "the-token" not in request.target
            assert request.headers.get("mcp-protocol-version") == (None if request.what == "initialize" else OLDER)

    run(main)


def test_the_stream_of_server_messages_is_requested_before_the_first_call() -> None:
    async def main() -> None:
        script = Script(OLDER)
        async with connected(script, revisions=[OLDER]) as client:
            await client.call_tool("x")
        assert [request.what for request in script.requests][:4] == [
            "initialize", "notifications/initialized", "GET", "tools/call",
        ]  # fmt: skip

    run(main)


def test_a_session_that_replaces_a_lost_one_begins_without_an_id() -> None:
    def call(request: Request, wire: Wire) -> None:
        if request.headers["mcp-session-id"] == "session-1":
            wire.reply(404)
        else:
            wire.result(request, result("again"))

    async def main() -> None:
        script = Script(OLDER, tools__call=call)
        async with connected(script) as client:
            await client.call_tool("x")
        assert ["mcp-session-id" in request.headers for request in script.of("initialize")] == [False, False]
        assert [request.headers["mcp-session-id"] for request in script.of("tools/call")] == ["session-1", "session-2"]

    run(main)
