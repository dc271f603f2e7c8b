"""Random JSON Schema definitions: valid, odd and broken ones, with hostile names and texts."""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["random_definitions"]

_NAMES = ["A", "B", "Cee", "DRequest", "ENotification", "FResult", "GParams", "ClientRequest", "ServerNotification"]
_ODD_NAMES = ["Any", "UNSET", "Struct", "field", "a b", "", "Ä", "Literal", "DecodeError", "Annotated", "Union"]
_MEMBERS = ["method", "params", "id", "jsonrpc", "type", "name", "class", "_meta", "x-y", "fooBar", "foo_bar", "dict"]
_ODD_MEMBERS = ["", " ", "1a", "__init__", "model_dump", "keys", "💥", 'a"b', "a\\", "\n", "None", "self", "int"]
_TEXTS = ["plain", 'ends with "', '"""', "\\", "\\N{DASH}", "a\n\n   b", "\0", "\u2028", "{{ x }}", "'''", " "]
_CONSTANTS: list[Any] = [
    "2.0",
    "acme/do",
    "notifications/acme",
    "a",
    "b",
    "a",
    "b",
    '"',
    "\\",
    "💥",
    1,
    -1,
    None,
    True,
    1.5,
    [],
]
_TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
_BOUNDS = ["minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems"]
_KEYWORDS = ["type", "properties", "required", "items", "$defs", "if", "$ref", "anyOf", "enum", "description", "title"]
_JUNK: list[Any] = [None, True, 1, -1.5, 1e300, "text", [], {}, [1], {"a": 1}]


def random_definitions(random: Random) -> dict[str, Any]:
    """Return one to six definitions. Most of their references lead somewhere."""
    names = [random.choice(_ODD_NAMES if random.random() < 0.05 else _NAMES) for _ in range(random.randint(1, 6))]
    plain = {name: {"type": "string"} for name in _NAMES[:4]}
    return {**plain, **{name: _schema(random, 3) for name in names}}


def _schema(random: Random, depth: int) -> Any:
    node = _below(random, depth - 1) if depth and random.random() < 0.8 else _leaf(random)
    if random.random() < 0.1:
        node = {**node, random.choice(["description", "title"]): random.choice(_TEXTS)}
    if random.random() < 0.02:
        node = {**node, random.choice(_KEYWORDS): random.choice(_JUNK)}
    return node


def _leaf(random: Random) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"$ref": f"#/$defs/{random.choice(_NAMES[:5])}"},
        {"type": random.choice(_TYPES)},
        {"type": random.sample(_TYPES, 2)},
        {"const": random.choice(_CONSTANTS)},
        {"enum": random.sample(_CONSTANTS[:8], 2)},
        {"type": random.choice(_TYPES[:3]), random.choice(_BOUNDS): random.choice([0, 1, 3, -2, 1.5, 10**30, "1"])},
        {},
    ]
    return random.choices(kinds, [4, 4, 1, 2, 2, 1, 1])[0]


def _below(random: Random, depth: int) -> dict[str, Any]:
    kind = random.choices(["object", "array", "map", "patterns", "anyOf", "oneOf", "allOf"], [8, 2, 2, 1, 3, 2, 1])[0]
    if kind == "object":
        return _object(random, depth)
    if kind in ("array", "map"):
        inner = _schema(random, depth)
        return {"type": "array", "items": inner} if kind == "array" else _map(inner)
    if kind == "patterns":
        return {"type": "object", "patternProperties": {random.choice([".*", "^x-"]): _schema(random, depth)}}
    return {kind: [_schema(random, depth) for _ in range(random.randint(1, 3))]}


def _map(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _object(random: Random, depth: int) -> dict[str, Any]:
    names = [random.choice(_ODD_MEMBERS if random.random() < 0.05 else _MEMBERS) for _ in range(random.randint(0, 4))]
    properties = {name: _schema(random, depth) for name in names}
    node: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [*properties][: random.randint(0, 4)],
    }
    choices: list[Any] = [None, False, {}, {"not": {}}, {"type": "string"}]
    others = random.choices(choices, [8, 2, 2, 1, 1])[0]
    return node if others is None else {**node, "additionalProperties": others}
