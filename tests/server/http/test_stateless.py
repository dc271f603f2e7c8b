"""HTTP without sessions, on the newest revision: responses, headers, statuses, streams, subscriptions."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from typing import Any

import msgspec
import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import (
    ACCEPT,
    MODERN,
    Headers,
    OpenRequest,
    SessionClient,
    ToolHandler,
    base64_header,
    in_loop,
    message,
    messages,
    run_loop,
    serving,
    tool,
)
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp.dialect import models, structs
from typedmcp.revisions.features import SUPPORTED
from typedmcp.server.http.messages import AsgiMessage

VERSION = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def headers_for(method: str, **more: str) -> dict[str, str]:
    """Return the headers of a request."""
    return {"mcp-protocol-version": MODERN_REVISION, "mcp-method": method, **{f"mcp-{k}": v for k, v in more.items()}}


def body(method: str = "tools/call", id: Any = 1, **params: Any) -> bytes:
    return message(id=id, method=method, params={"_meta": MODERN, **params})


# Responses


@each(
    "name, arguments",
    [("echo", {"text": "a"}), ("turn", {}), ("report", {"steps": 0}), ("log", {"level": "error"}), ("report", {})],
)
@in_loop
async def test_a_response_without_earlier_messages_is_json(name: str, arguments: Any) -> None:
    async with serving() as served:
        reply = await served.call(name, arguments).reply()
        assert reply.status == 200
        assert reply.headers == {"content-type": "application/json", "content-length": str(len(reply.body))}
        assert reply.json["id"] == 1
        assert reply.json["result"]["resultType"] == "complete"


@each("waits", [False, True])
@in_loop
async def test_progress_makes_the_response_a_stream(waits: bool) -> None:
    async with serving() as served:
        meta = {"progressToken": "t"}
        reply = await served.call("report", {"steps": 3, "waits": waits}, meta=meta, id="x").reply()
        assert reply.status == 200
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.headers["x-accel-buffering"] == "no"
        assert "no-cache" in reply.headers["cache-control"]
        assert all((event.event, event.id, event.retry) == ("message", None, None) for event in reply.events)
        *progress, answer = messages(reply.events)
        assert [each["params"]["progress"] for each in progress] == [0, 1, 2]
        assert {each["params"]["progressToken"] for each in progress} == {"t"}
        assert (answer["id"], answer["result"]["content"][0]["text"]) == ("x", "reported")


@in_loop
async def test_progress_comes_on_the_stream_of_its_own_request() -> None:
    async with serving() as served:
        calls: dict[str, OpenRequest] = {}
        for token in ("a", "b", "c"):  # each begins while the others wait
            served.handler.entered.clear()
            calls[token] = served.call("report_and_wait", {}, meta={"progressToken": token}, id=token)
            await served.handler.entered.wait()
        served.handler.go.set()
        for token, call in calls.items():
            *progress, answer = messages((await call.reply()).events)
            assert [each["params"]["progressToken"] for each in progress] == [token, token]
            assert answer["id"] == token


@each("wanted, level, is_told", [("info", "info", True), ("error", "info", False)])
@in_loop
async def test_a_log_message_is_sent_if_the_request_asks_for_its_level(wanted: str, level: str, is_told: bool) -> None:
    async with serving() as served:
        reply = await served.call("log", {"level": level}, meta={LOG_LEVEL: wanted}).reply()
        assert reply.is_stream is is_told
        if is_told:
            assert messages(reply.events)[0]["params"] == {"level": level, "data": {"level": level}}
        assert reply.text == "logged"


@in_loop
async def test_progress_is_sent_before_the_result_is_ready() -> None:
    async with serving() as served:
        opened = served.call("report_and_wait", meta={"progressToken": 1})
        assert (await opened.next_message())["params"]["progress"] == 0
        assert (await opened.next_message())["params"]["progress"] == 1
        served.handler.go.set()
        assert (await opened.next_message())["result"]["content"][0]["text"] == "waited"
        assert await opened.rest() == []


@in_loop
async def test_the_end_of_a_stream_is_sent_with_the_last_messages() -> None:
    async with serving() as served:
        complete = served.call("report", {"steps": 3, "waits": False}, meta={"progressToken": 1})
        assert len(messages((await complete.reply()).events)) == 4
        assert [sent["type"] for sent in complete.sent] == ["http.response.start", "http.response.body"]
        waiting = served.call("report_and_wait", meta={"progressToken": 1})
        assert (await waiting.next_message())["params"]["progress"] == 0
        served.handler.go.set()
        await waiting.reply()
        assert b'"waited"' in waiting.sent[-1]["body"]


class Plain:
    """A handler of plain functions, one of which blocks."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.freed = threading.Event()
        self.cancelled: list[bool] = []

    def call_tool(self, params: structs.CallToolRequestParams, ctx: Any) -> structs.CallToolResult:
        return structs.CallToolResult(content=[structs.TextContent(text=params.name)], result_type="complete")

    @typedmcp.in_thread
    def read_resource(self, params: structs.ReadResourceRequestParams, ctx: Any) -> structs.ReadResourceResult:
        ctx.progress(1)
        if params.uri == "test://wait":
            self.entered.set()
            self.freed.wait(10)
            self.cancelled.append(ctx.cancelled)
        contents: list[Any] = [structs.TextResourceContents(uri=params.uri, text=threading.current_thread().name)]
        return structs.ReadResourceResult(contents=contents, ttl_ms=0, cache_scope="public", result_type="complete")


@in_loop
async def test_a_handler_of_plain_functions_is_served() -> None:
    async with serving(Plain()) as served:
        assert (await served.call("a").reply()).text == "a"


@each("has_token", [False, True])
@in_loop
async def test_a_handler_in_a_thread_sends_progress_and_its_result(has_token: bool) -> None:
    async with serving(Plain()) as served:
        meta = {"progressToken": 1} if has_token else {}
        reply = await served.ask("resources/read", {"uri": "test://a"}, meta=meta).reply()
        assert reply.is_stream is has_token
        assert "read_resource" in reply.answer["result"]["contents"][0]["text"]


@in_loop
async def test_a_handler_in_a_thread_sees_that_the_client_has_disconnected() -> None:
    handler = Plain()
    async with serving(handler) as served:
        opened = served.ask("resources/read", {"uri": "test://wait"})
        await asyncio.to_thread(handler.entered.wait, 5)
        opened.disconnect()
        await opened.done()
        handler.freed.set()
        while not handler.cancelled:
            await asyncio.sleep(0.001)
        assert handler.cancelled == [True]
        assert opened.sent == []


class Modelled:
    async def list_tools(self, params: models.PaginatedRequestParams, ctx: Any) -> models.ListToolsResult:
        schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
        tools = [models.Tool.model_validate({"name": "t", "inputSchema": schema})]
        return models.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="public", result_type="complete")

    async def call_tool(self, params: models.CallToolRequestParams, ctx: Any) -> models.CallToolResult:
        assert isinstance(params, models.CallToolRequestParams)
        if params.name == "report":
            await ctx.progress(1)
        text = json.dumps(params.arguments if isinstance(params.arguments, dict) else {})
        return models.CallToolResult(content=[models.TextContent(text=text)], result_type="complete")


@in_loop
async def test_handlers_on_pydantic_models_are_served() -> None:
    async with serving(Modelled(), codec="pydantic") as served:
        reply = await served.call("u", {"a": 1}).reply()
        assert (reply.status, reply.text) == (200, '{"a": 1}')
        reply = await served.call("t", {"a": "x"}, headers={"mcp-param-a": "x"}).reply()
        assert (reply.status, reply.text) == (200, '{"a": "x"}')
        assert (await served.call("t", {"a": "x"}, headers={"mcp-param-a": "y"}).reply()).code == -32020
        assert (await served.call("t", {"a": "x"}).reply()).code == -32020
        reply = await served.call("report", meta={"progressToken": 1}).reply()
        assert [each.get("method") for each in messages(reply.events)] == ["notifications/progress", None]
        opened = served.listen(toolsListChanged=True)
        assert (await opened.next_message())["params"]["notifications"] == {"toolsListChanged": True}
        served.app.stop()
        assert "resultType" in messages(await opened.rest())[-1]["result"]


@each("id", [0, -1, "", "1", "ü", 2**64])
@in_loop
async def test_a_response_has_the_id_of_its_request(id: Any) -> None:
    async with serving() as served:
        for name in ("echo", "turn", "fail"):
            assert (await served.call(name, id=id).reply()).answer["id"] == id
        assert (await served.ask("x/y", id=id).reply()).answer["id"] == id


@in_loop
async def test_several_clients_may_use_the_same_id_at_a_time() -> None:
    async with serving() as served:
        calls = [served.call("wait", {"text": f"{number}"}) for number in range(20)]
        await served.handler.entered.wait()
        calls[3].disconnect()
        await calls[3].done()
        served.handler.go.set()
        texts = [(await call.reply()).text for number, call in enumerate(calls) if number != 3]
        assert texts == [f"{number}" for number in range(20) if number != 3]


# Headers


HEADERS: list[tuple[str, str, dict[str, Any], Headers, int | None]] = [
    ("as it should be", "tools/call", {"name": "other"}, headers_for("tools/call", name="other"), None),
    ("white space around", "tools/call", {"name": "other"}, headers_for(" tools/call\t", name="\tother "), None),
    ("a name in Base64", "tools/call", {"name": "other"}, headers_for("tools/call", name=base64_header("other")), None),
    ("a name that is not ASCII", "tools/call", {"name": "ü"}, headers_for("tools/call", name=base64_header("ü")), None),
    ("a name of spaces", "tools/call", {"name": " "}, headers_for("tools/call", name=base64_header(" ")), None),
    ("an empty name", "tools/call", {"name": ""}, headers_for("tools/call", name=base64_header("")), None),
    (
        "a name like Base64",
        "tools/call",
        {"name": "=?base64?eA==?="},
        headers_for("tools/call", name=base64_header("=?base64?eA==?=")),
        None,
    ),
    ("a prompt", "prompts/get", {"name": "p"}, headers_for("prompts/get", name="p"), None),
    ("a resource", "resources/read", {"uri": "a://b"}, headers_for("resources/read", name="a://b"), None),
    ("what needs no name", "tools/list", {}, headers_for("tools/list"), None),
    ("a name that nothing needs", "tools/list", {}, headers_for("tools/list", name="x"), None),
    ("no version", "tools/list", {}, {"mcp-method": "tools/list"}, -32020),
    ("another version", "tools/list", {}, {**headers_for("tools/list"), "mcp-protocol-version": "2027-01-01"}, -32020),
    ("an older version", "tools/list", {}, {**headers_for("tools/list"), "mcp-protocol-version": "2025-11-25"}, -32020),
    ("an empty version", "tools/list", {}, {**headers_for("tools/list"), "mcp-protocol-version": ""}, -32020),
    ("no method", "tools/list", {}, {"mcp-protocol-version": MODERN_REVISION}, -32020),
    ("another method", "tools/list", {}, headers_for("tools/call"), -32020),
    ("a method in another case", "tools/list", {}, headers_for("Tools/List"), -32020),
    ("a method in Base64", "tools/list", {}, headers_for(base64_header("tools/list")), -32020),
    ("an empty method", "tools/list", {}, headers_for(""), -32020),
    ("the method of an unknown one is missing", "x/y", {}, {"mcp-protocol-version": MODERN_REVISION}, -32020),
    ("no name", "tools/call", {"name": "other"}, headers_for("tools/call"), -32020),
    ("another name", "tools/call", {"name": "other"}, headers_for("tools/call", name="echo"), -32020),
    ("a name in another case", "tools/call", {"name": "other"}, headers_for("tools/call", name="Other"), -32020),
    ("an empty name for one", "tools/call", {"name": "other"}, headers_for("tools/call", name=""), -32020),
    (
        "another name in Base64",
        "tools/call",
        {"name": "other"},
        headers_for("tools/call", name=base64_header("x")),
        -32020,
    ),
    ("Base64 in capitals", "tools/call", {"name": "x"}, headers_for("tools/call", name="=?BASE64?eA==?="), -32020),
    (
        "Base64 without its padding",
        "tools/call",
        {"name": "x"},
        headers_for("tools/call", name="=?base64?eA?="),
        -32020,
    ),
    (
        "Base64 with too much of it",
        "tools/call",
        {"name": "x"},
        headers_for("tools/call", name="=?base64?eA===?="),
        -32020,
    ),
    ("Base64 that is none", "tools/call", {"name": "x"}, headers_for("tools/call", name="=?base64?*?="), -32020),
    ("Base64 of no text", "tools/call", {"name": "x"}, headers_for("tools/call", name="=?base64?/w==?="), -32020),
    ("a name in Latin-1", "tools/call", {"name": "ü"}, headers_for("tools/call", name="ü"), -32020),
    (
        "a name in UTF-8",
        "tools/call",
        {"name": "ü"},
        headers_for("tools/call", name="ü".encode().decode("latin-1")),
        -32020,
    ),
    (
        "a name that only looks decoded",
        "tools/call",
        {"name": "=?base64?eA==?="},
        headers_for("tools/call", name="=?base64?eA==?="),
        -32020,
    ),
    (
        "a resource's other name",
        "resources/read",
        {"uri": "a://b"},
        headers_for("resources/read", name="a://B"),
        -32020,
    ),
    (
        "a resource that only looks decoded",
        "resources/read",
        {"uri": "=?base64?eA==?="},
        headers_for("resources/read", name="=?base64?eA==?="),
        -32020,
    ),
]


@each("is_first", [True, False], ids=["first", "later"])
@each("method, params, headers, code", [row[1:] for row in HEADERS], ids=[row[0] for row in HEADERS])
@in_loop
async def test_headers_must_agree_with_the_body(
    method: str, params: Any, headers: Headers, code: int | None, is_first: bool
) -> None:
    async with serving() as served:
        if not is_first:
            assert (await served.ask("server/discover").reply()).status == 200
        reply = await served.post(body(method, **params), headers)
        assert (reply.status, reply.code) == (200 if code is None else 400, code), reply.body
        assert reply.json["id"] == 1


@in_loop
async def test_white_space_around_a_header_is_ignored_in_later_requests() -> None:
    async with serving() as served:
        session = await served.session()
        for _ in range(3):
            spaced: dict[str, str | None] = {
                "mcp-protocol-version": f" {MODERN_REVISION}\t",
                "mcp-method": " tools/call",
            }
            assert (await served.call("echo", headers=spaced).reply()).status == 200
            padded = {name: f" {value} " for name, value in session.headers.items()}
            assert (await served.post(message(id=1, method="ping"), padded)).status == 200


@in_loop
async def test_an_absent_name_is_not_an_empty_one() -> None:
    async with serving() as served:
        for _ in range(2):
            assert (await served.ask("resources/read", {"uri": ""}).reply()).status == 200
            reply = await served.ask("resources/read", {"uri": ""}, headers={"mcp-name": None}).reply()
            assert (reply.status, reply.json["error"]["code"]) == (400, -32020)


@each("name", ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region"])
@each("is_other", [False, True])
@in_loop
async def test_a_repeated_header_is_rejected_with_the_id_of_the_request(name: str, is_other: bool) -> None:
    async with serving() as served:
        given = {**headers_for("tools/call", name="query"), "mcp-param-region": "eu"}
        twice = [(key.encode(), value.encode()) for key, value in given.items()]
        twice.append((name.encode(), b"x" if is_other else given[name].encode()))
        for _ in range(2):
            reply = await served.post(body(name="query", arguments={"region": "eu"}), twice)
            assert (reply.status, reply.code, reply.json["id"]) == (400, -32020, 1)
            assert name in reply.json["error"]["message"]


@each("content", [message(method="notifications/cancelled"), message(id=1, result={}), b"{", b""])
@in_loop
async def test_a_repeated_header_of_a_message_without_an_id_is_rejected_without_one(content: bytes) -> None:
    async with serving() as served:
        twice = [(name.encode(), b"x") for name in ("mcp-method", "mcp-method")]
        reply = await served.post(content, twice)
        assert (reply.status, reply.code, "id" in reply.json) == (400, -32020, False)


@each("sessions", [True, False])
@each("revision", LEGACY)
@in_loop
async def test_a_modern_body_under_the_header_of_an_older_revision_is_rejected(revision: str, sessions: bool) -> None:
    async with serving(sessions=sessions) as served:
        for _ in range(2):
            reply = await served.ask("tools/list", headers={"mcp-protocol-version": revision}).reply()
            assert (reply.status, reply.code, reply.json["id"]) == (400, -32020, 1)


REGION: list[tuple[str, Any, dict[str, str], bool]] = [
    ("all absent", {}, {}, True),
    ("a string", {"region": "eu"}, {"region": "eu"}, True),
    ("white space around", {"region": "eu"}, {"region": " eu\t"}, True),
    ("Base64", {"region": "Köln"}, {"region": base64_header("Köln")}, True),
    ("Base64 of what needs none", {"region": "eu"}, {"region": base64_header("eu")}, True),
    ("an empty string", {"region": ""}, {"region": ""}, True),
    ("spaces", {"region": " eu"}, {"region": base64_header(" eu")}, True),
    ("null", {"region": None}, {}, True),
    ("nested", {"where": {"zone": "z"}}, {"zone": "z"}, True),
    ("nested in null", {"where": None}, {}, True),
    ("nested in no object", {"where": 3}, {}, True),
    ("an integer", {"count": 42}, {"count": "42"}, True),
    ("an integer as 42.0", {"count": 42}, {"count": "42.0"}, True),
    ("42.0 as an integer", {"count": 42.0}, {"count": "42"}, True),
    ("a negative integer", {"count": -7}, {"count": "-7"}, True),
    ("zero", {"count": 0}, {"count": "0"}, True),
    ("the largest integer", {"count": 2**53 - 1}, {"count": "9007199254740991"}, True),
    ("true", {"dry": True}, {"dry": "true"}, True),
    ("false", {"dry": False}, {"dry": "false"}, True),
    (
        "all",
        {"region": "a", "count": 1, "dry": True, "where": {"zone": "z"}},
        {"region": "a", "count": "1", "dry": "true", "zone": "z"},
        True,
    ),
    ("missing", {"region": "eu"}, {}, False),
    ("missing for an empty string", {"region": ""}, {}, False),
    ("missing for false", {"dry": False}, {}, False),
    ("missing for zero", {"count": 0}, {}, False),
    ("missing for a nested one", {"where": {"zone": "z"}}, {}, False),
    ("another", {"region": "eu"}, {"region": "us"}, False),
    ("another case", {"region": "eu"}, {"region": "EU"}, False),
    ("there for null", {"region": None}, {"region": "null"}, False),
    ("there for nothing", {}, {"region": "eu"}, False),
    ("empty for nothing", {}, {"region": ""}, False),
    ("bad padding", {"region": "x"}, {"region": "=?base64?eA?="}, False),
    ("Latin-1", {"region": "ü"}, {"region": "ü"}, False),
    ("UTF-8", {"region": "ü"}, {"region": "ü".encode().decode("latin-1")}, False),
    ("only looks decoded", {"region": "=?base64?eA==?="}, {"region": "=?base64?eA==?="}, False),
    ("another integer", {"count": 42}, {"count": "43"}, False),
    ("a fraction", {"count": 42}, {"count": "42.5"}, False),
    ("an exponent", {"count": 100}, {"count": "1e2"}, False),
    ("hexadecimal", {"count": 16}, {"count": "0x10"}, False),
    ("digits without end", {"count": 1}, {"count": "1" * 5000}, False),
    ("True", {"dry": True}, {"dry": "True"}, False),
    ("1 for true", {"dry": True}, {"dry": "1"}, False),
    ("true for 1", {"dry": 1}, {"dry": "true"}, False),
    ("nested elsewhere", {"zone": "z", "where": {"zone": "y"}}, {"zone": "z"}, False),
]


@each("arguments, headers, agrees", [row[1:] for row in REGION], ids=[row[0] for row in REGION])
@in_loop
async def test_arguments_that_a_tool_mirrors_in_headers_are_compared(
    arguments: Any, headers: dict[str, str], agrees: bool
) -> None:
    class Query(ToolHandler):
        async def query(self, ctx: Any, **arguments: Any) -> str:
            return json.dumps(arguments)

    async with serving(Query()) as served:
        mirrored: dict[str, str | None] = {f"Mcp-Param-{name.title()}": value for name, value in headers.items()}
        reply = await served.call("query", arguments, headers=mirrored).reply()
        if agrees:
            assert json.loads(reply.text) == arguments
        else:
            assert (reply.status, reply.code, reply.json["id"]) == (400, -32020, 1)
            assert "Mcp-Param-" in reply.json["error"]["message"]


@in_loop
async def test_parameter_headers_that_no_tool_declares_are_ignored() -> None:
    async with serving() as served:
        assert (await served.call("echo", headers={"mcp-param-region": "x", "mcp-param-": "ü"}).reply()).status == 200
        assert (await served.ask("tools/list", headers={"mcp-param-region": "x"}).reply()).status == 200


@in_loop
async def test_arguments_are_checked_with_white_space_around_the_method() -> None:
    """They are checked after similar requests, too, before any tool was called."""
    async with serving() as served:
        assert (await served.ask("server/discover").reply()).status == 200
        headers: dict[str, str | None] = {"mcp-method": " tools/call", "mcp-param-region": "us"}
        assert (await served.call("query", {"region": "eu"}, headers=headers).reply()).code == -32020


@in_loop
async def test_the_list_of_tools_is_read_again_when_it_has_changed() -> None:
    async with serving() as served:
        served.handler.ttl_ms = 60_000
        for _ in range(3):
            assert (await served.call("query", {"region": "eu"}).reply()).code == -32020
        assert served.handler.listed == 1
        served.handler.tools = [tool("query", region={"type": "string"})]
        served.app.config.changes.tools_changed()
        await run_loop()
        assert (await served.call("other").reply()).status == 200
        assert served.handler.listed == 2
        served.handler.tools = [tool("other", text={"type": "string", "x-mcp-header": "Text"})]
        served.app.config.changes.tools_changed()
        await run_loop()
        assert (await served.call("other", {"text": "x"}).reply()).code == -32020


@in_loop
async def test_a_client_may_disconnect_while_the_list_of_tools_is_read() -> None:
    class Slow(ToolHandler):
        async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
            self.entered.set()
            await self.go.wait()
            return await super().list_tools(params, ctx)

    async with serving(Slow()) as served:
        calls = [served.call("query", {"region": "eu"}) for _ in range(3)]
        await served.handler.entered.wait()
        calls[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[0].done()
        calls[1].disconnect()
        served.handler.go.set()
        assert (await calls[2].reply()).code == -32020


@in_loop
async def test_a_list_that_changes_while_it_is_read_is_read_again() -> None:
    class Slow(ToolHandler):
        async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
            result = await super().list_tools(params, ctx)
            if self.listed == 1:
                self.entered.set()
                await self.go.wait()
            return result

    handler = Slow()
    handler.tools = [tool("other")]
    async with serving(handler) as served:
        first = served.call("other", {"text": "x"})
        await handler.entered.wait()
        handler.tools = [tool("other", text={"type": "string", "x-mcp-header": "Text"})]
        served.app.config.changes.tools_changed()
        await run_loop()
        handler.go.set()
        await first.reply()
        assert (await served.call("other", {"text": "x"}).reply()).code == -32020


@in_loop
async def test_a_tool_whose_headers_break_the_rules_is_reported_and_cannot_be_called() -> None:
    handler = ToolHandler()
    handler.tools = [tool("echo", text={"type": "number", "x-mcp-header": "Text"})]
    async with serving(handler) as served:
        assert (await served.call("echo", {"text": "x"}).reply()).code == -32603
        assert served.kinds == ["invalid data"]


@in_loop
async def test_tools_on_every_page_of_the_list_are_known() -> None:
    class Paged(ToolHandler):
        async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
            page = int(params.cursor) if isinstance(params.cursor, str) else 0
            result = structs.ListToolsResult(
                tools=[tool(f"t{page}", a={"type": "string", "x-mcp-header": "A"})],
                ttl_ms=0,
                cache_scope="public",
                result_type="complete",
            )
            if page < 4:
                result.next_cursor = str(page + 1)
            return result

    async with serving(Paged()) as served:
        for page in range(5):
            assert (await served.call(f"t{page}", {"a": "x"}).reply()).code == -32020
            assert (await served.call(f"t{page}", {"a": "x"}, headers={"mcp-param-a": "x"}).reply()).status == 200


# Statuses


REFUSED: list[tuple[str, bytes, dict[str, str], int, int, Any]] = [
    ("no JSON", b"{", headers_for("tools/list"), 400, -32700, None),
    ("not UTF-8", b'{"id": 1, "method": "\xff"}', headers_for("tools/list"), 400, -32700, 1),
    ("nothing", b"", headers_for("tools/list"), 400, -32700, None),
    ("blank", b" \r\n", headers_for("tools/list"), 400, -32700, None),
    ("a string", b'"x"', headers_for("tools/list"), 400, -32600, None),
    ("no method", b'{"jsonrpc": "2.0", "id": 1}', headers_for("tools/list"), 400, -32600, 1),
    ("no jsonrpc", b'{"method": "tools/list", "id": 1}', headers_for("tools/list"), 400, -32600, 1),
    (
        "an id of null",
        b'{"jsonrpc": "2.0", "method": "tools/list", "id": null}',
        headers_for("tools/list"),
        400,
        -32600,
        None,
    ),
    (
        "an id that is a fraction",
        b'{"jsonrpc": "2.0", "method": "tools/list", "id": 1.5}',
        headers_for("tools/list"),
        400,
        -32600,
        None,
    ),
    ("a batch", b"[" + body("tools/list") + b"]", headers_for("tools/list"), 400, -32600, None),
    ("an empty batch", b"[]", headers_for("tools/list"), 400, -32600, None),
    ("a result", b'{"jsonrpc": "2.0", "id": 1, "result": {}}', headers_for("tools/list"), 400, -32600, None),
    (
        "an error",
        b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}',
        headers_for("tools/list"),
        400,
        -32600,
        None,
    ),
    (
        "a result that is wrong",
        b'{"jsonrpc": "2.0", "id": 1, "result": 3}',
        headers_for("tools/list"),
        400,
        -32600,
        None,
    ),
    (
        "params that are an array",
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}',
        headers_for("tools/list"),
        400,
        -32600,
        1,
    ),
    ("an unknown method", body("x/y"), headers_for("x/y"), 404, -32601, 1),
    ("an older method", body("ping"), headers_for("ping"), 404, -32601, 1),
    (
        "a method that is not implemented",
        body("completion/complete", ref={"type": "ref/prompt", "name": "p"}, argument={"name": "a", "value": ""}),
        headers_for("completion/complete"),
        404,
        -32601,
        1,
    ),
    ("no _meta", message(id=1, method="tools/list", params={}), headers_for("tools/list"), 400, -32602, 1),
    ("no params", message(id=1, method="tools/list"), headers_for("tools/list"), 400, -32602, 1),
    (
        "initialize without _meta",
        message(
            id=1,
            method="initialize",
            params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
        ),
        headers_for("initialize"),
        404,
        -32601,
        1,
    ),
    ("ping without _meta", message(id=1, method="ping"), headers_for("ping"), 404, -32601, 1),
    (
        "no capabilities",
        message(id=1, method="tools/list", params={"_meta": {VERSION: MODERN_REVISION}}),
        headers_for("tools/list"),
        400,
        -32602,
        1,
    ),
    (
        "no version in _meta",
        message(id=1, method="tools/list", params={"_meta": {"a/b": 1}}),
        headers_for("tools/list"),
        400,
        -32602,
        1,
    ),
    ("a wrong parameter", body(name=3), headers_for("tools/call"), 400, -32602, 1),
    ("a parameter that is missing", body(), headers_for("tools/call"), 400, -32602, 1),
    (
        "a request without an id",
        message(method="tools/list", params={"_meta": MODERN}),
        headers_for("tools/list"),
        400,
        -32600,
        None,
    ),
    (
        "a wrong notification",
        message(method="notifications/cancelled", params={"requestId": []}),
        headers_for("x"),
        400,
        -32602,
        None,
    ),
    (
        "requestState that is not ours",
        body(name="name", requestState="x"),
        headers_for("tools/call", name="name"),
        400,
        -32602,
        1,
    ),
    (
        "a number beyond all",
        b'{"jsonrpc": "2.0", "id": 1' + b"0" * 5000 + b', "method": "x"}',
        headers_for("x"),
        400,
        -32700,
        None,
    ),
]


@each("content, headers, status, code, id", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
@in_loop
async def test_every_error_has_its_status_and_the_id_of_its_request(
    content: bytes, headers: Headers, status: int, code: int, id: Any
) -> None:
    async with serving() as served:
        reply = await served.post(content, headers)
        assert (reply.status, reply.code) == (status, code), reply.body
        assert reply.json.get("id", None) == id
        assert ("id" in reply.json) is (id is not None)
        assert (await served.call("echo").reply()).status == 200


@in_loop
async def test_the_error_for_a_deep_value_says_that_it_is_nested_too_deeply() -> None:
    async with serving() as served:
        for levels in (200, 20_000):
            deep = (
                b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":'
                + b'{"a":' * levels
                + b"1"
                + b"}" * (levels + 1)
            )
            reply = await served.post(deep, headers_for("tools/list"))
            assert (reply.status, reply.code, reply.json["id"]) == (400, -32700, 7)
            assert "nested too deeply: more than 200 levels" in reply.json["error"]["message"]
        assert (await served.call("echo").reply()).status == 200


@in_loop
async def test_a_handshake_leaves_nothing_in_the_stateless_session() -> None:
    """The metadata of one client must not be used for another."""
    async with serving() as served:
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        await served.post(message(id=1, method="initialize", params=params), headers_for("initialize"))
        await served.post(message(method="notifications/initialized"), headers_for("notifications/initialized"))
        assert served.app.stateless.session.metadata.session is None
        reply = await served.post(message(id=1, method="tools/list"), headers_for("tools/list"))
        assert (reply.status, reply.code) == (400, -32602)


@each("version", ["1999-01-01", "2027-01-01", "x", "2026-07-28x"])
@each("is_named", [True, False])
@in_loop
async def test_the_error_for_an_unknown_version_names_the_supported_ones(version: str, is_named: bool) -> None:
    async with serving() as served:
        meta = {**MODERN, VERSION: version} if is_named else {}
        content = message(id=1, method="tools/list", params={"_meta": meta} if meta else {})
        reply = await served.post(content, {**headers_for("tools/list"), "mcp-protocol-version": version})
        assert (reply.status, reply.code, reply.json["id"]) == (400, -32022, 1)
        assert reply.json["error"]["data"]["supported"] == list(SUPPORTED)
        assert reply.json["error"]["data"]["requested"] == version


@in_loop
async def test_a_modern_server_rejects_legacy_clients_with_its_versions() -> None:
    async with serving(revisions=[MODERN_REVISION]) as served:
        plain = message(id=1, method="tools/list", params={})
        reply = await served.post(plain)
        assert (reply.status, reply.code, reply.json["id"]) == (400, -32020, 1)
        reply = await served.post(plain, {"mcp-protocol-version": "2025-06-18", "mcp-method": "tools/list"})
        assert (reply.status, reply.code) == (400, -32022)
        client = {"capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        reply = await served.post(message(id=1, method="initialize", params={**client, "protocolVersion": LEGACY[0]}))
        assert (reply.status, reply.code, reply.json["error"]["data"]["supported"]) == (400, -32022, [MODERN_REVISION])
        for method in ("GET", "DELETE", "PUT", "OPTIONS", "HEAD"):
            reply = await served.request(method)
            assert (reply.status, reply.headers["allow"]) == (405, "POST")
        ignored: dict[str, str | None] = {"mcp-session-id": "x", "last-event-id": "y"}
        reply = await served.ask("tools/list", headers=ignored).reply()
        assert reply.status == 200
        assert "mcp-session-id" not in reply.headers


@in_loop
async def test_a_legacy_server_rejects_modern_clients() -> None:
    async with serving(revisions=["2025-06-18"]) as served:
        reply = await served.ask("tools/list").reply()
        assert (reply.status, reply.code) == (400, -32022)
        assert reply.json["error"]["data"]["supported"] == ["2025-06-18"]


@each("method", ["notifications/cancelled", "notifications/x"])
@each("meta", [{"_meta": MODERN}, {}])
@in_loop
async def test_notifications_are_accepted_and_unknown_ones_ignored(meta: dict[str, Any], method: str) -> None:
    async with serving() as served:
        params = {**meta, "requestId": 1}
        waiting = served.call("wait")
        await served.handler.entered.wait()
        reply = await served.post(message(method=method, params=params), headers_for(method))
        assert (reply.status, reply.body) == (202, b"")
        served.handler.go.set()
        assert (await waiting.reply()).text == "waited"  # only a client that disconnects cancels the request


TAKEN = [
    ("application/json", 200),
    ("application/json; charset=utf-8", 200),
    ("Application/JSON", 200),
    (" application/json ;x=y", 200),
    ("text/plain", 415),
    ("", 415),
    ("application/json-rpc", 415),
    ("application/x-www-form-urlencoded", 415),
    ("text/plain; application/json", 415),
]


@each("content_type, status", TAKEN)
@in_loop
async def test_only_json_is_accepted(content_type: str, status: int) -> None:
    async with serving() as served:
        for _ in range(2):
            reply = await served.ask("tools/list", headers={"content-type": content_type}).reply()
            assert reply.status == status
        assert (await served.ask("tools/list").reply()).status == 200
        assert (await served.ask("tools/list", headers={"content-type": content_type}).reply()).status == status


@in_loop
async def test_a_body_without_a_content_type_is_rejected() -> None:
    async with serving() as served:
        bare = [(b"host", b"localhost"), (b"accept", ACCEPT.encode()), *Raw.modern("tools/list")]
        assert (await served.post(body("tools/list"), bare, bare=True)).status == 415


class Raw:
    @staticmethod
    def modern(method: str) -> list[tuple[bytes, bytes]]:
        return [(name.encode(), value.encode()) for name, value in headers_for(method).items()]


ACCEPTED: list[tuple[list[str], int]] = [
    ([ACCEPT], 200),
    (["*/*"], 200),
    ([], 200),
    (["application/*, text/*"], 200),
    (["APPLICATION/JSON,TEXT/EVENT-STREAM"], 200),
    (["application/json;q=0.9 , text/event-stream;q=0.1"], 200),
    (["text/html, */*;q=0.1"], 200),
    (["application/json", "text/event-stream"], 200),
    (["text/event-stream", "application/json"], 200),
    (["application/json; charset=utf-8, text/event-stream"], 200),
    (["text/html"], 406),
    ([""], 406),
    (["application/jsonp, text/csv"], 406),
    (["text/event-stream;q=0, application/json;q=0.0"], 406),
]
STREAMS_ONLY = [
    "text/event-stream",
    "text/*",
    "Text/Event-Stream; charset=utf-8",
    "application/json;q=0, text/event-stream",
]
JSON_ONLY = [
    "application/json",
    "application/*",
    "Application/JSON; charset=utf-8",
    "application/json, text/event-stream;q=0",
]


@each("accept, status", ACCEPTED, ids=lambda value: repr(value))
@in_loop
async def test_clients_have_to_accept_json_and_event_streams(accept: list[str], status: int) -> None:
    async with serving() as served:
        own = [(b"host", b"localhost"), (b"content-type", b"application/json"), *Raw.modern("tools/list")]
        headers = [*own, *((b"accept", each.encode()) for each in accept)]
        for _ in range(2):
            assert (await served.post(body("tools/list"), headers, bare=True)).status == status


@each("strict", [False, True])
@each("accept", STREAMS_ONLY)
@in_loop
async def test_a_client_that_accepts_only_event_streams_gets_one(accept: str, strict: bool) -> None:
    async with serving(strict=strict) as served:
        headers: dict[str, str | None] = {"accept": accept}
        for name in ("echo", "turn", "echo", "no such tool"):  # a second request would match a template of the first
            reply = await served.call(name, headers=headers).reply()
            assert (reply.status, reply.is_stream) == ((406, False) if strict else (200, True))
            if not strict:
                assert int(reply.headers["content-length"]) == len(reply.body)
                assert reply.answer["id"] == 1
        # An error with a status of its own stays JSON: few clients read the stream of a response that is not 200.
        unknown = await served.ask("no/such", headers=headers).reply()
        assert (unknown.status, unknown.code) == ((406, -32600) if strict else (404, -32601))
        assert set(served.kinds) == (set() if strict else {"tolerated"})


@in_loop
async def test_a_session_is_used_with_event_streams_alone() -> None:
    async with serving() as served:
        only = {"accept": "text/event-stream"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        opened = await served.post(message(id=0, method="initialize", params=params), only)
        assert (opened.status, opened.is_stream, opened.answer["id"]) == (200, True, 0)
        session = SessionClient(served, "2025-11-25", opened.headers["mcp-session-id"], None)
        session.headers |= only
        assert (await session.notify("notifications/initialized")).status == 202
        for name in ("echo", "turn", "no such tool"):
            reply = await session.call(name).reply()
            assert (reply.status, reply.is_stream) == (200, True)


@each("strict", [False, True])
@each("accept", JSON_ONLY)
@in_loop
async def test_a_client_that_accepts_only_json_gets_json(accept: str, strict: bool) -> None:
    async with serving(strict=strict) as served:
        headers: dict[str, str | None] = {"accept": accept}
        for name in ("echo", "turn"):
            reply = await served.call(name, headers=headers).reply()
            assert reply.status == (406 if strict else 200)
        session = await served.session()
        session.headers["accept"] = accept
        for name in ("echo", "turn"):
            reply = await session.call(name).reply()
            assert reply.status == (406 if strict else 200)
            assert not reply.is_stream
        assert set(served.kinds) == (set() if strict else {"tolerated"})


@in_loop
async def test_what_needs_a_stream_fails_or_is_dropped_for_a_client_that_accepts_only_json() -> None:
    async with serving() as served:
        headers: dict[str, str | None] = {"accept": "application/json"}
        reply = await served.ask("tools/call", {"name": "report"}, meta={"progressToken": 1}, headers=headers).reply()
        assert (reply.text, reply.is_stream) == ("reported", False)
        assert served.kinds == ["tolerated", "dropped", "dropped"]
        assert "Accept" in served.reports[-1].text
        reply = await served.ask("subscriptions/listen", {"notifications": {}}, headers=headers).reply()
        assert (reply.status, reply.code, reply.json["id"]) == (406, -32600, 1)
        session = await served.session(capabilities={"roots": {}})
        session.headers["accept"] = "application/json"
        assert (await session.call("report", meta={"progressToken": 1}).reply()).text == "reported"
        assert (await session.call("roots").reply()).code == -32603


@in_loop
async def test_events_name_their_type_for_parsers_that_need_it() -> None:
    async with serving() as served:
        reply = await served.ask("tools/call", {"name": "report"}, meta={"progressToken": 1}).reply()
        assert reply.body.count(b"event: message\n") == len(reply.events) == 3
        session = await served.session()
        reply = await session.call("report", meta={"progressToken": 1}).reply()
        first, *others = reply.body.removesuffix(b"\n\n").split(b"\n\n")
        assert b"event:" not in first  # it has no data
        assert all(b"event: message\n" in event for event in others)


@in_loop
async def test_a_body_may_come_in_chunks_of_any_size() -> None:
    async with serving() as served:
        whole = body(name="other")
        headers = headers_for("tools/call", name="other")
        pieces: list[list[bytes]] = [
            [whole[at : at + 1] for at in range(len(whole))],
            [b"", whole],
            [whole, b""],
            [b"", b"", whole[:9], b"", whole[9:]],
        ]
        for chunks in pieces:
            assert (await served.post(chunks, headers)).text == "the tool other"


@in_loop
async def test_headers_are_compared_with_the_last_of_repeated_members() -> None:
    async with serving() as served:
        twice = body(name="last").replace(b'"name"', b'"name": "first", "name"')
        assert (await served.post(twice, headers_for("tools/call", name="last"))).text == "the tool last"
        assert (await served.post(twice, headers_for("tools/call", name="first"))).code == -32020
        twice = body("tools/list").replace(b'"method"', b'"method": "x/y", "method"')
        assert (await served.post(twice, headers_for("tools/list"))).status == 200
        assert (await served.post(twice, headers_for("x/y"))).code == -32020


@each(
    "member, other",
    [(b'"method"', b'"x"'), (b'"tools/call"', b"1"), (b'"tools/call"', b"null")],
    ids=["missing", "a number", "null"],
)
@in_loop
async def test_a_header_does_not_stand_in_for_the_method(member: bytes, other: bytes) -> None:
    good = body(name="echo", arguments={})
    broken = good.replace(member, other)
    assert broken != good
    async with serving() as served:
        for _ in range(3):
            assert (await served.post(broken, headers_for("tools/call", name="echo"))).status == 400
            assert (await served.post(good, headers_for("tools/call", name="echo"))).status == 200


# Failures


@each("raw", [b'{"a":\n NaN}', b"{\n", b"{}\n}", b'"\n\xff"'])
@in_loop
async def test_invalid_raw_json_in_a_result_is_not_sent(raw: bytes) -> None:
    class Encoding(ToolHandler):
        async def call_tool(self, params: Any, ctx: Any) -> structs.CallToolResult:
            content: Any = msgspec.Raw(raw if params.arguments else b'{"a":\n 1}')
            return structs.CallToolResult(content=[], structured_content=content, result_type="complete")

    async with serving(Encoding()) as served:
        for _ in range(3):
            good = await served.call("echo", {}).reply()
            assert good.json["result"]["structuredContent"] == {"a": 1}
            assert (await served.call("echo", {"broken": True}).reply()).code == -32603


@each("text", ["", "wind " * 50_000], ids=["small", "large"])
@in_loop
async def test_nan_is_never_sent_as_null(text: str) -> None:
    class Numbers(ToolHandler):
        async def call_tool(self, params: Any, ctx: Any) -> structs.CallToolResult:
            number = float(params.arguments["number"])
            content: list[structs.ContentBlock] = [structs.TextContent(text=text)]
            return structs.CallToolResult(content=content, structured_content={"x": [number]}, result_type="complete")

    async with serving(Numbers()) as served:
        for _ in range(3):
            good = await served.call("echo", {"number": "1.5"}).reply()
            assert good.json["result"]["structuredContent"] == {"x": [1.5]}
            assert (await served.call("echo", {"number": "nan"}).reply()).code == -32603


@in_loop
async def test_the_repr_of_a_request_has_no_credentials() -> None:
    async with serving() as served:
        seen: list[str] = []

        async def show(ctx: Any) -> str:
            seen.append(repr(ctx) + repr(ctx.channel))
            return ""

        served.handler.show = show
        for _ in range(2):
            await served.call("show", headers={"authorization": "Bearer secret"}).reply()
        assert len(seen) == 2
        assert "secret" not in str(seen)


@each("waits", [False, True])
@in_loop
async def test_the_details_of_a_failure_are_not_sent(waits: bool) -> None:
    async with serving() as served:
        reply = await served.call("fail", {"waits": waits}).reply()
        assert (reply.status, reply.code) == (200, -32603)
        assert b"secret" not in reply.body
        assert served.kinds == ["internal error"]
        assert "a secret" in served.reports[0].text


class Raising(ToolHandler):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    async def raising(self, ctx: Any, waits: bool, has_progress: bool = False) -> str:
        if has_progress:
            await ctx.progress(1)
        if waits:
            await asyncio.sleep(0)
        raise self.error


@each("has_progress", [False, True])
@each("waits", [False, True])
@each("kind", [SystemExit, asyncio.CancelledError, OSError, GeneratorExit, StopAsyncIteration])
@in_loop
async def test_every_exception_of_a_handler_gets_a_response_and_ends_nothing_else(
    kind: type[BaseException], waits: bool, has_progress: bool
) -> None:
    async with serving(Raising(kind("a secret"))) as served:
        opened = served.call("raising", {"waits": waits, "has_progress": has_progress}, meta={"progressToken": 1})
        reply = await opened.reply()
        assert (reply.status, reply.code, reply.is_stream) == (200, -32603, has_progress)
        assert (await served.call("echo").reply()).status == 200


ERRORS: list[tuple[typedmcp.RemoteError, int]] = [
    (typedmcp.InvalidParamsError("no", {"path": "x"}), 400),
    (typedmcp.MethodNotFoundError("x"), 404),
    (typedmcp.ResourceNotFoundError("a://b"), 400),
    (typedmcp.RemoteError(-1, "own"), 200),
    (typedmcp.RemoteError(-31403, "no data"), 403),
    (typedmcp.RemoteError(-31403, "odd", ["a"]), 403),
    (typedmcp.RemoteError(-31403, "odder", {"requiredScopes": [1, None]}), 403),
    (typedmcp.RemoteError(-31403, "oddest", {"requiredScopes": "a b"}), 403),
    (typedmcp.MissingCapabilityError({"sampling": {}}), 400),
]


@each("waits", [False, True])
@each("error, status", ERRORS, ids=lambda value: str(value))
@in_loop
async def test_errors_of_handlers_have_the_status_of_their_code(
    error: typedmcp.RemoteError, status: int, waits: bool
) -> None:
    async with serving(Raising(error), auth=None) as served:
        reply = await served.call("raising", {"waits": waits}).reply()
        assert (reply.status, reply.code) == (status, error.code)
        assert reply.json["error"]["message"] == error.message


@in_loop
async def test_a_result_that_cannot_be_encoded_is_an_internal_error() -> None:
    class Odd(ToolHandler):
        async def echo(self, ctx: Any, text: str = "") -> Any:
            raise typedmcp.RemoteError(1, "odd", {"x": object()})

    async with serving(Odd()) as served:
        assert (await served.call("echo").reply()).code == -32603


# Clients that disconnect


@each("raises", [False, True])
@each("name, ended", [("wait", ["cancelled"]), ("stubborn", ["kept on"]), ("report_and_wait", ["cancelled"])])
@in_loop
async def test_a_call_is_cancelled_when_the_client_disconnects(name: str, ended: list[str], raises: bool) -> None:
    async with serving() as served:
        opened = served.call(name, meta={"progressToken": 1}, raises=raises)
        await served.handler.entered.wait()
        before = len(opened.sent)
        opened.disconnect()
        await opened.done()
        assert served.handler.ended == ended
        assert len(opened.sent) == before or name == "report_and_wait"
        await served.assert_settled()
        assert served.reports == []


@in_loop
async def test_a_call_may_end_at_the_moment_its_client_disconnects() -> None:
    async with serving() as served:
        for order in (0, 1):
            served.handler.go.clear()
            served.handler.entered.clear()
            opened = served.call("wait")
            await served.handler.entered.wait()
            steps = [served.handler.go.set, opened.disconnect]
            for step in steps[:: 1 if order else -1]:
                step()
            await opened.done()
            await served.assert_settled()


@in_loop
async def test_a_handler_that_ignores_its_cancellation_is_awaited() -> None:
    class Slow(ToolHandler):
        async def slow(self, ctx: Any) -> str:
            self.entered.set()
            while not self.go.is_set():
                try:
                    await self.go.wait()
                except asyncio.CancelledError:
                    self.ended.append("no")
            await ctx.progress(1)
            return "slow"

    async with serving(Slow()) as served:
        opened = served.call("slow", meta={"progressToken": 1})
        await served.handler.entered.wait()
        opened.disconnect()
        while not served.handler.ended:
            await asyncio.sleep(0)
        assert not opened.is_done
        served.handler.go.set()
        await opened.done()
        assert opened.sent == []


@each("pieces", [[], [b'{"json']])
@in_loop
async def test_a_client_that_disconnects_during_its_body_leaves_nothing_behind(pieces: list[bytes]) -> None:
    async with serving() as served:
        opened = served.open("POST", headers_for("tools/list"), pieces, ends=False)
        await asyncio.sleep(0)
        opened.disconnect()
        await opened.done()
        assert opened.sent == []
        assert served.reports == []


@in_loop
async def test_a_slow_reader_slows_the_handler_that_awaits_its_progress() -> None:
    class Chatty(ToolHandler):
        steps = 0

        async def chatter(self, ctx: Any) -> str:
            for step in range(200):
                self.steps = step
                await ctx.progress(step, message="x" * 100)
            return "said"

    handler = Chatty()
    async with serving(handler, limits=typedmcp.Limits(http_stream_buffer_bytes=1000)) as served:
        opened = served.call("chatter", meta={"progressToken": 1}, held=True)
        for _ in range(50):
            await asyncio.sleep(0)
        assert handler.steps < 20
        opened.release()
        received = messages((await opened.reply()).events)
        assert [each["params"]["progress"] for each in received[:-1]] == [*range(200)]
        assert received[-1]["result"]["content"][0]["text"] == "said"


@in_loop
async def test_messages_are_dropped_for_a_client_that_does_not_read() -> None:
    class Flood(ToolHandler):
        async def flood(self, ctx: Any) -> str:
            for step in range(1000):
                ctx.progress(step, message="x" * 100)
                if step % 10 == 0:
                    await asyncio.sleep(0)
            return "flooded"

    async with serving(Flood(), limits=typedmcp.Limits(http_stream_buffer_bytes=1000)) as served:
        opened = served.call("flood", meta={"progressToken": 1}, held=True)
        while "dropped" not in served.kinds:
            await asyncio.sleep(0)
        assert all(stream.size < 10_000 for stream in served.app.state.streams)
        opened.release()
        assert (await opened.reply()).text == "flooded"


@in_loop
async def test_a_request_that_the_server_ends_is_answered() -> None:
    async with serving() as served:
        opened = served.call("wait")
        streamed = served.call("report_and_wait", meta={"progressToken": 1})
        await served.handler.entered.wait()
        await streamed.next_message()
        await streamed.next_message()
        for each in (opened, streamed):
            each.cancel()
            await each.done()  # servers would log an exception
            assert each.is_complete
        for error in (json.loads(opened.body)["error"], messages(streamed.arrived())[-1]["error"]):
            assert error["code"] == -31503
            assert error["message"].startswith("the server stopped before this call had ended")
        assert served.kinds == []


@in_loop
async def test_requests_beyond_the_limit_are_rejected() -> None:
    async with serving(limits=typedmcp.Limits(requests_in_flight=2)) as served:
        calls = [served.call("wait", id=number) for number in range(2)]
        await served.handler.entered.wait()
        reply = await served.call("wait", id=2).reply()
        assert (reply.code, reply.json["id"]) == (-32603, 2)
        served.handler.go.set()
        assert [(await call.reply()).status for call in calls] == [200, 200]
        assert (await served.call("wait", id=3).reply()).text == "waited"


# Input


ELICITS: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}


@in_loop
async def test_an_input_request_is_a_result_and_the_call_is_repeated() -> None:
    async with serving() as served:
        first = await served.call("name", meta=ELICITS).reply()
        assert first.status == 200
        result = first.json["result"]
        assert result["resultType"] == "input_required"
        ((key, question),) = result["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        answers = {key: {"action": "accept", "content": {"name": "Ann"}}}
        again = {"name": "name", "arguments": {}, "requestState": result["requestState"], "inputResponses": answers}
        second = await served.ask("tools/call", again, id=2, meta=ELICITS).reply()
        assert second.text == "accept {'name': 'Ann'}"
        other = {**again, "arguments": {"x": 1}}
        assert (await served.ask("tools/call", other, meta=ELICITS).reply()).code == -32602


@each("is_single", [False, True])
@in_loop
async def test_a_state_for_single_use_continues_its_call_once(is_single: bool) -> None:
    async with serving(state_signer=typedmcp.StateSigner(single_use=is_single)) as served:
        result = (await served.call("name", meta=ELICITS).reply()).json["result"]
        answers = {key: {"action": "decline"} for key in result["inputRequests"]}
        again = {"name": "name", "arguments": {}, "requestState": result["requestState"], "inputResponses": answers}
        replies = [await served.ask("tools/call", again, id=id, meta=ELICITS).reply() for id in (2, 3)]
        assert replies[0].text == "decline None"
        if is_single:
            assert (replies[1].status, replies[1].code) == (400, -32602)
        else:
            assert replies[1].text == "decline None"


@in_loop
async def test_the_error_names_the_capability_that_the_client_lacks() -> None:
    async with serving() as served:
        reply = await served.call("name").reply()
        assert (reply.status, reply.code) == (400, -32021)
        assert "elicitation" in reply.json["error"]["data"]["requiredCapabilities"]


class Remembers(ToolHandler):
    def __init__(self) -> None:
        super().__init__()
        self.contexts: list[weakref.ref[typedmcp.Context]] = []

    async def waits(self, ctx: typedmcp.Context) -> str:
        self.contexts.append(weakref.ref(ctx))
        await asyncio.sleep(0)
        return "x" * 100


@in_loop
async def test_a_call_that_waited_is_freed_with_its_response() -> None:
    async with serving(Remembers()) as served:
        gc.collect()
        gc.disable()
        try:
            assert (await served.call("waits").reply()).text == "x" * 100
            await asyncio.sleep(0)
            assert [context() for context in served.handler.contexts] == [None]
        finally:
            gc.enable()


# Subscriptions


@in_loop
async def test_a_listener_is_acknowledged_first_and_gets_the_changes_it_asked_for() -> None:
    async with serving() as served:
        opened = served.listen("a", toolsListChanged=True, resourceSubscriptions=["a://1", "a://2"])
        first = await opened.next_message()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["a://1", "a://2"],
        }
        changes = served.app.config.changes
        changes.prompts_changed()
        changes.resources_changed()
        changes.resource_updated("a://3")
        changes.resource_updated("a://2")
        changes.tools_changed()
        last_change = [await opened.next_message(), await opened.next_message()]
        assert [each["method"] for each in last_change] == [
            "notifications/resources/updated",
            "notifications/tools/list_changed",
        ]
        assert last_change[0]["params"]["uri"] == "a://2"
        assert all(each["params"]["_meta"][SUBSCRIPTION] == "a" for each in (first, *last_change))
        assert opened.arrived() == []


@in_loop
async def test_changes_that_are_made_together_are_sent_once_each() -> None:
    async with serving() as served:
        session = await served.session()
        streams = [served.listen("a", toolsListChanged=True, promptsListChanged=True), await session.listening()]
        await streams[0].next_message()
        changes = served.app.config.changes
        for _ in range(100):
            changes.prompts_changed()
            changes.tools_changed()
        await run_loop()
        for stream in streams:
            told = [each["method"] for each in messages(stream.arrived())]
            assert told == ["notifications/prompts/list_changed", "notifications/tools/list_changed"]


@in_loop
async def test_a_subscription_to_a_missing_feature_is_not_acknowledged() -> None:
    async with serving(Plain()) as served:
        wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": False}
        assert (await served.listen(**wanted).next_message())["params"]["notifications"] == {"toolsListChanged": True}


@in_loop
async def test_listeners_with_the_same_id_get_their_own_changes() -> None:
    async with serving() as served:
        tools = [served.listen(1, toolsListChanged=True) for _ in range(5)]
        prompts = [served.listen(1, promptsListChanged=True) for _ in range(5)]
        for each in (*tools, *prompts):
            await each.next_message()
        tools[0].disconnect()
        await tools[0].done()
        served.app.config.changes.tools_changed()
        for each in tools[1:]:
            assert (await each.next_message())["method"] == "notifications/tools/list_changed"
        assert all(each.arrived() == [] for each in prompts)
        assert served.streams == 9


@each("where", ["handler", "thread", "outside"])
@in_loop
async def test_changes_may_be_published_in_any_thread(where: str) -> None:
    async with serving() as served:
        opened = served.listen(toolsListChanged=True)
        await opened.next_message()
        changes = served.app.config.changes
        if where == "handler":
            assert (await served.call("change").reply()).text == "changed"
        elif where == "thread":
            await asyncio.to_thread(changes.tools_changed)
        else:
            changes.tools_changed()
        assert (await opened.next_message())["method"] == "notifications/tools/list_changed"


@each("how", ["close", "stop", "cancel"])
@in_loop
async def test_a_listener_gets_its_final_result_when_the_server_closes(how: str) -> None:
    async with serving() as served:
        opened = [served.listen(id, toolsListChanged=True) for id in (1, "b")]
        for each in opened:
            await each.next_message()
        if how == "close":
            await served.app.close()
        elif how == "stop":
            served.app.stop()
        else:
            for each in opened:
                each.cancel()
        for id, each in zip((1, "b"), opened, strict=True):
            cancelled, answer = messages(await each.rest())
            assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", id)
            assert answer["id"] == id
            assert answer["result"]["resultType"] == "complete"
            assert answer["result"]["_meta"][SUBSCRIPTION] == id
        if how == "close":
            await served.app.open()


@in_loop
async def test_the_lifespan_opens_and_closes_the_application() -> None:
    async with serving() as served:
        await served.app.close()
        inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        outbox: asyncio.Queue[AsgiMessage] = asyncio.Queue()
        running = asyncio.create_task(served.app({"type": "lifespan"}, inbox.get, outbox.put))
        inbox.put_nowait({"type": "lifespan.startup"})
        assert await outbox.get() == {"type": "lifespan.startup.complete"}
        opened = served.listen(toolsListChanged=True)
        await opened.next_message()
        inbox.put_nowait({"type": "lifespan.shutdown"})
        assert await outbox.get() == {"type": "lifespan.shutdown.complete"}
        await running
        assert opened.is_complete
        assert messages(opened.arrived())[-1]["result"]["resultType"] == "complete"


@in_loop
async def test_without_a_lifespan_the_first_request_opens_the_application() -> None:
    async with serving() as served:
        await served.app.close()
        calls = [served.call("turn", id=number) for number in range(5)]
        assert [(await call.reply()).text for call in calls] == ["turned"] * 5


@in_loop
async def test_changes_are_merged_while_a_listener_does_not_read() -> None:
    async with serving(limits=typedmcp.Limits(http_stream_buffer_bytes=2000)) as served:
        uris = [f"a://{number}" for number in range(5)]
        opened = served.listen(toolsListChanged=True, resourceSubscriptions=uris)
        await opened.next_message()
        opened.hold()
        changes = served.app.config.changes
        for _ in range(1000):
            changes.tools_changed()
            for uri in uris:
                changes.resource_updated(uri)
            await asyncio.sleep(0)
        await run_loop()
        (stream,) = served.app.state.streams
        assert stream.size < 3000
        opened.release()
        await run_loop()
        assert 0 < len(messages(opened.arrived())) < 40
        opened.hold()
        changes.prompts_changed()
        changes.tools_changed()
        opened.release()
        assert (await opened.next_message())["method"] == "notifications/tools/list_changed"

        def held() -> list[Any]:
            listeners = served.app.stateless.session.subscriptions._listeners  # pyright: ignore[reportPrivateUsage]
            return [change for listener in listeners for change in listener.delayed]

        assert held() == []


@in_loop
async def test_a_held_back_change_comes_once_the_client_reads_again() -> None:
    async with serving(limits=typedmcp.Limits(http_stream_buffer_bytes=1)) as served:
        opened = served.listen(toolsListChanged=True, promptsListChanged=True)
        await opened.next_message()
        opened.hold()
        changes = served.app.config.changes
        changes.tools_changed()  # has been sent, but is not received
        await run_loop()
        for _ in range(100):
            changes.prompts_changed()
            changes.tools_changed()
            await asyncio.sleep(0)
        await run_loop()
        opened.release()
        await run_loop()
        last_change = [each["method"].split("/")[1] for each in messages(opened.arrived())]
        assert last_change == ["tools", "prompts", "tools"]


@in_loop
async def test_all_changes_that_were_held_back_are_delivered() -> None:
    uris = [f"a://{number}/{'x' * 100}" for number in range(2000)]
    async with serving(limits=typedmcp.Limits(http_stream_buffer_bytes=10_000)) as served:
        opened = served.listen(resourceSubscriptions=uris)
        await opened.next_message()
        opened.hold()
        for _ in range(2):
            for uri in uris:
                served.app.config.changes.resource_updated(uri)
            await run_loop()
        (stream,) = served.app.state.streams
        assert stream.size < 20_000
        opened.release()
        last_change: list[str] = []
        while set(last_change) < set(uris):
            last_change.append((await opened.next_message())["params"]["uri"])
        assert len(last_change) < len(uris) + 200
        assert "dropped" not in served.kinds


@in_loop
async def test_a_quiet_stream_gets_comments() -> None:
    async with serving(keep_alive=0.02) as served:
        opened = served.listen(toolsListChanged=True)
        await opened.until(lambda: sum(part.get("body") == b":\n\n" for part in opened.sent) >= 3)
        assert len(messages(opened.arrived())) == 1


@in_loop
async def test_streams_beyond_the_limit_get_503() -> None:
    async with serving(limits=typedmcp.Limits(http_streams=2)) as served:
        opened = [served.listen(id) for id in range(2)]
        for each in opened:
            await each.next_message()
        reply = await served.listen(3).reply()
        assert reply.status == 503
        assert int(reply.headers["retry-after"]) > 0
        assert (await served.call("echo").reply()).text == "echo"
        assert (await served.call("report", meta={"progressToken": 1}).reply()).answer["id"] == 1
        assert served.kinds == ["limit reached", "dropped", "dropped"]
        opened[0].disconnect()
        await opened[0].done()
        assert (await served.listen(3).next_message())["params"]["_meta"][SUBSCRIPTION] == 3


@in_loop
async def test_a_listener_fails_at_the_limit_of_streams() -> None:
    async with serving(limits=typedmcp.Limits(http_streams=1)) as served:
        await served.listen(1).next_message()
        reply = await served.ask(
            "subscriptions/listen", {"notifications": {}}, headers={"mcp-method": " subscriptions/listen"}
        ).reply()
        assert reply.status == 503


@in_loop
async def test_a_closed_application_ends_its_listeners_at_once() -> None:
    async with serving(grace=1000) as served:
        opened = [served.listen(id, toolsListChanged=True) for id in range(50)]
        for each in opened:
            await each.next_message()
        await served.app.close()
        assert all(each.is_complete for each in opened)
        await served.app.open()


@in_loop
async def test_websockets_are_not_served() -> None:
    async with serving() as served:
        sent: list[AsgiMessage] = []

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(event: AsgiMessage) -> None:
            sent.append(event)

        await served.app({"type": "websocket", "path": "/mcp", "headers": []}, receive, send)
        assert [each["type"] for each in sent] == ["websocket.close"]
