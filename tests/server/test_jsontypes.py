"""Types as JSON, both ways: what values become, and that they come back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pytest

from tests.server.arguments import validator
from tests.server.shapes import TYPES, Circle, Square
from typedmcp.dialect import structs
from typedmcp.jsontypes import Unsupported, adapted, convert, default_of, fault, from_json, needs_hook, plain, schema_of

ONE_WAY: Final = {"a class that Pydantic reads": "it does not say how it is written"}
"""Types whose values have no JSON form."""
CHANGED: Final = {"AfterValidator": "every time it is read it is doubled"}
"""Types whose values do not come back as they were."""


@pytest.mark.parametrize("name", [name for name in TYPES if name not in ONE_WAY])
def test_a_value_has_a_json_form_that_fits_its_schema_and_comes_back(name: str) -> None:
    hint, _, value = TYPES[name]
    made = adapted(hint)
    built = json.loads(json.dumps(plain(value)))
    assert validator(schema_of(made))(built)
    for back in (convert(built, made), convert(plain(value), made), from_json(json.dumps(built), made)):
        assert (repr(back) == repr(value)) is (name not in CHANGED)


@pytest.mark.parametrize("name", ONE_WAY)
def test_a_value_without_json_form_says_so(name: str) -> None:
    with pytest.raises(TypeError, match="has no JSON form"):
        plain(TYPES[name][2])


@pytest.mark.parametrize("name", TYPES)
def test_an_adapted_type_is_adapted_already(name: str) -> None:
    once = adapted(TYPES[name][0])
    assert adapted(once) == once
    assert schema_of(adapted(once)) == schema_of(once)


@pytest.mark.parametrize(
    "name",
    [
        "int", "list[int]", "datetime", "a text as a description", "enum of texts", "Literal of both", "dataclass",
        "recursive dataclass", "generic dataclass", "dataclass with a NewType", "TypedDict", "Struct",
        "tagged Structs", "attrs", "NamedTuple",
    ],
)  # fmt: skip
def test_what_msgspec_knows_is_left_to_it(name: str) -> None:
    hint = TYPES[name][0]
    assert adapted(hint) == hint
    assert not needs_hook(adapted(hint))


@pytest.mark.parametrize(
    "name", ["Path", "dataclass with a union", "model", "list of models", "enum of all kinds", "dict[int, str]"]
)
def test_what_msgspec_does_not_know_needs_a_hook(name: str) -> None:
    assert needs_hook(adapted(TYPES[name][0]))


def test_types_of_the_protocol_are_types_like_others() -> None:
    for kind in (structs.TextContent, structs.Icon, structs.Annotations):
        assert adapted(kind) is kind
        assert schema_of(kind)["title"] == kind.__name__
    with pytest.raises(Unsupported, match="has no JSON form"):
        adapted(structs.ContentBlock)


def test_a_class_may_be_within_one_that_is_within_it() -> None:
    assert convert({"b": {"a": {"b": None}, "shape": {"side": 1}}}, adapted(A)) == A(B(A(None), Square(1.0)))
    assert {*schema_of(adapted(A))["$defs"]} == {"A", "B"}


@dataclass
class A:
    b: B | None


@dataclass
class B:
    a: A
    shape: Circle | Square


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("nan")], object(), lambda: 1])
def test_a_default_without_json_form_is_none(value: Any) -> None:
    assert default_of(value) is msgspec.UNSET


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("Expected `int`, got `str`", "", "expected int, got str"),
        ("Expected `int`, got `str` - at `$`", "x", "x: expected int, got str"),
        ("Expected `int`, got `str` - at `$.a[0]`", "", "a[0]: expected int, got str"),
        ("Expected `int`, got `str` - at `$.a[...].b`", ".x", "x.a[].b: expected int, got str"),
        ("Expected `int`, got `str` - at `key` in `$.a`", "", "a: expected int, got str"),
        ("Object missing required field `a` - at `$.b`", "", "b.a: required, but missing"),
        ("Object contains unknown field `a`", ".x", "x.a: there is no such member"),
        ("Invalid enum value 'a' - at `$.b` - at `$.c`", "", "c.b: invalid enum value 'a'"),
        ("Invalid enum value ' - at `$.a`' - at `$.b`", "", "b: invalid enum value ' - at $.a'"),
        ("Fits none - at `$.a`; or other - at `$.b`", "", "b: fits none - at $.a; or other"),
    ],
)
def test_what_is_wrong_is_told_after_its_place(text: str, place: str, says: str) -> None:
    assert fault(ValueError(text), place) == says
