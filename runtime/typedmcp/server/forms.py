"""Forms generated from Python types, for `Context.elicit`, and the conversion of answers to those types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from mcpspec.support.objects import is_array
from typedmcp import dialect
from typedmcp.errors import DecodeError, InputUnavailableError, InvalidParamsError, UsageError
from typedmcp.revisions.features import structs_of
from typedmcp_schemas import cached_by_type, resolve_root
from typedmcp_schemas.flat import FlatField

__all__ = ["Elicited", "Form", "form_of"]

D = dialect.structs
X = dialect.exact
T = TypeVar("T")

_SINGLE_FIELD: Final = "value"
"""The name of the field in a form for a type that is not an object."""


class Elicited(msgspec.Struct, Generic[T]):
    """The user's answer to a form: `data` is set if `action` is to accept."""

    action: Literal["accept", "decline", "cancel"]
    data: T | None = None


class Form:
    """The form for a type. Raises `UsageError` for a type with members that forms cannot have."""

    def __init__(self, kind: object) -> None:
        from typedmcp_schemas import UnsupportedTypeError, schema_of, to_msgspec

        name = getattr(kind, "__name__", str(kind))
        try:
            self._kind = to_msgspec(kind)
            schema = schema_of(self._kind)
        except (UnsupportedTypeError, NameError, RuntimeError) as error:
            raise UsageError(f"elicit: {name}: {error}") from error
        definitions: dict[str, Any] = schema.get("$defs", {})
        root = resolve_root(schema)
        self.is_single: bool = "properties" not in root
        """True if the type is not an object, so that the form has one field for all of it."""
        members: dict[str, Any] = {_SINGLE_FIELD: schema} if self.is_single else root["properties"]
        required = [_SINGLE_FIELD] if self.is_single else root.get("required", [])
        self._fields = {key: FlatField(member, definitions) for key, member in members.items()}
        for key, field in self._fields.items():
            if not _is_supported(field):
                raise UsageError(f"elicit: {name}: {key}: forms have fields for text, numbers, booleans and choices")
        self._omittable: dict[str, None] = {key: None for key in required if self._fields[key].is_optional}
        """Required members that may be null: the form need not be filled in there."""
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: field.schema for key, field in self._fields.items()},
        }
        if needed := [key for key in required if key not in self._omittable]:
            self.schema["required"] = needed

    def schema_for(self, revision: str) -> dict[str, Any]:
        """Return the schema. Raises `InputUnavailableError` if a revision lacks a field that has to be filled in."""
        lists = [key for key in self.schema.get("required", ()) if self._fields[key].schema.get("type") == "array"]
        known = structs_of(revision)
        if lists and hasattr(known, "ElicitRequest") and not hasattr(known, "ElicitRequestFormParams"):
            raise InputUnavailableError(
                f"elicit: {lists[0]}: the forms of {revision} have no field for several choices"
            )
        return self.schema

    def read_result(self, result: D.ElicitResult) -> Elicited[Any]:
        """Convert the client's answer to the type. Raises `InvalidParamsError` if it does not fit."""
        from typedmcp_schemas import convert, explain

        if result.action != "accept":
            return Elicited(result.action)
        given: Mapping[str, object] = result.content or {}
        content = {**self._omittable, **{key: self._chosen_value(key, value) for key, value in given.items()}}
        if self.is_single and _SINGLE_FIELD not in content:
            raise InvalidParamsError(f"the answer does not fit the form: {_SINGLE_FIELD}: required, but missing")
        try:
            return Elicited("accept", convert(content[_SINGLE_FIELD] if self.is_single else content, self._kind))
        except (ValueError, TypeError) as error:
            text = explain(error, f".{_SINGLE_FIELD}" if self.is_single else "")
            raise InvalidParamsError(f"the answer does not fit the form: {text}") from error

    def _chosen_value(self, key: str, value: object) -> Any:
        """Return the value that a chosen string stands for: the choices of a form are strings."""
        if (field := self._fields.get(key)) is None:
            return value
        return [field.value_of(item) for item in value] if is_array(value) else field.value_of(value)


def _is_supported(field: FlatField) -> bool:
    """Return whether the protocol has such fields."""
    try:
        X.from_builtins({"type": "object", "properties": {"": field.schema}}, X.ElicitRequestFormParamsRequestedSchema)
    except DecodeError:
        return False
    return True


@cached_by_type
def form_of(kind: object) -> Form:
    """Return the form for a type. Raises `UsageError` for a type that no form can have."""
    return Form(kind)
