"""Forms: the types that a tool can ask a user for, the form that the client gets, and the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import annotated_types as at
import msgspec
import pytest
from msgspec import Meta
from pydantic import AnyUrl, BaseModel, Field

import typedmcp
from tests.app.type_cases import (
    Address,
    Camel,
    Circle,
    Colour,
    Described,
    Level,
    Line,
    Mixed,
    Movie,
    Names,
    Options,
    Person,
    Place,
    Point,
    Shade,
    Square,
    Tree,
    User,
)  # fmt: skip
from tests.cases import each
from typedmcp import Context, Elicited, Server, UsageError
from typedmcp.dialect import structs
from typedmcp.server.forms import form_of

REVISIONS = ["2026-07-28", "2025-11-25"]


class Booking(msgspec.Struct):
    """A class with every kind of field that forms have."""

    name: Annotated[str, Meta(title="Name", description="Who comes", min_length=1, max_length=20)]
    seats: Annotated[int, Meta(ge=1, lt=9)] = 2
    fee: Annotated[float, at.Le(9.5)] = 0.5
    window: bool = True
    day: date | None = None
    moment: datetime | None = None
    colour: Colour = Colour.RED
    level: Level | None = Level.LOW
    meal: Literal["fish", "none"] | None = None
    extras: Annotated[list[Literal["bag", "pet"]], Meta(max_length=2)] = []
    shades: set[Shade] = set()
    numbers: list[Literal[1, 2]] = msgspec.field(default_factory=lambda: [1])
    price: Decimal = Decimal(1)
    folder: Path = Path()


@dataclass
class Guest:
    name: str
    age: int | None
    tags: list[Literal["a", "b"]] = field(default_factory=lambda: ["a"])


class Sure(TypedDict):
    """A class without fields."""


class Nested(TypedDict):
    inner: Movie


FIELDS: dict[str, Any] = {
    "name": {"type": "string", "title": "Name", "description": "Who comes", "minLength": 1, "maxLength": 20},
    "seats": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2},
    "fee": {"type": "number", "maximum": 9.5, "default": 0.5},
    "window": {"type": "boolean", "default": True},
    "day": {"type": "string", "format": "date"},
    "moment": {"type": "string", "format": "date-time"},
    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    "level": {"type": "string", "enum": ["1", "2"], "default": "1"},
    "meal": {"type": "string", "enum": ["fish", "none"]},
    "extras": {"type": "array", "items": {"type": "string", "enum": ["bag", "pet"]}, "maxItems": 2, "default": []},
    "shades": {"type": "array", "items": {"type": "string", "enum": ["dark", "light"]}, "default": []},
    "numbers": {"type": "array", "items": {"type": "string", "enum": ["1", "2"]}},
    "price": {"type": "number"},
    "folder": {"type": "string"},
}

SINGLE: dict[str, tuple[Any, Any]] = {
    "str": (str, {"type": "string"}),
    "int": (int, {"type": "integer"}),
    "float": (float, {"type": "number"}),
    "bool": (bool, {"type": "boolean"}),
    "date": (date, {"type": "string", "format": "date"}),
    "time": (time, {"type": "string"}),
    "UUID": (UUID, {"type": "string"}),
    "URL": (AnyUrl, {"type": "string", "format": "uri", "minLength": 1}),
    "email": (Annotated[str, Meta(extra_json_schema={"format": "email"})], {"type": "string", "format": "email"}),
    "Literal": (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    "Literal of numbers": (Literal[1, 2], {"type": "string", "enum": ["1", "2"]}),
    "enum": (Colour, {"type": "string", "enum": ["red", "blue"]}),
    "list of a Literal": (list[Literal["a"]], {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    "set of an enum": (set[Colour], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}),
    "text with a note": (Annotated[str, "Who?"], {"type": "string", "description": "Who?"}),
    "number with limits": (
        Annotated[int, Field(gt=0, lt=5, title="N", examples=[[1]])],
        {"type": "integer", "minimum": 1, "maximum": 4, "title": "N"},
    ),
}  # fmt: skip

UNSUPPORTED: dict[str, tuple[Any, str]] = {
    "nested dataclasses": (Line, "Line: start"),
    "nested TypedDict": (Nested, "Nested: inner"),
    "nested models": (Person, "Person: home"),
    "recursive dataclass": (Tree, "Tree: children"),
    "set of texts": (User, "User: groups"),
    "list of texts": (list[str], "list: value"),
    "alias of a list": (Names, "Names: value"),
    "tuple": (tuple[str, int], "tuple: value"),
    "NamedTuple": (Place, "Place: value"),
    "dict": (dict[str, str], "dict: value"),
    "anything": (Any, "Any: value"),
    "None": (None, "None: value"),
    "union": (int | str, "value"),
    "union of dataclasses": (Circle | Square, "value"),
}


@each("name", SINGLE)
def test_a_type_that_is_not_an_object_becomes_a_form_with_one_field(name: str) -> None:
    hint, says = SINGLE[name]
    assert form_of(hint).schema == {"type": "object", "properties": {"value": says}, "required": ["value"]}


def test_a_form_describes_its_fields() -> None:
    assert form_of(Booking).schema == {"type": "object", "properties": FIELDS, "required": ["name"]}


@each(
    "kind, names, required",
    [
        (Point, ["x", "y"], ["x"]),
        (Guest, ["name", "age", "tags"], ["name"]),
        (Movie, ["title", "year"], ["title", "year"]),
        (Options, ["deep", "depth"], ["depth"]),
        (Address, ["street", "number"], ["street"]),
        (Camel, ["firstName", "surname"], ["firstName"]),
        (Described, ["count", "name", "when"], ["count"]),
    ],
)
def test_a_class_becomes_a_form_with_its_fields(kind: Any, names: list[str], required: list[str]) -> None:
    schema = form_of(kind).schema
    assert [*schema["properties"]] == names
    assert schema["required"] == required


def test_a_class_without_fields_becomes_a_form_to_confirm() -> None:
    assert form_of(Sure).schema == {"type": "object", "properties": {}}


@each("name", UNSUPPORTED)
def test_types_with_fields_that_no_form_has_are_rejected(name: str) -> None:
    hint, where = UNSUPPORTED[name]
    with pytest.raises(UsageError, match=rf"^elicit: .*{where}: forms have fields for text, numbers, booleans and ch"):
        form_of(hint)


@each("hint, why", [(complex, "complex has no JSON form"), (set[list[int]], "not hashable")])
def test_types_without_a_json_form_are_rejected(hint: Any, why: str) -> None:
    with pytest.raises(UsageError, match=f"^elicit: .*{why}"):
        form_of(hint)


def test_a_type_that_no_form_can_have_is_an_error_before_the_client_is_asked() -> None:
    async def tool(ctx: Context) -> str:
        with pytest.raises(UsageError, match="elicit: Line: start"):
            await ctx.elicit("Which?", Line)
        return "told"

    assert asyncio.run(_run_form(tool, REVISIONS[0], lambda _: pytest.fail("asked"))) == "told"


# Sending forms


async def _run_form(tool: Callable[..., Any], revision: str, answer: Callable[[Any], Any]) -> str:
    """Return the text of a tool whose requests the client answers so."""
    server = Server(debug=True)
    server.add_tool(tool, name="ask")
    async with typedmcp.connect(server, revisions=[revision], elicit=answer) as client:
        result = await client.call_tool("ask")
        return "\n".join(block.text for block in result.content if isinstance(block, structs.TextContent))


def ask(kind: Any, revision: str, answer: Callable[[Any], Any]) -> tuple[Elicited[Any] | str, Any]:
    """Return the answer or the error that a tool gets for a type, and the form that the client got."""
    got: list[Any] = []
    seen: list[Any] = []

    async def tool(ctx: Context) -> str:
        got.append(await ctx.elicit("Well?", kind))
        return "fine"

    def answered(params: Any) -> Any:
        assert params.message == "Well?"
        seen.append(structs.to_builtins(params)["requestedSchema"])
        return answer(params)

    said = asyncio.run(_run_form(tool, revision, answered))
    return got[-1] if got else said, seen[-1]


ANSWERS: list[tuple[Any, Any, Any]] = [
    (str, {"value": "a"}, "a"),
    (int, {"value": 5}, 5),
    (bool, {"value": False}, False),
    (float, {"value": 1}, 1.0),
    (date, {"value": "2026-01-02"}, date(2026, 1, 2)),
    (Literal["a", "b"], {"value": "b"}, "b"),
    (Literal[1, 2], {"value": "2"}, 2),
    (Colour, {"value": "blue"}, Colour.BLUE),
    (Level, {"value": "2"}, Level.HIGH),
    (Mixed, {"value": "1"}, Mixed.ONE),
    (Mixed, {}, Mixed.NONE),
    (list[Literal["a", "b"]], {"value": ["b"]}, ["b"]),
    (set[Colour], {"value": ["red"]}, {Colour.RED}),
    (int | None, {"value": 5}, 5),
    (int | None, {}, None),
    (Point, {"x": 1}, Point(1)),
    (Point, {"x": 1, "y": 2}, Point(1, 2)),
    (Guest, {"name": "a"}, Guest("a", None, ["a"])),
    (Guest, {"name": "a", "age": 5, "tags": ["b"]}, Guest("a", 5, ["b"])),
    (Movie, {"title": "a", "year": 1}, {"title": "a", "year": 1}),
    (Options, {"depth": 1}, {"depth": 1}),
    (Address, {"street": "a"}, Address(street="a")),
    (Camel, {"firstName": "a"}, Camel("a")),
    (
        Booking,
        {"name": "a", "level": "2", "numbers": ["2"], "shades": ["dark"], "price": 1.5, "day": "2026-01-02"},
        Booking("a", level=Level.HIGH, numbers=[2], shades={Shade.DARK}, price=Decimal("1.5"), day=date(2026, 1, 2)),
    ),
]


@each("revision", REVISIONS)
@each("kind, content, data", ANSWERS)
def test_an_answer_is_converted_to_the_type(kind: Any, content: Any, data: Any, revision: str) -> None:
    elicited, schema = ask(kind, revision, lambda _: structs.ElicitResult(action="accept", content=content))
    assert elicited == Elicited("accept", data)
    assert repr(elicited) == repr(Elicited("accept", data))
    assert schema == form_of(kind).schema


@each("revision", REVISIONS)
@each("kind", [Booking, str, Address])
@each("action", ["decline", "cancel"])
def test_a_user_may_decline_or_cancel(kind: Any, action: Any, revision: str) -> None:
    elicited, _ = ask(kind, revision, lambda _: structs.ElicitResult(action=action))
    assert elicited == Elicited(action, None)


@each("revision", REVISIONS)
def test_a_field_left_out_gets_the_default_of_the_form(revision: str) -> None:
    elicited, _ = ask(Booking, revision, lambda params: typedmcp.with_defaults(params, {"name": "a"}))
    assert elicited == Elicited("accept", Booking("a"))


@each("revision", REVISIONS)
def test_a_callback_that_returns_none_declines(revision: str) -> None:
    assert ask(str, revision, lambda _: None)[0] == Elicited("decline")


@each("revision", REVISIONS)
@each(
    "kind, content, says",
    [
        (Annotated[str, Meta(pattern="^a")], {"value": "b"}, "value: expected string matching regex '^a'"),
        (Annotated[float, Meta(gt=0)], {"value": 0}, "value: expected number > 0"),
        (UUID, {"value": "a"}, "value: invalid UUID"),
    ],
)
def test_an_answer_that_fits_the_form_but_not_the_type_is_an_error(
    kind: Any, content: Any, says: str, revision: str
) -> None:
    """Forms cannot express everything that types can."""
    with pytest.raises(typedmcp.InvalidParamsError) as caught:
        ask(kind, revision, lambda _: structs.ElicitResult(action="accept", content=content))
    assert f"the answer does not fit the form: {says}" in str(caught.value)


@each("revision", REVISIONS)
def test_several_forms_may_be_sent_one_after_the_other(revision: str) -> None:
    answers: Mapping[str, Any] = {"Who?": {"value": "Ada"}, "When?": {"value": "2026-01-02"}}

    async def tool(ctx: Context) -> str:
        who = await ctx.elicit("Who?", str)
        when = await ctx.elicit("When?", date)
        return f"{who.data} on {when.data:%d.%m.}"

    assert asyncio.run(_run_form(tool, revision, lambda params: answers[params.message])) == "Ada on 02.01."


def test_the_form_of_a_type_is_cached() -> None:
    assert form_of(Booking) is form_of(Booking)


def test_an_unhashable_type_becomes_a_form() -> None:
    hint: Any = Annotated[str, Meta(examples=["a"])]
    assert form_of(hint).schema["properties"] == {"value": {"type": "string"}}


def test_a_model_that_cannot_be_described_is_rejected() -> None:
    class Broken(BaseModel):
        call: Callable[[], int]

    with pytest.raises(UsageError, match=r"^elicit: Broken: "):
        form_of(Broken)


def test_equal_types_offer_their_choices_in_their_own_order() -> None:
    assert form_of(Literal["up", "down"]).schema["properties"]["value"]["enum"] == ["up", "down"]
    assert form_of(Literal["down", "up"]).schema["properties"]["value"]["enum"] == ["down", "up"]
