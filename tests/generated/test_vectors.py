"""Our own vectors: what every revision accepts and refuses, and where it says the fault is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import mcpspec
from tests.generated.backends import BACKENDS, Backend, backend, is_list, is_object, same_json
from tests.paths import VECTORS

Vector = tuple[str, str, Path]


def _vectors(kind: str) -> list[Vector]:
    return [
        (v, path.parent.name, path) for v in mcpspec.VERSIONS for path in sorted((VECTORS / v / kind).glob("*/*.json"))
    ]


def _id(value: object) -> str:
    return value.stem if isinstance(value, Path) else str(value)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(("version", "type_name", "path"), _vectors("valid"), ids=_id)
def test_a_valid_value_decodes(version: str, type_name: str, path: Path, name: str) -> None:
    types = backend(version, name)
    types.decode(path.read_bytes(), types.type(type_name))


@pytest.mark.parametrize(("version", "type_name", "path"), _vectors("valid"), ids=_id)
def test_pydantic_loses_nothing_on_the_way_through(version: str, type_name: str, path: Path) -> None:
    types = backend(version, "models")
    raw = path.read_bytes()
    assert same_json(types.encode(types.decode(raw, types.type(type_name))), raw)


@pytest.mark.parametrize(("version", "type_name", "path"), _vectors("valid"), ids=_id)
def test_msgspec_loses_only_undeclared_members_of_closed_objects(version: str, type_name: str, path: Path) -> None:
    types, models = backend(version, "structs"), backend(version, "models")
    raw = path.read_bytes()
    encoded = types.encode(types.decode(raw, types.type(type_name)))
    expected = _without_undeclared(json.loads(raw), models.decode(raw, models.type(type_name)), types)
    assert same_json(encoded, json.dumps(expected).encode())


def _without_undeclared(raw: Any, model: Any, types: Backend) -> Any:
    """A JSON value without the members that its type, as Pydantic chose it, does not declare."""
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


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(("version", "type_name", "path"), _vectors("invalid"), ids=_id)
def test_an_invalid_value_is_refused_at_its_place(version: str, type_name: str, path: Path, name: str) -> None:
    types = backend(version, name)
    vector = json.loads(path.read_bytes())
    with pytest.raises(types.module.DecodeError) as caught:
        types.decode(json.dumps(vector["value"]).encode(), types.type(type_name))
    assert caught.value.path == vector["path"]
    assert "\n" not in str(caught.value)


def test_every_file_is_a_vector() -> None:
    used = {path for kind in ("valid", "invalid") for _, _, path in _vectors(kind)}
    others = {VECTORS / "frames.toml"}  # of the runtime
    assert {path for path in VECTORS.rglob("*") if path.is_file()} == used | others


@pytest.mark.parametrize("version", mcpspec.VERSIONS)
def test_every_definition_has_a_vector(version: str) -> None:
    from tests.official import patched_schema

    schema, key = patched_schema(version)
    covered = {name for v, name, _ in _vectors("valid") if v == version}
    assert set(schema[key]) == covered
