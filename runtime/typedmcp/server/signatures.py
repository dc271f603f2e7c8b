"""Functions as JSON: what arguments a function takes, as a schema, checked, and passed to it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from typedmcp.context import Context
from typedmcp.errors import UsageError
from typedmcp.jsontypes import (
    Unsupported,
    adapted,
    dec_hook,
    default_of,
    fault,
    from_json,
    needs_hook,
    object_schema,
    schema_of,
)
from typedmcp.server.docstrings import Described, described

__all__ = ["BadArgument", "Parameter", "Signature", "hints_of", "name_of", "options_of", "takes_context"]

_CONTEXT_NAMES = ("ctx", "context")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_FIXED = (NoneType, str, int, float, bool, bytes, frozenset, Enum)
"""Types of defaults that nobody can change by using them."""


class BadArgument(ValueError):  # noqa: N818
    """Arguments that a function does not take; the text says which, and why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function, as its callers on the wire see it."""

    name: str
    """What it is called in Python,"""
    wire: str
    """and on the wire."""
    hint: Any
    """Its type, as `jsontypes.adapted` gives it."""
    required: bool
    default: Any
    description: str


class Signature:
    """What a function takes, compiled.

    `what` says what it is used for, in errors: `tool 'add'`. Raises `UsageError`, with the names of the function and
    the parameter, for one that cannot be called with JSON.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self.function = function
        self._what = what
        self.described: Described = described(inspect.getdoc(function) if not isinstance(function, partial) else None)
        hints = hints_of(function, what)
        self.returns: Any = hints.get("return", inspect.Parameter.empty)
        parameters = _parameters_of(function, what)
        self.context: str | None = next((p.name for p in parameters if takes_context(p, hints)), None)
        """The parameter that takes the context."""
        self.rest: Any = UNSET
        """What type arguments have that the function takes by `**`; `UNSET` if it takes none."""
        self.parameters: list[Parameter] = []
        for parameter in parameters:
            if parameter.name == self.context:
                continue
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                raise self._error(parameter.name, "arguments have names: there is no passing of `*`")
            hint = hints.get(parameter.name, Any)
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self.rest = self._adapted(parameter.name, hint)
            else:
                self.parameters.append(self._parameter(parameter, hint))
        self.struct: type[msgspec.Struct] = self._struct()
        self._known = {parameter.wire for parameter in self.parameters}
        self._needs_hook = any(needs_hook(parameter.hint) for parameter in self.parameters)
        self.call: Callable[[Any, Any], Any] = self._caller(parameters)

    def _parameter(self, given: inspect.Parameter, hint: Any) -> Parameter:
        default, wire = given.default, given.name
        if type(default).__name__ == "FieldInfo":  # Pydantic's `Field(…)` in the place of a default
            hint, default = Annotated[hint, default], _default_in(default)
        said = ""
        for note in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
            said = note if isinstance(note, str) else getattr(note, "description", None) or said
            wire = getattr(note, "alias", None) or wire
            if default is inspect.Parameter.empty and type(note).__name__ == "FieldInfo":
                default = _default_in(note)
        return Parameter(
            name=given.name,
            wire=wire,
            hint=self._adapted(given.name, hint),
            required=default is inspect.Parameter.empty,
            default=default,
            description=said or self.described.parameters.get(given.name, ""),
        )

    def _adapted(self, name: str, hint: Any) -> Any:
        try:
            made = adapted(hint)
            schema_of(made)
        except (Unsupported, TypeError, ValueError) as error:
            raise self._error(name, str(error)) from error
        return made

    def _error(self, name: str, text: str) -> UsageError:
        return UsageError(f"{self._what}: {name_of(self.function)}(), parameter {name!r}: {text}")

    def _struct(self) -> type[msgspec.Struct]:
        fields = [(p.name, p.hint, _field(p)) for p in self.parameters]
        try:
            return msgspec.defstruct(
                f"{name_of(self.function)} arguments", fields, kw_only=True, forbid_unknown_fields=self.rest is UNSET
            )
        except (TypeError, ValueError) as error:
            raise UsageError(f"{self._what}: {name_of(self.function)}(): {error}") from error

    @property
    def is_plain(self) -> bool:
        """Whether converting arguments to `struct` is all that there is to binding them."""
        return not self._needs_hook and not self.takes_rest

    def choices(self) -> dict[str, list[str]]:
        """The parameters that take only certain texts, with these."""
        found = {parameter.wire: options_of(parameter.hint) for parameter in self.parameters}
        return {name: options for name, options in found.items() if options}

    @property
    def takes_rest(self) -> bool:
        """Whether it takes arguments that it does not name."""
        return self.rest is not UNSET

    def schema(self) -> dict[str, Any]:
        """The schema of its arguments: an object's."""
        made = object_schema({parameter.wire: _described_schema(parameter) for parameter in self.parameters})
        if required := [parameter.wire for parameter in self.parameters if parameter.required]:
            made["required"] = required
        made["additionalProperties"] = False
        if self.rest is not UNSET:
            made["additionalProperties"] = True if self.rest is Any else schema_of(self.rest)
        return made

    # Calling

    def bind(self, arguments: Mapping[str, Any]) -> Any:
        """Arguments, checked and converted, for `call`. Raises `BadArgument`."""
        try:
            bound = msgspec.convert(arguments, self.struct, dec_hook=dec_hook)
            return bound if self.rest is UNSET else (bound, self._bind_rest(arguments))
        except (ValueError, RecursionError) as error:
            raise BadArgument(fault(error)) from error

    def _bind_rest(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        rest = {name: value for name, value in arguments.items() if name not in self._known}
        return msgspec.convert(rest, dict[str, self.rest], dec_hook=dec_hook)  # type: ignore[name-defined]

    def bind_texts(self, arguments: Mapping[str, str]) -> Any:
        """The same for arguments that are all strings: those of prompts, and of URIs."""
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            text = arguments.get(parameter.wire)
            if text is not None:
                values[parameter.name] = _from_text(text, parameter)
            elif parameter.required:
                raise BadArgument(f"{parameter.wire}: required, but missing")
        rest = {name: text for name, text in arguments.items() if name not in self._known}
        if self.rest is UNSET and rest:
            raise BadArgument(f"{next(iter(rest))}: there is no such argument")
        bound = self.struct(**values)
        return bound if self.rest is UNSET else (bound, rest)

    def _caller(self, parameters: list[inspect.Parameter]) -> Callable[[Any, Any], Any]:
        """What calls the function with what `bind` gave, and the context."""
        function, context = self.function, self.context
        first = [p.name for p in parameters if p.kind in _POSITIONAL]
        is_simple = self.rest is UNSET and all(p.kind in _POSITIONAL for p in parameters)
        if is_simple and context is None and len(first) == 1:
            only = attrgetter(first[0])
            return lambda bound, _: function(only(bound))
        if is_simple and context is None:
            return lambda bound, _: function(*astuple(bound))
        if is_simple and first[0] == context:
            return lambda bound, ctx: function(ctx, *astuple(bound))
        names = [p.name for p in self.parameters]

        def call(bound: Any, ctx: Any) -> Any:
            bound, rest = bound if type(bound) is tuple else (bound, {})
            values: dict[str, Any] = dict(zip(names, astuple(bound), strict=True))
            if context is not None:
                values[context] = ctx
            return function(*[values.pop(name) for name in first], **values, **rest)

        return call


def _parameters_of(function: Callable[..., Any], what: str) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what}: {name_of(function)} says nothing of its parameters: {error}") from error


def hints_of(function: Callable[..., Any], what: str) -> dict[str, Any]:
    """The types in a function's annotations. Raises `UsageError` for a name that there is not."""
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    inner = inspect.unwrap(inner)
    if not hasattr(inner, "__annotations__") and not inspect.isclass(inner):
        inner = getattr(type(inner), "__call__", inner)  # noqa: B004  # an object that can be called
    names: dict[str, Any] = {}
    for more in _locals():
        try:
            return get_type_hints(inner, localns=names or None, include_extras=True)
        except NameError as error:
            missing: Exception = error
            names = {**more, **names}
        except (TypeError, SyntaxError) as error:
            raise UsageError(f"{what}: an annotation of {name_of(function)}() is none: {error}") from error
    raise UsageError(f"{what}: an annotation of {name_of(function)}(): {missing}")


def _locals() -> Iterator[Mapping[str, Any]]:
    """The names in the functions around the call, from the inside out, for annotations that are strings."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("typedmcp.server"):
            yield frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]
    yield {}


def takes_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Whether a parameter is for the context: by its type, or without one by its name."""
    if parameter.name not in hints:
        return parameter.name in _CONTEXT_NAMES and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    hint = hints[parameter.name]
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(isinstance(option, type) and issubclass(option, Context) for option in options)


def name_of(function: Any) -> str:
    """What a function is called."""
    while isinstance(function, partial):
        function = cast("Any", function.func)  # pyright: ignore[reportUnknownMemberType]
    return getattr(function, "__name__", None) or type(function).__name__


def _default_in(field: Any) -> Any:
    """The default in Pydantic's `Field(…)`."""
    if field.default_factory is not None:
        return field.default_factory()
    return inspect.Parameter.empty if field.is_required() else field.default


def _described_schema(parameter: Parameter) -> dict[str, Any]:
    made = schema_of(parameter.hint)
    if parameter.description:
        made["description"] = parameter.description
    if not parameter.required and (default := default_of(parameter.default)) is not UNSET:
        made["default"] = default
    return made


def _field(parameter: Parameter) -> Any:
    name = None if parameter.wire == parameter.name else parameter.wire
    if parameter.required:
        return msgspec.field(name=name)
    default = parameter.default
    if isinstance(default, _FIXED):
        return msgspec.field(default=default, name=name)
    return msgspec.field(default_factory=lambda: default, name=name)  # which is Python's way with defaults


def _from_text(text: str, parameter: Parameter) -> Any:
    """An argument that came as text, as it is, as the number that it says, or as JSON."""
    try:
        return msgspec.convert(text, parameter.hint, strict=False, dec_hook=dec_hook)
    except ValueError as error:
        try:
            return from_json(text, parameter.hint)
        except (ValueError, RecursionError):
            raise BadArgument(fault(error, f".{parameter.wire}")) from error


def options_of(hint: Any) -> list[str]:
    """The texts that a type takes, where it takes only certain ones: those of `Literal`, and of enums."""
    if get_origin(hint) is Annotated:
        return options_of(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return [value for value in get_args(hint) if isinstance(value, str)]
    if get_origin(hint) in (Union, UnionType):
        return [text for option in get_args(hint) for text in options_of(option)]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [member.value for member in hint if isinstance(member.value, str)]
    return []
