"""Every revision accepts the valid vectors, and rejects the invalid ones with the path of the fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from tests.cases import each
from tests.generated.backends import BACKENDS, Backend, backend, is_list, is_object, same_json
from tests.generated.vectors import REVISIONS, RejectedValue, ValidValue, invalid_values, valid_values
from tests.paths import VECTORS


def _valid() -> Iterator[ValidValue]:
    return (vector for version in REVISIONS for vector in valid_values(version))


def _invalid() -> Iterator[RejectedValue]:
    return (vector for version in REVISIONS for vector in invalid_values(version))


def _id(vector: ValidValue | RejectedValue) -> str:
    return f"{vector.version}-{vector.definition}-{vector.case}"


each_valid_value = each("vector", _valid(), ids=_id)


@each("name", BACKENDS)
@each_valid_value
def test_a_valid_value_decodes(vector: ValidValue, name: str) -> None:
    types = backend(vector.version, name)
    types.decode(vector.text, types.type(vector.definition))


@each_valid_value
def test_pydantic_keeps_everything_when_decoding_and_encoding(vector: ValidValue) -> None:
    types = backend(vector.version, "exact.models")
    assert same_json(types.encode(types.decode(vector.text, types.type(vector.definition))), vector.text)


@each_valid_value
def test_msgspec_drops_only_undeclared_members_of_closed_objects(vector: ValidValue) -> None:
    types, models = backend(vector.version, "exact.structs"), backend(vector.version, "exact.models")
    encoded = types.encode(types.decode(vector.text, types.type(vector.definition)))
    expected = _without_undeclared(
        json.loads(vector.text), models.decode(vector.text, models.type(vector.definition)), types
    )
    assert same_json(encoded, json.dumps(expected).encode())


def _without_undeclared(raw: Any, model: Any, types: Backend) -> Any:
    """Remove the undeclared members from a JSON value, by the types that Pydantic chose."""
    if isinstance(model, BaseModel):
        is_open = issubclass(types.type(type(model).__name__), dict)
        names = {field.alias or name: name for name, field in type(model).model_fields.items()}
        return {
            key: _without_undeclared(value, getattr(model, names[key]), types) if key in names else value
            for key, value in raw.items()
            if key in names or is_open
        }
    if is_object(raw):
        return {key: _without_undeclared(value, model[key], types) for key, value in raw.items()}
    if is_list(raw):
        return [_without_undeclared(value, item, types) for value, item in zip(raw, model, strict=True)]
    return raw


@each("name", BACKENDS)
@each("vector", _invalid(), ids=_id)
def test_an_invalid_value_is_rejected_at_its_place(vector: RejectedValue, name: str) -> None:
    types = backend(vector.version, name)
    with pytest.raises(types.module.DecodeError) as caught:
        types.decode(json.dumps(vector.value).encode(), types.type(vector.definition))
    assert caught.value.path == vector.path
    assert "\n" not in str(caught.value)


def test_every_file_holds_vectors_that_are_used() -> None:
    vectors: list[ValidValue | RejectedValue] = [*_valid(), *_invalid()]
    used = {VECTORS / vector.version / f"{vector.definition}.json" for vector in vectors}
    others = {VECTORS / "frames.toml"}  # of the runtime
    assert {path for path in VECTORS.rglob("*") if path.is_file()} - used == others
