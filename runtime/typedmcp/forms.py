"""Forms for people, of Python types: what `Context.elicit` sends, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object
from typedmcp import dialect
from typedmcp.errors import DecodeError, InvalidParams, UsageError

__all__ = ["Elicited", "Form", "form_of"]

D = dialect.structs
T = TypeVar("T")

_VALUE: Final = "value"
"""The field of a form that has only one."""
_KEPT: Final = ("title", "description", "default", "type", "enum", "minimum", "maximum", "minLength", "maxLength",
                "minItems", "maxItems")  # fmt: skip
"""What forms say of a field as schemas do,"""
_FORMATS: Final = frozenset({"date", "date-time", "email", "uri"})
"""and the formats of texts that they know."""
_LIMITS: Final = (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1))
_REMEMBERED: Final = 256
"""How many forms are kept for types that are asked for again."""


class Elicited(msgspec.Struct, Generic[T]):
    """What a person made of a form: `data`, if the action is to accept it."""

    action: Literal["accept", "decline", "cancel"]
    data: T | None = None


class Form:
    """A type as a form. Raises `UsageError` for one with fields that no form has."""

    def __init__(self, kind: Any) -> None:
        from typedmcp.jsontypes import Unsupported, adapted, root_of, schema_of

        name = getattr(kind, "__name__", str(kind))
        try:
            self._kind = adapted(kind)
            schema = schema_of(self._kind)
        except (Unsupported, NameError, RuntimeError) as error:
            raise UsageError(f"elicit: {name}: {error}") from error
        definitions: dict[str, Any] = schema.get("$defs", {})
        root = root_of(schema)
        self.is_single: bool = "properties" not in root
        members: dict[str, Any] = {_VALUE: schema} if self.is_single else root["properties"]
        required = [_VALUE] if self.is_single else root.get("required", [])
        self._fields = {key: _Field(member, definitions) for key, member in members.items()}
        for key, field in self._fields.items():
            if not field.is_possible:
                raise UsageError(f"elicit: {name}: {key}: fields of forms are texts, numbers, booleans and choices")
        self._missing: dict[str, Any] = {key: None for key in required if self._fields[key].is_optional}
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: field.schema for key, field in self._fields.items()},
        }
        if needed := [key for key in required if key not in self._missing]:
            self.schema["required"] = needed

    def elicited(self, result: D.ElicitResult) -> Elicited[Any]:
        """The answer as the type. Raises `InvalidParams` for one that does not fit it."""
        from typedmcp.jsontypes import convert, fault

        if result.action != "accept":
            return Elicited(result.action)
        given: Mapping[str, Any] = {} if result.content is UNSET else result.content
        content = self._missing | {key: self._meant(key, value) for key, value in given.items()}
        if self.is_single and _VALUE not in content:
            raise InvalidParams(f"the answer does not fit the form: {_VALUE}: required, but missing")
        try:
            return Elicited("accept", convert(content[_VALUE] if self.is_single else content, self._kind))
        except (ValueError, TypeError) as error:
            text = fault(error, f".{_VALUE}" if self.is_single else "")
            raise InvalidParams(f"the answer does not fit the form: {text}") from error

    def _meant(self, key: str, value: Any) -> Any:
        """What a choice stands for: those of forms are texts."""
        field = self._fields.get(key)
        if field is None:
            return value
        return [field.meant(item) for item in value] if is_array(value) else field.meant(value)


class _Field:
    """A schema as a field: what it refers to in its place, without the null that optional ones may be."""

    def __init__(self, schema: dict[str, Any], definitions: Mapping[str, Any]) -> None:
        self.is_optional: bool = False
        self._choices: dict[str, Any] = {}
        self.schema: dict[str, Any] = self._made(schema, definitions)
        if "items" in self.schema:
            self.schema["items"] = self._made(self.schema["items"], definitions)
        default = self.schema.pop("default", None)
        if default is not None:
            self.schema["default"] = self._text_of(default) if self._choices else default

    @property
    def is_possible(self) -> bool:
        """Whether forms have such fields."""
        try:
            D.from_builtins(
                {"type": "object", "properties": {"": self.schema}}, D.ElicitRequestFormParamsRequestedSchema
            )
        except DecodeError:
            return False
        return True

    def meant(self, text: Any) -> Any:
        """What is chosen by a text."""
        return self._choices.get(text, text) if isinstance(text, str) else text

    def _text_of(self, default: Any) -> Any:
        return [str(item) for item in default] if is_array(default) else str(default)

    def _made(self, schema: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
        about: dict[str, Any] = {key: schema[key] for key in ("title", "description", "default") if key in schema}
        if isinstance(reference := schema.get("$ref"), str):
            inner = {**definitions[reference.rpartition("/")[2]]}
            inner.pop("title", None)  # which is the type's
            return {**self._made(inner, definitions), **about}
        options: Any = schema.get("anyOf", ())
        others = [option for option in options if option != {"type": "null"}]
        self.is_optional = self.is_optional or len(others) < len(options)
        if len(others) == 1:
            return {**self._made(others[0], definitions), **about}
        made = {key: value for key, value in schema.items() if key in _KEPT}
        for strict, loose, step in _LIMITS:
            if strict in schema:
                made[loose] = schema[strict] + (step if made.get("type") == "integer" else 0)
        if schema.get("format") in _FORMATS:
            made["format"] = schema["format"]
        if is_array(made.get("type")):  # a number that may come as text
            made["type"] = "number"
        if is_object(schema.get("items")):
            made["items"] = schema["items"]
        return self._chosen(made) if is_array(made.get("enum")) else made

    def _chosen(self, made: dict[str, Any]) -> dict[str, Any]:
        self.is_optional = self.is_optional or None in made["enum"]
        self._choices = {str(value): value for value in made["enum"] if value is not None}
        return {**made, "type": "string", "enum": [*self._choices]}


def form_of(kind: Any) -> Form:
    """The form of a type."""
    try:
        return _remembered(kind)
    except TypeError:  # it cannot be a key, as with a list in an annotation
        return Form(kind)


_remembered = lru_cache(_REMEMBERED)(Form)
