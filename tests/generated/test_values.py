"""Values of all types are compared, copied, pickled and replaced alike in all faces, over all valid vectors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import msgspec
import pytest

from mcpspec.support.structs import shape_of
from mcpspec.v2026_07_28 import models as everyday_models
from mcpspec.v2026_07_28 import structs as everyday_structs
from mcpspec.v2026_07_28.exact import models, structs
from tests.cases import each
from tests.generated.backends import FACES, PACKAGES, Backend, backend, definitions
from tests.generated.vectors import REVISIONS, valid_values

each_revision = each("version", REVISIONS)
each_face = each("face", FACES)
each_module = each("types", [structs, everyday_structs, models, everyday_models])

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301  # our own bytes
    "replace": lambda value: value.__replace__(),  # copy.replace, since Python 3.13
}


def objects(version: str, face: str) -> Iterator[tuple[Backend, Any, Any]]:
    """Yield the valid values that are objects of a type, decoded twice."""
    types = backend(version, face)
    for vector in valid_values(version):
        value, twin = (types.decode(vector.text, types.type(vector.definition)) for _ in range(2))
        if attributes(value):
            yield types, value, twin


def attributes(value: Any) -> list[str]:
    """Return the names of the attributes of a value; none for values that are plain JSON."""
    for names in ("__struct_fields__", "__attributes__", "__pydantic_fields__"):
        if found := getattr(value.__class__, names, None):
            return [*found]
    return []


@each_revision
@each_face
def test_values_are_equal_by_their_members_and_not_hashable(version: str, face: str) -> None:
    """They can be changed, so a hash of them would change, too."""
    checked = 0
    for types, value, twin in objects(version, face):
        assert value is not twin
        assert value == twin
        with pytest.raises(TypeError, match="unhashable type"):
            hash(value)
        for name in attributes(value):
            setattr(twin, name, ["something", "else"])
            assert value != twin, name
            setattr(twin, name, getattr(value, name))
            assert value == twin, name
        assert types.encode(value) == types.encode(twin)
        checked += 1
    assert checked > 100


@each_revision
@each_face
def test_a_copy_is_equal_of_the_same_type_and_encodes_to_the_same_json(version: str, face: str) -> None:
    for (types, value, _), duplicate in product(objects(version, face), COPIES):
        twin = COPIES[duplicate](value)
        assert type(twin) is type(value)
        assert twin is not value
        assert twin == value
        # msgspec leaves out a default if it is the same object, and unpickled strings are others.
        if (duplicate, face) != ("pickle", "structs"):
            assert repr(twin) == repr(value)
            assert types.encode(twin) == types.encode(value)
        assert types.decode(types.encode(twin), type(value)) == value


@each_revision
@each_face
def test_a_replaced_member_changes_the_copy_alone(version: str, face: str) -> None:
    for _, value, twin in objects(version, face):
        for name in attributes(value):
            changed = value.__replace__(**{name: "other"})
            assert getattr(changed, name) == "other"
            assert value == twin
            assert changed.__replace__(**{name: getattr(value, name)}) == value


def tool(types: Any) -> Any:
    return types.from_builtins({"name": "a", "inputSchema": {"type": "object"}}, types.Tool)


@each_module
def test_only_a_deep_copy_shares_no_parts(types: Any) -> None:
    value = tool(types)
    assert copy.copy(value).input_schema is value.input_schema
    assert value.__replace__(title="b").input_schema is value.input_schema
    assert copy.deepcopy(value).input_schema is not value.input_schema


def test_each_library_replaces_in_its_own_way() -> None:
    for types in (structs, everyday_structs):
        assert msgspec.structs.replace(tool(types), title="b").title == "b"
    for model_types in (models, everyday_models):
        assert tool(model_types).model_copy(update={"title": "b"}).title == "b"


@each("types", [models, everyday_models])
def test_a_copy_of_a_model_takes_names_of_both_kinds(types: Any) -> None:
    icon = types.Icon(src="a", mime_type="image/png")
    for name in ("mime_type", "mimeType"):
        changed = icon.model_copy(update={name: "image/gif"})
        assert types.encode(changed) == b'{"src":"a","mimeType":"image/gif"}'


@each_module
def test_a_misspelt_member_is_not_replaced(types: Any) -> None:
    with pytest.raises((TypeError, AttributeError), match="titel"):
        tool(types).__replace__(titel="b")


# Misspelt members


@each_revision
@each_face
def test_a_misspelt_attribute_is_neither_set_nor_read(version: str, face: str) -> None:
    for types, value, twin in objects(version, face):
        before = types.encode(value)
        for name in attributes(value):
            with pytest.raises(AttributeError):
                setattr(value, f"{name}s_", 1)
            with pytest.raises(AttributeError):
                getattr(value, f"{name}s_")
        assert value == twin
        assert types.encode(value) == before


@each("version", PACKAGES)
@each("face", ["exact.structs", "structs"])
def test_constructors_of_structs_reject_misspelt_members(version: str, face: str) -> None:
    kinds = [kind for kind in definitions(version, face).values() if shape_of(kind) is not None]
    for kind in kinds:
        with pytest.raises(TypeError, match="misspelt"):
            kind(misspelt=1)
    assert len(kinds) > 40


class StrictIcon(models.Icon, extra="forbid"):
    """A class for values of one's own, exact."""


class PlainStrictIcon(everyday_models.Icon, extra="forbid"):
    """A class for values of one's own, plain."""


@each("kind, strict", [(models.Icon, StrictIcon), (everyday_models.Icon, PlainStrictIcon)])
def test_constructors_of_models_keep_undeclared_members_unless_a_class_forbids_them(kind: Any, strict: Any) -> None:
    assert models.encode(kind(src="a", mimetype="b")) == b'{"src":"a","mimetype":"b"}'
    assert models.encode(strict(src="a", mime_type="b")) == b'{"src":"a","mimeType":"b"}'
    with pytest.raises(ValueError, match="mimetype\n  Extra inputs are not permitted"):
        strict(src="a", mimetype="b")
