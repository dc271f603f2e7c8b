"""The client over HTTP: what it sends, and what it makes of what it is told."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest

import typedmcp
from tests.runtime.scripted_http import (
    MODERN,
    NOTHING,
    OLDER,
    PATIENCE,
    Handle,
    Request,
    Script,
    Wire,
    connected,
    pool_of,
    result,
    serving,
    told,
)
from typedmcp import sync
from typedmcp.client import Changed, connect
from typedmcp.dialect import structs


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in a loop of its own, and leave no task behind."""

    async def checked() -> None:
        await asyncio.wait_for(main(), 2 * PATIENCE)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []

    asyncio.run(checked())


def into(logged: list[Any]) -> Callable[[structs.LoggingMessageNotificationParams], None]:
    """What notes log messages."""
    return lambda params: logged.append(params.data)


def text(given: structs.CallToolResult) -> str:
    (content,) = given.content
    assert isinstance(content, structs.TextContent)
    return content.text


# What a request says


def test_a_modern_request_says_in_headers_what_it_is_about() -> None:
    async def main() -> None:
        script = Script()
        async with connected(script, headers={"X-Team": "blue"}) as client:
            await client.call_tool("grüßen")
        discovered, called = script.requests
        for request in (discovered, called):
            assert request.headers["accept"] == "application/json, text/event-stream"
            assert request.headers["content-type"] == "application/json"
            assert request.headers["mcp-protocol-version"] == MODERN
            assert request.headers["x-team"] == "blue"
            assert "mcp-session-id" not in request.headers
        assert (discovered.headers["mcp-method"], called.headers["mcp-method"]) == ("server/discover", "tools/call")
        assert called.headers["mcp-name"] == "=?base64?Z3LDvMOfZW4=?="
        assert "mcp-name" not in discovered.headers

    run(main)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", OLDER])
def test_an_older_session_is_named_in_every_request_and_ended(revision: str) -> None:
    async def main() -> None:
        script = Script(revision)
        async with connected(script) as client:
            assert client.revision == revision
            await client.call_tool("echo")
        whats = [request.what for request in script.requests]
        assert whats == ["server/discover", "initialize", "notifications/initialized", "GET", "tools/call", "DELETE"]
        assert "mcp-session-id" not in script.requests[1].headers
        assert "mcp-protocol-version" not in script.requests[1].headers
        for request in script.requests[2:]:
            assert request.headers["mcp-session-id"] == "session-1"
            assert request.headers["mcp-protocol-version"] == revision
            assert "mcp-method" not in request.headers

    run(main)


REGION = {"type": "string", "x-mcp-header": "Region"}
WHERE = {"name": "where", "inputSchema": {"type": "object", "properties": {"region": REGION}}}


def test_arguments_are_mirrored_in_headers_once_the_tool_was_listed() -> None:
    async def main() -> None:
        script = Script()
        script.tools = [WHERE]
        async with connected(script) as client:
            await client.list_tools()
            await client.call_tool("where", {"region": "eu"})
            await client.call_tool("where", {"region": None})
            await client.send("tools/call", {"name": "where", "arguments": {"region": "us"}})
            with pytest.raises(typedmcp.UsageError, match="beyond the integers"):
                await client.call_tool("where", {"region": 2**60})
        calls = script.of("tools/call")
        assert [call.headers.get("mcp-param-region") for call in calls] == ["eu", None, "us"]

    run(main)


def test_a_call_whose_headers_were_missing_is_made_again_with_them() -> None:
    def call(request: Request, wire: Wire) -> None:
        if request.headers.get("mcp-param-region") == "eu":
            wire.result(request, result("here"))
        else:
            wire.error(request, -32020, "Header mismatch", status=400)

    async def main() -> None:
        script = Script(tools__call=call)
        script.tools = [WHERE]
        async with connected(script) as client:
            assert text(await client.call_tool("where", {"region": "eu"})) == "here"
            with pytest.raises(typedmcp.HeaderMismatch):
                await client.call_tool("where", {"region": "us"})
        assert len(script.of("tools/call")) == 4

    run(main)


def test_tools_whose_annotations_break_the_rules_are_left_out_and_reported() -> None:
    async def main() -> None:
        script = Script()
        number = {"type": "number", "x-mcp-header": "N"}
        script.tools = [WHERE, {"name": "bad", "inputSchema": {"type": "object", "properties": {"n": number}}}]
        reports: list[typedmcp.Report] = []
        async with connected(script, on_report=reports.append) as client:
            assert [tool.name async for tool in client.tools()] == ["where"]
            (report,) = reports
            assert report.kind == "problem"
            assert "'bad' is left out: x-mcp-header of n: only strings" in report.text

    run(main)


def test_older_servers_may_have_what_would_break_the_rules() -> None:
    async def main() -> None:
        script = Script(OLDER)
        script.tools = [{"name": "bad", "inputSchema": {"type": "object", "x-mcp-header": ""}}]
        async with connected(script) as client:
            assert [tool.name async for tool in client.tools()] == ["bad"]

    run(main)


# Eras


REFUSALS: dict[str, Handle] = {
    "empty": lambda request, wire: wire.reply(400),
    "page": lambda request, wire: wire.reply(404, b"<html>", content_type="text/html"),
    "session": lambda request, wire: wire.error(request, -32600, "no session", status=400),
    "method": lambda request, wire: wire.error(request, -32601, "Method not found"),
    "version": lambda request, wire: wire.error(request, -32022, "no", {"supported": [OLDER]}, status=400),
    "broken": lambda request, wire: wire.reply(500, b"oops", content_type="text/plain"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_server_that_does_not_know_discovery_is_an_older_one(refusal: str) -> None:
    async def main() -> None:
        async with connected(Script(OLDER, server__discover=REFUSALS[refusal])) as client:
            assert client.revision == OLDER

    run(main)


@pytest.mark.parametrize("code", [-32020, -32021])
def test_an_error_that_only_modern_servers_know_is_no_reason_to_try_an_older_way(code: int) -> None:
    async def main() -> None:
        script = Script(server__discover=lambda request, wire: wire.error(request, code, status=400))
        with pytest.raises(typedmcp.RemoteError) as caught:
            async with connected(script):
                pass
        assert caught.value.code == code
        assert [request.what for request in script.requests] == ["server/discover"]

    run(main)


def test_a_server_that_refuses_a_version_that_it_names_is_asked_again() -> None:
    refused: list[str] = []

    def refuse_once(script: Script, what: str) -> Any:
        def handle(request: Request, wire: Wire) -> None:
            if what in refused:
                del script.handlers[what]
            refused.append(what)
            wire.error(request, -32022, "no", {"supported": [MODERN], "requested": "x"}, status=400)
            script.handlers.pop(what, None)

        return handle

    async def main() -> None:
        script = Script()
        script.handlers = {what: refuse_once(script, what) for what in ("server/discover", "tools/call")}
        async with connected(script) as client:
            assert client.revision == MODERN
            assert text(await client.call_tool("x")) == "x"
        assert len(script.requests) == 4

    run(main)


def test_the_era_is_remembered_until_it_is_wrong() -> None:
    async def main() -> None:
        script = Script(OLDER)
        async with connected(script) as client:
            url = client._target  # pyright: ignore[reportPrivateUsage]
            script.requests.clear()
            async with connect(str(url)) as again:
                assert again.revision == OLDER
            assert script.requests[0].what == "initialize"
            script.revision = MODERN
            script.handlers["initialize"] = lambda request, wire: wire.error(request, -32601, status=404)
            async with connect(str(url)) as again:
                assert again.revision == MODERN

    run(main)


def test_a_client_of_the_newest_revision_alone_says_why_it_cannot_speak_to_an_older_server() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.HttpStatusError, match="answered 400: Bad Request: what is this"):
            async with connected(Script(OLDER), revisions=[MODERN]):
                pass

    run(main)


# Streams


@pytest.mark.parametrize("revision", [OLDER, MODERN])
def test_the_answer_comes_in_a_stream_after_what_is_said_before_it(revision: str) -> None:
    async def call(request: Request, wire: Wire) -> None:
        token = request.json["params"]["_meta"]["progressToken"]
        wire.events()
        for step in (1, 2):
            wire.event(told("progress", progressToken=token, progress=step))
        wire.chunk(b": still here\n\n")
        wire.event({"jsonrpc": "2.0", "id": request.json["id"], "result": result("streamed")})
        wire.end()

    async def main() -> None:
        steps: list[Any] = []
        async with connected(Script(revision, tools__call=call)) as client:
            assert text(await client.call_tool("x", on_progress=steps.append)) == "streamed"
            assert [step.progress for step in steps] == [1, 2]

    run(main)


def test_a_stream_that_breaks_is_resumed_where_it_broke_and_nothing_is_heard_twice() -> None:
    script = Script(OLDER)
    waits: list[float] = []

    async def call(request: Request, wire: Wire) -> None:
        token = request.json["params"]["_meta"]["progressToken"]
        wire.events()
        wire.event(id="a1", retry=150)
        wire.event(told("progress", progressToken=token, progress=1), id="a2")
        wire.end()
        waits.append(asyncio.get_running_loop().time())

    async def get(request: Request, wire: Wire) -> None:
        if "last-event-id" not in request.headers:
            wire.reply(405)
            return
        waits.append(asyncio.get_running_loop().time())
        id = script.of("tools/call")[0].json["id"]
        wire.events()
        if request.headers["last-event-id"] == "a2":
            wire.event(told("progress", progressToken=id, progress=1), id="a2")
            wire.event(told("progress", progressToken=id, progress=2), id="a3")
            wire.close()  # in the middle of it
        else:
            assert request.headers["last-event-id"] == "a3"
            wire.event({"jsonrpc": "2.0", "id": id, "result": result("resumed")}, id="a4")
            wire.end()

    async def main() -> None:
        script.handlers = {"tools/call": call, "GET": get}
        steps: list[Any] = []
        async with connected(script) as client:
            assert text(await client.call_tool("x", on_progress=steps.append)) == "resumed"
            assert [step.progress for step in steps] == [1, 2]
        assert waits[1] - waits[0] > 0.14
        assert len(script.of("tools/call")) == 1

    run(main)


def test_a_stream_that_cannot_be_resumed_ends_the_call() -> None:
    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        wire.event(id="a1", retry=1)
        wire.end()

    async def main() -> None:
        script = Script(OLDER, tools__call=call)
        script.handlers["GET"] = lambda request, wire: (
            wire.reply(503) if "last-event-id" in request.headers else wire.reply(405)
        )
        async with connected(script, reconnects=0) as client:
            with pytest.raises(typedmcp.ConnectionLost, match="was not resumed"):
                await client.call_tool("x")
            assert len(script.of("GET")) == 1

    run(main)


@pytest.mark.parametrize("id", ["a1", None])
def test_a_stream_that_ends_without_the_answer_ends_the_call(id: str | None) -> None:
    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        wire.event(told("message", level="info", data="x"), id=id)
        wire.end()

    async def main() -> None:
        for revision in (OLDER, MODERN) if id is None else (MODERN,):
            script = Script(revision, tools__call=call)
            async with connected(script) as client:
                with pytest.raises(typedmcp.ConnectionLost, match="the stream ended before the answer came"):
                    await client.call_tool("x")

    run(main)


def test_an_older_server_says_and_asks_on_its_own_and_is_listened_to_again() -> None:
    script = Script(OLDER)

    async def get(request: Request, wire: Wire) -> None:
        wire.events()
        after = request.headers.get("last-event-id")
        if after is None:
            wire.event(told("message", level="info", data="one"), id="g1")
            wire.event(retry=10)
            wire.end()
        else:
            assert after == "g1"
            wire.event(told("message", level="info", data="one"), id="g1")
            wire.event(told("message", level="info", data="two"), id="g2")
            wire.event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}, id="g3")
            await wire.closed()

    async def main() -> None:
        script.handlers["GET"] = get
        logged: list[Any] = []
        async with connected(script, on_log=into(logged), roots=["file:///a"]):
            answer = await script.until("answer")
            assert answer.json == {"jsonrpc": "2.0", "id": "q", "result": {"roots": [{"uri": "file:///a"}]}}
            assert logged == ["one", "two"]

    run(main)


def test_a_question_in_the_stream_of_a_call_is_answered_in_a_request_of_its_own() -> None:
    script = Script(OLDER)

    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        wire.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        answer = await script.until("answer")
        wire.event({"jsonrpc": "2.0", "id": request.json["id"], "result": result(json.dumps(answer.json["result"]))})
        wire.end()

    async def main() -> None:
        script.handlers["tools/call"] = call
        async with connected(script) as client:
            assert text(await client.call_tool("x")) == "{}"

    run(main)


@pytest.mark.parametrize("in_event", [False, True])
def test_a_batch_is_understood(in_event: bool) -> None:
    async def call(request: Request, wire: Wire) -> None:
        batch = [
            told("message", level="info", data="in a batch"),
            {"jsonrpc": "2.0", "id": request.json["id"], "result": result("batched")},
        ]
        if in_event:
            wire.events()
            wire.event(batch)
            wire.end()
        else:
            wire.json(batch)

    async def main() -> None:
        logged: list[Any] = []
        script = Script("2025-03-26", tools__call=call)
        async with connected(script, on_log=into(logged)) as client:
            assert text(await client.call_tool("x")) == "batched"
            assert logged == ["in a batch"]

    run(main)


def test_an_answer_may_come_over_the_other_stream() -> None:
    script = Script(OLDER)

    async def get(request: Request, wire: Wire) -> None:
        wire.events()
        called = await script.until("tools/call")
        wire.event({"jsonrpc": "2.0", "id": called.json["id"], "result": result("over there")})
        await wire.closed()

    async def main() -> None:
        script.handlers = {"GET": get, "tools/call": lambda request, wire: wire.reply(202)}
        async with connected(script) as client:
            assert text(await client.call_tool("x")) == "over there"

    run(main)


# Sessions


def test_a_session_that_the_server_forgot_is_followed_by_another_and_the_call_made_again() -> None:
    script = Script(OLDER)

    def call(request: Request, wire: Wire) -> None:
        if request.headers["mcp-session-id"] == "session-1":
            wire.error(request, -32001, "Session not found", status=404)
        else:
            wire.result(request, result(request.headers["mcp-session-id"]))

    async def main() -> None:
        script.handlers["tools/call"] = call
        async with connected(script) as client:
            answers = await asyncio.gather(*(client.call_tool("x") for _ in range(5)))
            assert {text(answer) for answer in answers} == {"session-2"}
        assert len(script.of("initialize")) == 2
        assert [request.headers["mcp-session-id"] for request in script.of("DELETE")] == ["session-2"]

    run(main)


def test_calls_that_are_under_way_when_a_session_is_forgotten_get_their_answers() -> None:
    script = Script(OLDER)
    go = asyncio.Event()

    async def call(request: Request, wire: Wire) -> None:
        if request.json["params"]["name"] == "slow":
            await go.wait()
        if request.json["params"]["name"] == "slow" or request.headers["mcp-session-id"] != "session-1":
            wire.result(request, result(request.headers["mcp-session-id"]))
        else:
            wire.reply(404)

    async def main() -> None:
        script.handlers["tools/call"] = call
        async with connected(script) as client:
            slow = asyncio.create_task(client.call_tool("slow"))
            await script.until("tools/call")
            assert text(await client.call_tool("quick")) == "session-2"
            go.set()
            assert text(await slow) == "session-1"

    run(main)


def test_a_server_that_forgets_every_session_is_not_asked_for_ever() -> None:
    async def main() -> None:
        script = Script(OLDER, tools__call=lambda request, wire: wire.reply(404))
        async with connected(script) as client:
            with pytest.raises(typedmcp.ConnectionLost, match="does not know the session"):
                await client.call_tool("x")
        assert len(script.of("initialize")) == 2

    run(main)


def test_a_modern_server_that_does_not_know_a_method_says_so() -> None:
    async def main() -> None:
        async with connected(Script()) as client:
            with pytest.raises(typedmcp.MethodNotFound):
                await client.send("x/y")

    run(main)


# Cancelling


def test_a_modern_call_is_cancelled_by_closing_its_response() -> None:
    wires: list[Wire] = []

    async def call(request: Request, wire: Wire) -> None:
        wires.append(wire)
        if request.json["params"]["name"] == "stream":
            wire.events()
            wire.event(told("message", level="info", data="x"))
        await wire.closed()

    async def main() -> None:
        script = Script(tools__call=call)
        async with connected(script) as client:
            for count, name in ((1, "stream"), (2, "silence")):
                calling = asyncio.create_task(client.call_tool(name))
                await script.until("tools/call", count)
                calling.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await calling
                await asyncio.wait_for(wires[-1].ended.wait(), PATIENCE)
            with pytest.raises(typedmcp.RequestTimeout, match=r"tools/call \(id \d+\): no answer within 0\.05 s"):
                await client.call_tool("silence", timeout=0.05)
            await asyncio.wait_for(wires[-1].ended.wait(), PATIENCE)
        assert script.of("notifications/cancelled") == []

    run(main)


def test_an_older_call_is_cancelled_by_saying_so() -> None:
    async def main() -> None:
        script = Script(OLDER, tools__call=lambda request, wire: wire.closed())
        async with connected(script) as client:
            calling = asyncio.create_task(client.call_tool("x"))
            called = await script.until("tools/call")
            calling.cancel()
            cancelled = await script.until("notifications/cancelled")
            assert cancelled.json["params"]["requestId"] == called.json["id"]
            assert cancelled.headers["mcp-session-id"] == "session-1"
            with pytest.raises(typedmcp.RequestTimeout):
                await client.call_tool("x", timeout=0.05)
            await script.until("notifications/cancelled", 2)

    run(main)


def test_progress_gives_a_call_more_time_but_not_beyond_what_it_has_in_all() -> None:
    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        token = request.json["params"]["_meta"]["progressToken"]
        for step in range(1000):
            wire.event(told("progress", progressToken=token, progress=step))
            await wire.writer.drain()
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with connected(Script(tools__call=call)) as client:
            steps: list[Any] = []
            with pytest.raises(typedmcp.RequestTimeout, match=r"within 1 s"):
                await client.call_tool("x", timeout=0.4, max_time=1.0, on_progress=steps.append)
            assert len(steps) > 8

    run(main)


# Statuses


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind", "match"),
    [
        (401, {"WWW-Authenticate": 'Bearer realm="x"'}, b"", typedmcp.AuthorizationRequired, 'Bearer realm="x"'),
        (403, {}, b"not you", typedmcp.AuthorizationRequired, "does not allow it.*not you"),
        (429, {"Retry-After": "7"}, b"", typedmcp.ServerBusy, "try again in 7 s"),
        (503, {}, b"", typedmcp.ServerBusy, "try again later"),
        (500, {}, b"Internal\r\n  Error", typedmcp.HttpStatusError, "/mcp answered 500: Internal Error"),
        (502, {"Content-Type": "text/html"}, b"<html><p>Bad", typedmcp.HttpStatusError, "answered 502$"),
        (413, {"Content-Type": "application/json"}, b'{"detail": "too much"}', typedmcp.HttpStatusError, "too much"),
        (302, {"Location": "/login"}, b"", typedmcp.HttpStatusError, "redirects to /login with 302"),
        (307, {"Location": "https://evil.example/"}, b"", typedmcp.HttpStatusError, "another origin"),
        (307, {"Location": "ftp:x"}, b"", typedmcp.HttpStatusError, "which is no URL"),
        (307, {"Location": "/mcp"}, b"", typedmcp.HttpStatusError, "again and again"),
        (204, {}, b"", typedmcp.ProtocolError, "the answer is nothing"),
        (200, {"Content-Type": "text/html"}, b"<html>", typedmcp.ProtocolError, "the answer is text/html"),
        (200, {}, b"", typedmcp.ProtocolError, "the answer is nothing"),
    ],
)
def test_a_status_without_a_message_is_an_error_of_its_own(
    status: int, headers: dict[str, str], body: bytes, kind: type[Exception], match: str
) -> None:
    async def main() -> None:
        script = Script(tools__call=lambda request, wire: wire.reply(status, body, **headers))
        async with connected(script) as client:
            with pytest.raises(kind, match=match) as caught:
                await client.call_tool("x")
            assert "tools/call (id " in str(caught.value)
            if isinstance(caught.value, typedmcp.HttpStatusError):
                assert caught.value.status == status
            del script.handlers["tools/call"]
            assert text(await client.call_tool("y")) == "y"

    run(main)


def test_the_time_to_come_back_may_be_a_date() -> None:
    async def main() -> None:
        date = formatdate(time() + 90, usegmt=True)
        script = Script(tools__call=lambda request, wire: wire.reply(503, retry_after=date))
        async with connected(script) as client:
            with pytest.raises(typedmcp.ServerBusy) as caught:
                await client.call_tool("x")
            assert 80 < (caught.value.retry_after or 0) <= 90

    run(main)


@pytest.mark.parametrize("status", [200, 400, 404, 500])
@pytest.mark.parametrize("id", ["own", None, "missing", "server-error"])
def test_an_error_of_the_protocol_is_one_whatever_its_status_and_its_id(status: int, id: Any) -> None:
    def call(request: Request, wire: Wire) -> None:
        named = {} if id == "missing" else {"id": request.json["id"] if id == "own" else id}
        wire.json({"jsonrpc": "2.0", **named, "error": {"code": -31000, "message": "no"}}, status)

    async def main() -> None:
        async with connected(Script(tools__call=call)) as client:
            with pytest.raises(typedmcp.RemoteError, match="no") as caught:
                await client.call_tool("x")
            assert caught.value.code == -31000

    run(main)


def test_a_redirect_within_the_origin_is_followed_and_kept_to() -> None:
    async def main() -> None:
        class Moved(Script):
            async def answer(self, request: Request, wire: Wire) -> None:
                if request.target == "/mcp":
                    self.requests.append(request)
                    wire.reply(307, location="/mcp/?a=b")
                else:
                    await super().answer(request, wire)

        script = Moved()
        async with connected(script) as client:
            assert text(await client.call_tool("x")) == "x"
        assert [request.target for request in script.requests] == ["/mcp", "/mcp/?a=b", "/mcp/?a=b"]

    run(main)


# Who asks


def new(_refused: object) -> str:
    return "new"


def in_headers(_refused: object) -> dict[str, str]:
    return {"Authorization": "Bearer new"}


def none(_refused: object) -> None:
    return None


def two_lines(_refused: object) -> str:
    return "a\r\nb: c"


class Guarded(Script):
    """Lets only one token in."""

    token = "Bearer new"  # noqa: S105

    async def answer(self, request: Request, wire: Wire) -> None:
        if request.headers.get("authorization") == self.token:
            await super().answer(request, wire)
        else:
            self.requests.append(request)
            wire.reply(401, www_authenticate='Bearer error="invalid_token"')


def test_a_token_is_asked_for_and_asked_for_again_where_it_is_refused() -> None:
    asked: list[Any] = []

    async def auth(refused: typedmcp.AuthorizationRequired | None) -> str:
        asked.append(refused and (refused.status, refused.challenge))
        return "old" if refused is None else "new"

    async def main() -> None:
        script = Guarded()
        async with connected(script, auth=auth) as client:
            assert client.revision == MODERN
            await asyncio.gather(*(client.call_tool("x") for _ in range(3)))
            assert asked == [None, (401, 'Bearer error="invalid_token"')]
            Guarded.token = "Bearer newer"  # noqa: S105
            try:
                with pytest.raises(typedmcp.AuthorizationRequired, match="wants to know who asks"):
                    await client.call_tool("x")
            finally:
                Guarded.token = "Bearer new"  # noqa: S105
            assert len(asked) == 3

    run(main)


WAYS: list[tuple[Any, dict[str, str]]] = [("new", {}), (in_headers, {}), (None, {"authorization": "Bearer new"})]


@pytest.mark.parametrize(
    ("auth", "headers"),
    WAYS,
    ids=["token", "headers", "fixed"],
)
def test_what_says_who_asks_may_be_given_in_several_ways(auth: Any, headers: dict[str, str]) -> None:
    async def main() -> None:
        async with connected(Guarded(), auth=auth, headers=headers) as client:
            assert text(await client.call_tool("x")) == "x"

    run(main)


@pytest.mark.parametrize("auth", [None, "wrong", none], ids=["nothing", "wrong", "none"])
def test_whoever_is_not_let_in_learns_the_challenge_at_once(auth: Any) -> None:
    async def main() -> None:
        script = Guarded()
        with pytest.raises(typedmcp.AuthorizationRequired) as caught:
            async with connected(script, auth=auth):
                pass
        assert caught.value.challenge == 'Bearer error="invalid_token"'
        assert caught.value.status == 401
        assert len(script.requests) == 1

    run(main)


def test_name_and_password_of_a_url_are_sent_and_not_shown() -> None:
    async def main() -> None:
        script = Script()
        async with serving(script) as url:
            with_name = url.replace("http://", "http://ada:s%40crit@")
            async with connect(with_name) as client:
                await client.call_tool("x")
                script.handlers["tools/call"] = lambda request, wire: wire.reply(500)
                with pytest.raises(typedmcp.HttpStatusError) as caught:
                    await client.call_tool("x")
            assert "crit" not in str(caught.value)
        assert script.requests[0].headers["authorization"] == "Basic YWRhOnNAY3JpdA=="

    run(main)


# Changes


def test_a_subscription_is_a_stream_of_its_own_and_begun_again_where_it_breaks() -> None:
    script = Script()
    wires: list[Wire] = []

    async def listen(request: Request, wire: Wire) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.json["id"]}
        wires.append(wire)
        wire.events()
        wire.chunk(b":\r\n\r\n")
        wire.event(told("subscriptions/acknowledged", _meta=meta, notifications={"toolsListChanged": True}))
        wire.event(told("tools/list_changed", _meta=meta))
        if len(wires) > 1:
            await wire.closed()
        else:
            await asyncio.sleep(0)
            wire.close()

    async def main() -> None:
        script.handlers["subscriptions/listen"] = listen
        async with connected(script) as client:
            async with client.listen(tools=True) as changes:
                assert await anext(changes) == Changed("tools")
                await script.until("subscriptions/listen", 2)
                assert await anext(changes) == Changed("tools")
                assert text(await client.call_tool("x")) == "x"
            await asyncio.wait_for(wires[1].ended.wait(), PATIENCE)

    run(main)


def test_a_subscription_that_the_server_ends_is_over() -> None:
    async def listen(request: Request, wire: Wire) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.json["id"]}
        wire.events()
        wire.event(told("subscriptions/acknowledged", _meta=meta, notifications={}))
        wire.event({"jsonrpc": "2.0", "id": request.json["id"], "result": {"resultType": "complete", "_meta": meta}})
        wire.end()

    async def main() -> None:
        async with (
            connected(Script(subscriptions__listen=listen)) as client,
            client.listen(tools=True) as changes,
        ):
            with pytest.raises(StopAsyncIteration):
                await anext(changes)

    run(main)


def test_a_subscription_that_is_refused_is_not_tried_again() -> None:
    async def main() -> None:
        script = Script(subscriptions__listen=lambda request, wire: wire.reply(500))
        async with connected(script) as client:
            with pytest.raises(typedmcp.HttpStatusError):
                async with client.listen(tools=True):
                    pass
        assert len(script.of("subscriptions/listen")) == 1

    run(main)


# The two endpoints of 2024-11-05


class Two:
    """A server of 2024-11-05: events at one URL, messages at another."""

    def __init__(self, endpoint: str = "/post?session=1") -> None:
        self.endpoint = endpoint
        self.requests: list[Request] = []
        self.events: Wire | None = None

    async def answer(self, request: Request, wire: Wire) -> None:
        self.requests.append(request)
        if request.method == "GET":
            wire.events()
            wire.event(self.endpoint, type="endpoint")
            self.events = wire
            await wire.closed()
        elif request.target == "/mcp":
            wire.reply(405)
        else:
            self._post(request, wire)

    def _post(self, request: Request, wire: Wire) -> None:
        message = request.json
        assert self.events is not None
        wire.reply(202, b"Accepted")
        if message.get("method") == "initialize":
            said = {"capabilities": {}, "serverInfo": {"name": "two", "version": "1"}}
            self._say(message, {"protocolVersion": "2024-11-05", **said})
        elif message.get("method") == "tools/call":
            self._say(message, {"content": [{"type": "text", "text": message["params"]["name"]}]})
        elif message.get("method") == "tools/list":
            self.events.close()

    def _say(self, message: Any, value: Any) -> None:
        assert self.events is not None
        self.events.event({"jsonrpc": "2.0", "id": message["id"], "result": value}, type="message")


def test_a_server_with_two_endpoints_is_found_and_remembered() -> None:
    async def main() -> None:
        two = Two()
        async with connected(two) as client:
            assert client.revision == "2024-11-05"
            assert text(await client.call_tool("x")) == "x"
            seen = [(request.method, request.target.partition("?")[0]) for request in two.requests]
            assert seen[:3] == [("POST", "/mcp"), ("POST", "/mcp"), ("GET", "/mcp")]
            assert set(seen[3:]) == {("POST", "/post")}
            two.requests.clear()
            async with connect(str(client._target)):  # pyright: ignore[reportPrivateUsage]
                assert two.requests[0].method == "GET"

    run(main)


def test_a_stream_with_everything_that_ends_is_opened_again_by_the_next_call() -> None:
    async def main() -> None:
        async with connected(Two()) as client:
            with pytest.raises(typedmcp.ConnectionLost):
                await client.list_tools()
            assert text(await client.call_tool("x")) == "x"

    run(main)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1/post", "https://127.0.0.1/", "ftp://x", "//[", ""])
def test_messages_go_to_no_other_origin(endpoint: str) -> None:
    async def main() -> None:
        two = Two(endpoint)
        if endpoint == "":
            two._post = lambda request, wire: wire.reply(404)  # type: ignore[method-assign]
        with pytest.raises(typedmcp.HttpStatusError, match="answered 405"):
            async with connected(two):
                pass

    run(main)


def test_a_message_that_is_refused_ends_the_session_with_the_reason() -> None:
    class Refusing(Two):
        def _post(self, request: Request, wire: Wire) -> None:
            if request.json.get("method") == "tools/call":
                wire.reply(413, b"too much", content_type="text/plain")
            else:
                super()._post(request, wire)

    async def main() -> None:
        async with connected(Refusing()) as client:
            with pytest.raises(typedmcp.ConnectionLost, match=r"answered 413: too much"):
                await client.call_tool("x")

    run(main)


# What can be given


@pytest.mark.parametrize(
    ("target", "options", "match"),
    [
        (["server"], {"headers": {}}, "headers: only for URLs"),
        (["server"], {"auth": "x", "proxy": "http://x"}, "auth, proxy: only for URLs"),
        ("tcp://host:1", {"reconnects": 1}, "reconnects: only for URLs"),
        ("http://x", {"headers": {"a b": "c"}}, "'a b' is no header"),
        ("http://x", {"headers": {"a": "c\r\nd: e"}}, "'a' is no header"),
        ("http://x", {"headers": {"Mcp-Session-Id": "c"}}, "the header Mcp-Session-Id is the protocol's"),
        ("http://x", {"headers": {"Mcp-Param-A": "c"}}, "is the protocol's"),
        ("http://x", {"reconnects": -1}, "must not be negative"),
        ("http://x", {"proxy": "socks5://x"}, "is no URL of HTTP's"),
        ("http://", {}, "is no URL"),
        ("http://x:y/", {}, "is no URL"),
        ("https://x/a b", {}, "is no URL"),
        ("http:x", {}, "is no URL"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    target: Any, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(typedmcp.UsageError, match=match):
        connect(target, **options)


def test_a_token_with_a_line_end_is_no_header() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.UsageError, match="no header"):
            async with connected(Script(), auth=two_lines):
                pass

    run(main)


def test_nobody_is_there() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLost, match=r"http://127.0.0.1:1/mcp: .*"):
            async with connect("http://127.0.0.1:1/mcp"):
                pass

    run(main)


def test_the_blocking_client_takes_urls() -> None:
    async def main() -> None:
        async with serving(Guarded()) as url:
            assert await asyncio.to_thread(blocking, url) == "x"

    def blocking(url: str) -> str:
        with sync.connect(url, auth=new, timeout=PATIENCE) as client:
            return text(client.call_tool("x"))

    run(main)


def test_without_the_library_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['httptools'] = None\n"
        "import typedmcp\n"
        "try: typedmcp.connect('http://x/')\n"
        "except typedmcp.UsageError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "need the extra `http`" in said


def test_importing_the_client_imports_no_library_of_http() -> None:
    code = "import typedmcp, sys; typedmcp.connect; assert 'httptools' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Proxies and TLS


class Proxy:
    """Hands requests on, or opens tunnels."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def answer(self, request: Request, wire: Wire) -> None:
        self.requests.append(request)
        if request.method != "CONNECT":
            script = Script()
            await script.answer(request, wire)
            return
        host, _, port = request.target.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        wire.raw(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(wire.reader, writer), _copy(reader, wire.writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


def test_a_proxy_is_told_the_whole_url(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        for given in (True, False):
            proxy = Proxy()
            async with serving(proxy) as url:
                through = url.replace("/mcp", "").replace("http://", "http://me:pw@")
                if not given:
                    monkeypatch.setenv("http_proxy", through)
                async with connect("http://far.example/mcp?x", proxy=through if given else None) as client:
                    assert text(await client.call_tool("x")) == "x"
            assert {request.target for request in proxy.requests} == {"http://far.example/mcp?x"}
            assert {request.headers["host"] for request in proxy.requests} == {"far.example"}
            assert {request.headers["proxy-authorization"] for request in proxy.requests} == {"Basic bWU6cHc="}

    run(main)


def test_the_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        async with connected(Script()) as client:
            await client.call_tool("x")

    run(main)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of this machine, and its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", f"{path}.crt",
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl to make a certificate with")
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.mark.parametrize("tunnelled", [False, True])
def test_servers_with_tls_are_trusted_as_the_context_says(certificate: Path, tunnelled: bool) -> None:
    import ssl

    async def main() -> None:
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(certificate)
        proxy = Proxy()
        async with serving(proxy) as near, serving(Script(), theirs) as url:
            through = near.replace("/mcp", "") if tunnelled else None
            with pytest.raises(typedmcp.ConnectionLost, match="certificate"):
                async with connect(url, proxy=through):
                    pass
            mine = ssl.create_default_context(cafile=f"{certificate}.crt")
            async with connect(url, tls=mine, proxy=through) as client:
                assert text(await client.call_tool("x")) == "x"
        assert len(proxy.requests) == (2 if tunnelled else 0)

    run(main)


def test_more_calls_than_connections_wait_for_their_turn() -> None:
    async def main() -> None:
        async with connected(Script()) as client:
            answers = await asyncio.gather(*(client.call_tool(f"n{n}") for n in range(600)))
            assert [text(answer) for answer in answers] == [f"n{n}" for n in range(600)]
            assert len(pool_of(client)._idle) <= 32

    run(main)


def test_results_are_kept_as_long_as_the_server_says() -> None:
    async def main() -> None:
        kept: dict[str, Any] = {**NOTHING, "ttlMs": 60_000, "tools": []}
        script = Script(tools__list=lambda request, wire: wire.result(request, kept))
        async with connected(script) as client:
            await client.list_tools()
            await client.list_tools()
            assert len(script.of("tools/list")) == 1
            await client.ping()

    run(main)
