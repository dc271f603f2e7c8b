"""Forms for people, of Python types: what `Context.elicit` sends, and what comes back."""

from __future__ import annotations

from functools import cache
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object
from typedmcp import dialect
from typedmcp.errors import DecodeError, InvalidParams, UsageError

__all__ = ["Elicited", "Form", "form_of"]

D = dialect.structs
T = TypeVar("T")

_VALUE = "value"
"""The field of a form that has only one."""
_KEPT = frozenset({"title", "description", "default", "type", "enum", "oneOf", "format", "minimum", "maximum",
                   "minLength", "maxLength", "minItems", "maxItems", "items"})  # fmt: skip
"""What forms can say of a field."""


class Elicited(msgspec.Struct, Generic[T]):
    """What a person made of a form: `data`, if the action is to accept it."""

    action: Literal["accept", "decline", "cancel"]
    data: T | None = None


class Form:
    """A type as a form. Raises `UsageError` for one with fields that no form has."""

    def __init__(self, kind: Any) -> None:
        from typedmcp.jsontypes import Unsupported, adapted, schema_of

        name = getattr(kind, "__name__", str(kind))
        try:
            self._kind = adapted(kind)
            schema = schema_of(self._kind)
        except Unsupported as error:
            raise UsageError(f"elicit: {name}: {error}") from error
        definitions: dict[str, Any] = schema.get("$defs", {})
        self.is_single: bool = schema.get("type") != "object"
        members: dict[str, Any] = {_VALUE: schema} if self.is_single else schema.get("properties", {})
        required: list[str] = [_VALUE] if self.is_single else schema.get("required", [])
        fields = {name: _field(member, definitions) for name, member in members.items()}
        self.schema: dict[str, Any] = {"type": "object", "properties": fields}
        if required:
            self.schema["required"] = required
        try:
            D.from_builtins(self.schema, D.ElicitRequestFormParamsRequestedSchema)
        except DecodeError as error:
            raise UsageError(
                f"elicit: {name}: {error}. The fields of a form are texts, numbers, booleans and choices"
            ) from error

    def elicited(self, result: D.ElicitResult) -> Elicited[Any]:
        """The answer as the type. Raises `InvalidParams` for one that does not fit it."""
        from typedmcp.jsontypes import convert, fault

        if result.action != "accept":
            return Elicited(result.action)
        content: Any = {} if result.content is UNSET else result.content
        try:
            return Elicited("accept", convert(content[_VALUE] if self.is_single else content, self._kind))
        except (ValueError, KeyError) as error:
            raise InvalidParams(f"the answer does not fit the form: {fault(error)}") from error


@cache
def form_of(kind: Any) -> Form:
    """The form of a type."""
    return Form(kind)


def _field(schema: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """A field, with what it refers to in its place, and without the null that optional ones may have."""
    about = {key: value for key, value in schema.items() if key in ("title", "description", "default")}
    while "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    options: Any = schema.get("anyOf")
    if is_array(options):
        others = [option for option in options if option != {"type": "null"}]
        if len(others) == 1:
            schema = _field(others[0], definitions)
    made = {**{key: value for key, value in schema.items() if key in _KEPT}, **about}
    if is_array(made.get("enum")) and "type" not in made:
        made["type"] = "string"
    if is_object(made.get("items")):
        made["items"] = _field(made["items"], definitions)
    if made.get("default", 0) is None:
        del made["default"]
    return made
