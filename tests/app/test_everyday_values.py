"""The values that functions, handlers and clients see are plain: None or a default for absence, dicts for schemas."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest

import typedmcp
from mcpspec.v2026_07_28.exact import structs as exact
from tests.cases import each
from tests.server.scripted import SUPPORTED
from typedmcp import Client, Context, Diagnostic, DiagnosticKind, Server
from typedmcp.dialect import methods, models, structs

each_revision = each("revision", SUPPORTED)

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


class Handler:
    """Answers with members left out, by handlers' types of either library."""

    def __init__(self, types: Any) -> None:
        self.types = types
        self.params: list[Any] = []

    def list_tools(self, params: Any, ctx: Context) -> Any:
        self.params.append(params)
        tool = self.types.Tool(name="forecast", input_schema=SCHEMA, title=None)
        return self.types.ListToolsResult(tools=[tool], next_cursor=None)

    def call_tool(self, params: Any, ctx: Context) -> Any:
        self.params.append(params)
        arguments: dict[str, Any] = params.arguments or {}
        city = arguments.get("city", "nowhere")
        return self.types.CallToolResult(content=[self.types.TextContent(type="text", text=city)])


def decorated() -> Server:
    server = Server("plain")

    @server.tool(input_schema=SCHEMA)
    def forecast(**arguments: Any) -> str:
        return str(arguments.get("city", "nowhere"))

    return server


SERVERS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "handler on structs": (lambda: Handler(structs), {}),
    "handler on models": (lambda: Handler(models), {"codec": "pydantic"}),
    "decorated server": (decorated, {}),
}
each_server = each("make, options", SERVERS.values(), ids=SERVERS)


def talk(target: Any, revision: str, work: Callable[[Client], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        config = typedmcp.ServerConfig(target, **options)
        async with typedmcp.connect(config, revisions=[revision]) as client:
            await asyncio.wait_for(work(client), 60)

    asyncio.run(main())


@each_revision
@each_server
def test_a_client_reads_a_tool_like_any_object(make: Callable[[], Any], options: dict[str, Any], revision: str) -> None:
    async def work(client: Client) -> None:
        (tool,) = (await client.list_tools()).tools
        assert json.dumps({"description": tool.description}) == '{"description": null}'
        assert f"{tool.title}" == "None"
        assert (tool.description or "") == ""
        assert tool.input_schema["type"] == "object"
        assert "properties" in tool.input_schema
        assert json.loads(json.dumps(tool.input_schema)) == SCHEMA
        assert tool.output_schema is None
        assert copy.deepcopy(tool) == pickle.loads(pickle.dumps(tool)) == tool  # noqa: S301  # our own bytes
        match tool:
            case structs.Tool(name="forecast", annotations=None):
                pass
            case _:
                pytest.fail(f"{tool} has another form")

    talk(make(), revision, work, **options)


@each_revision
@each_server
def test_a_client_asks_a_success_whether_it_is_an_error(
    make: Callable[[], Any], options: dict[str, Any], revision: str
) -> None:
    async def work(client: Client) -> None:
        result = await client.call_tool("forecast", {"city": "Oslo"})
        assert not result.is_error
        assert result.is_error == False  # noqa: E712  # as people write it
        assert result.structured_content is None
        assert typedmcp.text_of(result) == "Oslo"
        assert typedmcp.text_of(await client.call_tool("forecast")) == "nowhere"

    talk(make(), revision, work, **options)


@each_revision
@each_server
def test_a_loop_over_pages_ends(make: Callable[[], Any], options: dict[str, Any], revision: str) -> None:
    async def work(client: Client) -> None:
        names, cursor = list[str](), None
        while True:
            page = await client.list_tools(cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert names == ["forecast"]

    talk(make(), revision, work, **options)


@each_revision
@each("types", [structs, models], ids=["structs", "models"])
def test_a_handler_gets_none_for_what_a_client_leaves_out(types: Any, revision: str) -> None:
    handler = Handler(types)

    async def work(client: Client) -> None:
        await client.list_tools()
        await client.call_tool("forecast")

    talk(handler, revision, work, codec="pydantic" if types is models else "msgspec")
    listing, call = handler.params
    assert listing.cursor is None
    assert call.arguments is None
    meta: dict[str, Any] = call.meta
    assert meta["io.modelcontextprotocol/protocolVersion"] == revision


def test_a_member_that_is_none_is_not_on_the_wire() -> None:
    assert "nextCursor" not in structs.to_builtins(structs.ListToolsResult(tools=[], next_cursor=None))


def test_the_types_are_imported_from_the_dialect() -> None:
    from typedmcp.dialect.models import Icon as IconModel
    from typedmcp.dialect.structs import Icon

    assert Icon is structs.Icon
    assert IconModel is models.Icon


# Null in optional members


@each_revision
@each("codec", ["msgspec", "pydantic"])
def test_null_for_an_optional_parameter_is_absence_and_is_reported(codec: Any, revision: str) -> None:
    handler, reports = Handler(structs if codec == "msgspec" else models), list[Diagnostic]()

    async def work(client: Client) -> None:
        result = await client.send(methods.TOOLS_CALL.name, {"name": "forecast", "arguments": None})
        assert result["content"] == [{"type": "text", "text": "nowhere"}]

    talk(handler, revision, work, codec=codec, on_diagnostic=reports.append)
    (report,) = [each for each in reports if each.kind is DiagnosticKind.TOLERATED]
    assert report.text == "params.arguments: null was read as absent"
    assert report.params == ["params.arguments"]


@each("revision", [revision for revision in SUPPORTED if revision >= "2025-06-18"])
def test_structured_content_tells_null_from_absence(revision: str) -> None:
    server = Server()

    @server.tool(input_schema=SCHEMA)
    def nothing(**arguments: Any) -> structs.CallToolResult:
        return structs.CallToolResult(content=[], structured_content=structs.NULL)

    async def work(client: Client) -> None:
        result = await client.call_tool("nothing")
        is_newest = revision == SUPPORTED[0]  # older revisions allow objects only
        assert result.structured_content is (structs.NULL if is_newest else None)
        assert not result.structured_content

    talk(server, revision, work)


# Exact types, for those who use them


class ExactHandler:
    def call_tool(self, params: Any, ctx: Context) -> exact.CallToolResult:
        content: list[Any] = [exact.TextContent(text=params.name), exact.ImageContent(data="", mime_type="image/png")]
        return exact.CallToolResult(content=content, structured_content={"a": 1}, result_type="complete")


@each_revision
def test_a_handler_may_return_exact_types(revision: str) -> None:
    async def work(client: Client) -> None:
        result = await client.call_tool("x")
        assert [type(block) for block in result.content] == [structs.TextContent, structs.ImageContent]
        assert not result.is_error

    talk(ExactHandler(), revision, work)


@each_revision
def test_a_function_may_return_exact_types(revision: str) -> None:
    server = Server()

    @server.tool
    def block() -> exact.TextContent:
        return exact.TextContent(text="a")

    @server.tool
    def blocks() -> list[Any]:
        return [exact.TextContent(text="a"), structs.TextContent(text="b")]

    @server.tool
    def whole() -> exact.CallToolResult:
        return exact.CallToolResult(content=[exact.TextContent(text="a")], result_type="complete")

    async def work(client: Client) -> None:
        for name, expected in (("block", ["a"]), ("blocks", ["a", "b"]), ("whole", ["a"])):
            result = await client.call_tool(name)
            assert [each.text for each in result.content if isinstance(each, structs.TextContent)] == expected
        assert [tool.output_schema for tool in (await client.list_tools()).tools if tool.name != "blocks"] == [None] * 2

    talk(server, revision, work)


@each_revision
def test_a_record_of_exact_types_returns_exact_types(revision: str) -> None:
    from mcpspec.v2026_07_28 import methods, models_methods

    async def work(client: Client) -> None:
        for record in (methods.TOOLS_LIST.exact, models_methods.TOOLS_LIST.exact, models_methods.TOOLS_LIST):
            page: Any = await client.send(record)
            assert type(page) is record.result
            assert page.tools[0].name == "forecast"

    talk(Handler(structs), revision, work)


# Results with an annotated content


class Weather(TypedDict):
    degrees: float


class WeatherModel(pydantic.BaseModel):
    degrees: float


@each("kind", [Weather, WeatherModel, msgspec.defstruct("WeatherStruct", [("degrees", float)])])
def test_the_content_of_a_whole_result_may_be_annotated(kind: Any) -> None:
    server = Server()

    def weather(is_valid: bool, is_error: bool = False) -> Any:
        content: dict[str, Any] = {"degrees": 3.5 if is_valid else "warm"}
        return structs.CallToolResult(content=[], structured_content=content, is_error=is_error)

    weather.__annotations__["return"] = Annotated[structs.CallToolResult, kind]
    server.tool(weather)

    async def work(client: Client) -> None:
        (tool,) = (await client.list_tools()).tools
        assert tool.output_schema is not None
        assert [*tool.output_schema["properties"]] == ["degrees"]
        assert (await client.call_tool("weather", {"is_valid": True})).structured_content == {"degrees": 3.5}
        wrong = await client.call_tool("weather", {"is_valid": False})
        assert wrong.is_error
        assert "does not fit its schema" in typedmcp.text_of(wrong)
        error = await client.call_tool("weather", {"is_valid": False, "is_error": True})
        assert error.structured_content == {"degrees": "warm"}

    talk(server, SUPPORTED[0], work)


def test_calling_a_servers_handler_like_a_client_says_how_to_call_a_tool() -> None:
    async def main() -> None:
        server: Any = decorated()
        with pytest.raises(typedmcp.UsageError, match=r"use `async with typedmcp\.connect\(server\) as client"):
            await server.call_tool("forecast", {})

    asyncio.run(main())
