"""Types as JSON, both ways: what values become, and that they come back."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal

import msgspec
import pytest
from msgspec import Meta

from tests.server.arguments import validator
from tests.server.shapes import TYPES, Circle, Square
from typedmcp.dialect import structs
from typedmcp.jsonfaults import Unfit
from typedmcp.jsontypes import (
    Unsupported,
    adapted,
    convert,
    default_of,
    enc_hook,
    fault,
    from_json,
    needs_hook,
    plain,
    schema_of,
)

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
    for kind in (structs.Icon, structs.Annotations, structs.ToolAnnotations):
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


@dataclass(frozen=True)
class Frozen:
    x: int


class Lonely(msgspec.Struct, tag="lonely"):
    x: int = 0


class Numbered(msgspec.Struct, tag=3, array_like=True):
    x: int = 0


class Keeper(msgspec.Struct):
    one: Lonely
    more: dict[str, Lonely] = {}


@pytest.mark.parametrize(
    ("hint", "given", "gets", "without"),
    [
        (Lonely, {"type": "lonely", "x": 1}, Lonely(1), {"x": 1}),
        (list[Lonely | None], [{"type": "lonely"}, None], [Lonely(), None], [{"x": 1}]),
        (Numbered, [3, 1], Numbered(1), []),
        (Keeper, {"one": {"type": "lonely"}}, Keeper(Lonely()), {"one": {}}),
        (Keeper, {"one": {"type": "lonely"}}, Keeper(Lonely()), {"one": {"type": "lonely"}, "more": {"a": {}}}),
    ],
)
def test_a_tag_is_asked_for_as_schemas_say(hint: Any, given: Any, gets: Any, without: Any) -> None:
    made = adapted(hint)
    assert convert(given, made) == gets
    fits = validator(schema_of(made))
    assert (fits(given), fits(without)) == (True, False) or hint is Numbered
    assert "_Never" not in json.dumps(schema_of(made))
    with pytest.raises(Unfit):
        convert(without, made)


# Keys


class Half(enum.Enum):
    """One that has members that can be keys, and one that has no text."""

    ONE = 1
    TWO = "two"
    NONE = None


@pytest.mark.parametrize(
    ("hint", "names", "given", "gets", "wrong"),
    [
        (dict[Half, int], {"enum": ["1", "two"]}, {"1": 5, "two": 6}, {Half.ONE: 5, Half.TWO: 6}, "zz"),
        (dict[Literal[1, "a"], int], {"enum": ["1", "a"]}, {"1": 5}, {1: 5}, "2"),
        (dict[float, int], {"pattern": r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"}, {"1.5": 5}, {1.5: 5}, "a"),
        (dict[Annotated[int, Meta(ge=5)], int], {"pattern": "^(0|[1-9][0-9]*)$"}, {"9": 1}, {9: 1}, "-1"),
        (dict[PurePosixPath, int], {"type": "string", "format": "path"}, {"a/b": 1}, {PurePosixPath("a/b"): 1}, None),
    ],
)
def test_keys_are_what_the_schema_says(hint: Any, names: Any, given: Any, gets: Any, wrong: str | None) -> None:
    made = adapted(hint)
    assert schema_of(made)["propertyNames"] == names
    assert convert(given, made) == gets
    assert json.loads(json.dumps(plain(gets))).keys() == given.keys() or hint == dict[PurePosixPath, int]
    if wrong is not None:
        assert not validator(schema_of(made))({wrong: 1})
        with pytest.raises(Unfit):
            convert({wrong: 1}, made)


def test_limits_of_keys_are_checked() -> None:
    with pytest.raises(Unfit) as caught:
        convert({"9": 1, "4": 1}, adapted(dict[Annotated[int, Meta(ge=5)], int]))
    assert fault(caught.value) == 'key "4": expected int >= 5'


@pytest.mark.parametrize("key", [None, True, (1, 2), frozenset({1}), Frozen(1)], ids=repr)
@pytest.mark.parametrize("write", [plain, msgspec.json.Encoder(enc_hook=enc_hook).encode])
def test_a_key_that_is_no_text_has_no_json_form(key: Any, write: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"has no JSON form|str-like or number-like keys"):
        write({key: 1})


# Flags


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    EXECUTE = 4


@pytest.mark.parametrize("given", [*range(-2, 10), True, 1.5, "1"])
def test_flags_are_the_numbers_of_all_that_can_be_put_together(given: Any) -> None:
    made = adapted(Access)
    assert schema_of(made) == {"type": "integer", "minimum": 0, "maximum": 7}
    if type(given) is int and 0 <= given <= 7:
        assert convert(given, made) == Access(given)
        assert plain(Access(given)) == given
    else:
        with pytest.raises(Unfit):
            convert(given, made)
