"""The values in `tests/vectors` that a definition accepts or rejects: one file for each revision and definition."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from tests.paths import VECTORS

__all__ = ["RejectedValue", "ValidValue", "invalid_values", "minimal_value", "valid_values"]


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
    """Read the vectors of a revision by definition."""
    paths = sorted((VECTORS / version).glob("*.json"))
    return {path.stem: msgspec.json.decode(path.read_bytes(), type=_Vectors) for path in paths}


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
    """Return the plainest accepted value of a definition."""
    valid = _read(version)[definition].valid
    return bytes(valid[min(valid, key=lambda case: (case != "minimal", case))])
