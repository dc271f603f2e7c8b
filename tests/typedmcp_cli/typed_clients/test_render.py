"""Typed clients: any offer of a server becomes code that checks, runs, and has no code of the server in it."""

from __future__ import annotations

import ast
import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import typedmcp
from tests.typedmcp_cli.typed_clients.load import load
from typedmcp import sync
from typedmcp.dialect import handlers, structs
from typedmcp_cli.typed_clients.offer import Offer, fetch_offer
from typedmcp_cli.typed_clients.render import render_client


class Place(msgspec.Struct):
    name: str
    height: float | None = None
    within: list[Place] = []


def names_in(value: Any) -> list[str]:
    """Return the names of the members of a module or a class."""
    return [*vars(value)]


def make_server() -> typedmcp.Server:
    server = typedmcp.Server("weather station")

    @server.tool
    async def forecast(city: str, days: int = 3, unit: str | None = None) -> Place:
        """Forecast the weather."""
        return Place(f"{city} {days} {unit}", 2.5, [Place("inner")])

    @server.tool(name="list")
    async def list_all(places: list[Place], limit: int | None = None) -> str:
        return f"{[place.name for place in places]} {limit}"

    @server.tool
    async def reset() -> None:
        raise typedmcp.ToolError("not now")

    @server.prompt
    def pack(city: str, days: str = "1") -> str:
        return f"{city} for {days}"

    @server.resource("weather://{city}/now")
    def now(city: str) -> str:
        return f"rain in {city}"

    @server.resource("weather://stations")
    def stations() -> str:
        return "one"

    return server


def offer_of(server: typedmcp.Server) -> Offer:
    async def main() -> Offer:
        async with typedmcp.connect(server) as client:
            return await fetch_offer(client)

    return asyncio.run(main())


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    made = render_client(offer_of(make_server()), blocking=True)
    assert made.problems == []
    return load(made.code, tmp_path_factory.mktemp("generated"))


def test_methods_call_tools_prompts_and_resources(module: Any) -> None:
    async def main() -> None:
        async with module.WeatherStationClient.connect(make_server()) as weather:
            found = await weather.forecast(city="Oslo", unit="celsius")
            assert (found.name, found.height, found.within[0].name) == ("Oslo 3 celsius", 2.5, "inner")
            assert type(found) is module.Place
            places = [module.Place(name="a"), module.Place(name="b")]
            assert typedmcp.text_of(await weather.list_(places=places, limit=2)) == "['a', 'b'] 2"
            prompt = await weather.prompt_pack(city="Oslo")
            assert prompt.messages[0].content.text == "Oslo for 1"
            assert (await weather.read_now(city="Ny-Ålesund/x")).contents[0].uri == "weather://Ny-%C3%85lesund%2Fx/now"
            assert (await weather.read_stations()).contents[0].text == "one"
            with pytest.raises(typedmcp.ToolError, match="not now"):
                await weather.reset(call_options={"timeout": 5.0})
            with pytest.raises(TypeError, match="town"):
                await weather.forecast(town="Oslo")

    asyncio.run(main())


def test_the_blocking_class_has_the_same_methods(module: Any) -> None:
    with module.SyncWeatherStationClient.connect(make_server()) as weather:
        assert weather.forecast(city="Oslo", days=1).name == "Oslo 1 None"
        assert isinstance(weather.client, sync.SyncClient)
    kinds: list[Any] = [module.WeatherStationClient, module.SyncWeatherStationClient]
    public = [{name for name in names_in(kind) if name[0] != "_"} for kind in kinds]
    assert public[0] == public[1]


def test_the_output_is_the_same_for_the_same_server() -> None:
    assert render_client(offer_of(make_server())).code == render_client(offer_of(make_server())).code


def wrapped(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"result": schema}, "required": ["result"], **more}


def place(**members: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in members.items()}
    return {"type": "object", "title": "Place", "properties": properties, "required": ["name"]}


PLACE, LARGE_PLACE = place(name="string"), place(name="string", size="integer")
RESULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a_list": (wrapped({"type": "array", "items": {"type": "string"}}), "list[str]"),
    "a_number": (wrapped({"type": "integer"}, title="a_numberOutput"), "int"),
    "marked": (wrapped({"type": "boolean"}, **{"title": "Answer", "x-fastmcp-wrap-result": True}), "bool"),
    "a_place": (PLACE, "Place"),
    "places": (wrapped({"type": "array", "items": PLACE}), "list[Place]"),
    "wrapped_place": (wrapped({"$ref": "#/$defs/Place"}, **{"$defs": {"Place": PLACE}}), "Place"),
    "another_place": (LARGE_PLACE, "Place_2"),
    "more_places": (wrapped({"type": "array", "items": LARGE_PLACE}), "list[Place_2]"),
    "named": (wrapped({"type": "number"}, title="Sum"), "Sum"),
    "words": ({**PLACE, "title": "A place, with its name"}, "WordsResult"),
    "own_name": ({**PLACE, "title": "Client"}, "Client_"),
    "a_union": (wrapped({"type": ["integer", "null"]}), "AUnionResult"),
    "anything": (wrapped({}), "AnythingResult"),
    "optional": ({**wrapped({"type": "integer"}), "required": []}, "OptionalResult"),
    "two_members": (wrapped({"type": "integer"}, required=["result", "x"], properties={
        "result": {"type": "integer"}, "x": {"type": "integer"}}), "TwoMembersResult"),
    "no_output": ({}, "structs.CallToolResult"),
}  # fmt: skip
"""Output schemas, and the types that methods of these names return."""


def test_results_are_taken_out_of_their_wrappers_and_named_by_their_titles() -> None:
    tools = [
        {"name": name, "inputSchema": {"type": "object"}, **({"outputSchema": schema} if schema else {})}
        for name, (schema, _) in RESULTS.items()
    ]
    made = render_client(Offer(server="a", tools=tools))
    methods = next(node for node in ast.parse(made.code).body if getattr(node, "name", "") == "AClient")
    assert isinstance(methods, ast.ClassDef)
    hints = {
        node.name: ast.unparse(node.returns)
        for node in methods.body
        if isinstance(node, ast.AsyncFunctionDef) and node.returns is not None
    }
    assert {name: hints[name] for name in RESULTS} == {name: hint for name, (_, hint) in RESULTS.items()}
    assert made.problems == []


def test_a_result_out_of_its_wrapper_is_the_value(tmp_path: Path) -> None:
    server = typedmcp.Server("a")

    @server.tool
    def names(count: int) -> list[str]:
        return ["x"] * count

    @server.tool
    def places() -> list[Place]:
        return [Place("Oslo")]

    module: Any = load(render_client(offer_of(server)).code, tmp_path)

    async def main() -> None:
        async with module.AClient.connect(server) as client:
            assert await client.names(count=2) == ["x", "x"]
            assert [(type(place), place.name) for place in await client.places()] == [(module.Place, "Oslo")]

    asyncio.run(main())


# Hostile and odd servers

EVIL = [
    '"""\nimport os; os.abort()\n"""', "\\", 'x"', '\\"""', "'; import os #", "{options}", "{0}", "%s",
    "\u2028\u2029\x0c",
    "\x1b[31m\x00", "\ud800", "__class__", "import", "None", "self", "client", "connect", "café☕", "", "a" * 5000,
    "\nclass X:\n    pass", "str", "list", "typedmcp", "Client", "asynccontextmanager", "1st", "_private", "match",
    "call_options", "arguments", "Hints", "v0", "h0",
]  # fmt: skip


def evil_offer() -> Offer:
    def schema(text: str) -> dict[str, Any]:
        return {
            "type": "object",
            "title": text,
            "description": text,
            "customTypePath": "os.system",
            "properties": {
                **{name: {"type": "string", "description": text, "title": name, "default": text} for name in EVIL},
                f"{text}enum": {"enum": [text, *EVIL[:9]], "x-enum-varnames": EVIL[:10], "customTypePath": "os.abort"},
                f"{text}inner": {"type": "object", "title": text, "properties": {text: {"const": text}}},
                f"{text}remote": {"$ref": "http://127.0.0.1:1/schema.json"},
                f"{text}file": {"$ref": "file:///etc/passwd#/x"},
            },
            "required": [text],
        }

    def fit(text: str) -> bool:
        return all(character.isprintable() and character not in '\\"' for character in text)

    def plain_schema(text: str) -> dict[str, Any]:
        """Return the schema without the names that no class can have."""
        found = schema(text)
        found["properties"] = {name: part for name, part in found["properties"].items() if fit(name)}
        return found

    return Offer(
        server=EVIL[0],
        tools=[
            {"name": text, "description": text, "inputSchema": plain_schema(text), "outputSchema": schema(text)}
            for text in EVIL
        ],
        prompts=[
            {"name": text, "description": text, "arguments": [{"name": each, "description": text} for each in EVIL]}
            for text in EVIL
        ],
        resources=[{"uri": text, "name": text, "description": text} for text in EVIL],
        templates=[
            {"uriTemplate": f"{text}{{{each}}}", "name": text, "description": text}
            for text in EVIL
            for each in ("a", "a-b", "+a", "?a", "", "import")
        ],
    )


@pytest.mark.long
def test_no_text_of_a_server_becomes_code(tmp_path: Path) -> None:
    offer = evil_offer()
    code = render_client(offer, blocking=True).code
    tree = ast.parse(code)
    imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)} | {
        alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported <= {
        "__future__", "collections.abc", "contextlib", "msgspec", "typedmcp", "typedmcp.client", "typedmcp.sync",
        "typedmcp.client.connection.targets", "typedmcp.dialect", "typing", "urllib.parse",
    }  # fmt: skip
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert names.isdisjoint({"os", "exec", "eval", "__import__", "X", "open"})
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert attributes == {
        "client", "call_tool", "get_prompt", "read_resource", "items", "connect", "CallToolResult", "GetPromptResult",
        "ReadResourceResult",
    }  # fmt: skip
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    client = next(node for node in classes if node.name.endswith("Client"))
    methods = [node.name for node in client.body if isinstance(node, ast.AsyncFunctionDef)]
    assert len(methods) == len({*methods}) == 1 + 2 * len(EVIL) + len(offer.resources) + len(offer.templates)
    assert code.isprintable() or not any(character in code for character in "\x1b\x00\x0c\u2028\u2029")
    load(code, tmp_path)


@pytest.mark.long
def test_evil_names_reach_the_server_as_they_are(tmp_path: Path) -> None:
    heard: list[Any] = []
    names = [text for text in EVIL if not any(odd in text for odd in '\ud800"\\\n\x00\x0c')]
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "string"} for name in names}}

    class Handler(handlers.ServerStub[typedmcp.Context]):
        async def list_tools(self, params: Any, ctx: typedmcp.Context) -> Any:
            raise NotImplementedError

        async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
            heard.append((params.name, params.arguments))
            return structs.CallToolResult(content=[])

    offer = Offer(server="a", tools=[{"name": names[0], "inputSchema": schema}])
    module: Any = load(render_client(offer).code, tmp_path)
    (kind,) = (getattr(module, name) for name in names_in(module) if name.endswith("Arguments"))
    members = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    assert sorted(members) == sorted(names)

    async def main() -> None:
        async with module.AClient.connect(Handler()) as client:
            method = next(name for name in names_in(module.AClient) if name.startswith("import_os"))
            await getattr(client, method)(**{name: json for json, name in members.items()})

    asyncio.run(main())
    assert heard == [(names[0], {name: name for name in names})]


SCHEMAS: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "Any"),
    "true": (True, "Any"),
    "text": ({"type": "string", "format": "date-time", "pattern": "("}, "str"),
    "nullable": ({"type": ["string", "null"]}, "str | None"),
    "union": ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "boolean"}}]}, "int | list[bool]"),
    "literal": ({"enum": ["a", 1, None]}, "Literal['a'] | Literal[1] | None"),
    "flag": ({"enum": [True, False]}, "bool"),
    "fractions": ({"enum": [1.5, 2]}, "Any"),
    "map": ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
    "open": ({"type": "object"}, "dict[str, Any]"),
    "loop": ({"$ref": "#/$defs/loop"}, "Any"),
    "remote": ({"$ref": "https://example.com/schema"}, "Any"),
    "strange": ({"type": "strange", "enum": 3, "properties": [], "anyOf": {}}, "Any"),
    "whole": ({"allOf": [{"$ref": "#/$defs/part"}, {"properties": {"b": {"type": "integer"}}}]}, "ToolArgumentsWhole"),
    "tree": ({"$ref": "#/$defs/tree"}, "ToolArgumentsTree"),
}


def test_each_kind_of_schema_has_its_type_or_any() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: part for name, (part, _) in SCHEMAS.items()},
        "required": [*SCHEMAS],
        "$defs": {
            "loop": {"$ref": "#/$defs/loop"},
            "part": {"type": "object", "properties": {"a": {"type": "string"}}},
            "tree": {
                "type": "object",
                "properties": {"branches": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            },
        },
    }
    made = render_client(Offer(server="a", tools=[{"name": "tool", "inputSchema": schema}]))
    hints = {
        node.target.id: ast.unparse(node.annotation)
        for each in ast.parse(made.code).body
        if isinstance(each, ast.ClassDef) and each.name == "ToolArguments"
        for node in each.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert hints == {name: hint for name, (_, hint) in SCHEMAS.items()}
    assert "branches: list[ToolArgumentsTree] | None = None" in made.code
    assert len(made.problems) == 2


@pytest.mark.long
def test_references_that_multiply_end(tmp_path: Path) -> None:
    definitions: dict[str, Any] = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 8} for number in range(20)
    }
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    made = render_client(Offer(server="a", tools=[{"name": "tool", "inputSchema": schema}]))
    assert any("any value" in problem for problem in made.problems)
    load(made.code, tmp_path)


@pytest.mark.long
def test_a_server_of_a_thousand_tools_has_a_method_for_each(tmp_path: Path) -> None:
    item: dict[str, Any] = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {}}},
    }
    tools: list[dict[str, Any]] = [
        {
            "name": f"tool-{number}",
            "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}, f"x{number}": item}},
            "outputSchema": item,
        }
        for number in range(1000)
    ]
    module: Any = load(render_client(Offer(server="huge", tools=tools)).code, tmp_path)
    assert sum(name.startswith("tool_") for name in names_in(module.HugeClient)) == 1000


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datamodel_code_generator", None)
    tool: dict[str, Any] = {"name": "a", "inputSchema": {"type": "object", "properties": {"b": {}}}}
    with pytest.raises(typedmcp.UsageError, match=r"codegen.*typedmcp\[codegen\]"):
        render_client(Offer(server="a", tools=[tool]))
