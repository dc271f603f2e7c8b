"""Checks of the types after a bump to a future. These functions run in a process that has those types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from mcpspec_codegen.nodes import is_schema
from mcpspec_codegen.use_names import find_unusable
from tests.codegen.helpers import Schema
from tests.futures.future import LATER
from tests.futures.values import Values

__all__ = ["check_conversions", "check_names", "check_values"]

PACKAGE = f"mcpspec.v{LATER.replace('-', '_')}"
LIBRARIES = ("structs", "models")


def check_names(modules: Iterable[str], *, is_whole: bool) -> None:
    """Use every name of some modules, with everything that it refers to. A whole check also makes all decoders."""
    found = find_unusable(modules, is_decoding=is_whole)
    assert found is None, found


_OTHERS = frozenset({"DecodeError", "MISSING", "NULL", "UNSET", "UnsetType"})
"""Names of the modules of types that are no types of values."""


def check_values(values: Values, names: Iterable[str], count: int) -> int:
    """Compare both libraries with `jsonschema` on values of some definitions. Return the number of comparisons."""
    compared = 0
    exact = {library: import_module(f"{PACKAGE}.exact.{library}") for library in LIBRARIES}
    everyday = {library: import_module(f"{PACKAGE}.{library}") for library in LIBRARIES}
    type_tree = import_module("tests.generated.backends").type_tree
    for name in names:
        if name in _OTHERS or not all(name in types.__all__ for types in exact.values()):
            continue  # it has another name in Python
        for value in _some(values, name, count):
            expected = values.accepts(name, value)
            if _is_request(value) and not (expected and is_schema(value) and type(value.get("id")) in (str, int)):
                continue  # it may be a notification with an id, which JSON-RPC forbids
            made = {library: _decoded(types, name, value) for library, types in exact.items()}
            text = f"{name} {json.dumps(value)}: the schema says {expected}, the types {made!r}"
            assert {library: not isinstance(each, Exception) for library, each in made.items()} == dict.fromkeys(
                LIBRARIES, expected
            ), text
            compared += 1
            if expected:
                assert type_tree(made["structs"]) == type_tree(made["models"]), text
                assert values.accepts(name, json.loads(exact["structs"].encode(made["structs"]))), text
                plain = [_decoded(types, name, value) for types in everyday.values()]
                assert not [each for each in plain if isinstance(each, Exception)], (
                    f"{text}, the everyday ones {plain!r}"
                )
    return compared


def _some(values: Values, name: str, count: int) -> Iterator[Any]:
    for _ in range(count):
        yield (made := values.make(name))
        yield values.spoil(made)


def _is_request(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_request, value))  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(value, dict):
        return False
    keys: set[Any] = {*value}  # pyright: ignore[reportUnknownArgumentType]
    return {"jsonrpc", "method", "id"} <= keys or any(map(_is_request, value.values()))  # pyright: ignore[reportUnknownArgumentType]


def _decoded(types: Any, name: str, value: Any) -> Any:
    """Return what a module reads, or the error."""
    try:
        return types.decode(json.dumps(value), getattr(types, name))
    except types.DecodeError as error:
        return error


def check_conversions(
    newer: Values, older: dict[str, Schema], names: Iterable[str], values: Any, gaps: Iterable[str]
) -> int:
    """Convert values of some definitions to all older revisions, and from them. Return the number of conversions.

    `older` are the schemas of those revisions, `values` makes a `Values` of one, and `gaps` are left to a person.
    """
    conversions: Any = import_module("tests.generated.conversions")
    undecided = {gap.split(": ")[1].partition(".")[0] for gap in gaps}
    done = 0
    for version, schema in older.items():
        known: Values = values(schema)
        for name in names:
            if not _is_convertible(name, version) or name not in known.defs:
                continue
            if any(part.startswith(tuple(each.reach(name))) for part in undecided for each in (newer, known)):
                continue  # a person decides first
            for source, target, mine, theirs in ((LATER, version, newer, known), (version, LATER, known, newer)):
                value = mine.make(name)
                if mine.accepts(name, value):
                    done += conversions.check_converted(value, name, source, target, theirs.accepts)
    return done


def _is_convertible(name: str, version: str) -> bool:
    revision: Any = import_module("mcpspec").revision
    kinds = [getattr(revision(each).exact.structs, name, None) for each in (LATER, version)]
    return all(isinstance(kind, type) and hasattr(kind, "__struct_fields__") for kind in kinds)
