"""Explanations of values that do not fit: the place, what was expected, and little of what a peer sent."""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, cast

import annotated_types as at
import msgspec
import pydantic
import pytest
from msgspec import Meta
from pydantic import BaseModel, Field

from tests.app.type_cases import Camel, Cat, Circle, Colour, Dog, Level, Place, Point, Row, Square, Strict, User
from tests.cases import each
from typedmcp_schemas.adapt import to_msgspec
from typedmcp_schemas.arguments import ArgumentError
from typedmcp_schemas.explanations import explain
from typedmcp_schemas.signatures import Signature
from typedmcp_schemas.values import ValueConversionError, convert

LARGE = 160_000
"""Characters of a text for which quadratic time would be minutes."""


@dataclass
class Deep:
    """Mappings in mappings."""

    named: dict[str, dict[str, Point]]
    listed: dict[str, list[dict[str, int] | None]] = field(default_factory=dict[str, Any])
    either: dict[str, Circle | Square] = field(default_factory=dict[str, Any])


class Model(BaseModel):
    kind: Literal["x", "y"] = "x"
    inner: dict[str, Model] = {}
    by_number: dict[int, int] = {}


class Holder(msgspec.Struct):
    """A Struct as an array, with a mapping in it."""

    row: Row
    place: Place
    pair: tuple[dict[str, int], Point]


Many: Any = cast(Any, enum.Enum)("Many", {f"M{number}": f"m{number}" for number in range(50)})
"""More options than a message lists."""


def explanation_of(value: Any, hint: Any, place: str = "x") -> str:
    """Return the explanation for a value that does not fit."""
    with pytest.raises(ValueConversionError) as caught:
        convert(value, to_msgspec(hint))
    return explain(caught.value, place)


@each(
    "hint, value, text",
    [
        (dict[str, int], {"a": 1, "b": "c"}, "x.b: expected integer, got string"),
        (dict[str, int], {"a": 1, "two words": "c"}, 'x["two words"]: expected integer, got string'),
        (dict[str, int], {"": "c"}, 'x[""]: expected integer, got string'),
        (dict[str, int], {"größe": "c"}, 'x["größe"]: expected integer, got string'),
        (dict[str, int], {"a\n\x1b[2J": "c"}, 'x["a\\n\\u001b[2J"]: expected integer, got string'),
        (dict[str, dict[str, list[int]]], {"a": {"b": [1]}, "c": {"d": [1, None]}},
         "x.c.d[1]: expected integer, got null"),
        (Deep, {"named": {"k": {"a": {"x": 1}, "b": {}}}}, "x.named.k.b.x: required, but missing"),
        (Deep, {"named": {}, "listed": {"k": [None, {"l": "m"}]}}, "x.listed.k[1].l: expected integer, got string"),
        (Deep, {"named": {}, "either": {"k": {"side": 1}, "l": 5}},
         "x.either.l: expected object, got integer"),
        (Holder, {"row": [1], "place": [1, 2], "pair": [{"a": "b"}, {"x": 1}]},
         "x.pair[0].a: expected integer, got string"),
        (Holder, {"row": [1, 5], "place": [1, 2], "pair": []}, "x.row[1]: expected string, got integer"),
        (list[dict[str, Strict]], [{}, {"k": {"x": 1, "y": 2}}], "x[1].k: unknown property 'y'; known: x"),
        (dict[str, Camel], {"k": {"firstName": 5}}, "x.k.firstName: expected string, got integer"),
        (dict[str, int] | list[int], {"a": "b"}, "x.a: expected integer, got string"),
        (dict[str, Model], {"k": {"inner": {"l m": {"kind": "z"}}}},
         'x.k.inner["l m"].kind: expected "x" or "y", got "z"'),
        (dict[int, str], {"1": "a", "b": "c"}, 'x: key "b": expected integer, got string'),
        (dict[Annotated[str, at.MaxLen(2)], int], {"ab": 1, "abc": 1}, 'x: key "abc": expected string of length <= 2'),
        (dict[str, dict[Level, int]], {"a": {"1": 1}, "b": {"3": 1}}, 'x.b: key "3": expected "1" or "2", got "3"'),
        (Model, {"by_number": {"a": 1}}, 'x.by_number: key "a": expected integer'),
    ],
)  # fmt: skip
def test_places_contain_the_keys_of_mappings(hint: Any, value: Any, text: str) -> None:
    assert explanation_of(value, hint) == text


@each(
    "hint, value, text",
    [
        (Literal["low", "high"], "mid", 'x: expected "low" or "high", got "mid"'),
        (Literal["low", "high"], 5, 'x: expected "low" or "high", got 5'),
        (Literal["low"], None, 'x: expected "low", got null'),
        (Literal[1, "a", None], [], 'x: expected 1, "a" or null, got array'),
        (Literal["auto"] | int, "no", 'x: expected "auto" or integer, got "no"'),
        (Literal["auto"] | Annotated[int, Meta(ge=1)], 0, "x: expected integer >= 1, got 0"),
        (Colour, "green", 'x: expected "red" or "blue", got "green"'),
        (Colour | None, 1.5, 'x: expected "red", "blue" or null, got 1.5'),
        (list[Level], [1, 3], "x[1]: expected 1 or 2, got 3"),
        (dict[str, Colour], {"k": {}}, 'x.k: expected "red" or "blue", got object'),
        (Cat | Dog, {"type": "rat"}, 'x.type: expected "cat" or "dog", got "rat"'),
        (Cat, {"type": "rat"}, 'x.type: expected "cat", got "rat"'),
        (Many, "m50", "x: expected " + ", ".join(f'"m{n}"' for n in range(20)) + ' or 30 others, got "m50"'),
        (Literal["a"], "b" * 1000, 'x: expected "a", got "' + "b" * 58 + "…"),
    ],
)
def test_an_invalid_choice_is_an_error_that_names_the_options(hint: Any, value: Any, text: str) -> None:
    assert explanation_of(value, hint) == text


def test_prompts_and_resources_name_the_argument() -> None:
    def function(x: Colour, y: Literal[1, 2] = 1) -> None: ...

    signature = Signature(function, "prompt 'it'")
    for arguments, text in (
        ({"x": "green"}, 'x: expected "red" or "blue", got "green"'),
        ({"x": "red", "y": "3"}, "y: expected 1 or 2, got 3"),
    ):
        with pytest.raises(ArgumentError, match=f"^{re.escape(text)}$"):
            signature.bind_texts(arguments)


# Text of a peer


class Pair(NamedTuple):
    a: Strict
    b: int = 0


HOSTILE: list[tuple[Any, Callable[[str], Any]]] = [
    (Literal["a", "b"], lambda text: text),
    (list[Colour], lambda text: [text]),
    (Strict, lambda text: {"x": 1, text: 2}),
    (dict[str, int], lambda text: {text: "b"}),
    (dict[int, int], lambda text: {text: 1}),
    (dict[str, Strict], lambda text: {text: {"x": 1, text: 2}}),
    (Cat | Dog, lambda text: {"type": text}),
    (Circle | Square, lambda text: {"radius": text}),
    (Pair, lambda text: [{"x": 1, text: 1}]),
    (Model, lambda text: {"inner": {text: {"kind": text}}}),
    (re.Pattern, lambda text: "(" + text),
]
"""Types, each with a value that does not fit and contains text of the peer."""


@each("text", [" - at `$", " - at `$.a`", "key` in `$", "`", "a" * 9, " - at `key` in `$`"])
@each("hint, make", HOSTILE)
def test_long_values_of_a_peer_are_cut_and_take_little_time(text: str, hint: Any, make: Any) -> None:
    kind = to_msgspec(hint)
    value = make(text * (LARGE // len(text)))
    began = time.process_time()
    with pytest.raises(ValueConversionError) as caught:
        convert(value, kind)
    assert len(explain(caught.value, "x")) < 1200
    assert time.process_time() - began < 20  # quadratic time would be minutes


@each("name", ["n - at `$.a", "n` - at `$.a", "n` - at `$.a`", " - at `$"])
def test_a_property_name_that_looks_like_a_place_is_not_taken_for_one(name: str) -> None:
    def function(a: int = 0) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        Signature(function, "tool 'it'").bind({name: 1, "a": 5})
    assert str(caught.value) == f"unknown argument '{name}'; known: a"
    assert explanation_of({"x": 1, name: 1}, Strict, "") == f"unknown property '{name}'; known: x"


@dataclass
class One:
    value: int
    children: list[One | Other] = field(default_factory=lambda: list[Any]())


@dataclass
class Other:
    value: int
    children: list[One | Other] = field(default_factory=lambda: list[Any]())
    more: int = 0


def processor_time(work: Callable[[int], None], size: int) -> float:
    """Return the seconds of the processor that some work takes, at best."""

    def measure() -> float:
        began = time.process_time()
        work(size)
        return time.process_time() - began

    return min(measure() for _ in range(3))


def test_a_recursive_union_tries_each_value_once() -> None:
    def work(depth: int) -> None:
        fine: dict[str, Any] = {"value": 1}
        wrong: dict[str, Any] = {"value": "wrong"}
        for _ in range(depth):
            fine, wrong = ({"value": 1, "children": [inner]} for inner in (fine, wrong))
        assert isinstance(convert(fine, to_msgspec(One | Other)), One)
        assert len(explanation_of(wrong, One | Other)) < 1200

    low, high = (processor_time(work, depth) for depth in (5, 15))
    assert high < 50 * low, "three times as deep; two tries of each value would take a thousand times"
    work(60)


def test_an_invalid_key_among_many_is_found_fast() -> None:
    def work(size: int) -> None:
        value: dict[str, Any] = {f"k{number}": number for number in range(size)}
        assert explanation_of({**value, "last": "x"}, dict[str, int]) == "x.last: expected integer, got string"
        numbers = {str(number): number for number in range(size)}
        assert explanation_of({**numbers, "last": 1}, dict[int, int]).startswith('x: key "last": ')

    few, many = (processor_time(work, size) for size in (100, 10_000))
    assert many < 1000 * few, "a hundred times as many keys; a search for each would take ten thousand times"


# Exceptions


@dataclass
class Careless:
    x: int

    def __post_init__(self) -> None:
        failures = [ValueError("too small"), TypeError("of no use"), KeyError("secret"), ValueError("a\x1b[2J")]
        raise failures[self.x - 1]


@dataclass
class Negative:
    x: int

    def __post_init__(self) -> None:
        if self.x >= 0:
            raise ValueError("too large")


class CarelessModel(BaseModel):
    x: int

    @pydantic.field_validator("x")
    @classmethod
    def _check(cls, value: int) -> int:
        raise {1: ValueError("too small"), 3: LookupError("secret"), 4: RuntimeError("secret")}[value]


def _first(value: Any) -> bool:
    return bool(value[0])


TENTHS: Any = Annotated[Decimal, at.MultipleOf(Decimal("0.1"))]


@each(
    "hint, value, text",
    [
        (re.Pattern, "(?P<a", "x: not a regular expression: missing >, unterminated name at position 4"),
        (Annotated[Decimal, Field(ge=1)], "NaN", 'x: expected Decimal >= 1, got "NaN"'),
        (TENTHS, "Infinity", 'x: expected Decimal that\'s a multiple of 0.1, got "Infinity"'),
        (TENTHS, 1e308, "x: expected Decimal that's a multiple of 0.1, got 1e+308"),
        (Annotated[list[int], at.Predicate(_first)], [], "x: expected list[int] for which _first holds"),
        (Careless, {"x": 1}, "x: too small"),
        (list[Careless], [{"x": 1}], "x[0]: too small"),
        (Careless, {"x": 2}, "x: of no use"),
        (Careless, {"x": 3}, "x: the value was rejected"),
        (Careless, {"x": 4}, "x: a\\u001b[2J"),
        (dict[str, Careless], {"a": {"x": 3}}, "x.a: the value was rejected"),
        (CarelessModel, {"x": 1}, "x.x: too small"),
        (list[CarelessModel], [{"x": 3}], "x[0]: the value was rejected"),
        (CarelessModel | None, {"x": 4}, "x: the value was rejected"),
        (User | Careless, {"x": 3}, "x: the value was rejected"),
        (Careless | Negative, {"x": 3}, "x: fits none of Careless | Negative: the value was rejected; too large"),
    ],
)
def test_only_value_and_type_errors_are_shown_to_callers(hint: Any, value: Any, text: str) -> None:
    def function(fine: int = 0, x: Any = None) -> None: ...

    function.__annotations__["x"] = hint
    with pytest.raises(ArgumentError) as caught:
        Signature(function, "tool 'it'").bind({"x": value})
    assert str(caught.value) == text
