"""Typed results in every revision, from servers that return values in different ways."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import MODERN_REVISION, SUPPORTED, run
from typedmcp import sync
from typedmcp.client import Client, connect
from typedmcp.dialect import structs
from typedmcp.protocol.nulls import to_null

each_revision = each("revision", SUPPORTED)
TEXT_ONLY = ["2025-03-26", "2024-11-05"]
"""The revisions without structured content."""


@dataclass
class Forecast:
    city: str
    days: int = 3
    day: date | None = None


class AsStruct(msgspec.Struct):
    city: str
    days: int


class AsDict(TypedDict):
    city: str
    days: int


class AsModel(pydantic.BaseModel):
    city: str
    days: int


class Sky(enum.Enum):
    BLUE = "blue"
    GREY = "grey"


server = typedmcp.Server("weather")


@server.tool
def forecast(city: str, days: int = 3) -> Forecast:
    return Forecast(city, days, date(2026, 7, 28))


@server.tool
def forecasts(cities: list[str]) -> list[Forecast]:
    return [Forecast(city) for city in cities]


@server.tool
def perhaps(city: str = "") -> Forecast | None:
    return Forecast(city) if city else None


@server.tool
def words(text: str) -> str:
    return text


@server.tool
def sky() -> Sky:
    return Sky.GREY


@server.tool
def count(number: int) -> int:
    return number


@server.tool
def counts() -> dict[str, int]:
    return {"rain": 3}


@server.tool
def either(number: int) -> int | str:
    return number if number >= 0 else "below zero"


@server.tool
def nothing() -> None: ...


@server.tool
def fail(text: str) -> Forecast:
    raise typedmcp.ToolError(text)


@server.tool
async def ask(ctx: typedmcp.Context) -> int:
    answer = await ctx.elicit("How many?", {"type": "object", "properties": {"n": {"type": "integer"}}})
    number: Any = (answer.content or {"n": 0})["n"]
    return int(number)


@server.tool
def echo(trip: dict[str, Any]) -> dict[str, Any]:
    return {"got": trip}


FORECASTS: list[tuple[Any, Any]] = [
    (Forecast, Forecast("Oslo", 2, date(2026, 7, 28))),
    (AsStruct, AsStruct("Oslo", 2)),
    (AsDict, {"city": "Oslo", "days": 2}),
    (AsModel, AsModel(city="Oslo", days=2)),
    (dict[str, Any], {"city": "Oslo", "days": 2, "day": "2026-07-28"}),
    (Any, {"city": "Oslo", "days": 2, "day": "2026-07-28"}),
    (Forecast | None, Forecast("Oslo", 2, date(2026, 7, 28))),
    (AsModel | int, AsModel(city="Oslo", days=2)),
    (Annotated[AsStruct, {"a note": "that is no key"}], AsStruct("Oslo", 2)),
]


@each_revision
@each("kind, value", FORECASTS, ids=[str(kind) for kind, _ in FORECASTS])
def test_structured_content_is_returned_as_any_type_that_it_fits(kind: Any, value: Any, revision: str) -> None:
    async def main() -> None:
        async with connect(server, revisions=[revision]) as client:
            arguments = {"city": "Oslo", "days": 2}
            assert await client.call_tool("forecast", arguments, result_type=kind) == value

    run(main)


OTHERS: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("forecasts", {"cities": ["Oslo"]}, list[Forecast], [Forecast("Oslo")]),
    ("forecasts", {"cities": []}, list[AsModel], []),
    ("forecasts", {"cities": ["Ålesund 🌧"]}, tuple[Forecast, ...], (Forecast("Ålesund 🌧"),)),
    ("perhaps", {"city": "Oslo"}, Forecast, Forecast("Oslo")),
    ("perhaps", {"city": "Oslo"}, Forecast | None, Forecast("Oslo")),
    ("perhaps", {}, Forecast | None, None),
    ("words", {"text": "rain"}, str, "rain"),
    ("words", {"text": "5"}, str, "5"),
    ("words", {"text": '"quoted"'}, str, '"quoted"'),
    ("words", {"text": "rain"}, str | None, "rain"),
    ("words", {"text": "blue"}, Sky, Sky.BLUE),
    ("words", {"text": "rain"}, Literal["rain", "sun"], "rain"),
    ("words", {"text": "2026-07-28"}, date, date(2026, 7, 28)),
    ("words", {"text": "not JSON"}, int | str, "not JSON"),
    ("words", {"text": "7"}, int, 7),
    ("sky", {}, Sky, Sky.GREY),
    ("sky", {}, Literal["grey", "blue"], "grey"),
    ("count", {"number": 7}, int, 7),
    ("count", {"number": 7}, float, 7.0),
    ("counts", {}, dict[str, int], {"rain": 3}),
    ("either", {"number": 1}, int | str, 1),
    ("either", {"number": -1}, int | str, "below zero"),
    ("nothing", {}, type(None), None),
    ("nothing", {}, Forecast | None, None),
]


@each_revision
@each("tool, arguments, kind, value", OTHERS, ids=[f"{o[0]} {o[2]}" for o in OTHERS])
def test_values_that_are_not_objects_are_unwrapped(
    tool: str, arguments: dict[str, Any], kind: Any, value: Any, revision: str
) -> None:
    async def main() -> None:
        async with connect(server, revisions=[revision]) as client:
            found = await client.call_tool(tool, arguments, result_type=kind)
            assert found == value
            assert type(found) is type(value)

    run(main)


# Servers that return values in other ways


class FixedResult:
    """A server whose tool returns a given result."""

    def __init__(self, *content: Any, **members: Any) -> None:
        blocks = [structs.TextContent(text=block) if isinstance(block, str) else block for block in content]
        self.result = structs.CallToolResult(content=blocks, result_type="complete", **members)

    def call_tool(self, params: structs.CallToolRequestParams, ctx: typedmcp.Context) -> structs.CallToolResult:
        return self.result


def returning(*content: Any, **members: Any) -> Client:
    return connect(FixedResult(*content, **members))


@dataclass
class Holder:
    result: int


@dataclass
class Optionals:
    city: str = "nowhere"


PICTURE = structs.ImageContent(data="", mime_type="image/png")
WRAPPED = {"result": {"city": "Oslo", "days": 2}}
RETURNED: dict[str, tuple[Any, Any, Any]] = {
    "an object without a wrapper": ({"city": "Oslo"}, Forecast | None, Forecast("Oslo")),
    "a wrapped object": (WRAPPED, AsStruct, AsStruct("Oslo", 2)),
    "a wrapped object with optional members only": ({"result": {"city": "Oslo"}}, Optionals, Optionals("Oslo")),
    "an object with optional members and another `result`": ({"result": 3}, Optionals, Optionals()),
    "an object with a member `result`": ({"result": 3}, Holder, Holder(3)),
    "a wrapped object with a member `result`": ({"result": {"result": 3}}, Holder, Holder(3)),
    "an optional object with a member `result`": ({"result": 3}, Holder | None, Holder(3)),
    "a mapping with a key `result`": ({"result": 3}, dict[str, int], {"result": 3}),
    "a wrapped mapping": ({"result": {"rain": 3}}, dict[str, int], {"rain": 3}),
    "a list without a wrapper": ([1, 2], list[int], [1, 2]),
    "a number without a wrapper": (3, int, 3),
    "null": (None, int | None, None),
    "more members than one": ({"result": 3, "other": 4}, dict[str, int], {"result": 3, "other": 4}),
}


@each("content, kind, value", RETURNED.values(), ids=RETURNED)
@each("as_text", [False, True], ids=["structured", "text"])
def test_a_value_is_found_whether_it_is_wrapped_or_not(content: Any, kind: Any, value: Any, as_text: bool) -> None:
    async def main() -> None:
        text = msgspec.json.encode(content).decode()
        async with (
            returning(text, PICTURE)
            if as_text
            else returning("it rains", structured_content=to_null(content)) as client
        ):
            assert await client.call_tool("x", result_type=kind) == value

    run(main)


def test_several_texts_are_joined_for_a_string() -> None:
    async def main() -> None:
        async with returning("it", PICTURE, "rains") as client:
            assert await client.call_tool("x", result_type=str) == "it\nrains"

    run(main)


MISFITS: dict[str, tuple[Any, Any, str]] = {
    "a member": ({"city": "Oslo", "days": "two"}, Forecast, ".days: expected integer, got string"),
    "a missing member": ({"days": 2}, Forecast, ".city: required, but missing"),
    "an item": ({"result": [1, "two"]}, list[int], ".result[1]: expected integer, got string"),
    "a wrapped object": ({"result": {"city": 1}}, AsStruct, ".result.days: required, but missing"),
    "a mapping": ({"result": "x"}, dict[str, int], ".result: expected integer, got string"),
    "the whole value": ([1], Forecast, ": expected object, got array"),
    "null": (None, Forecast, ": expected object, got null"),
    "a model": ({"city": "Oslo", "days": "two"}, AsModel, ".days: expected integer, got string"),
}
BAD_TEXTS: dict[str, tuple[list[Any], Any, str]] = {
    "no JSON": (["it rains"], Forecast, "[0].text: JSON is malformed: invalid character (byte 0)"),
    "other JSON": ([PICTURE, '{"city": 3}'], Forecast, "[1].text.city: expected string, got integer"),
    "deep JSON": (["[" * 100_000], list[Any], "[0].text: "),
    "an unknown word": (["green"], Sky, '[0].text: expected "blue" or "grey", got "green"'),
    "several": (["1", "2"], int, ": expected structured content or one text block, got 2"),
    "a picture": ([PICTURE], str, ": expected structured content or one text block, got 0"),
    "nothing": ([], int, ": expected structured content or one text block, got 0"),
}


@each("content, kind, fault", MISFITS.values(), ids=MISFITS)
def test_structured_content_that_does_not_fit_names_call_and_place(content: Any, kind: Any, fault: str) -> None:
    run(lambda: check_rejected(returning(structured_content=to_null(content)), kind, f"structuredContent{fault}"))


@each("content, kind, fault", BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_text_content_that_does_not_fit_names_call_and_place(content: Any, kind: Any, fault: str) -> None:
    run(lambda: check_rejected(returning(*content), kind, f"content{fault}"))


async def check_rejected(connecting: Client, kind: Any, fault: str) -> None:
    async with connecting as client:
        with pytest.raises(typedmcp.ProtocolError) as caught:
            await client.call_tool("x", result_type=kind)
        assert isinstance(caught.value.id, int)
        assert str(caught.value).startswith(f"tools/call (id {caught.value.id}): {fault}")
        await client.call_tool("x")


class Alone: ...


@each("kind", [Alone, 3, "Forecast", list[Alone]], ids=str)
def test_a_type_without_a_json_form_raises_usage_error_before_the_call(kind: Any) -> None:
    async def main() -> None:
        called: list[str] = []
        own = typedmcp.Server()
        own.add_tool(lambda: called.append("x"), name="x")
        async with connect(own) as client:
            with pytest.raises(typedmcp.UsageError, match="result_type: "):
                await client.call_tool("x", result_type=kind)
        assert called == []

    run(main)


# Tools that fail


@each_revision
@each("options", [{"raise_on_error": True}, {"result_type": Forecast}], ids=["raise_on_error", "typed"])
def test_a_failed_tool_raises_tool_error_on_request(options: dict[str, Any], revision: str) -> None:
    async def main() -> None:
        async with connect(server, revisions=[revision]) as client:
            with pytest.raises(typedmcp.ToolError, match=r"\Ano such city: Ösló\Z") as caught:
                await client.call_tool("fail", {"text": "no such city: Ösló"}, **options)
            assert caught.value.content == [structs.TextContent(text="no such city: Ösló")]
            assert caught.value.result.is_error is True
            assert (await client.call_tool("fail", {"text": "x"})).is_error is True

    run(main)


def test_tool_error_has_all_the_text_of_the_result() -> None:
    async def main() -> None:
        async with returning("no", PICTURE, "rain", is_error=True, structured_content={"code": 3}) as client:
            with pytest.raises(typedmcp.ToolError, match=r"\Ano\nrain\Z") as caught:
                await client.call_tool("x", raise_on_error=True)
            assert caught.value.result.structured_content == {"code": 3}
        async with returning(PICTURE, is_error=True) as client:
            with pytest.raises(typedmcp.ToolError, match="x failed without a reason"):
                await client.call_tool("x", raise_on_error=True)

    run(main)


def test_raise_on_error_returns_the_result_of_a_tool_that_succeeds() -> None:
    async def main() -> None:
        async with connect(server) as client:
            result = await client.call_tool("count", {"number": 1}, raise_on_error=True)
            assert result == await client.call_tool("count", {"number": 1})

    run(main)


# Input requests


@each("revision", [MODERN_REVISION, "2025-11-25"])
def test_input_requests_are_answered_before_the_value_is_returned(revision: str) -> None:
    async def main() -> None:
        async with connect(server, revisions=[revision], elicit=lambda _: {"n": 4}) as client:
            assert await client.call_tool("ask", result_type=int) == 4

    run(main)


@each("options", [{"result_type": int}, {"raise_on_error": True}, {}], ids=str)
def test_an_input_required_result_is_returned_with_zero_rounds(options: dict[str, Any]) -> None:
    async def main() -> None:
        async with connect(server, elicit=lambda _: {"n": 4}) as client:
            handed: Any = await client.call_tool("ask", rounds=0, **options)
            assert isinstance(handed, structs.InputRequiredResult)

    run(main)


# Arguments


@dataclass
class Trip:
    to: str
    when: date
    stops: list[Forecast] = field(default_factory=list[Forecast])


class TripStruct(msgspec.Struct):
    to: str
    by: str | msgspec.UnsetType = msgspec.UNSET


class TripModel(pydantic.BaseModel):
    to: str = pydantic.Field(alias="destination")
    when: date


class Call(msgspec.Struct):
    trip: Any


WHEN = date(2026, 7, 28)
MODEL = TripModel(destination="Oslo", when=WHEN)
STOP = {"city": "Rome", "days": 3, "day": None}
ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "a dataclass": (Trip("Oslo", WHEN, [Forecast("Rome")]), {"to": "Oslo", "when": "2026-07-28", "stops": [STOP]}),
    "a Struct": (TripStruct("Oslo"), {"to": "Oslo"}),
    "a model": (MODEL, {"destination": "Oslo", "when": "2026-07-28"}),
    "models in a list": ({"all": [MODEL]}, {"all": [{"destination": "Oslo", "when": "2026-07-28"}]}),
    "another mapping": (MappingProxyType({"to": "Oslo"}), {"to": "Oslo"}),
    "plain JSON": ({"to": ["Oslo", None, 1.5]}, {"to": ["Oslo", None, 1.5]}),
}


@each_revision
@each("given, got", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_can_be_and_contain_python_objects(given: Any, got: Any, revision: str) -> None:
    async def main() -> None:
        async with connect(server, revisions=[revision]) as client:
            for arguments in ({"trip": given}, Call(given), MappingProxyType({"trip": given})):
                result = await client.call_tool("echo", arguments, result_type=dict[str, Any])
                assert result == {"got": got}

    run(main)


def test_arguments_can_be_a_pydantic_model() -> None:
    async def main() -> None:
        async with connect(server) as client:
            assert await client.call_tool("forecast", AsModel(city="Oslo", days=1), result_type=AsDict) == {
                "city": "Oslo",
                "days": 1,
            }
            assert (
                await client.call_tool("forecast", Forecast("Oslo", 1))
            ).is_error is True  # it has no argument `day`

    run(main)


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
DEEP = json.loads("[" * 198 + "]" * 198)
NOT_OBJECTS: list[Any] = [
    [1], "text", 3, object(), {"x": object()}, {"x": float("nan")}, {"x": DEEP}, {"x": ENDLESS}, Call(ENDLESS),
]  # fmt: skip


@each("given", NOT_OBJECTS, ids=lambda given: type(given).__name__)
def test_arguments_that_are_not_a_json_object_raise_usage_error(given: Any) -> None:
    async def main() -> None:
        async with connect(server) as client:
            with pytest.raises((typedmcp.UsageError, ValueError)):
                await client.call_tool("echo", given)
            await client.ping()

    run(main)


def test_a_call_that_was_sent_is_never_repeated() -> None:
    calls: list[Any] = []
    own = typedmcp.Server()

    @own.tool
    async def note(trip: Any, ctx: typedmcp.Context) -> str:
        calls.append(trip)
        return str(await ctx.elicit("Sure?", {"type": "object", "properties": {}}))

    def fail(params: Any) -> None:
        raise TypeError("broken")

    async def main() -> None:
        model = AsModel(city="x", days=1)
        async with connect(own, elicit=fail) as client:
            for arguments in ({"trip": 1}, Call(1), Call(model), {"trip": model}):
                with pytest.raises(TypeError, match="broken"):
                    await client.call_tool("note", arguments)
        assert len(calls) == 4

    run(main)


# Blocking


def test_typed_results_are_returned_by_the_blocking_client() -> None:
    with sync.connect(server) as client:
        assert client.call_tool("forecasts", {"cities": ["Oslo"]}, result_type=list[Forecast]) == [Forecast("Oslo")]
        assert client.call_tool("forecast", AsStruct("Oslo", 2), result_type=AsStruct) == AsStruct("Oslo", 2)
        with pytest.raises(typedmcp.ToolError, match="no"):
            client.call_tool("fail", {"text": "no"}, raise_on_error=True)
        assert client.call_tool("fail", {"text": "no"}).is_error is True
