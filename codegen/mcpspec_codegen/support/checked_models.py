"""Models, and parts of models, with a check of their values: see `checks`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ModelWrapValidatorHandler, model_validator
from pydantic_core import core_schema

from mcpspec.support.checks import check_value
from mcpspec.support.models import Model, fits, to_builtins

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

__all__ = ["Checked", "checked"]


class Checked(Model):
    """Base of objects with a check, `__check__`: a part of their JSON Schema, beside the types of their members."""

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, value: Any, make: ModelWrapValidatorHandler[Any]) -> Any:
        return _make_checked(value, make, cls.__check__, cls.__module__)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        from mcpspec.support.json_schema import add_check  # here, since models alone do not need msgspec

        made = super().__get_pydantic_json_schema__(schema, handler)
        described = handler.resolve_ref_schema(made)
        described.update(add_check(described, cls.__check__))
        return made

    if TYPE_CHECKING:
        __check__: ClassVar[dict[str, Any]]


def _with_check(schema: core_schema.CoreSchema, check: dict[str, Any], module: str) -> core_schema.CoreSchema:
    """Return the schema of a type with a check of its values, as they would be encoded."""
    validate = partial(_make_checked, check=check, module=module)
    return core_schema.no_info_wrap_validator_function(validate, schema)


def _make_checked(value: Any, make: Callable[[Any], Any], check: dict[str, Any], module: str) -> Any:
    """Return what a validator makes of a value, if it passes a check as it would be encoded."""
    made = make(value)
    check_value(to_builtins(made), check, module, fits)
    return made


class _Check:
    """Marker of a type with a check."""

    def __init__(self, check: dict[str, Any], module: str) -> None:
        self.__check__ = check
        self.__module__ = module

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return _with_check(handler(source), self.__check__, self.__module__)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        from mcpspec.support.json_schema import add_check  # here, since models alone do not need msgspec

        return add_check(handler(schema), self.__check__)


def checked(check: dict[str, Any], module: str) -> Any:
    """Return a marker for `Annotated`: values have to pass a check, whose references are types of a module."""
    return _Check(check, module)
