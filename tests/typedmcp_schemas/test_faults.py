"""What is said of arguments that do not fit: every fault once, and of a union those of the option that is meant."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import annotated_types as at
import attrs
import msgspec
import pytest
from msgspec import Meta
from pydantic import AfterValidator, BaseModel, Field, field_validator

from tests.app.argument_strategies import validator
from tests.cases import each
from typedmcp_schemas import (
    ArgumentError,
    Signature,
    ValueConversionError,
    convert,
    portable_schema_of,
    schema_of,
    to_msgspec,
)

CODE = "^[A-Z]{3}$"


class StructCircle(msgspec.Struct, tag="circle", tag_field="kind"):
    radius: float


class StructSquare(msgspec.Struct, tag="square", tag_field="kind"):
    side: Annotated[float, Meta(gt=0)]
    code: Annotated[str, Meta(pattern=CODE)] = "ABC"


@dataclass
class DataCircle:
    radius: float
    kind: Literal["circle"] = "circle"


@dataclass
class DataSquare:
    kind: Literal["square"]
    side: Annotated[float, at.Gt(0)]
    code: Annotated[str, Meta(pattern=CODE)] = "ABC"


class DictCircle(TypedDict):
    kind: Literal["circle"]
    radius: float


class DictSquare(TypedDict, total=False):
    kind: Literal["square"]
    side: Annotated[float, at.Gt(0)]
    code: Annotated[str, Meta(pattern=CODE)]


@attrs.define
class AttrsCircle:
    kind: Literal["circle"]
    radius: float


@attrs.define
class AttrsSquare:
    kind: Literal["square"]
    side: Annotated[float, at.Gt(0)]
    code: Annotated[str, Meta(pattern=CODE)] = "ABC"


class ModelCircle(BaseModel):
    kind: Literal["circle"] = "circle"
    radius: float


class ModelSquare(BaseModel):
    kind: Literal["square"] = "square"
    side: float = Field(gt=0)
    code: str = Field("ABC", pattern=CODE)


class Corner(BaseModel):
    kind: Literal["corner"]
    of: list[ModelCircle | ModelSquare] = []


UNIONS: dict[str, Any] = {
    "Structs": StructCircle | StructSquare,
    "dataclasses": DataCircle | DataSquare,
    "TypedDicts": DictCircle | DictSquare,
    "attrs": AttrsCircle | AttrsSquare,
    "models": ModelCircle | ModelSquare,
    "models with a discriminator": Annotated[ModelCircle | ModelSquare, Field(discriminator="kind")],
    "a dataclass and a model": DataCircle | ModelSquare,
    "with null": DataCircle | DataSquare | None,
    "in a union": Annotated[ModelCircle | ModelSquare, Field(discriminator="kind")] | Corner | int,
}


def faults_of(hint: Any, value: Any) -> list[str]:
    """Return the lines of the error for an argument."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    with pytest.raises(ArgumentError) as caught:
        Signature(function).bind({"x": value})
    return str(caught.value).splitlines()


@each("name", UNIONS)
@each(
    "value, faults",
    [
        ({"kind": "square", "side": "a"}, ["x.side: expected number, got string"]),
        ({"kind": "square", "side": -1, "code": "a"},
         ["x.side: expected number > 0, got -1", f"x.code: expected string matching regex '{CODE}', got \"a\""]),
        ({"kind": "square", "side": 1, "code": "a", "radius": "b"},
         [f"x.code: expected string matching regex '{CODE}', got \"a\""]),
        ({"kind": "circle", "side": "a"}, ["x.radius: required, but missing"]),
        ({"kind": "circle", "radius": None}, ["x.radius: expected number, got null"]),
    ],
)  # fmt: skip
def test_only_the_option_with_the_tag_is_blamed(name: str, value: Any, faults: list[str]) -> None:
    assert faults_of(UNIONS[name], value) == faults
    nested: Any = dict[str, list[Any]].__class_getitem__((str, list[Any].__class_getitem__(UNIONS[name])))
    assert faults_of(nested, {"k": [value]}) == [fault.replace("x.", "x.k[0].") for fault in faults]


@each("name", UNIONS)
@each("value", [{"kind": "hexagon", "side": "a"}, {"kind": "hexagon"}, {"kind": 5, "radius": 1}])
def test_a_wrong_tag_is_named_with_those_that_are_expected(name: str, value: Any) -> None:
    expected = '"circle", "square" or "corner"' if name == "in a union" else '"circle" or "square"'
    assert faults_of(UNIONS[name], value) == [f"x.kind: expected {expected}, got {json.dumps(value['kind'])}"]


@each("name", ["Structs", "attrs", "models with a discriminator"])
def test_a_missing_tag_is_named_beside_the_faults_of_the_option_that_is_meant(name: str) -> None:
    missing = 'x.kind: required, but missing; expected "circle" or "square"'
    assert faults_of(UNIONS[name], {}) == [missing]
    assert faults_of(UNIONS[name], {"side": 1}) == [missing]
    assert faults_of(UNIONS[name], {"side": "a"}) == [missing, "x.side: expected number, got string"]


class Level(Enum):
    LOW = 1
    HIGH = 2


class Low(msgspec.Struct):
    level: Literal[1]
    x: int = 0


class High(msgspec.Struct):
    level: Literal[2, 3]
    y: int = 0


class Sub(BaseModel):
    kind: Literal["a"]
    sub: Literal["x"]
    n: int = 0


class Other(BaseModel):
    kind: Literal["a"]
    sub: Literal["y"]
    m: int = 0


class Third(BaseModel):
    kind: Literal["b"]
    n: int = 0


Nested = Annotated[Annotated[Sub | Other, Field(discriminator="sub")] | Third, Field(discriminator="kind")]


@each(
    "hint, value, faults",
    [
        (Low | High, {"level": 2, "y": "a"}, ["x.y: expected integer, got string"]),
        (Low | High, {"level": 4}, ["x.level: expected 1, 2 or 3, got 4"]),
        (Low | High, {"level": True}, ["x.level: expected 1, 2 or 3, got true"]),
        (Nested, {"kind": "a", "sub": "y", "m": "a", "n": "a"}, ["x.m: expected integer, got string"]),
        (Nested, {"kind": "a", "sub": "z"}, ['x.sub: expected "x" or "y", got "z"']),
        (Nested, {"kind": "a"}, ['x.sub: required, but missing; expected "x" or "y"']),
        (Nested, {"kind": "c", "sub": "x"}, ['x.kind: expected "a" or "b", got "c"']),
        (Nested, {"kind": "b", "n": "a"}, ["x.n: expected integer, got string"]),
    ],
)  # fmt: skip
def test_tags_may_be_numbers_of_several_values_and_in_levels(hint: Any, value: Any, faults: list[str]) -> None:
    assert faults_of(hint, value) == faults


class Plain(msgspec.Struct):
    name: str
    size: int = 0


class Titled(msgspec.Struct):
    title: str


class Long(msgspec.Struct):
    name: str
    title: str
    items: list[Plain] = []


@each(
    "hint, value, faults",
    [
        (Plain | Long, {"size": "a"}, ["x.name: required, but missing", "x.size: expected integer, got string"]),
        (Plain | Long, {}, ["x.name: required, but missing"]),
        (Plain | Titled, {},
         ["x: fits none of Plain | Titled: name: required, but missing; title: required, but missing"]),
        (Long | list[Long], {"name": "a", "title": "b", "items": [{}, {"size": 1}]},
         ["x.items[0].name: required, but missing", "x.items[1].name: required, but missing"]),
        (list[int] | list[str], [1, "a", 3], ["x[1]: expected integer, got string"]),
        (list[int] | list[str], [1, "a"],
         ["x: fits none of 2 alternatives: [1]: expected integer, got string; [0]: expected string, got integer"]),
        (dict[str, int] | Plain, {"size": 1.5},
         ["x.name: required, but missing", "x.size: expected integer, got number"]),
        (Annotated[str, Meta(pattern="^a")] | Annotated[str, Meta(pattern="^b")], "c",
         ["x: fits none of str | str: expected string matching regex '^a'; expected string matching regex '^b'"]),
    ],
)  # fmt: skip
def test_without_tags_the_closest_option_is_meant_or_else_all_are_named(
    hint: Any, value: Any, faults: list[str]
) -> None:
    assert faults_of(hint, value) == faults


# Several faults


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


class Model(BaseModel):
    code: str = Field("ABC", pattern=CODE)
    size: int = 0
    even: Annotated[int, AfterValidator(_even)] = 0
    ten: int = Field(0, multiple_of=10)
    inner: list[Model] = []

    @field_validator("size")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value < 0:
            raise ValueError("must not be negative")
        return value


@dataclass
class Money:
    amount: Annotated[Decimal, at.Ge(0)]
    currency: Annotated[str, Meta(pattern=CODE)] = "EUR"
    on: date | None = None
    id: UUID | None = None
    parts: list[Money] = field(default_factory=lambda: list[Any]())

    def __post_init__(self) -> None:
        if self.currency == "XXX":
            raise ValueError("not a currency")


class Keyed(msgspec.Struct):
    codes: dict[str, Annotated[str, Meta(pattern=CODE)]] = {}
    pair: tuple[Annotated[str, Meta(pattern=CODE)], int] | None = None
    even: Annotated[int, at.Predicate(lambda value: value % 2 == 0)] = 0
    models: list[Model] = []


WRONG_CODE = f"expected string matching regex '{CODE}', got \"a\""


@each(
    "hint, value, faults",
    [
        (Model, {"code": "a", "size": -1, "even": 1, "ten": 5},
         [f"x.code: {WRONG_CODE}", "x.size: must not be negative", "x.even: must be even",
          "x.ten: expected a multiple of 10, got 5"]),
        (Model, {"code": "a", "size": "b", "inner": [{}, {"even": 1, "ten": "c"}]},
         ["x.size: expected integer, got string", "x.inner[1].ten: expected integer, got string",
          f"x.code: {WRONG_CODE}", "x.inner[1].even: must be even"]),
        (list[Model], [{"code": "a"}, {}, {"code": 5, "size": -1}],
         ["x[2].code: expected string, got integer", f"x[0].code: {WRONG_CODE}", "x[2].size: must not be negative"]),
        (Money, {"amount": "-1", "currency": "a", "on": "2026-02-30", "id": "b"},
         ['x.amount: expected Decimal >= 0, got "-1"', f"x.currency: {WRONG_CODE}",
          'x.on: invalid RFC3339 encoded date, got "2026-02-30"', 'x.id: invalid UUID, got "b"']),
        (Money, {"amount": "a", "parts": [{"amount": 1, "currency": "XXX"}, {"amount": 1, "currency": "a"}, {}]},
         ["x.parts[2].amount: required, but missing", 'x.amount: invalid decimal string, got "a"',
          "x.parts[0]: not a currency", f"x.parts[1].currency: {WRONG_CODE}"]),
        (Keyed, {"codes": {"k": "a", "l": "ABC", "m n": "a"}, "pair": ["a", "b"], "even": 1, "models": [{"code": "a"}]},
         ["x.pair[1]: expected integer, got string", f"x.codes.k: {WRONG_CODE}", f'x.codes["m n"]: {WRONG_CODE}',
          f"x.pair[0]: {WRONG_CODE}", "x.even: expected integer for which <lambda> holds, got 1",
          f"x.models[0].code: {WRONG_CODE}"]),
        (dict[UUID, Model] | None, {"k": {"code": "a"}}, [f"x.k.code: {WRONG_CODE}"]),
    ],
)  # fmt: skip
def test_faults_of_patterns_and_validators_stand_beside_others(hint: Any, value: Any, faults: list[str]) -> None:
    assert faults_of(hint, value) == faults


def test_all_arguments_are_named() -> None:
    def function(a: Annotated[str, Meta(pattern="^a")], b: int, c: Model, d: Money) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        Signature(function).bind({"a": "b", "b": "c", "c": {"code": "a"}, "d": {"amount": 1, "id": "e"}})
    assert str(caught.value).splitlines() == [
        "b: expected integer, got string",
        "a: expected string matching regex '^a', got \"b\"",
        f"c.code: {WRONG_CODE}",
        'd.id: invalid UUID, got "e"',
    ]


def test_many_faults_are_counted_and_take_little_time() -> None:
    wrong: dict[str, Any] = {"code": "a", "even": 1}
    deep = {"amount": 1, "currency": "a"}
    for _ in range(80):
        deep = {"amount": 1, "currency": "a", "parts": [deep]}
    began = time.process_time()
    assert faults_of(list[Model], [wrong] * 5000)[20:] == ["further arguments were not examined"]
    assert 1 <= len(faults_of(Money, deep)) <= 20
    assert len(faults_of(list[Money | Titled], [deep] * 100)) > 0
    assert time.process_time() - began < 30


# The schema of a tag


class WithDefault(BaseModel):
    kind: Literal["one"] = "one"
    x: int = 0
    more: list[Tagged] = []


class WithAlias(BaseModel):
    kind: Literal["two", "three"] = Field("two", alias="Kind")


class Alone(BaseModel):
    kind: Literal["four"] = "four"


Tagged = Annotated[WithDefault | Alone, Field(discriminator="kind")]


class Both(BaseModel):
    tagged: Tagged
    alone: Alone = Alone()


WithDefault.model_rebuild()


@each(
    "hint, value, is_accepted",
    [
        (Tagged, {}, False),
        (Tagged, {"x": 1}, False),
        (Tagged, {"kind": "one", "more": [{"kind": "four"}]}, True),
        (Tagged, {"kind": "one", "more": [{"x": 1}]}, False),
        (Both, {"tagged": {"kind": "four"}, "alone": {}}, True),
        (Both, {"tagged": {}, "alone": {}}, False),
        (list[Tagged], [{"kind": "four"}, {}], False),
        (WithDefault, {"x": 1}, True),
        (WithDefault, {"more": [{}]}, False),
        (WithAlias, {}, True),
        (WithDefault | Alone, {}, True),
        (Nested, {"kind": "a", "sub": "x"}, True),
        (Nested, {"kind": "a"}, False),
    ],
)  # fmt: skip
def test_schemas_require_tags_where_validation_does(hint: Any, value: Any, is_accepted: bool) -> None:
    kind = to_msgspec(hint)
    for schema in (schema_of(kind), portable_schema_of(kind)):
        assert validator(schema)(value) is is_accepted
    attempt = partial(convert, value, kind)
    if is_accepted:
        attempt()
        return
    with pytest.raises(ValueConversionError):
        attempt()


@each(
    "hint, value, is_accepted",
    [
        (Annotated[str, Meta(pattern="^a")] | Annotated[str, Meta(pattern="^b")], "a", True),
        (Annotated[str, Meta(pattern="^a")] | Annotated[str, Meta(pattern="^b")], "c", False),
        (Annotated[int, Meta(ge=5)] | Annotated[int, Meta(le=1)], 0, True),
        (Annotated[int, Meta(ge=5)] | Annotated[int, Meta(le=1)], 3, False),
        (Annotated[int, Meta(ge=5)] | float, 3, True),
        (Annotated[list[int], Meta(max_length=1)] | list[str], ["a", "b"], True),
        (Annotated[dict[str, int], Meta(min_length=1)] | dict[str, str], {}, True),
        (int | None | Annotated[str, Meta(pattern="^a")], None, True),
    ],
)  # fmt: skip
def test_constraints_of_one_option_leave_the_others_alone(hint: Any, value: Any, is_accepted: bool) -> None:
    kind = to_msgspec(hint)
    assert validator(schema_of(kind))(value) is is_accepted
    if is_accepted:
        assert convert(value, kind) == value
    else:
        assert faults_of(hint, value)
