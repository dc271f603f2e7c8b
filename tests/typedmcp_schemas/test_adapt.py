"""Types as JSON, both ways: values are encoded, and decoded to equal values."""

from __future__ import annotations

import enum
import json
import typing
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, NotRequired, Required

import msgspec
import pytest
import typing_extensions
from annotated_types import MaxLen, MinLen
from msgspec import Meta
from typing_extensions import ReadOnly

from tests.app.argument_strategies import validator
from tests.app.type_cases import TYPES, Circle, Square
from tests.cases import each
from typedmcp.dialect import structs
from typedmcp_schemas.adapt import has_custom_types, schema_of, to_msgspec
from typedmcp_schemas.explanations import explain
from typedmcp_schemas.portable import portable_schema_of
from typedmcp_schemas.values import (
    UnsupportedTypeError,
    ValueConversionError,
    convert,
    enc_hook,
    encode_default,
    from_json,
    to_builtins,
)

ONE_WAY: Final = {"a class that Pydantic reads": "it does not say how it is written"}
"""Types whose values have no JSON form."""
CHANGED_BY_DECODING: Final = {"AfterValidator": "every time it is read it is doubled"}
"""Types whose values change when they are decoded."""


@each("name", [name for name in TYPES if name not in ONE_WAY])
def test_a_value_round_trips_through_json_that_fits_its_schema(name: str) -> None:
    hint, _, value = TYPES[name]
    made = to_msgspec(hint)
    built = json.loads(json.dumps(to_builtins(value)))
    assert validator(schema_of(made))(built)
    for back in (convert(built, made), convert(to_builtins(value), made), from_json(json.dumps(built), made)):
        assert (repr(back) == repr(value)) is (name not in CHANGED_BY_DECODING)


@each("name", ONE_WAY)
def test_a_value_without_a_json_form_is_an_error(name: str) -> None:
    with pytest.raises(TypeError, match="has no JSON form"):
        to_builtins(TYPES[name][2])


@each("name", TYPES)
def test_adapting_twice_changes_nothing(name: str) -> None:
    once = to_msgspec(TYPES[name][0])
    assert to_msgspec(once) == once
    assert schema_of(to_msgspec(once)) == schema_of(once)


@each(
    "name",
    [
        "int", "list[int]", "datetime", "a text as a description", "enum of texts", "Literal of both", "dataclass",
        "recursive dataclass", "generic dataclass", "dataclass with a NewType", "TypedDict", "Struct",
        "tagged Structs", "attrs", "NamedTuple",
    ],
)  # fmt: skip
def test_types_that_msgspec_accepts_stay_unchanged(name: str) -> None:
    hint = TYPES[name][0]
    assert to_msgspec(hint) == hint
    assert not has_custom_types(to_msgspec(hint))


@each("name", ["Path", "dataclass with a union", "model", "list of models", "enum of all kinds", "dict[int, str]"])
def test_types_that_msgspec_rejects_become_custom_types(name: str) -> None:
    assert has_custom_types(to_msgspec(TYPES[name][0]))


def test_types_of_the_protocol_can_be_adapted() -> None:
    for kind in (structs.Icon, structs.Annotations, structs.ToolAnnotations):
        assert to_msgspec(kind) is kind
        assert schema_of(kind)["title"] == kind.__name__
    with pytest.raises(UnsupportedTypeError, match="has no JSON form"):
        to_msgspec(structs.ContentBlock)


def test_classes_may_contain_each_other() -> None:
    assert convert({"b": {"a": {"b": None}, "shape": {"side": 1}}}, to_msgspec(A)) == A(B(A(None), Square(1.0)))
    assert {*schema_of(to_msgspec(A))["$defs"]} == {"A", "B"}


@dataclass
class A:
    b: B | None


@dataclass
class B:
    a: A
    shape: Circle | Square


@each("value", [float("nan"), float("inf"), [float("nan")], object(), lambda: 1])
def test_a_default_without_a_json_form_is_unset(value: Any) -> None:
    assert encode_default(value) is msgspec.UNSET


@dataclass(frozen=True)
class Frozen:
    x: int


class Lonely(msgspec.Struct, tag="lonely"):
    x: int = 0


class Keeper(msgspec.Struct):
    one: Lonely
    more: dict[str, Lonely] = {}


@each(
    "hint, given, gets, without",
    [
        (Lonely, {"type": "lonely", "x": 1}, Lonely(1), {"x": 1}),
        (list[Lonely | None], [{"type": "lonely"}, None], [Lonely(), None], [{}, None]),
        (Keeper, {"one": {"type": "lonely"}}, Keeper(Lonely()), {"one": {}}),
    ],
)
def test_a_tag_may_be_missing_where_there_is_nothing_to_choose(hint: Any, given: Any, gets: Any, without: Any) -> None:
    made = to_msgspec(hint)
    assert convert(given, made) == gets
    assert type(convert(without, made)) is type(gets)
    fits = validator(schema_of(made))
    assert (fits(given), fits(without)) == (True, False)
    with pytest.raises(ValueConversionError):
        convert({"type": "lively"}, to_msgspec(Lonely))


# Keys


class Half(enum.Enum):
    """An enum with members that can be keys, and one that cannot."""

    ONE = 1
    TWO = "two"
    NONE = None


@each(
    "hint, names, given, gets, wrong",
    [
        (dict[Half, int], {"enum": ["1", "two"]}, {"1": 5, "two": 6}, {Half.ONE: 5, Half.TWO: 6}, "zz"),
        (dict[Literal[1, "a"], int], {"enum": ["1", "a"]}, {"1": 5}, {1: 5}, "2"),
        (dict[float, int], {"pattern": r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"}, {"1.5": 5}, {1.5: 5}, "a"),
        (dict[Annotated[int, Meta(ge=5)], int], {"pattern": "^(0|[1-9][0-9]*)$"}, {"9": 1}, {9: 1}, "-1"),
        (dict[PurePosixPath, int], {"type": "string", "format": "path"}, {"a/b": 1}, {PurePosixPath("a/b"): 1}, None),
    ],
)
def test_keys_fit_the_schema(hint: Any, names: Any, given: Any, gets: Any, wrong: str | None) -> None:
    made = to_msgspec(hint)
    assert schema_of(made)["propertyNames"] == names
    assert convert(given, made) == gets
    assert json.loads(json.dumps(to_builtins(gets))).keys() == given.keys() or hint == dict[PurePosixPath, int]
    if wrong is not None:
        assert not validator(schema_of(made))({wrong: 1})
        with pytest.raises(ValueConversionError):
            convert({wrong: 1}, made)


def test_constraints_of_keys_are_enforced() -> None:
    with pytest.raises(ValueConversionError) as caught:
        convert({"9": 1, "4": 1}, to_msgspec(dict[Annotated[int, Meta(ge=5)], int]))
    assert explain(caught.value) == "a key: expected integer >= 5"


@each("key", [None, True, (1, 2), frozenset({1}), Frozen(1)], ids=repr)
@each("write", [to_builtins, msgspec.json.Encoder(enc_hook=enc_hook).encode])
def test_a_key_without_a_text_has_no_json_form(key: Any, write: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"has no JSON form|str-like or number-like keys"):
        write({key: 1})


# Flags


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    EXECUTE = 4


@each("given", [*range(-2, 10), True, 1.5, "1"])
def test_flags_accept_all_combinations(given: Any) -> None:
    made = to_msgspec(Access)
    assert schema_of(made) == {"type": "integer", "minimum": 0, "maximum": 7}
    if type(given) is int and 0 <= given <= 7:
        assert convert(given, made) == Access(given)
        assert to_builtins(Access(given)) == given
    else:
        with pytest.raises(ValueConversionError):
            convert(given, made)


def test_equal_types_keep_their_own_order() -> None:
    first, second = Literal["north", 7, None], Literal[7, "north", None]
    assert first == second  # so a cache by the type alone mixes them up
    assert schema_of(to_msgspec(first)) == {"enum": ["north", 7, None]}
    assert schema_of(to_msgspec(second)) == {"enum": [7, "north", None]}
    options: Any = [{"type": "string", "enum": ["north"]}, {"type": "integer", "enum": [7]}, {"type": "null"}]
    assert portable_schema_of(to_msgspec(first)) == {"anyOf": options}
    assert portable_schema_of(to_msgspec(second)) == {"anyOf": [options[1], options[0], options[2]]}


@each("kind, value", [(deque[int], [1, 2, 3]), (OrderedDict[str, int], {"a": 1, "b": 2, "c": 3})])
def test_lengths_of_types_that_msgspec_does_not_know_may_be_the_bounds(kind: Any, value: Any) -> None:
    for least, most, fits in ((3, 3, True), (0, 2, False), (4, 5, False)):
        hint = to_msgspec(Annotated[kind, MinLen(least), MaxLen(most)])
        try:
            convert(value, hint)
        except ValueConversionError:
            assert not fits
        else:
            assert fits


_QUALIFIED: dict[str, tuple[Any, bool]] = {
    "ReadOnly": (ReadOnly[int], True),
    "ReadOnly[NotRequired]": (ReadOnly[NotRequired[int]], False),
    "NotRequired[ReadOnly]": (NotRequired[ReadOnly[int]], False),
    "Required[ReadOnly]": (Required[ReadOnly[int]], True),
    "ReadOnly[Required]": (ReadOnly[Required[int]], True),
    "Annotated[NotRequired[ReadOnly]]": (Annotated[NotRequired[ReadOnly[int]], "a"], False),
    "NotRequired[Annotated[ReadOnly]]": (NotRequired[Annotated[ReadOnly[int], "a"]], False),
    "ReadOnly[NotRequired[Annotated]]": (ReadOnly[NotRequired[Annotated[int, "a"]]], False),
}


@each("name", _QUALIFIED)
@each("make", [typing.TypedDict, typing_extensions.TypedDict], ids=["typing", "typing_extensions"])
@each("total", [True, False])
def test_qualifiers_of_typed_dicts_may_be_nested(make: Any, total: bool, name: str) -> None:
    hint, is_required = _QUALIFIED[name]
    if not total and "Required" not in name.replace("NotRequired", ""):
        is_required = False
    kind = make("Record", {"a": hint, "b": Required[str]}, total=total)
    made = to_msgspec(list[kind])  # type: ignore[valid-type]
    assert {*schema_of(made)["$defs"]["Record"]["required"]} == ({"a", "b"} if is_required else {"b"})
    assert convert([{"a": 1, "b": "c"}], made) == [{"a": 1, "b": "c"}]
    if is_required:
        with pytest.raises(ValueConversionError):
            convert([{"b": "c"}], made)
    else:
        assert convert([{"b": "c"}], made) == [{"b": "c"}]
