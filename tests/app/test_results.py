"""Results of tools: as their annotations say, and as Pydantic serializes its types."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from annotated_types import MinLen
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    computed_field,
    field_serializer,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass

import typedmcp
from tests.app.argument_strategies import validator
from tests.app.type_cases import Address, Circle, Colour, Point
from tests.cases import each
from typedmcp import Server
from typedmcp.dialect import structs


class Kept(BaseModel):
    a: int
    secret: str = Field(default="s", exclude=True)


class Named(BaseModel):
    a: int = Field(serialization_alias="outer")


class Given(BaseModel):
    a: int = Field(validation_alias="inner")


class Aliased(BaseModel):
    a_b: int = Field(alias="aB")


class Year(BaseModel):
    day: date

    @field_serializer("day")
    def _year(self, day: date) -> int:
        return day.year


class Sum(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: int = 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sum(self) -> int:
        return self.a + self.b


class More(Named):
    more: int = 0


class Tree(BaseModel):
    name: Named
    inner: list[Tree] = []


@dataclass
class Team:
    lead: Named
    days: dict[str, Year]
    colour: Colour = Colour.RED


@pydantic_dataclass
class Spot:
    x: int = Field(serialization_alias="X")


class Broken(BaseModel):
    x: int


class Bare(msgspec.Struct):
    model: Address


class Attributes(msgspec.Struct):
    a: int


Numbers = RootModel[list[int]]
Text = Annotated[int, PlainSerializer(str, return_type=str)]
DAY = date(2026, 1, 2)

ENCODED: dict[str, tuple[Any, Any, Any]] = {
    "a member left out": (Kept, Kept(a=1), {"a": 1}),
    "an alias for writing": (Named, Named(a=1), {"outer": 1}),
    "a dict for that": (Named, {"a": 1}, {"outer": 1}),
    "an alias for reading": (Given, Given.model_validate({"inner": 1}), {"a": 1}),
    "a dict for this": (Given, {"inner": 1}, {"a": 1}),
    "an alias for both": (Aliased, Aliased(aB=1), {"aB": 1}),
    "a serializer": (Year, Year(day=DAY), {"day": 2026}),
    "a computed member of what forbids others": (Sum, Sum(a=1), {"a": 1, "b": 1, "sum": 2}),
    "a text for a number": (Broken, {"x": "1"}, {"x": 1}),
    "an object with the same attributes": (Named, Attributes(1), {"outer": 1}),
    "a class that has more": (Named, More(a=1, more=2), {"outer": 1}),
    "models in models": (Tree, Tree(name=Named(a=1), inner=[Tree(name=Named(a=2))]),
                         {"name": {"outer": 1}, "inner": [{"name": {"outer": 2}, "inner": []}]}),
    "a list": (list[Named], [Named(a=1), {"a": 2}], [{"outer": 1}, {"outer": 2}]),
    "a tuple": (tuple[Named, int], (Named(a=1), 2), [{"outer": 1}, 2]),
    "a dict": (dict[str, Year], {"k": Year(day=DAY)}, {"k": {"day": 2026}}),
    "a union": (Named | Year, Year(day=DAY), {"day": 2026}),
    "none of a model": (Named | None, None, None),
    "a text in the place of a model": (Named | str, "text", "text"),
    "a dataclass with models": (Team, Team(Named(a=1), {"d": Year(day=DAY)}),
                                {"lead": {"outer": 1}, "days": {"d": {"day": 2026}}, "colour": "red"}),
    "a dataclass of Pydantic's": (Spot, Spot(x=1), {"X": 1}),
    "a root": (Numbers, Numbers([1, 2]), [1, 2]),
    "a note": (dict[str, Text], {"a": 1}, {"a": "1"}),
    "notes of others": (Annotated[list[Named], MinLen(1)], [Named(a=1)], [{"outer": 1}]),
    "a Struct with a model": (Bare, Bare(Address(street="a")), {"model": {"street": "a", "number": 1}}),
}  # fmt: skip
"""Return annotations, each with a return value and the JSON for it."""


def call_tool(
    hint: Any, value: Any, *, is_async: bool = False, **options: Any
) -> tuple[structs.Tool, structs.CallToolResult]:
    """Return a tool with a return annotation, and its result for a value."""

    def plain() -> Any:
        return value

    async def waiting() -> Any:
        return value

    function: Any = waiting if is_async else plain
    function.__annotations__["return"] = hint
    server = Server()
    server.add_tool(function, name="it", **options)

    async def main() -> Any:
        async with typedmcp.connect(server) as client:
            tools = [tool async for tool in client.tools()]
            return tools[0], await client.call_tool("it")

    return asyncio.run(main())  # type: ignore[no-any-return]


def texts(result: structs.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, structs.TextContent)]


@each("name", ENCODED)
def test_results_encoded_by_pydantic_fit_its_schema(name: str) -> None:
    hint, value, encoded = ENCODED[name]
    tool, result = call_tool(hint, value)
    assert not result.is_error, texts(result)
    schema = structs.to_builtins(tool.output_schema)
    whole: Any = {"result": encoded} if "result" in schema.get("properties", {}) else encoded
    assert result.structured_content == whole
    assert validator(schema)(whole)
    if isinstance(value, str):
        assert texts(result) == [value]
    else:
        assert [json.loads(text) for text in texts(result)] == ([] if value is None else [encoded])


@each(
    "hint, value",
    [
        (Broken, {"x": "one"}),
        (Broken, {}),
        (Broken, "text"),
        (Broken, None),
        (Broken, Broken.model_construct(x="one")),
        (list[Broken], [Broken(x=1), {"x": None}]),
        (list[Broken], Broken(x=1)),
        (Sum, {"a": 1, "c": 2}),
    ],
)
def test_a_value_that_does_not_fit_a_model_is_a_failed_call(hint: Any, value: Any) -> None:
    _, result = call_tool(hint, value)
    assert result.is_error
    assert texts(result) == ["it failed: its result does not fit its schema"]


def test_the_schema_has_computed_fields() -> None:
    tool, _ = call_tool(Sum, Sum(a=1))
    assert structs.to_builtins(tool.output_schema)["required"] == ["a", "sum"]


def test_values_without_a_json_form_are_failed_calls() -> None:
    class Real(BaseModel):
        x: float

    _, result = call_tool(Real, Real(x=float("nan")))
    assert result.is_error


# Annotations without a schema


class Movie(TypedDict):
    title: str


@each(
    "hint, value, content, structured",
    [
        (str, "text", ["text"], None),
        (str, {"a": 1}, ['{"a":1}'], None),
        (str, Point(1), ['{"x":1,"y":0}'], None),
        (None, None, [], None),
        (None, 5, [], None),
        (None, "text", [], None),
        (None, {"a": 1}, [], None),
        (None, object(), [], None),
        (Any, {"a": 1}, ['{"a":1}'], {"a": 1}),
        (object, Address(street="a"), ['{"street":"a","number":1}'], {"street": "a", "number": 1}),
        (Any, [1], ["[1]"], None),
        (Mapping[str, Any], {"a": 1}, ['{"a":1}'], {"a": 1}),
        (Movie, {"title": "a"}, ['{"title":"a"}'], {"title": "a"}),
        (Circle, Circle(1), ['{"radius":1}'], {"radius": 1}),
    ],
)
@each("is_async", [False, True])
def test_the_return_annotation_decides_about_the_schema(
    hint: Any, value: Any, content: list[str], structured: Any, is_async: bool
) -> None:
    async def slow() -> Any:
        return value

    def plain() -> Any:
        return value

    function: Any = slow if is_async else plain
    function.__annotations__["return"] = hint
    server = Server()
    server.add_tool(function, name="it")

    async def main() -> structs.CallToolResult:
        async with typedmcp.connect(server) as client:
            return await client.call_tool("it")

    result = asyncio.run(main())
    assert (texts(result), result.structured_content) == (content, structured)


def test_a_none_result_is_null_in_structured_content() -> None:
    _, result = call_tool(None, None, structured=True)
    assert result.structured_content == {"result": None}


class Forecast(msgspec.Struct):
    rain: int


WITH_TEXT: dict[str, tuple[Any, Any, Any]] = {
    "a Struct": (Forecast, Forecast(3), {"rain": 3}),
    "a mapping": (dict[str, int], {"rain": 3}, {"rain": 3}),
    "a list": (list[int], [3], {"result": [3]}),
    "a text": (str, "3", None),
}


@each("is_async", [True, False])
@each("name", WITH_TEXT)
def test_the_option_text_makes_the_text_of_a_result(name: str, is_async: bool) -> None:
    hint, value, structured = WITH_TEXT[name]
    described: list[Any] = []

    def describe(returned: Any) -> str:
        described.append(returned)
        return "3 mm"

    _, result = call_tool(hint, value, is_async=is_async, text=describe)
    assert (texts(result), result.structured_content, described) == (["3 mm"], structured, [value])


def test_the_option_text_leaves_results_and_errors_alone() -> None:
    def describe(returned: Any) -> str:
        raise typedmcp.ToolError("the text cannot be made")

    whole = structs.CallToolResult(content=[structs.TextContent(text="whole")])
    _, result = call_tool(structs.CallToolResult, whole, text=describe)
    assert texts(result) == ["whole"]
    _, result = call_tool(int, 1, text=describe)
    assert (texts(result), result.is_error) == (["the text cannot be made"], True)
    with pytest.raises(typedmcp.UsageError, match="text must be a function that returns the text of a result, not 'a'"):
        call_tool(int, 1, text="a")
