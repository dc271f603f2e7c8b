"""Small schemas that explode where references are followed, and a count of the work that a function does with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias

__all__ = ["HOSTILE", "find_excess", "input_schema"]

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string"}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _chain(make: Callable[[Schema], Schema], length: int, end: Schema = TEXT, name: str = "D") -> dict[str, Schema]:
    """Return definitions each of which is made of a reference to the next one."""
    made = {f"{name}{number}": make(_ref(f"{name}{number + 1}")) for number in range(length)}
    return {**made, f"{name}{length}": end}


def _graph(make: Callable[[list[Schema]], Schema], size: int) -> dict[str, Schema]:
    """Return definitions each of which is made of references to all of them."""
    return {f"D{number}": make([_ref(f"D{other}") for other in range(size)]) for number in range(size)}


def _nested(make: Callable[[Schema], Schema], depth: int) -> Schema:
    made = TEXT
    for _ in range(depth):
        made = make(made)
    return made


def _members(schemas: list[Schema]) -> Schema:
    return _object(**{f"m{number}": schema for number, schema in enumerate(schemas)})


HOSTILE: dict[str, dict[str, Schema]] = {
    "members, twice": _chain(lambda ref: _object(left=ref, right=ref), 30),
    "anyOf, twice": _chain(lambda ref: {"anyOf": [ref, ref]}, 30),
    "oneOf, twice": _chain(lambda ref: {"oneOf": [ref, ref]}, 30),
    "allOf, twice": _chain(lambda ref: {"allOf": [ref, ref]}, 30, _object(a=TEXT)),
    "allOf of 1,000 names, twice": _chain(
        lambda ref: {"allOf": [ref, ref]}, 20, _object(**{f"m{number}": TEXT for number in range(1000)})
    ),
    "allOf of unions": {"D0": {"allOf": [{"anyOf": [_object(a=TEXT), _object(b=TEXT)]}] * 25}},
    "allOf of unions, by reference": _chain(
        lambda ref: {"allOf": [ref, {"anyOf": [_object(a=TEXT), _object(b=TEXT)]}]}, 25, _object(c=TEXT)
    ),
    "allOf of members": _chain(
        lambda ref: {
            "allOf": [
                _object(left=ref, right=ref),
                _object(left={"allOf": [ref, _object(z=TEXT)]}, right={"allOf": [ref, _object(z=TEXT)]}),
            ]
        },
        25,
        _object(a=TEXT),
    ),
    "list and map": _chain(
        lambda ref: {"anyOf": [{"type": "array", "items": ref}, {"type": "object", "additionalProperties": ref}]}, 30
    ),
    "tuple": _chain(lambda ref: {"type": "array", "prefixItems": [ref, ref], "items": ref}, 30),
    "tuples of two lengths": {
        "D0": _nested(lambda schema: {"type": "array", "prefixItems": [schema, TEXT], "minItems": 1, "maxItems": 2}, 20)
    },
    "a tuple of 2,000 lengths": {
        "D0": {
            "type": "array",
            "prefixItems": [{"const": number} for number in range(2000)],
            "minItems": 1,
            "maxItems": 2000,
        }
    },
    "type beside anyOf": _chain(lambda ref: {"type": "string", "anyOf": [ref, ref]}, 30),
    "lists of types": {"D0": _nested(lambda schema: {"type": ["array", "null"] * 4, "items": schema}, 12)},
    "wide and flat": {
        **_chain(lambda ref: {"anyOf": [ref] * 100}, 2, name="A"),
        **_chain(lambda ref: {"anyOf": [ref] * 100}, 1, {"type": "integer"}, name="B"),
        "D0": {"oneOf": [_ref("A0"), _ref("B0")]},
    },
    "wide objects": {
        **_chain(lambda ref: _members([ref] * 60), 7, name="A"),
        **_chain(lambda ref: _members([ref] * 60), 7, name="B"),
        "D0": {"oneOf": [_ref("A0"), _ref("B0")]},
    },
    "5,000 objects": {"D0": {"anyOf": [_object(**{f"m{number}": TEXT}) for number in range(5000)]}},
    "5,000 constants": {"D0": {"oneOf": [{"const": f"c{number}"} for number in range(5000)]}},
    "all refer to all": _graph(_members, 14),
    "all unite all": _graph(lambda schemas: {"anyOf": schemas}, 14),
    "all unite lists of all": _graph(
        lambda schemas: {"anyOf": [TEXT, *({"type": "array", "items": each} for each in schemas)]}, 14
    ),
    "recursive, twice": _chain(lambda ref: {"anyOf": [ref, ref]}, 28, {"type": "array", "items": _ref("D0")}),
    "a chain of 3,000": _chain(lambda ref: ref, 3000),
    "lists of a chain of 3,000": {
        **_chain(lambda ref: ref, 3000, name="A"),
        "D0": _nested(lambda schema: {"type": "array", "items": {"anyOf": [schema, *[_ref("A0")] * 20]}}, 10),
    },
    "one large text": {"D0": _members([_ref("D1")] * 500), "D1": {"type": "string", "description": "x" * 20_000}},
    "one large default": {"D0": _members([_ref("D1")] * 500), "D1": {"type": "string", "default": ["x"] * 5000}},
    "one large enum": {
        "D0": _members([_ref("D1")] * 500),
        "D1": {"type": "string", "enum": [f"value {number}" for number in range(1000)]},
    },
    "one long name": {"D0": _members([_ref("D1")] * 500), "D1": _object(**{"x" * 20_000: TEXT})},
    "many keywords": {
        "D0": _members([_ref("D1")] * 500),
        "D1": {**TEXT, **{f"x-{number}": number for number in range(1000)}},
    },
}
"""Definitions by what they repeat. `D0` is the one that explodes."""


def input_schema(definitions: dict[str, Schema]) -> Schema:
    """Return the input schema of a tool with hostile definitions."""
    return {"type": "object", "properties": {"a": _ref("D0")}, "$defs": definitions}


class _ExcessError(BaseException):
    """A function does more work than it may."""


def find_excess(function: Callable[[], object], calls: int) -> bool:
    """Run a function, and end it once it has called Python functions this often. Return whether that was necessary.

    The count is the same on every machine, however slow.
    """
    left = calls

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        left -= event == "call"
        if left < 0:
            raise _ExcessError

    sys.setprofile(count)
    try:
        function()
    except _ExcessError:
        return True
    finally:
        sys.setprofile(None)
    return False
