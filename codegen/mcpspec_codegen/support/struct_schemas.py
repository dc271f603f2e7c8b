"""JSON Schemas of the types that msgspec does not know: open objects and unions without a tag."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from mcpspec.support.attribute_docs import class_doc
from mcpspec.support.objects import is_array, is_object, spread_union
from mcpspec.support.structs import OpenObject, declared_struct

__all__ = ["custom_schema", "inline_definitions"]

_DEFINITIONS = "#/$defs/"


def custom_schema(kind: Any, outer: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an open object or a union, complete in itself: msgspec takes no definitions from hooks.

    Within itself, given as one of `outer`, it is described as any object or any value. Raises `NotImplementedError` for
    other types.
    """
    is_union = hasattr(kind, "__union__")
    if not is_union and not (isinstance(kind, type) and issubclass(kind, OpenObject)):
        raise NotImplementedError(f"type {kind!r} has no JSON Schema")
    if kind in outer:
        return {"title": kind.__name__, **({} if is_union else {"type": "object"})}
    schema_of = partial(_complete_schema, outer=(*outer, kind))
    if is_union:
        return {"title": kind.__name__, "anyOf": [schema_of(option) for option in spread_union(kind)]}
    doc = class_doc(kind)
    return {**schema_of(declared_struct(kind)), **({"description": doc} if doc else {})}


def _complete_schema(hint: Any, outer: tuple[Any, ...]) -> dict[str, Any]:
    return inline_definitions(msgspec.json.schema(hint, schema_hook=partial(custom_schema, outer=outer)))


def inline_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its definitions in the places that refer to them."""
    kept = {key: value for key, value in schema.items() if key != "$defs"}
    inlined: dict[str, Any] = _inline(kept, schema.get("$defs", {}), ())
    return inlined


def _inline(part: Any, definitions: dict[str, Any], outer: tuple[str, ...]) -> Any:
    if is_array(part):
        return [_inline(each, definitions, outer) for each in part]
    if not is_object(part):
        return part
    reference = part.get("$ref")
    if not isinstance(reference, str):
        # A discriminator names definitions, which the result does not have.
        is_tagged = "discriminator" in part and ("anyOf" in part or "oneOf" in part)
        kept = {key: value for key, value in part.items() if not (is_tagged and key == "discriminator")}
        return {key: _inline(value, definitions, outer) for key, value in kept.items()}
    name = reference.removeprefix(_DEFINITIONS)
    if name in outer:
        return {"type": "object"}
    rest = {key: value for key, value in part.items() if key != "$ref"}
    return _inline(definitions[name], definitions, (*outer, name)) | rest
