"""Arguments that models and hosts send in another form: what is repaired, what is not, and what a client is told."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import time as clock
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import attrs
import msgspec
import pytest
from msgspec import Meta
from pydantic import BaseModel, field_validator

import typedmcp
from mcpspec.support.objects import is_object
from tests.cases import each
from typedmcp import Diagnostic, DiagnosticKind
from typedmcp.app.functions import read_signature
from typedmcp_schemas.arguments import ArgumentError


@dataclass
class OfDataclass:
    count: int
    tags: list[str]
    at: datetime | None = None


class OfStruct(msgspec.Struct):
    count: int
    tags: list[str]
    at: datetime | None = None


@attrs.define
class OfAttrs:
    count: int
    tags: list[str]
    at: datetime | None = None


class OfTypedDict(TypedDict):
    count: int
    tags: list[str]
    at: datetime | None


class OfModel(BaseModel):
    count: int
    tags: list[str]
    at: datetime | None = None


CLASSES: list[Any] = [OfDataclass, OfStruct, OfAttrs, OfTypedDict, OfModel]


LONG: Any = Annotated[str, Meta(min_length=5)]


class Pair(NamedTuple):
    left: int
    right: bool


def bind(hint: Any, value: Any, *, is_strict: bool = False) -> Any:
    """Return what a function gets for its argument."""

    def function(x: Any) -> Any:
        return x

    function.__annotations__["x"] = hint
    signature = read_signature(function, "tool 'it'")
    repairs: list[str] = []
    return signature.call(signature.bind({"x": value}, None if is_strict else repairs.append), None)


def fault_of(hint: Any, value: Any, *, is_strict: bool = False) -> str:
    with pytest.raises(ArgumentError) as caught:
        bind(hint, value, is_strict=is_strict)
    return str(caught.value)


def plain(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {name: getattr(value, name) for name in ("count", "tags", "at")}


@each("kind", CLASSES)
@each("nest", [copy.copy, json.dumps], ids=["object", "text"])
def test_one_rule_holds_for_all_classes(kind: Any, nest: Callable[[Any], Any]) -> None:
    given = {"count": "3", "tags": '["a"]', "at": "2026-01-01 10:00"}
    expected = {"count": 3, "tags": ["a"], "at": datetime(2026, 1, 1, 10, 0)}
    assert plain(bind(kind, nest(given))) == expected
    assert [plain(each) for each in bind(list[kind], [nest(given)])] == [expected]
    assert plain(bind(kind | None, nest(given))) == expected
    assert plain(bind(dict[str, kind], {"k": nest(given)})["k"]) == expected


@each("kind", CLASSES)
@each("member, value", [("count", "3"), ("count", True), ("tags", '["a"]'), ("at", "2026-01-01"), ("at", "null")])
def test_a_strict_function_repairs_no_class(kind: Any, member: str, value: Any) -> None:
    given = {"count": 3, "tags": ["a"], "at": None, member: value}
    assert fault_of(kind, given, is_strict=True).startswith(f"x.{member}: expected ")


@each("kind", CLASSES)
def test_integers_with_a_fraction_of_zero_are_integers_for_a_strict_function(kind: Any) -> None:
    made = plain(bind(kind, {"count": 3.0, "tags": [], "at": None}, is_strict=True))
    assert repr(made["count"]) == "3"


@each(
    "hint, given, gets",
    [
        (int, "3", 3),
        (int, " 3 ", 3),
        (int, "3.0", 3),
        (float, "3", 3.0),
        (bool, "true", True),
        (None, "null", None),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], '["1", 2.0]', [1, 2]),
        (dict[str, int], '{"a": "1"}', {"a": 1}),
        (Pair, '[1, "true"]', Pair(1, True)),
        (int | None, "null", None),
        (int | None, "5", 5),
        (datetime | None, "null", None),
        (Literal["a", "b"] | None, "null", None),
        (Literal[1, 2], "2", 2),
        (int | bool, "true", True),
        (int | float, "1.5", 1.5),
        (list[int] | list[str], '["a"]', ["a"]),
        (Annotated[int, Meta(ge=1)], "3", 3),
        (datetime, "2026-01-01", datetime(2026, 1, 1)),
        (datetime, "2026-01-01T10:00Z", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        (datetime, "2026-01-01 10:00", datetime(2026, 1, 1, 10)),
        (datetime, "2026-01-01T10:00:00+00", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        (datetime, "2026-01-01 10:00:00.5 Z", datetime(2026, 1, 1, 10, 0, 0, 500_000, tzinfo=UTC)),
        (clock, "10:00", clock(10)),
        (clock, "10:00Z", clock(10, tzinfo=UTC)),
    ],
)
def test_a_value_in_another_form_is_repaired_if_it_has_one_meaning(hint: Any, given: Any, gets: Any) -> None:
    assert repr(bind(hint, given)) == repr(gets)


@each("text", ["3", "true", "null", "[1]", "{}", "2026-01-01"])
@each("hint", [str, str | int, str | None, Any, list[int] | str, str | bool | dict[str, Any]], ids=str)
def test_a_text_stays_a_text_where_texts_are_accepted(hint: Any, text: str) -> None:
    assert bind(hint, text) == text


UNCLEAR: list[tuple[Any, Any, str]] = [
    (int, "3.5", "x: expected integer, got string"),
    (int, "three", "x: expected integer, got string"),
    (int, '"3"', "x: expected integer, got string"),
    (int, "", "x: expected integer, got string"),
    (int, True, "x: expected integer, got boolean"),
    (bool, "True", "x: expected boolean, got string"),
    (bool, "yes", "x: expected boolean, got string"),
    (bool, 1, "x: expected boolean, got integer"),
    (str, 5, "x: expected string, got integer"),
    (list[str], "a,b", "x: expected array, got string"),
    (list[int], "[1, 2", "x: expected array, got string"),
    (list[int], '[1, "a"]', "x[1]: expected integer, got string"),
    (LONG | None, "null", "x: expected string of length >= 5"),
    (Annotated[int, Meta(ge=5)], "3", "x: expected integer >= 5, got 3"),
    (datetime, "yesterday", 'x: expected date-time, got "yesterday"'),
    (datetime, "01/02/2026", 'x: expected date-time, got "01/02/2026"'),
]


@each("hint, value, fault", UNCLEAR)
def test_what_could_be_meant_otherwise_is_an_error(hint: Any, value: Any, fault: str) -> None:
    assert fault_of(hint, value) == fault


def test_null_is_the_absence_of_an_argument_that_has_a_default_and_takes_no_null() -> None:
    def function(a: int, b: int = 2, c: int | None = 3) -> Any:
        return a, b, c

    signature = read_signature(function, "tool 'it'")
    assert signature.call(signature.bind({"a": 1, "b": None, "c": None}, lambda _: None), None) == (1, 2, None)
    with pytest.raises(ArgumentError, match=r"^b: expected integer, got null$"):
        signature.bind({"a": 1, "b": None})
    with pytest.raises(ArgumentError, match=r"^a: expected integer, got null$"):
        signature.bind({"a": None}, lambda _: None)


# Faults


class Order(TypedDict):
    item: str
    amount: Annotated[int, Meta(ge=1)]


def order(customer: str, orders: list[Order], express: bool = False) -> str:
    return customer


def test_all_faults_of_a_call_are_in_one_text() -> None:
    given = {"custmer": "a", "orders": [{"item": 1, "amount": 0}, {"amount": "two"}], "express": "maybe"}
    with pytest.raises(ArgumentError) as caught:
        read_signature(order, "tool 'order'").bind(given, lambda _: None)
    assert str(caught.value).splitlines() == [
        "customer: required, but missing",
        "unknown argument 'custmer'; known: customer, orders, express; did you mean 'customer'?",
        "orders[0].item: expected string, got integer",
        "orders[0].amount: expected integer >= 1, got 0",
        "orders[1].item: required, but missing",
        "orders[1].amount: expected integer, got string",
        "express: expected boolean, got string",
    ]


def test_a_fault_that_only_the_conversion_finds_is_told_with_those_of_the_schema() -> None:
    def function(data: bytes, id: UUID, code: Annotated[str, Meta(pattern="^a")], count: int) -> None: ...

    signature = read_signature(function, "tool 'it'")
    given = {"data": "!", "id": "x", "code": "b", "count": "few"}
    for bind_all in (partial(signature.bind, on_repair=lambda _: None), signature.bind_texts):
        with pytest.raises(ArgumentError) as caught:
            bind_all(given)
        faults = [fault.partition(":")[0] for fault in str(caught.value).splitlines()]
        assert faults == ["count", "data", "id", "code"]


class Tagged(BaseModel):
    """Accepts more than its schema says."""

    tags: list[str]

    @field_validator("tags", mode="before")
    @classmethod
    def split(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value


def test_an_argument_that_its_class_accepts_has_no_fault() -> None:
    def function(x: Tagged, count: int) -> Any:
        return x.tags, count

    signature = read_signature(function, "tool 'it'")
    given = {"x": {"tags": "a,b"}, "count": "3"}
    assert signature.call(signature.bind(given, lambda _: None), None) == (["a", "b"], 3)
    with pytest.raises(ArgumentError, match=r"^count: expected integer, got string$"):
        signature.bind(given)


def test_all_faults_of_the_arguments_of_a_prompt_are_in_one_text() -> None:
    def function(day: datetime, days: int = 1, place: str = "") -> Any:
        return day, days

    signature = read_signature(function, "prompt 'it'")
    with pytest.raises(ArgumentError) as caught:
        signature.bind_texts({"days": "few", "plaice": "Oslo"})
    assert str(caught.value).splitlines() == [
        "day: required, but missing",
        "days: expected integer, got string",
        "unknown argument 'plaice'; known: day, days, place; did you mean 'place'?",
    ]
    assert signature.call(signature.bind_texts({"day": "2026-01-01"}), None) == (datetime(2026, 1, 1), 1)


def test_the_text_of_the_faults_is_bounded_and_escaped() -> None:
    names = {f"{number}\x1b[2J{'n' * 5000}": number for number in range(1000)}
    with pytest.raises(ArgumentError) as caught:
        read_signature(order, "tool 'order'").bind(names, lambda _: None)
    text = str(caught.value)
    assert len(text.splitlines()) == 22
    assert text.endswith(" more\nfurther arguments were not examined")
    assert len(text) < 22 * 1000
    assert "\x1b" not in text


# Hostile arguments


@dataclass
class Left:
    value: int
    inner: Left | Right | None = None


@dataclass
class Right:
    value: bool
    inner: Left | Right | None = None


def _nested(levels: int) -> Any:
    made: Any = {"value": "x"}
    for _ in range(levels):
        made = {"value": "1", "inner": made}
    return made


def _texts(levels: int) -> str:
    text = "[1]"
    while levels and len(text) < 1_000_000:
        text, levels = json.dumps([text]), levels - 1
    return text


@each(
    "hint, value",
    [
        (Left | Right, _nested(60)),
        (list[int], ["x"] * 200_000),
        (list[int], json.dumps(["x"] * 200_000)),
        (list[int], "[" * 100_000),
        (list[int], _texts(30)),
        (dict[str, int], {f"k{number}": "x" for number in range(100_000)}),
        (int, "1" * 1_000_000),
    ],
    ids=["unions", "items", "text", "brackets", "texts in texts", "members", "digits"],
)
def test_hostile_arguments_take_bounded_time(hint: Any, value: Any) -> None:
    began = time.process_time()
    assert len(fault_of(hint, value)) < 25_000
    assert time.process_time() - began < 20  # quadratic time would be minutes


def _many_parameters(names: list[str]) -> Any:
    def function(**rest: Any) -> None: ...

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=int) for name in names]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = dict.fromkeys(names, int)
    return function


def _rest_of_unions(**rest: Left | Right) -> None: ...


@each(
    "function, value",
    [
        (_many_parameters([f"n{number:03}" + "abc" * 20 for number in range(200)]), "x"),
        (_rest_of_unions, _nested(20)),
        (_rest_of_unions, "x"),
    ],
    ids=["unknown names", "unions", "faults"],
)
def test_many_arguments_take_bounded_time(function: Any, value: Any) -> None:
    arguments = {"cab" * 20 + str(number): value for number in range(20_000)}
    signature = read_signature(function, "tool 'it'")
    began = time.process_time()
    with pytest.raises(ArgumentError) as caught:
        signature.bind(arguments, lambda _: None)
    assert len(str(caught.value)) < 25_000
    with pytest.raises(ArgumentError):
        signature.bind_texts(dict.fromkeys(arguments, "x"))
    assert time.process_time() - began < 12  # quadratic time would be minutes


# Servers

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "ids": {"type": "array", "items": {"$ref": "#/$defs/Id"}}},
    "required": ["n"],
    "additionalProperties": False,
    "$defs": {"Id": {"type": "integer", "minimum": 1}},
}


def call(config: typedmcp.ServerConfig | typedmcp.Server, arguments: dict[str, Any]) -> Any:
    """Return the text of a call of the tool `it`, after "error: " if it failed."""

    async def main() -> Any:
        async with typedmcp.connect(config) as client:
            result = await client.call_tool("it", arguments)
            return ("error: " if result.is_error is True else "") + typedmcp.text_of(result)

    return asyncio.run(main())


def server_of(*, server_strict: bool = False, **options: Any) -> typedmcp.Server:
    server = typedmcp.Server(strict=server_strict)

    def function(n: int, ids: list[int] | None = None) -> str:
        return f"{n} {ids}"

    server.add_tool(function, name="it", **options)
    return server


@each(
    "on_server, on_tool, is_strict",
    [(False, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
@each("schema", [None, SCHEMA], ids=["signature", "schema"])
def test_strict_of_a_tool_comes_before_strict_of_the_server(
    on_server: bool, on_tool: bool | None, is_strict: bool, schema: Any
) -> None:
    server = server_of(server_strict=on_server, strict=on_tool, input_schema=schema)
    text = call(server, {"n": "3", "ids": "[1, 2]"})
    if is_strict:
        assert text == "error: n: expected integer, got string\nids: expected array" + (
            ", got string" if schema else " or null, got string"
        )
    else:
        assert text == "3 [1, 2]"
    assert call(server, {"n": 3.0}) == "3 None"


def test_a_given_schema_has_all_faults_in_the_same_words() -> None:
    given = {"m": 1, "ids": ["1", 0, "x"]}
    assert call(server_of(input_schema=SCHEMA), given).splitlines() == [
        "error: n: required, but missing",
        "unknown argument 'm'; known: n, ids",
        "ids[1]: expected integer >= 1, got 0",
        "ids[2]: expected integer, got string",
    ]


def test_a_keyword_that_is_not_examined_is_left_to_the_validator() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 2}, "ids": {}}}
    server = server_of(input_schema=schema)
    assert call(server, {"n": "4"}) == "4 None"
    assert call(server, {"n": "3"}) == "error: n: 3 is not a multiple of 2"


def test_each_call_that_was_repaired_is_one_diagnostic_without_the_values() -> None:
    for schema in (None, SCHEMA):
        reports: list[Diagnostic] = []
        config = typedmcp.ServerConfig(server_of(input_schema=schema), on_diagnostic=reports.append)
        assert call(config, {"n": 3, "ids": [1]}) == "3 [1]"
        assert call(config, {"n": 3.0}) == "3 None"
        assert reports == []
        assert call(config, {"n": "3", "ids": '["7"]'}) == "3 [7]"
        assert [(report.kind, report.text) for report in reports] == [
            (
                DiagnosticKind.TOLERATED,
                "tool 'it': its arguments do not fit their schema: n: a string with JSON was read as integer; "
                "ids: a string with JSON was read as array; ids[0]: a string with JSON was read as integer",
            )
        ]


def test_an_application_that_is_strict_in_all_answers_such_a_call_with_an_error() -> None:
    config = typedmcp.ServerConfig(server_of(), strict=True)
    with pytest.raises(typedmcp.InvalidParamsError, match="n: a string with JSON was read as integer"):
        call(config, {"n": "3"})
