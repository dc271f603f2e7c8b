"""The headers of a call are compared with its arguments, whatever the list of tools depends on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import Served, ToolHandler, in_loop, run_loop, serving, tool
from typedmcp import Auth, Principal
from typedmcp.dialect import structs
from typedmcp.protocol import headers as mcp_headers
from typedmcp.server.slow_path import SlowPath

REGION = {"type": "string", "x-mcp-header": "Region"}
SCHEMA = {"type": "object", "properties": {"region": REGION}}
FORGED: dict[str, str | None] = {"mcp-param-region": "us"}
RIGHT: dict[str, str | None] = {"mcp-param-region": "eu"}


async def code_of(served: Served, headers: Any, name: str = "query", region: str = "eu") -> int | None:
    """Call a tool with an argument that a header repeats. Return the code of the error, or None."""
    return (await served.call(name, {"region": region}, headers=headers).reply()).code


async def assert_compared(served: Served, headers: dict[str, str | None] | None = None, name: str = "query") -> None:
    """Fail unless the headers of calls are compared, at the first call and at later ones."""
    for _ in range(3):
        assert await code_of(served, {**(headers or {}), **FORGED}, name) == -32020
        assert await code_of(served, headers, name) == -32020
        assert await code_of(served, {**(headers or {}), **RIGHT}, name) is None


# Servers


def made_server() -> typedmcp.Server:
    server = typedmcp.Server("test")

    @server.tool(input_schema=SCHEMA)
    async def query(region: str) -> str:
        return region

    @server.tool
    async def echo(text: str = "echo") -> str:
        return text

    return server


@in_loop
async def test_the_tools_of_a_server_are_compared() -> None:
    async with serving(made_server()) as served:
        await assert_compared(served)
        assert (await served.call("echo").reply()).text == "echo"
        assert (await served.call("unknown").reply()).code == -32602


@in_loop
async def test_middleware_that_needs_a_header_does_not_hide_tools() -> None:
    server = made_server()
    seen: list[str] = []

    @server.middleware
    async def need_tenant(ctx: Any, params: Any, call_next: Any) -> Any:
        seen.append(ctx.method)
        if ctx.headers["x-tenant"] != "a":
            raise ValueError
        return await call_next()

    async with serving(server) as served:
        await assert_compared(served, {"x-tenant": "a"})
        assert set(seen) == {"tools/call"}  # there were no requests for lists
        assert not served.reports


@in_loop
async def test_a_tool_of_a_mounted_server_is_compared() -> None:
    outer = typedmcp.Server("outer")
    outer.mount(made_server(), "inner")
    async with serving(outer) as served:
        await assert_compared(served, name="inner_query")


@in_loop
async def test_tools_that_only_middleware_has_are_compared() -> None:
    server = made_server()

    @server.middleware
    async def add_tool(ctx: Any, params: Any, call_next: Any) -> Any:
        if ctx.method == "tools/call" and params.name == "virtual":
            return structs.CallToolResult(content=[])
        result = await call_next()
        if ctx.method == "tools/list":
            result.tools = [*result.tools, tool("virtual", region=REGION)]
        return result

    async with serving(server) as served:
        await assert_compared(served, name="virtual")
        await assert_compared(served)


@in_loop
async def test_a_tool_that_is_replaced_is_compared_from_the_next_call_on() -> None:
    """The change is known before it has reached the store, through which other workers hear of it."""
    server = made_server()
    async with serving(server) as served:
        for _ in range(3):
            assert (await served.call("echo", {"text": "a"}).reply()).text == "a"

        async def echo(text: str = "echo") -> str:
            return text

        schema = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}
        server.add_tool(echo, input_schema=schema, replace=True)
        assert (await served.call("echo", {"text": "a"}).reply()).code == -32020
        server.add_tool(echo, replace=True)
        assert (await served.call("echo", {"text": "a"}).reply()).text == "a"


@in_loop
async def test_a_server_with_a_hub_of_its_own_compares_replaced_tools() -> None:
    server = made_server()
    async with serving(server, changes=typedmcp.Changes()) as served:
        await served.call("echo").reply()
        await served.call("echo").reply()
        server.remove_tool("echo")
        assert (await served.call("echo").reply()).code == -32602


@in_loop
async def test_calls_of_a_servers_tools_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(made_server()) as served:
        for _ in range(2):
            await served.call("echo").reply()
        monkeypatch.setattr(SlowPath, "dispatch", None)
        assert (await served.call("echo").reply()).text == "echo"


# Lists that depend on the request


class ByHeader(ToolHandler):
    """Lists its tools for one tenant only."""

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        result = await super().list_tools(params, ctx)
        if ctx.headers["x-tenant"] != "a":
            result.tools = []
        return result


class ByCapability(ToolHandler):
    """Lists its tools for clients that can be asked only."""

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        result = await super().list_tools(params, ctx)
        if ctx.client_capabilities.elicitation is None:
            result.tools = []
        return result


class WrongAnnotation(ToolHandler):
    """A handler with a tool whose annotation breaks the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = [*self.tools, tool("wrong", region={"type": "string", "x-mcp-header": "Not a header"})]

    async def wrong(self, _arguments: Any, _ctx: Any) -> str:
        return "called"


@in_loop
async def test_a_tool_whose_annotations_break_the_rules_is_not_called() -> None:
    async with serving(WrongAnnotation()) as served:
        for headers in (None, FORGED):
            reply = await served.call("wrong", {"region": "eu"}, headers=headers).reply()
            assert reply.code == -32603
        await assert_compared(served)
        assert served.kinds == ["invalid data"]
        assert "clients will reject the tool wrong" in served.reports[0].text


@in_loop
async def test_a_list_that_depends_on_headers_is_read_with_those_of_the_call() -> None:
    async with serving(ByHeader()) as served:
        assert await code_of(served, {"x-tenant": "b"}) is None  # a tool that this client cannot know
        await assert_compared(served, {"x-tenant": "a"})
        assert await code_of(served, {"x-tenant": "b"}) is None
        assert await code_of(served, {"x-tenant": "a"}) == -32020


@in_loop
async def test_a_list_that_depends_on_capabilities_is_read_with_those_of_the_call() -> None:
    async with serving(ByCapability()) as served:
        can: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        arguments = {"name": "query", "arguments": {"region": "eu"}}
        for _ in range(2):
            assert (await served.ask("tools/call", arguments).reply()).code is None
            assert (await served.ask("tools/call", arguments, meta=can).reply()).code == -32020


class ByMeta(ToolHandler):
    """Lists its tools for the requests of one tenant, which `_meta` names."""

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        result = await super().list_tools(params, ctx)
        if ctx.meta.get("com.example/tenant") != "a":
            result.tools = []
        return result


@in_loop
async def test_a_list_that_depends_on_metadata_is_read_with_that_of_the_call() -> None:
    async with serving(ByMeta()) as served:
        arguments = {"name": "query", "arguments": {"region": "eu"}}
        for _ in range(2):
            assert (await served.ask("tools/call", arguments).reply()).code is None
            own: dict[str, Any] = {"com.example/tenant": "a"}
            assert (await served.ask("tools/call", arguments, meta=own).reply()).code == -32020


class Fresh(ToolHandler):
    """Says how long its list of tools is fresh, and for whom."""

    def __init__(self, ttl_ms: int = 60_000, cache_scope: str = "public") -> None:
        super().__init__()
        self.ttl_ms = ttl_ms
        self.cache_scope: Any = cache_scope

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        result = await super().list_tools(params, ctx)
        result.cache_scope = self.cache_scope
        return result


ANN = Auth(lambda _: Principal("ann"), resource="https://mcp.test/mcp", issuers=["https://issuer.test"])


@each(
    ("handler", "auth", "reads"),
    [
        (Fresh(), None, 1),
        (Fresh(), ANN, 1),
        (Fresh(cache_scope="private"), ANN, 1),
        (Fresh(cache_scope="private"), None, 3),  # clients without a token cannot be told apart
        (Fresh(0), None, 3),
        (Fresh(0), ANN, 3),
        (Fresh(-1), None, 3),
    ],
)
@in_loop
async def test_a_list_is_kept_as_long_as_a_client_may_keep_it(handler: Fresh, auth: Auth | None, reads: int) -> None:
    async with serving(handler, **({} if auth is None else {"auth": auth})) as served:
        if auth is not None:
            served.bearer = "x"
        for _ in range(3):
            assert await code_of(served, FORGED) == -32020
        assert handler.listed == reads


@in_loop
async def test_of_a_list_that_is_not_kept_only_the_called_tool_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each call would take a time that grows with the number of tools."""
    examined: list[Any] = []
    header_params = mcp_headers.header_params

    def counted(schema: Any) -> Any:
        examined.append(schema)
        return header_params(schema)

    monkeypatch.setattr(mcp_headers, "header_params", counted)
    handler = Fresh(0)
    handler.tools = [*handler.tools, *(tool(f"other{number}") for number in range(20))]
    async with serving(handler) as served:
        for _ in range(3):
            assert await code_of(served, FORGED) == -32020
        await code_of(served, FORGED, "unknown")
        assert len(examined) == 3


@in_loop
async def test_the_first_page_that_is_outdated_ends_the_list() -> None:
    class Paged(Fresh):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            result = await super().list_tools(params, ctx)
            if params.cursor is None:
                result.next_cursor, result.ttl_ms = "more", 0
            return result

    handler = Paged()
    async with serving(handler) as served:
        for _ in range(3):
            assert await code_of(served, FORGED) == -32020
        assert handler.listed == 6


@in_loop
async def test_the_scopes_of_a_token_have_lists_of_their_own() -> None:
    scopes: list[frozenset[str]] = [frozenset()]

    class Scoped(Fresh):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            result = await super().list_tools(params, ctx)
            if "query" not in scopes[0]:
                result.tools = []
            return result

    auth = Auth(lambda _: Principal("ann", scopes[0]), resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(Scoped(), auth=auth) as served:
        served.bearer = "x"
        assert await code_of(served, FORGED) is None
        scopes[0] = frozenset(["query"])
        assert await code_of(served, FORGED) == -32020


# Lists that fail


class Unlisted(ToolHandler):
    """Raises an error instead of listing its tools, until it is mended."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error: BaseException | None = error

    async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
        result = await super().list_tools(params, ctx)
        if self.error is not None:
            raise self.error
        return result


@each("kind", [RuntimeError, SystemExit, asyncio.CancelledError])
@in_loop
async def test_a_call_is_rejected_if_the_list_fails(kind: type[BaseException]) -> None:
    async with serving(Unlisted(kind("a secret"))) as served:
        for _ in range(2):
            reply = await served.call("echo").reply()
            assert (reply.status, reply.code, reply.json["id"]) == (200, -32603, 1)
            assert "secret" not in reply.json["error"]["message"]
        assert served.kinds == ["internal error"] * 2
        assert (await served.ask("tools/list").reply()).code == -32603
        assert (await served.ask("server/discover").reply()).status == 200


@in_loop
async def test_an_error_of_the_list_is_the_error_of_the_call() -> None:
    async with serving(Unlisted(typedmcp.InsufficientScopeError("tools"))) as served:
        reply = await served.call("echo").reply()
        assert (reply.status, reply.code) == (403, -31403)


@in_loop
async def test_a_list_that_failed_is_read_again_for_the_next_call() -> None:
    handler = Unlisted(RuntimeError())
    async with serving(handler) as served:
        assert await code_of(served, RIGHT) == -32603
        handler.error = None
        await assert_compared(served)


@in_loop
async def test_a_call_is_rejected_if_the_list_does_not_end() -> None:
    class Endless(ToolHandler):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            result = await super().list_tools(params, ctx)
            result.next_cursor = "more"
            return result

    async with serving(Endless()) as served:
        assert (await served.call("echo").reply()).code == -32603
        assert "1000 pages" in served.reports[0].text


@in_loop
async def test_a_handler_without_a_list_has_no_headers_to_compare() -> None:
    class Bare:
        async def call_tool(self, params: Any, ctx: Any) -> structs.CallToolResult:
            return structs.CallToolResult(content=[structs.TextContent(text=params.name)])

    async with serving(Bare()) as served:
        for _ in range(2):
            assert (await served.call("any", headers=FORGED).reply()).text == "any"


@each("headers", [{"mcp-name": None}, {"mcp-name": "=?base64?*?="}, {"mcp-name": "echo"}])
@in_loop
async def test_a_call_whose_name_is_not_that_of_the_headers_is_rejected(headers: Any) -> None:
    async with serving() as served:
        for _ in range(2):
            assert await code_of(served, {**headers, **RIGHT}) == -32020
            assert (await served.call("echo").reply()).text == "echo"


@in_loop
async def test_a_list_may_send_messages_that_nobody_gets() -> None:
    class Talking(ToolHandler):
        async def list_tools(self, params: Any, ctx: Any) -> structs.ListToolsResult:
            await ctx.progress(1)
            await ctx.disconnect()
            assert ctx.principal is None
            return await super().list_tools(params, ctx)

    async with serving(Talking()) as served:
        meta = {"progressToken": 1}
        reply = await served.ask("tools/call", {"name": "echo", "arguments": {}}, meta=meta).reply()
        assert (reply.is_stream, reply.text) == (False, "echo")


@in_loop
async def test_a_change_on_another_worker_is_heard() -> None:
    async with serving(Fresh()) as served:
        await served.call("echo").reply()
        await served.app.state.publish("change", "tools", None)
        await run_loop()
        await served.call("echo").reply()
        assert served.handler.listed == 2
