"""Patterns that begin with lookahead, written as several patterns without.

The engine of linear time, which untrusted schemas need, has no lookahead. Schemas use it mostly to say what else has to
be true of a text: `^(?!-)(?!.*--)[a-z-]+$` is `^[a-z-]+$`, but neither `^(?:-)` nor `^(?:.*--)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from typedmcp_schemas.json_types import is_array, is_object

__all__ = ["expand_lookahead"]

_LOOKAHEAD: Final = ("(?=", "(?!")
_DATA_KEYWORDS: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas."""


def expand_lookahead(schema: Any) -> Any:
    """Return a schema in which patterns that begin with lookahead are expanded as `allOf`."""
    if is_array(schema):
        return [expand_lookahead(item) for item in schema]
    if not is_object(schema):
        return schema
    made = {name: part if name in _DATA_KEYWORDS else expand_lookahead(part) for name, part in schema.items()}
    pattern = made.get("pattern")
    if not isinstance(pattern, str) or not pattern.startswith(("^(?=", "^(?!")):
        return made
    conditions, rest = _split(pattern[1:])
    if conditions:
        made["pattern"] = f"^{rest}"
        made["allOf"] = [*made.get("allOf", []), *map(_to_schema, conditions)]
    return made


def _to_schema(condition: str) -> dict[str, Any]:
    """Return the schema for a lookahead. What is not a string fits every pattern, and so it has to fit this, too."""
    schema = {"type": "string", "pattern": f"^(?:{condition[3:-1]})"}
    return {"not": schema} if condition.startswith("(?!") else {"pattern": schema["pattern"]}


def _split(text: str) -> tuple[list[str], str]:
    """Return the lookaheads at the beginning, and the rest. No lookaheads if they apply to a part only."""
    conditions: list[str] = []
    while text.startswith(_LOOKAHEAD):
        end = next((index + 1 for index, character, depth in _scan(text) if character == ")" and depth == 0), 0)
        if not end or text[end : end + 1] in ("*", "+", "?", "{"):
            return [], text
        conditions.append(text[:end])
        text = text[end:]
    has_alternatives = any(character == "|" and depth == 0 for _, character, depth in _scan(text))
    return ([], text) if has_alternatives else (conditions, text)


def _scan(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the characters outside of classes and escapes, with their index and the groups that are open after them."""
    depth, is_in_class, is_escaped = 0, False, False
    for index, character in enumerate(text):
        if is_escaped or character == "\\":
            is_escaped = not is_escaped
        elif is_in_class:
            is_in_class = character != "]"
        elif character == "[":
            is_in_class = True
        else:
            depth += (character == "(") - (character == ")")
            yield index, character, depth
