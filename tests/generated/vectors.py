"""The values in `tests/vectors` that a definition accepts or rejects: one file for each revision and definition.

A revision without a file for a definition has the vectors of the revision before: all of them if the definition did
not change, else the valid ones that the schema still accepts.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import msgspec
from jsonschema.validators import validator_for

import mcpspec
from mcpspec.features import DRAFT
from tests.futures.values import Values
from tests.official import patched_schema
from tests.paths import VECTORS

__all__ = [
    "REVISIONS", "RejectedValue", "ValidValue",
    "definitions_without_vectors", "has_definition", "has_vectors", "invalid_values", "minimal_value", "valid_values",
]  # fmt: skip

REVISIONS = (*mcpspec.VERSIONS, *([DRAFT.version] if DRAFT else []))
"""Every revision, oldest first, and the draft if there is one."""


class ValidValue(NamedTuple):
    """A value that a definition accepts."""

    version: str
    definition: str
    case: str
    text: bytes
    """The value as JSON text, as it stands in the file."""


class RejectedValue(NamedTuple):
    """A value that a definition rejects, and the path of the fault."""

    version: str
    definition: str
    case: str
    value: Any
    path: str


class _Rejected(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    value: Any


class _Vectors(msgspec.Struct, forbid_unknown_fields=True):
    """A file of vectors: the name of a case → its value."""

    valid: dict[str, msgspec.Raw] = {}
    invalid: dict[str, _Rejected] = {}


@cache
def _read(version: str) -> dict[str, _Vectors]:
    """Read the vectors of a revision by definition. Without a file, they are those of the revision before."""
    paths = sorted((VECTORS / version).glob("*.json"))
    own = {path.stem: msgspec.json.decode(path.read_bytes(), type=_Vectors) for path in paths}
    if (older := _OLDER.get(version)) is None:
        return own
    missing = [name for name in _definitions(version) if name not in own and name in _read(older)]
    return own | {name: _inherited(version, older, name) for name in missing}


_OLDER = {newer: older for older, newer in pairwise(REVISIONS)}


def _definitions(version: str) -> dict[str, Any]:
    schema, key = patched_schema(version)
    definitions: dict[str, Any] = schema[key]
    return definitions


def _inherited(version: str, older: str, name: str) -> _Vectors:
    """Return the vectors of an older revision that still hold for a definition."""
    vectors = _read(older)[name]
    if _with_references(version, name) == _with_references(older, name):
        return vectors
    schema, key = patched_schema(version)
    validator = validator_for(schema)({**schema, "$ref": f"#/{key}/{name}"})
    return _Vectors(
        valid={case: text for case, text in vectors.valid.items() if validator.is_valid(msgspec.json.decode(text))}
    )


def _with_references(version: str, name: str) -> dict[str, Any]:
    """Return a definition, and all definitions that it refers to."""
    definitions = _definitions(version)
    found: dict[str, Any] = {}
    todo = [name]
    while todo:
        if (next := todo.pop()) not in found:
            found[next] = definitions[next]
            todo += re.findall(r'"#/[$\w]+/(\w+)"', msgspec.json.encode(definitions[next]).decode())
    return found


def definitions_without_vectors(version: str) -> list[str]:
    """List the definitions of a revision without a valid vector."""
    return [name for name in _definitions(version) if not has_vectors(version, name)]


def has_definition(version: str, definition: str) -> bool:
    """Return whether the schema of a revision has a definition. Inline types have none."""
    return definition in _definitions(version)


def has_vectors(version: str, definition: str) -> bool:
    """Return whether a definition has a valid vector."""
    return definition in _read(version) and bool(_read(version)[definition].valid)


def valid_values(version: str) -> list[ValidValue]:
    """List the accepted values of a revision."""
    return [
        ValidValue(version, definition, case, bytes(text))
        for definition, vectors in _read(version).items()
        for case, text in vectors.valid.items()
    ]


def invalid_values(version: str) -> list[RejectedValue]:
    """List the rejected values of a revision."""
    return [
        RejectedValue(version, definition, case, rejected.value, rejected.path)
        for definition, vectors in _read(version).items()
        for case, rejected in vectors.invalid.items()
    ]


def minimal_value(version: str, definition: str) -> bytes:
    """Return the plainest accepted value of a definition. It is made of the schema where there is no vector."""
    if not has_vectors(version, definition):
        return _made_value(version, definition)
    valid = _read(version)[definition].valid
    return bytes(valid[min(valid, key=lambda case: (case != "minimal", case))])


@cache
def _made_value(version: str, definition: str) -> bytes:
    values = Values(patched_schema(version)[0], Random(definition))
    made = [value for _ in range(50) if values.accepts(definition, value := values.make(definition))]
    return min(map(msgspec.json.encode, made), key=len)
