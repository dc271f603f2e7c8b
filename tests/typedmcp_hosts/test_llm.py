"""Tools for the APIs of language models: declarations, names, calls and results."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import enum
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, cast, get_args
from uuid import UUID

import msgspec
import pytest
from msgspec import Meta

import typedmcp
import typedmcp_hosts
from tests.cases import each
from tests.server.scripted import run
from tests.typedmcp_hosts.subsets import SUBSETS, find_refusals
from typedmcp import Image, Server, ToolError, UsageError
from typedmcp_hosts import LlmApi, call_for, tools_for
from typedmcp_hosts.schemas import MAX_SCHEMA_BYTES
from typedmcp_hosts.tools import api_name

APIS: tuple[LlmApi, ...] = get_args(LlmApi)
PNG = b"\x89PNG\r\n\x1a\n"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


class Circle(msgspec.Struct, tag="circle"):
    center: Point
    radius: float


class Square(msgspec.Struct, tag="square"):
    side: float


class Pair(NamedTuple):
    a: int
    b: str


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclasses.dataclass
class Tree:
    value: Point
    children: list[Tree] = dataclasses.field(default_factory=list["Tree"])


HINTS: list[Any] = [
    str, int, float, bool, None, bytes, Any, object, list, dict, tuple, set, frozenset, date, datetime, time, timedelta,
    Decimal, UUID, Path, Color, Level, Point, Circle, Pair, Movie, Tree, list[int], list[Any], list[list[str]],
    list[Point], dict[str, int], dict[str, Any], dict[int, str], dict[str, Point], dict[Literal["a", "b"], int],
    tuple[int, int], tuple[int, str], tuple[int, ...], tuple[Point, Point], tuple[()], set[str], frozenset[int],
    deque[int], Sequence[str], Mapping[str, float], int | None, str | int, str | int | float | None, list[int] | None,
    Point | None, Circle | Square, Point | list[Point] | None, Literal["a", "b"], Literal[1, 2],
    Literal["a", 1, None], Annotated[int, Meta(ge=1, le=9)], Annotated[str, Meta(min_length=1, pattern="^a")],
    Annotated[list[int], Meta(min_length=1)], Annotated[str, "A described string."], Annotated[float, Meta(gt=0)],
    Annotated[int, Meta(multiple_of=5)], list[tuple[str, list[dict[str, Color]]]], list[Tree] | None,
]  # fmt: skip
"""Types of parameters."""


def server_of(hint: Any) -> Server:
    def function(a: Any, b: Any = None) -> None: ...

    function.__annotations__.update(a=hint, b=hint | None if hint not in (None, Any, object) else hint)
    server = Server()
    server.add_tool(function, name="tool")
    return server


def schema_in(declaration: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = declaration.get("function", declaration)
    return cast("Mapping[str, Any]", inner.get("parameters", inner.get("input_schema")))


def test_there_are_enough_types() -> None:
    assert len(HINTS) >= 60


@each("hint", HINTS, ids=str)
def test_schemas_of_signatures_are_in_the_subset_of_each_api(hint: Any) -> None:
    async def main() -> None:
        async with typedmcp.connect(server_of(hint)) as client:
            (tool,) = [tool async for tool in client.tools()]
            assert find_refusals(tool.input_schema, SUBSETS["openai"]) == []
            assert find_refusals(tool.input_schema, SUBSETS["anthropic"]) == []
            for api in APIS:
                (declaration,) = await tools_for(client, api)
                assert find_refusals(schema_in(declaration), SUBSETS[api]) == [], api
                assert {*schema_in(declaration)["properties"]} == {"a", "b"}

    run(main)


@each(
    "api, schema",
    [
        ("openai", {"type": "object", "properties": {"a": {"type": "array"}}}),
        ("openai", {"type": "object", "anyOf": []}),
        ("openai", {"type": "object", "properties": {"a": True}}),
        ("openai", {"type": "array", "items": {}}),
        ("anthropic", {"type": "object", "oneOf": []}),
        ("anthropic", {"type": "object", "properties": {"a b": {}}}),
        ("anthropic", {"type": "object", "properties": {"a": {"type": "array", "items": False}}}),
        ("gemini", {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}),
        ("gemini", {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
        ("gemini", {"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}),
        ("gemini", {"type": "object", "properties": {}, "additionalProperties": False}),
        ("gemini", {"type": "object", "properties": {"a": {"const": "b"}}}),
    ],
)
def test_known_bad_schemas_are_refused(api: str, schema: Mapping[str, Any]) -> None:
    assert find_refusals(schema, SUBSETS[api])


FOREIGN: list[dict[str, Any]] = [
    {"type": "object", "anyOf": [{"required": ["a"]}], "properties": {"a": {"type": "array"}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": True}},
    {"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"type": "string"}}},
    {"type": "object", "properties": {"a": {"oneOf": [{"const": 1}, {"const": None}]}}},
    {"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}},
    {"type": "object", "properties": {"a": 3}},
    {"type": "object"},
]


@each("schema", FOREIGN, ids=str)
@each("api", APIS)
def test_schemas_of_other_servers_become_an_object_that_the_api_takes(api: LlmApi, schema: dict[str, Any]) -> None:
    from typedmcp_hosts.formats import FORMATS

    made = schema_in(FORMATS[api].declare("tool", "", schema, MAX_SCHEMA_BYTES))
    assert made is None or find_refusals(made, SUBSETS[api]) == []


# Names


@each(
    "name, expected",
    [("add", "add"), ("files.read", "files_read"), ("größe", "gr__e"), ("1st", "_1st"), ("a-b", "a-b")],
)
def test_names_have_the_characters_of_every_api(name: str, expected: str) -> None:
    assert api_name(name, {}) == expected


def test_long_names_are_cut_and_stay_different() -> None:
    first, second = api_name("a" * 100, {}), api_name("a" * 101, {})
    assert len(first) == len(second) == 64
    assert first != second


def make_server() -> Server:
    server = Server()

    @server.tool("math.add")
    def add(a: int, b: int) -> dict[str, int]:
        "Add two numbers."
        return {"sum": a + b}

    @server.tool("math_add")
    def other() -> str:
        return "other"

    @server.tool
    def draw() -> list[str | Image]:
        return ["a dot", Image(data=PNG, format="png")]

    @server.tool
    def fail() -> str:
        raise ToolError("it is raining")

    return server


IMAGE = base64.b64encode(PNG).decode()
Part = Callable[[str, Any], dict[str, Any]]
PARTS: dict[LlmApi, Part] = {
    "openai": lambda name, args: {
        "id": "c1", "type": "function", "function": {"name": name, "arguments": msgspec.json.encode(args).decode()},
    },
    "openai-responses": lambda name, args: {
        "type": "function_call", "call_id": "c1", "name": name, "arguments": msgspec.json.encode(args).decode(),
    },
    "anthropic": lambda name, args: {"type": "tool_use", "id": "c1", "name": name, "input": args},
    "gemini": lambda name, args: {"functionCall": {"id": "c1", "name": name, "args": args}},
}  # fmt: skip


def gemini_result(name: str, response: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": "c1", "name": name, "response": response, **members}}


RESULTS: dict[LlmApi, list[dict[str, Any]]] = {
    "openai": [
        {"role": "tool", "tool_call_id": "c1", "content": '{"sum":3}'},
        {"role": "tool", "tool_call_id": "c1", "content": "a dot\n[image image/png]"},
        {"role": "tool", "tool_call_id": "c1", "content": "Error: it is raining"},
    ],
    "openai-responses": [
        {"type": "function_call_output", "call_id": "c1", "output": '{"sum":3}'},
        {"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "a dot"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}", "detail": "auto"},
        ]},
        {"type": "function_call_output", "call_id": "c1", "output": "Error: it is raining"},
    ],
    "anthropic": [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": '{"sum":3}'}]},
        {"type": "tool_result", "tool_use_id": "c1", "content": [
            {"type": "text", "text": "a dot"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
        ]},
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "it is raining"}],
         "is_error": True},
    ],
    "gemini": [
        gemini_result("math_add", {"output": {"sum": 3}}),
        gemini_result("draw", {"output": "a dot"}, parts=[{"inlineData": {"mimeType": "image/png", "data": IMAGE}}]),
        gemini_result("fail", {"error": "it is raining"}),
    ],
}  # fmt: skip


@each("api", APIS)
def test_calls_of_a_model_are_made_and_answered_in_the_format_of_its_api(api: LlmApi) -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server()) as client:
            await tools_for(client, api)
            part = PARTS[api]
            assert [
                await call_for(client, api, part("math_add", {"a": 1, "b": 2})),
                await call_for(client, api, part("draw", {})),
                await call_for(client, api, part("fail", {})),
            ] == RESULTS[api]

    run(main)


def test_names_that_become_equal_stay_different() -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server()) as client:
            names = [tool["name"] for tool in await tools_for(client, "anthropic")]
            assert len({*names}) == 4
            result = await call_for(client, "anthropic", PARTS["anthropic"](names[1], {}))
            assert result["content"] == [{"type": "text", "text": "other"}]

    run(main)


@each("api", APIS)
@each("name, arguments", [("absent", {}), ("math_add", {"a": "x"}), ("math_add", [1])])
def test_what_a_model_gets_wrong_is_a_result(api: LlmApi, name: str, arguments: Any) -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server()) as client:
            result = msgspec.json.encode(await call_for(client, api, PARTS[api](name, arguments))).decode()
            assert "rror" in result

    run(main)


BROKEN = {
    '{"a": 1, "b': 'they end too early, with "{\\"a\\": 1, \\"b"; expected an object',
    "{": 'they end too early, with "{"; expected an object',
    '{"a": 1,}': "(byte 8); expected an object",
    "draw(1)": "(byte 0); expected an object",
    "[1]": "expected an object, got list",
}
"""Arguments that models write, and the end of the error that they get."""


@each("arguments, end", BROKEN.items())
def test_arguments_that_are_not_json_are_an_error_that_names_the_tool_and_the_place(arguments: str, end: str) -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server()) as client:
            part = {"id": "c1", "type": "function", "function": {"name": "draw", "arguments": arguments}}
            content = (await call_for(client, "openai", part))["content"]
            assert content.startswith("Error: the arguments of draw")
            assert content.endswith(end)

    run(main)


def test_calls_of_a_model_take_the_options_of_calls() -> None:
    server = typedmcp.Server("slow")

    @server.tool
    async def wait(ctx: typedmcp.Context) -> str:
        await ctx.report_progress(1, 2)
        await asyncio.sleep(60)
        return "done"

    async def main() -> None:
        part = PARTS["anthropic"]("wait", {})
        progress: list[float] = []
        async with typedmcp.connect(server) as client:
            with pytest.raises(typedmcp.RequestTimeoutError, match=r"within 0\.3 s"):
                await call_for(
                    client, "anthropic", part, max_time=0.3, on_progress=lambda params: progress.append(params.progress)
                )
            assert progress == [1]
            with pytest.raises(UsageError, match="rounds must not be 0"):
                await call_for(client, "anthropic", part, rounds=0)

    run(main)


@each("api", APIS)
@each("part", [{"type": "text", "text": "hello"}, {}, None, "call"])
def test_a_part_that_asks_for_no_tool_is_an_error(api: LlmApi, part: object) -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server()) as client:
            with pytest.raises(UsageError, match="asks for no tool"):
                await call_for(client, api, part)

    run(main)


def test_an_unknown_api_is_an_error() -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server()) as client:
            with pytest.raises(UsageError, match="unknown API 'other'; known: openai"):
                await tools_for(client, cast("LlmApi", "other"))

    run(main)


def test_a_group_offers_the_tools_of_all_servers() -> None:
    async def main() -> None:
        async with typedmcp_hosts.connect_all({"a": make_server(), "b": make_server()}) as group:
            assert len(await tools_for(group, "anthropic")) == 8
            result = await call_for(group, "anthropic", PARTS["anthropic"]("b_math_add", {"a": 1, "b": 2}))
            assert result["content"] == [{"type": "text", "text": '{"sum":3}'}]

    run(main)


def test_the_blocking_client_calls_for_a_model() -> None:
    with typedmcp.sync.connect(make_server()) as client:
        assert len(client.run(tools_for, "gemini")) == 4
        assert client.run(call_for, "gemini", PARTS["gemini"]("fail", {})) == RESULTS["gemini"][2]
        unusable: Any = client
        with pytest.raises(UsageError, match=r"client\.run\(tools_for, api\)"):
            asyncio.run(tools_for(unusable, "gemini"))
