"""The client over HTTP: the requests that it sends, and how it reads responses."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import (
    COMPLETE,
    MODERN,
    OLDER,
    PATIENCE,
    Handle,
    Request,
    Script,
    Wire,
    connected,
    notification,
    pool_of,
    result,
    serving,
)
from typedmcp import sync
from typedmcp.client import ChangeEvent, connect
from typedmcp.client.connection import opening
from typedmcp.client.http import session as http_session
from typedmcp.dialect import structs
from typedmcp.limits import Limits
from typedmcp.revisions.features import SUPPORTED, methods_of
from typedmcp.transports.http1 import parse_url
from typedmcp.transports.proxies import select_proxy
from typedmcp.transports.redaction import redact_url


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop of its own. Fails if a task is left."""

    async def checked() -> None:
        await asyncio.wait_for(main(), 2 * PATIENCE)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []

    asyncio.run(checked())


def collect(logged: list[Any]) -> Callable[[structs.LoggingMessageNotificationParams], None]:
    """Return a callback that collects log messages."""
    return lambda params: logged.append(params.data)


def text(given: structs.CallToolResult) -> str:
    (content,) = given.content
    assert isinstance(content, structs.TextContent)
    return content.text


# Headers of requests


def test_a_modern_request_repeats_method_and_name_in_headers() -> None:
    async def main() -> None:
        script = Script()
        async with connected(script, headers={"X-Team": "blue"}, revisions=[MODERN]) as client:
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


@each("revision", ["2025-03-26", "2025-06-18", OLDER])
def test_a_legacy_session_sends_its_id_in_every_request_and_is_deleted(revision: str) -> None:
    async def main() -> None:
        script = Script(revision)
        async with connected(script) as client:
            assert client.revision == revision
            await script.until("GET")
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
REGION_TOOL = {"name": "where", "inputSchema": {"type": "object", "properties": {"region": REGION}}}


def test_arguments_are_repeated_in_headers_once_the_tool_was_listed() -> None:
    async def main() -> None:
        script = Script()
        script.tools = [REGION_TOOL]
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


def test_a_call_with_missing_headers_is_repeated_with_them() -> None:
    def call(request: Request, wire: Wire) -> None:
        if request.headers.get("mcp-param-region") == "eu":
            wire.result(request, result("here"))
        else:
            wire.error(request, -32020, "Header mismatch", status=400)

    async def main() -> None:
        script = Script(tools__call=call)
        script.tools = [REGION_TOOL]
        async with connected(script) as client:
            assert text(await client.call_tool("where", {"region": "eu"})) == "here"
            with pytest.raises(typedmcp.HeaderMismatchError):
                await client.call_tool("where", {"region": "us"})
        assert len(script.of("tools/call")) == 4

    run(main)


def test_tools_with_invalid_header_annotations_are_left_out_and_reported() -> None:
    async def main() -> None:
        script = Script()
        number = {"type": "number", "x-mcp-header": "N"}
        script.tools = [REGION_TOOL, {"name": "bad", "inputSchema": {"type": "object", "properties": {"n": number}}}]
        reports: list[typedmcp.Diagnostic] = []
        async with connected(script, on_diagnostic=reports.append) as client:
            assert [tool.name async for tool in client.tools()] == ["where"]
            (report,) = reports
            assert report.kind == "invalid data"
            assert "'bad' is left out: x-mcp-header of n: only strings" in report.text

    run(main)


def test_header_annotations_of_legacy_servers_are_ignored() -> None:
    async def main() -> None:
        script = Script(OLDER)
        script.tools = [{"name": "bad", "inputSchema": {"type": "object", "x-mcp-header": ""}}]
        async with connected(script) as client:
            assert [tool.name async for tool in client.tools()] == ["bad"]

    run(main)


# Negotiation


REJECTIONS: dict[str, Handle] = {
    "empty": lambda request, wire: wire.reply(400),
    "page": lambda request, wire: wire.reply(404, b"<html>", content_type="text/html"),
    "session": lambda request, wire: wire.error(request, -32600, "no session", status=400),
    "method": lambda request, wire: wire.error(request, -32601, "Method not found"),
    "version": lambda request, wire: wire.error(request, -32022, "no", {"supported": [OLDER]}, status=400),
}


@each("refusal", REJECTIONS)
def test_a_server_that_rejects_discovery_is_a_legacy_server(refusal: str) -> None:
    async def main() -> None:
        async with connected(Script(OLDER, server__discover=REJECTIONS[refusal])) as client:
            assert client.revision == OLDER

    run(main)


@each("status", [500, 502, 504])
def test_a_server_that_fails_at_the_first_request_is_not_taken_for_a_legacy_server(status: int) -> None:
    async def main() -> None:
        script = Script(server__discover=lambda request, wire: wire.reply(status, b"oops"))
        async with serving(script) as url:
            with pytest.raises(typedmcp.HttpStatusError, match=str(status)):
                await connect(url)
            assert script.of("initialize") == []
            del script.handlers["server/discover"]
            async with connect(url) as client:
                assert client.revision == MODERN

    run(main)


@each("seconds, probes", [(opening.KNOWN_SECONDS, 1), (0.0, 2)])
def test_a_legacy_server_is_remembered_for_a_limited_time(
    seconds: float, probes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "KNOWN_SECONDS", seconds)

    async def main() -> None:
        script = Script(OLDER)
        async with serving(script) as url:
            for _ in range(2):
                async with connect(url) as client:
                    assert client.revision == OLDER
        assert len(script.of("server/discover")) == probes

    run(main)


@each("code", [-32020, -32021])
def test_an_error_of_a_modern_server_does_not_lead_to_the_legacy_transport(code: int) -> None:
    async def main() -> None:
        script = Script(server__discover=lambda request, wire: wire.error(request, code, status=400))
        with pytest.raises(typedmcp.RemoteError) as caught:
            async with connected(script):
                pass
        assert caught.value.code == code
        assert [request.what for request in script.requests] == ["server/discover"]

    run(main)


def test_a_refused_version_is_an_error_that_names_the_supported_ones() -> None:
    async def main() -> None:
        data = {"supported": ["2099-01-01", 7, "\x1b[2J"], "requested": MODERN}
        script = Script(server__discover=lambda request, wire: wire.error(request, -32022, "no", data, status=400))
        with pytest.raises(typedmcp.UnsupportedVersionError) as caught:
            async with connected(script):
                pass
        assert str(caught.value) == r"server/discover (id 1): no; supported: 2099-01-01, \x1b[2J (-32022)"
        assert caught.value.supported == ["2099-01-01", "\x1b[2J"]

    run(main)


def test_a_request_is_repeated_if_the_server_rejects_a_version_that_it_supports() -> None:
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
        assert [request.what for request in script.requests[-3:]] == ["tools/call", "server/discover", "tools/call"]

    run(main)


def test_the_revision_of_a_server_is_remembered_until_it_fails() -> None:
    async def main() -> None:
        script = Script(OLDER)
        async with connected(script) as client:
            url = client._connection._opener.target  # pyright: ignore[reportPrivateUsage]
            await script.until("GET")
            script.requests.clear()
            async with connect(str(url)) as again:
                assert again.revision == OLDER
            assert script.requests[0].what == "initialize"
            script.revision = MODERN
            script.handlers["initialize"] = lambda request, wire: wire.error(request, -32601, status=404)
            async with connect(str(url)) as again:
                assert again.revision == MODERN

    run(main)


def test_a_modern_only_client_names_the_cause_with_a_legacy_server() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.HttpStatusError, match="answered 400: Bad Request: what is this"):
            async with connected(Script(OLDER), revisions=[MODERN]):
                pass

    run(main)


# Streams


@each("revision", [OLDER, MODERN])
def test_a_result_can_follow_notifications_in_a_stream(revision: str) -> None:
    async def call(request: Request, wire: Wire) -> None:
        token = request.json["params"]["_meta"]["progressToken"]
        wire.events()
        for step in (1, 2):
            wire.event(notification("progress", progressToken=token, progress=step))
        wire.chunk(b": still here\n\n")
        wire.event({"jsonrpc": "2.0", "id": request.json["id"], "result": result("streamed")})
        wire.end()

    async def main() -> None:
        steps: list[Any] = []
        async with connected(Script(revision, tools__call=call)) as client:
            assert text(await client.call_tool("x", on_progress=steps.append)) == "streamed"
            assert [step.progress for step in steps] == [1, 2]

    run(main)


def test_a_broken_stream_is_resumed_without_repeated_events() -> None:
    script = Script(OLDER)
    waits: list[float] = []

    async def call(request: Request, wire: Wire) -> None:
        token = request.json["params"]["_meta"]["progressToken"]
        wire.events()
        wire.event(id="a1", retry=150)
        wire.event(notification("progress", progressToken=token, progress=1), id="a2")
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
            wire.event(notification("progress", progressToken=id, progress=1), id="a2")
            wire.event(notification("progress", progressToken=id, progress=2), id="a3")
            wire.close()  # in the middle of an event
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


def test_a_stream_that_cannot_be_resumed_fails_the_call() -> None:
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
            await script.until("GET")
            with pytest.raises(typedmcp.ConnectionLostError, match="was not resumed"):
                await client.call_tool("x")
            assert len(script.of("GET")) == 1

    run(main)


QUOTED = {
    "text": (b"The service is being updated.\r\n", "; it ended with: The service is being updated."),
    "JSON": (b'{"jsonrpc":"2.0"}', '; it ended with: {"jsonrpc":"2.0"}'),
    "long text": (b"a" * 100_000, "; it ended with: " + "a" * 500 + "…"),
    "a page": (b"<html>Sign in</html>", "; it ended with: an HTML page, or other than text"),
    "half an event": (b'event: message\ndata: {"x', '; it ended with: event: message data: {"x'),
    "nothing": (b"", ""),
}


@each("name", QUOTED)
def test_what_comes_in_place_of_events_is_quoted(name: str) -> None:
    body, quoted = QUOTED[name]

    def call(request: Request, wire: Wire) -> None:
        wire.reply(200, body, content_type="text/event-stream")

    async def main() -> None:
        for revision in (OLDER, MODERN):
            async with connected(Script(revision, tools__call=call)) as client:
                with pytest.raises(typedmcp.ConnectionLostError) as caught:
                    await client.call_tool("x")
                assert str(caught.value).partition("): ")[2] == "the stream ended before the result came" + quoted

    run(main)


@each("id", ["a1", None])
def test_a_stream_that_ends_without_a_result_fails_the_call(id: str | None) -> None:
    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        wire.event(notification("message", level="info", data="x"), id=id)
        wire.end()

    async def main() -> None:
        for revision in (OLDER, MODERN) if id is None else (MODERN,):
            script = Script(revision, tools__call=call)
            async with connected(script) as client:
                with pytest.raises(typedmcp.ConnectionLostError, match="the stream ended before the result came"):
                    await client.call_tool("x")

    run(main)


def test_the_stream_of_server_messages_is_requested_again_after_its_end() -> None:
    script = Script(OLDER)

    async def get(request: Request, wire: Wire) -> None:
        wire.events()
        after = request.headers.get("last-event-id")
        if after is None:
            wire.event(notification("message", level="info", data="one"), id="g1")
            wire.event(retry=10)
            wire.end()
        else:
            assert after == "g1"
            wire.event(notification("message", level="info", data="one"), id="g1")
            wire.event(notification("message", level="info", data="two"), id="g2")
            wire.event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}, id="g3")
            await wire.closed()

    async def main() -> None:
        script.handlers["GET"] = get
        logged: list[Any] = []
        async with connected(script, on_log=collect(logged), roots=["file:///a"]):
            answer = await script.until("answer")
            assert answer.json == {"jsonrpc": "2.0", "id": "q", "result": {"roots": [{"uri": "file:///a"}]}}
            assert logged == ["one", "two"]

    run(main)


def test_a_server_request_in_the_stream_of_a_call_is_answered_with_a_post() -> None:
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


def test_an_answer_is_sent_again_if_the_server_had_closed_its_connection() -> None:
    script = Script(OLDER)

    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        for number in (1, 2):
            wire.event({"jsonrpc": "2.0", "id": number, "method": "ping"})
            await script.until("answer", number)
        await script.until("answer", 3)
        wire.event({"jsonrpc": "2.0", "id": request.json["id"], "result": result("done")})
        wire.end()

    def answer(_request: Request, wire: Wire) -> None:
        if len(script.of("answer")) == 2:
            wire.close()  # which the first answer has opened
        else:
            wire.reply(202)

    async def main() -> None:
        script.handlers.update({"tools/call": call, "answer": answer})
        reports: list[Any] = []
        async with connected(script, on_diagnostic=reports.append) as client:
            assert text(await client.call_tool("x")) == "done"
        assert reports == []

    run(main)


@each("in_event", [False, True])
def test_a_batch_of_responses_is_understood(in_event: bool) -> None:
    async def call(request: Request, wire: Wire) -> None:
        batch = [
            notification("message", level="info", data="in a batch"),
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
        async with connected(script, on_log=collect(logged)) as client:
            assert text(await client.call_tool("x")) == "batched"
            assert logged == ["in a batch"]

    run(main)


def test_a_result_can_arrive_on_the_stream_of_server_messages() -> None:
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


def test_a_lost_session_is_replaced_and_the_call_repeated() -> None:
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


def test_open_calls_of_a_lost_session_get_their_results() -> None:
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


def test_a_call_is_not_repeated_for_ever_if_every_session_is_lost() -> None:
    async def main() -> None:
        script = Script(OLDER, tools__call=lambda request, wire: wire.reply(404))
        async with connected(script) as client:
            with pytest.raises(typedmcp.ConnectionLostError, match="no longer knows the session"):
                await client.call_tool("x")
        assert len(script.of("initialize")) == 2

    run(main)


def test_an_unknown_method_raises_method_not_found_on_a_modern_server() -> None:
    async def main() -> None:
        async with connected(Script()) as client:
            with pytest.raises(typedmcp.MethodNotFoundError):
                await client.send("x/y")

    run(main)


# Cancelling


def test_a_modern_call_is_cancelled_by_closing_its_response_stream() -> None:
    wires: list[Wire] = []

    async def call(request: Request, wire: Wire) -> None:
        wires.append(wire)
        if request.json["params"]["name"] == "stream":
            wire.events()
            wire.event(notification("message", level="info", data="x"))
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
            with pytest.raises(typedmcp.RequestTimeoutError, match=r"tools/call \(id \d+\): no answer within 0\.05 s"):
                await client.call_tool("silence", timeout=0.05)
            await asyncio.wait_for(wires[-1].ended.wait(), PATIENCE)
        assert script.of("notifications/cancelled") == []

    run(main)


def test_a_legacy_call_is_cancelled_with_a_notification() -> None:
    async def main() -> None:
        script = Script(OLDER, tools__call=lambda request, wire: wire.closed())
        async with connected(script) as client:
            calling = asyncio.create_task(client.call_tool("x"))
            called = await script.until("tools/call")
            calling.cancel()
            cancelled = await script.until("notifications/cancelled")
            assert cancelled.json["params"]["requestId"] == called.json["id"]
            assert cancelled.headers["mcp-session-id"] == "session-1"
            with pytest.raises(typedmcp.RequestTimeoutError):
                await client.call_tool("x", timeout=0.05)
            await script.until("notifications/cancelled", 2)

    run(main)


def test_a_call_that_waits_for_others_until_its_timeout_names_the_limit_and_is_not_cancelled_at_the_server() -> None:
    async def main() -> None:
        script = Script(OLDER, tools__call=lambda request, wire: wire.closed())
        async with connected(script, limits=Limits(http_calls_in_flight=1)) as client:
            calling = asyncio.create_task(client.call_tool("first"))
            called = await script.until("tools/call")
            text = r"not sent within 0\.05 s: 1 calls are in progress \(http_calls_in_flight\)"
            with pytest.raises(typedmcp.RequestTimeoutError, match=text):
                await client.call_tool("second", timeout=0.05)
            calling.cancel()
            cancelled = await script.until("notifications/cancelled")
            assert cancelled.json["params"]["requestId"] == called.json["id"]
        assert [request.json["params"]["name"] for request in script.of("tools/call")] == ["first"]

    run(main)


def test_progress_extends_the_timeout_of_a_call_up_to_its_max_time() -> None:
    async def call(request: Request, wire: Wire) -> None:
        wire.events()
        token = request.json["params"]["_meta"]["progressToken"]
        for step in range(1000):
            wire.event(notification("progress", progressToken=token, progress=step))
            await wire.writer.drain()
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with connected(Script(tools__call=call)) as client:
            steps: list[Any] = []
            with pytest.raises(typedmcp.RequestTimeoutError, match=r"within 1 s"):
                await client.call_tool("x", timeout=0.4, max_time=1.0, on_progress=steps.append)
            assert len(steps) > 8

    run(main)


# Statuses


@each(
    "status, headers, body, kind, match",
    [
        (401, {"WWW-Authenticate": 'Bearer realm="x"'}, b"", typedmcp.AuthorizationRequiredError, 'Bearer realm="x"'),
        (403, {}, b"not you", typedmcp.AuthorizationRequiredError, "denies access.*not you"),
        (429, {"Retry-After": "7"}, b"", typedmcp.ServerBusyError, "try again in 7 s"),
        (503, {}, b"", typedmcp.ServerBusyError, "try again later"),
        (500, {}, b"Internal\r\n  Error", typedmcp.HttpStatusError, "/mcp answered 500: Internal Error"),
        (502, {"Content-Type": "text/html"}, b"<html><p>Bad", typedmcp.HttpStatusError, "answered 502$"),
        (413, {"Content-Type": "application/json"}, b'{"detail": "too much"}', typedmcp.HttpStatusError, "too much"),
        (302, {"Location": "/login"}, b"", typedmcp.HttpStatusError, "redirects to /login with 302"),
        (307, {"Location": "https://evil.example/"}, b"", typedmcp.HttpStatusError, "another origin"),
        (307, {"Location": "ftp:x"}, b"", typedmcp.HttpStatusError, "not a valid URL"),
        (307, {"Location": "/mcp"}, b"", typedmcp.HttpStatusError, "more than 5 times"),
        (204, {}, b"", typedmcp.ProtocolError, "the response has no content-type"),
        (200, {"Content-Type": "text/html"}, b"<html>", typedmcp.ProtocolError, "the content-type text/html"),
        (200, {}, b"", typedmcp.ProtocolError, "the response has no content-type"),
    ],
)
def test_a_status_without_a_message_raises_an_error_for_the_status(
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


def test_retry_after_can_be_a_date() -> None:
    async def main() -> None:
        date = formatdate(time() + 90, usegmt=True)
        script = Script(tools__call=lambda request, wire: wire.reply(503, retry_after=date))
        async with connected(script) as client:
            with pytest.raises(typedmcp.ServerBusyError) as caught:
                await client.call_tool("x")
            assert 80 < (caught.value.retry_after or 0) <= 90

    run(main)


@each("status", [200, 400, 404, 500])
@each("id", ["own", None, "missing", "server-error"])
def test_an_error_response_is_raised_whatever_its_status_and_id(status: int, id: Any) -> None:
    def call(request: Request, wire: Wire) -> None:
        named = {} if id == "missing" else {"id": request.json["id"] if id == "own" else id}
        wire.json({"jsonrpc": "2.0", **named, "error": {"code": -31000, "message": "no"}}, status)

    async def main() -> None:
        async with connected(Script(tools__call=call)) as client:
            with pytest.raises(typedmcp.RemoteError, match="no") as caught:
                await client.call_tool("x")
            assert caught.value.code == -31000

    run(main)


def test_a_redirect_within_the_origin_is_followed_and_remembered() -> None:
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


# Credentials


def new_token(_refused: object) -> str:
    return "new"


def in_headers(_refused: object) -> dict[str, str]:
    return {"Authorization": "Bearer new"}


def no_token(_refused: object) -> None:
    return None


def token_with_line_break(_refused: object) -> str:
    return "a\r\nb: c"


class GuardedServer(Script):
    """A server that accepts a single token."""

    token = "Bearer new"  # noqa: S105

    async def answer(self, request: Request, wire: Wire) -> None:
        if request.headers.get("authorization") == self.token:
            await super().answer(request, wire)
        else:
            self.requests.append(request)
            wire.reply(401, www_authenticate='Bearer error="invalid_token"')


def test_private_results_of_an_old_access_token_are_not_served() -> None:
    def members(request: Request, name: str) -> Any:
        """Return a list whose only item is named after the token of its request."""
        item = {"name": request.headers["authorization"].removeprefix("Bearer "), "inputSchema": {"type": "object"}}
        scope = "public" if name == "prompts" else "private"
        return {"resultType": "complete", "ttlMs": 60_000, "cacheScope": scope, name: [item]}

    async def main() -> None:
        script = GuardedServer(
            tools__list=lambda request, wire: wire.result(request, members(request, "tools")),
            prompts__list=lambda request, wire: wire.result(request, members(request, "prompts")),
        )
        tokens = iter(["one", "two"])

        def next_token(_refused: object) -> str:
            return next(tokens)

        script.token = "Bearer one"  # noqa: S105
        async with connected(script, auth=next_token) as client:
            for _ in range(2):
                assert [tool.name for tool in (await client.list_tools()).tools] == ["one"]
                assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["one"]
            script.token = "Bearer two"  # noqa: S105
            await client.call_tool("x")  # is rejected, and repeated with the new token
            for _ in range(2):
                assert [tool.name for tool in (await client.list_tools()).tools] == ["two"]
                assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["one"]  # public
        accepted = [each for each in script.requests if each.headers["authorization"] != "Bearer old"]
        assert [each.what for each in accepted].count("tools/list") == 2
        assert [each.what for each in accepted].count("prompts/list") == 1

    run(main)


def test_auth_is_called_for_a_token_and_again_if_the_token_is_rejected() -> None:
    auth_calls: list[Any] = []

    async def auth(refused: typedmcp.AuthorizationRequiredError | None) -> str:
        auth_calls.append(refused and (refused.status, refused.challenge))
        return "old" if refused is None else "new"

    async def main() -> None:
        script = GuardedServer()
        async with connected(script, auth=auth) as client:
            assert client.revision == MODERN
            await asyncio.gather(*(client.call_tool("x") for _ in range(3)))
            assert auth_calls == [None, (401, 'Bearer error="invalid_token"')]
            GuardedServer.token = "Bearer newer"  # noqa: S105
            try:
                with pytest.raises(typedmcp.AuthorizationRequiredError, match="access token is missing"):
                    await client.call_tool("x")
            finally:
                GuardedServer.token = "Bearer new"  # noqa: S105
            assert len(auth_calls) == 3

    run(main)


CREDENTIALS: list[tuple[Any, dict[str, str]]] = [("new", {}), (in_headers, {}), (None, {"authorization": "Bearer new"})]


@each(
    "auth, headers",
    CREDENTIALS,
    ids=["token", "headers", "fixed"],
)
def test_credentials_can_be_given_in_several_ways(auth: Any, headers: dict[str, str]) -> None:
    async def main() -> None:
        async with connected(GuardedServer(), auth=auth, headers=headers) as client:
            assert text(await client.call_tool("x")) == "x"

    run(main)


@each("auth", [None, "wrong", no_token], ids=["nothing", "wrong", "none"])
def test_a_rejected_request_without_auth_raises_the_challenge(auth: Any) -> None:
    async def main() -> None:
        script = GuardedServer()
        with pytest.raises(typedmcp.AuthorizationRequiredError) as caught:
            async with connected(script, auth=auth):
                pass
        assert caught.value.challenge == 'Bearer error="invalid_token"'
        assert caught.value.status == 401
        assert len(script.requests) == 1

    run(main)


def test_user_and_password_of_a_url_are_sent_and_never_shown() -> None:
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


def test_a_subscription_is_requested_again_if_its_stream_breaks() -> None:
    script = Script()
    wires: list[Wire] = []

    async def listen(request: Request, wire: Wire) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.json["id"]}
        wires.append(wire)
        wire.events()
        wire.chunk(b":\r\n\r\n")
        wire.event(notification("subscriptions/acknowledged", _meta=meta, notifications={"toolsListChanged": True}))
        wire.event(notification("tools/list_changed", _meta=meta))
        if len(wires) > 1:
            await wire.closed()
        else:
            await asyncio.sleep(0)
            wire.close()

    async def main() -> None:
        script.handlers["subscriptions/listen"] = listen
        async with connected(script) as client:
            async with client.listen(tools=True) as changes:
                assert await anext(changes) == ChangeEvent("tools")
                await script.until("subscriptions/listen", 2)
                assert await anext(changes) == ChangeEvent("tools")
                assert text(await client.call_tool("x")) == "x"
            await asyncio.wait_for(wires[1].ended.wait(), PATIENCE)

    run(main)


def test_a_subscription_that_the_server_ends_stops_the_iterator() -> None:
    async def listen(request: Request, wire: Wire) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": request.json["id"]}
        wire.events()
        wire.event(notification("subscriptions/acknowledged", _meta=meta, notifications={}))
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


def test_a_rejected_subscription_is_not_requested_again() -> None:
    async def main() -> None:
        script = Script(subscriptions__listen=lambda request, wire: wire.reply(500))
        async with connected(script) as client:
            with pytest.raises(typedmcp.HttpStatusError):
                async with client.listen(tools=True):
                    pass
        assert len(script.of("subscriptions/listen")) == 1

    run(main)


# HTTP with SSE of 2024-11-05


class LegacySseServer:
    """A server of 2024-11-05: an event stream at one URL, messages at another."""

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
            members: Any = {"capabilities": {"tools": {}}, "serverInfo": {"name": "two", "version": "1"}}
            self._respond(message, {"protocolVersion": "2024-11-05", **members})
        elif message.get("method") == "tools/call":
            self._respond(message, {"content": [{"type": "text", "text": message["params"]["name"]}]})
        elif message.get("method") == "tools/list":
            self.events.close()

    def _respond(self, message: Any, value: Any) -> None:
        assert self.events is not None
        self.events.event({"jsonrpc": "2.0", "id": message["id"], "result": value}, type="message")


def test_a_server_of_http_with_sse_is_found_and_remembered() -> None:
    async def main() -> None:
        two = LegacySseServer()
        async with connected(two) as client:
            assert client.revision == "2024-11-05"
            assert text(await client.call_tool("x")) == "x"
            seen = [(request.method, request.target.partition("?")[0]) for request in two.requests]
            assert seen[:3] == [("POST", "/mcp"), ("POST", "/mcp"), ("GET", "/mcp")]
            assert set(seen[3:]) == {("POST", "/post")}
            two.requests.clear()
            async with connect(str(client._connection._opener.target)):  # pyright: ignore[reportPrivateUsage]
                assert two.requests[0].method == "GET"

    run(main)


def test_the_next_call_opens_a_legacy_sse_stream_again() -> None:
    async def main() -> None:
        async with connected(LegacySseServer()) as client:
            with pytest.raises(typedmcp.ConnectionLostError):
                await client.list_tools()
            assert text(await client.call_tool("x")) == "x"

    run(main)


def test_http_with_sse_can_be_tried_first() -> None:
    async def main() -> None:
        two = LegacySseServer()
        async with connected(two, sse=True) as client:
            assert text(await client.call_tool("x")) == "x"
            assert [request.method for request in two.requests][:2] == ["GET", "POST"]
        script = Script(MODERN)
        async with connected(script, sse=True) as client:  # it speaks something else after all
            assert client.revision == MODERN
        assert [request.what for request in script.requests] == ["GET", "server/discover"]

    run(main)


def test_a_large_message_is_one_post_over_http_with_sse() -> None:
    async def main() -> None:
        server = LegacySseServer()
        async with connected(server, sse=True) as client:
            await client.call_tool("x", {"text": "a" * 100_000})
            await client.call_tool("x")
            posted = [request.body for request in server.requests if request.method == "POST"]
            assert [json.loads(body)["method"] for body in posted[-2:]] == ["tools/call"] * 2

    run(main)


def test_a_compressed_event_stream_of_http_with_sse_is_read() -> None:
    class Zipped(LegacySseServer):
        async def answer(self, request: Request, wire: Wire) -> None:
            if request.method == "GET":
                wire = ZippedWire(wire.reader, wire.writer)
            await super().answer(request, wire)

    class ZippedWire(Wire):
        coder: Any = None

        def events(self, **headers: Any) -> None:
            self.coder = zlib.compressobj(wbits=31)
            super().events(content_encoding="gzip", **headers)

        def chunk(self, data: bytes) -> None:
            super().chunk(self.coder.compress(data) + self.coder.flush(zlib.Z_SYNC_FLUSH))

    async def main() -> None:
        async with connected(Zipped()) as client:
            assert text(await client.call_tool("x")) == "x"
        with pytest.raises(typedmcp.ProtocolError, match="content-encoding gzip"):
            async with connected(Zipped(), strict=True):
                pass

    run(main)


@each("endpoint", ["http://127.0.0.1:1/post", "https://127.0.0.1/", "ftp://x", "//["])
def test_a_legacy_sse_server_cannot_name_another_origin(endpoint: str) -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.ProtocolError, match=r"/mcp: invalid URL to post to: .*"):
            async with connected(LegacySseServer(endpoint)):
                pass

    run(main)


@each("sse", [True, False])
@each("endpoint", ["/without/prefix", ""])
def test_an_error_says_where_a_legacy_sse_server_was_posted_to_and_what_named_that(endpoint: str, sse: bool) -> None:
    class WithoutPrefix(LegacySseServer):
        def _post(self, request: Request, wire: Wire) -> None:
            wire.reply(405, b"POST is not allowed", content_type="text/plain")

    async def main() -> None:
        expected = (
            rf"{endpoint or '/mcp'} answered 405.*; the event `endpoint` of http://[\d.:]+/mcp names where to post"
        )
        with pytest.raises(typedmcp.ConnectionLostError, match=expected):
            async with connected(WithoutPrefix(endpoint), sse=sse):
                pass

    run(main)


def test_a_rejected_message_ends_a_legacy_sse_session_with_the_reason() -> None:
    class Refusing(LegacySseServer):
        def _post(self, request: Request, wire: Wire) -> None:
            if request.json.get("method") == "tools/call":
                wire.reply(413, b"too much", content_type="text/plain")
            else:
                super()._post(request, wire)

    async def main() -> None:
        async with connected(Refusing()) as client:
            with pytest.raises(typedmcp.ConnectionLostError, match=r"answered 413: too much"):
                await client.call_tool("x")

    run(main)


# Options


@each(
    "target, options, match",
    [
        (["server"], {"headers": {}}, "headers: only for URLs"),
        (["server"], {"auth": "x", "proxy": "http://x"}, "auth, proxy: only for URLs"),
        ("tcp://host:1", {"reconnects": 1}, "reconnects: only for URLs"),
        ("http://x", {"headers": {"a b": "c"}}, "'a b' is not a valid header"),
        ("http://x", {"headers": {"a": "c\r\nd: e"}}, "'a' is not a valid header"),
        ("http://x", {"headers": {"Mcp-Session-Id": "c"}}, "Mcp-Session-Id is set by the protocol"),
        ("http://x", {"headers": {"Mcp-Param-A": "c"}}, "is set by the protocol"),
        ("http://x", {"headers": ["a: b"]}, "headers must be a mapping of names to values, not list"),
        ("http://x", {"reconnects": -1}, "must not be negative"),
        ("http://x", {"proxy": "socks5://x"}, "proxies with socks5 are not supported; give an HTTP proxy"),
        ("http://x", {"sse": "yes"}, "sse must be True or False"),
        ("http://", {}, "invalid URL"),
        ("http://x:y/", {}, "invalid URL"),
        ("https://x/a b", {}, "invalid URL"),
        ("http:x", {}, "invalid URL"),
    ],
)
def test_invalid_options_raise_usage_error_before_anything_is_sent(
    target: Any, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(typedmcp.UsageError, match=match):
        connect(target, **options)


def test_a_token_with_a_line_break_raises_usage_error() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.UsageError, match="not a valid header"):
            async with connected(Script(), auth=token_with_line_break):
                pass

    run(main)


def test_a_closed_port_raises_connection_lost() -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.ConnectionLostError, match=r"http://127.0.0.1:1/mcp: .*"):
            async with connect("http://127.0.0.1:1/mcp"):
                pass

    run(main)


def test_the_blocking_client_connects_to_urls() -> None:
    async def main() -> None:
        async with serving(GuardedServer()) as url:
            assert await asyncio.to_thread(blocking, url) == "x"

    def blocking(url: str) -> str:
        with sync.connect(url, auth=new_token, timeout=PATIENCE) as client:
            return text(client.call_tool("x"))

    run(main)


def test_a_missing_http_library_names_the_extra_to_install() -> None:
    code = (
        "import sys; sys.modules['httptools'] = None\n"
        "import typedmcp\n"
        "try: typedmcp.connect('http://x/')\n"
        "except typedmcp.UsageError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "a client of a URL needs the extra http: pip install" in output


def test_importing_the_client_loads_no_http_library() -> None:
    code = "import typedmcp, sys; typedmcp.connect; assert 'httptools' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Proxies and TLS


class Proxy:
    """A proxy that forwards requests and opens tunnels."""

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


async def call_through_proxies(url: str, start: str, monkeypatch: pytest.MonkeyPatch) -> list[Proxy]:
    """Call a tool through a proxy that is given, and through one of the environment. `start` begins their URLs."""
    proxies = [Proxy(), Proxy()]
    for proxy, given in zip(proxies, (True, False), strict=True):
        async with serving(proxy) as address:
            through = address.replace("/mcp", "").replace("http://", start)
            if not given:
                monkeypatch.setenv("http_proxy", through)
            async with connect(url, proxy=through if given else None) as client:
                assert text(await client.call_tool("x")) == "x"
    return proxies


def test_a_forwarding_proxy_gets_the_whole_url(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        for proxy in await call_through_proxies("http://far.example/mcp?x", "http://me:pw@", monkeypatch):
            assert {request.target for request in proxy.requests} == {"http://far.example/mcp?x"}
            assert {request.headers["host"] for request in proxy.requests} == {"far.example"}
            assert {request.headers["proxy-authorization"] for request in proxy.requests} == {"Basic bWU6cHc="}

    run(main)


def test_a_proxy_without_a_scheme_is_an_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        for proxy in await call_through_proxies("http://far.example/mcp", "", monkeypatch):
            assert proxy.requests

    run(main)


@each(
    "excluded, host, is_used",
    [
        ("10.0.0.0/8", "10.1.2.3", False),
        ("a.example, 10.1.2.3/8", "10.1.2.3", False),
        ("10.0.0.0/8", "11.1.2.3", True),
        ("10.0.0.0/8", "ten.example", True),
        ("fd00::/8", "[fd00::1]", False),
        ("not/a/network,far.example", "far.example", False),
    ],
)
def test_networks_may_be_excluded_from_the_proxy(
    excluded: str, host: str, is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example")
    monkeypatch.setenv("no_proxy", excluded)
    address, _ = parse_url(f"http://{host}/mcp")
    assert select_proxy(None, address) == ("http://proxy.example" if is_used else None)


@each("auth", ["the-token", "Bearer the-token", "bearer the-token"])
def test_a_token_may_be_given_with_its_scheme(auth: str) -> None:
    async def main() -> None:
        script = Script()
        async with connected(script, auth=auth) as client:
            await client.call_tool("x")
        sent = {request.headers["authorization"].removeprefix("Bearer ") for request in script.requests}
        assert sent == {auth if auth.startswith("bearer") else "the-token"}

    run(main)


def test_a_socks_proxy_of_the_environment_is_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5://me:secret@x")
    with pytest.raises(typedmcp.UsageError, match="socks5 are not supported") as caught:
        connect("https://far.example/mcp")
    assert "secret" not in str(caught.value)
    connect("https://far.example/mcp", proxy="")


SECRET_URLS = [
    "http://me:secret@host:port/mcp",
    "http://me:secret@/mcp",
    "https://me:sec/secret@host/mcp x",
    "https://me:sec?secret@host/mcp x",
    "https://me:sec#secret@host/mcp x",
    "https://me:se@secret@host/mcp x",
    "https://host/m cp?token=secret",
    "https://host/m cp#secret",
    "https://host/m cp?mail=a@b&token=secret",
    "htps://me:secret@host/mcp",
    "me:secret@host/mcp",
    "host/mcp?token=secret",
    "https://[::1/mcp?token=secret",
]


@each("url", SECRET_URLS)
def test_errors_do_not_show_what_may_be_secret_in_a_url(url: str) -> None:
    async def main() -> None:
        with pytest.raises(typedmcp.UsageError, match=r"invalid (URL|address)") as caught:
            async with connect(url):
                pass
        assert "secret" not in "".join(traceback.format_exception(caught.value, limit=0, chain=False))

    run(main)


def test_errors_show_the_rest_of_a_url() -> None:
    assert redact_url("https://me:pw@host:81/a/b?c=d#e") == "https://…@host:81/a/b…"
    assert redact_url("https://host/a") == "https://host/a"
    assert redact_url("wiki") == "wiki"


def test_the_proxy_of_the_environment_is_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        async with connected(Script()) as client:
            await client.call_tool("x")

    run(main)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a certificate of this machine and its key."""
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


@each("tunnelled", [False, True])
def test_the_tls_context_decides_which_servers_are_trusted(certificate: Path, tunnelled: bool) -> None:
    import ssl

    async def main() -> None:
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(certificate)
        proxy = Proxy()
        async with serving(proxy) as near, serving(Script(), theirs) as url:
            through = near.replace("/mcp", "") if tunnelled else None
            with pytest.raises(typedmcp.ConnectionLostError, match="certificate"):
                async with connect(url, proxy=through):
                    pass
            mine = ssl.create_default_context(cafile=f"{certificate}.crt")
            async with connect(url, tls=mine, proxy=through) as client:
                assert text(await client.call_tool("x")) == "x"
        assert len(proxy.requests) == (2 if tunnelled else 0)

    run(main)


def test_calls_beyond_the_limit_wait_for_their_turn() -> None:
    async def main() -> None:
        async with connected(Script()) as client:
            answers = await asyncio.gather(*(client.call_tool(f"n{n}") for n in range(600)))
            assert [text(answer) for answer in answers] == [f"n{n}" for n in range(600)]
            assert len(pool_of(client)._idle) <= 32

    run(main)


def test_results_are_cached_for_as_long_as_the_server_allows() -> None:
    async def main() -> None:
        kept: dict[str, Any] = {**COMPLETE, "ttlMs": 60_000, "tools": []}
        script = Script(tools__list=lambda request, wire: wire.result(request, kept))
        async with connected(script) as client:
            await client.list_tools()
            await client.list_tools()
            assert len(script.of("tools/list")) == 1
            await client.ping()

    run(main)


def test_every_request_but_the_call_of_a_tool_is_sent_again_on_a_closed_connection() -> None:
    requests = {name for version in SUPPORTED for name in methods_of(version).CLIENT_REQUESTS}
    tasks = {name for name in requests if name.startswith("tasks/")}  # the runtime sends none of them
    assert requests - tasks - {"tools/call"} == http_session._IDEMPOTENT  # pyright: ignore[reportPrivateUsage]


def test_the_length_of_a_request_is_named_as_old_proxies_expect_it() -> None:
    """A proxy that does not know the name in lower case adds a second length, and servers reject two."""
    heads: list[bytes] = []

    async def reject(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(reject, "127.0.0.1", 0)
        async with server:
            with pytest.raises(typedmcp.AuthorizationRequiredError):
                async with connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"):
                    pass
        assert heads
        assert all(b"\r\nContent-Length: " in head for head in heads)

    run(main)
