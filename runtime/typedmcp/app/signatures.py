"""Signatures of functions: the schema of the arguments, and how arguments from JSON are checked and passed."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from types import MethodType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from mcpspec.support.error_text import format_path_part
from typedmcp.app.docstrings import ParsedDocstring, parse_docstring
from typedmcp.errors import UsageError
from typedmcp.jsonschema.adapt import has_custom_types, schema_of, to_msgspec
from typedmcp.jsonschema.constraints import read_metadata
from typedmcp.jsonschema.definitions import JsonSchema, object_schema
from typedmcp.jsonschema.explain import explain, explain_unknown
from typedmcp.jsonschema.records import field_with_default, parameters_of
from typedmcp.jsonschema.values import (
    UnsupportedTypeError,
    ValueConversionError,
    convert,
    dec_hook,
    encode_default,
    from_json,
)
from typedmcp.server.context import Context

__all__ = [
    "ArgumentError", "Parameter", "Signature", "choices_of", "hints_of", "is_context_parameter", "is_partial",
    "name_of", "parameters_in", "return_hint_of", "unwrap",
]  # fmt: skip

_CONTEXT_NAMES = ("ctx", "context")


def name_of(function: Any) -> str:
    """Return the name of a function, or of the class of a callable object."""
    while is_partial(function):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def is_partial(function: object) -> bool:
    """Return whether a function is a `functools.partial`."""
    return isinstance(function, partial)


def unwrap(function: Any) -> Any:
    """Return the function that has the annotations: the one inside partials and wrappers, or an object's `__call__`."""
    while is_partial(function):
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, type) or hasattr(function, "__annotations__"):
        return function
    return getattr(function.__class__, "__call__", function)  # noqa: B004  # a callable object


def parameters_in(function: Callable[..., Any], what: str) -> list[inspect.Parameter]:
    """Return the parameters of a function. Raises `UsageError` if it has no signature."""
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what}: {name_of(function)} has no readable signature: {error}") from error


def is_context_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Return whether a parameter takes the context: by its type, or without a type by its name."""
    if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
        return False
    if parameter.name not in hints:
        return parameter.name in _CONTEXT_NAMES
    hint = hints[parameter.name]
    if hint.__class__ is type:
        return False  # the metaclass of `Context` is that of Structs
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(isinstance(option, type) and issubclass(option, Context) for option in options)


def hints_of(function: Callable[..., Any], what: str) -> dict[str, Any]:
    """Return the types of a function's parameters, and its return type as `return` if all names in that are known.

    Raises `UsageError` for an unknown name in the type of a parameter.
    """
    inner = unwrap(function)
    if isinstance(inner, type):
        inner = MethodType(cast(Any, inner).__init__, inner)  # whose type variables the annotations may name
    elif "return" in getattr(inner, "__annotations__", {}):
        with suppress(UsageError):
            return _resolve_hints(inner, what, name_of(function))
    return _resolve_hints(inner, what, name_of(function), is_return=False)


def return_hint_of(function: Callable[..., Any], what: str) -> Any:
    """Return the return type, or `inspect.Parameter.empty`. Raises `UsageError` for an unknown name in it."""
    inner = unwrap(function)
    if isinstance(inner, type):
        return inner
    return _resolve_hints(inner, what, name_of(function), is_return=True).get("return", inspect.Parameter.empty)


def _resolve_hints(function: Any, what: str, name: str, *, is_return: bool | None = None) -> dict[str, Any]:
    """Resolve the types of the return value, of the parameters, or of both."""
    annotations: dict[str, Any] = getattr(function, "__annotations__", {})
    if is_return is not None:
        annotations = {key: hint for key, hint in annotations.items() if (key == "return") is is_return}
    if not annotations:
        return {}
    holder = SimpleNamespace(__annotations__=annotations, __globals__=getattr(function, "__globals__", {}))
    owner: Any = getattr(function, "__self__", None)
    names: dict[str, Any] = {
        **parameters_of(cast(object, type(owner))),
        **parameters_of(owner),
        **parameters_of(function),
    }
    cause: Exception = NameError()
    for more in _enclosing_locals(holder.__globals__):
        try:
            return get_type_hints(holder, localns=names or None, include_extras=True)
        except NameError as error:
            cause, names = error, {**more, **names}
        except (TypeError, SyntaxError) as error:
            cause = error
            break
    raise UsageError(f"{what}: {name}(), {_find_unreadable(holder, names)}: {cause}") from cause


def _find_unreadable(holder: Any, names: dict[str, Any]) -> str:
    """Return the annotation that cannot be resolved, for an error message."""
    for parameter, hint in holder.__annotations__.items():
        alone = SimpleNamespace(__annotations__={parameter: hint}, __globals__=holder.__globals__)
        try:
            get_type_hints(alone, localns=names)
        except (NameError, TypeError, SyntaxError):
            return "return type" if parameter == "return" else f"parameter {parameter!r}"
    return "annotations"


def _enclosing_locals(names: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Yield the local names of the callers with these global names: string annotations may refer to them."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_globals is names:
            yield frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]
    yield {}


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_TYPE_ERRORS = (UnsupportedTypeError, TypeError, ValueError, NameError, RuntimeError, re.error)
"""The exceptions for types that have no JSON form, or that cannot be described."""


class ArgumentError(ValueError):
    """The arguments do not fit the function. The text names the argument and the reason."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function that clients can pass."""

    name: str
    """The name in Python."""
    wire: str
    """The name in JSON."""
    member: str
    """The name in the Struct of all arguments."""
    hint: Any
    """The type, adapted by `to_msgspec`."""
    required: bool
    default: Any
    field: Callable[..., Any]
    """Makes the field of the Struct from `name=`."""
    description: str
    """The description in `Annotated`, or an empty text."""


class Signature:
    """The compiled signature of a function.

    `what` identifies the tool, resource or prompt in errors: `tool 'add'`. Raises `UsageError`, with the names of the
    function and the parameter, for a function that cannot be called with JSON.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self.function = function
        self._what = what
        hints = hints_of(function, what)
        self._return_hint = hints.pop("return", UNSET)
        parameters = parameters_in(function, what)
        self._reject_unbound_method(parameters, hints)
        self.context: str | None = self._find_context(parameters, hints)
        """The name of the parameter for the context."""
        self.rest: Any = UNSET
        """The type of the arguments that the function takes as `**rest`; `UNSET` if it takes none."""
        self.parameters: list[Parameter] = []
        for parameter in parameters:
            if parameter.name == self.context:
                continue
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                raise self._error(parameter.name, "a client cannot pass `*` arguments, since arguments have names")
            hint = hints.get(parameter.name, Any)
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self.rest = self._adapt(parameter.name, hint)
            else:
                self.parameters.append(self._parameter(parameter, hint))
        self.struct: type[msgspec.Struct] = self._make_struct()
        """The Struct that arguments are converted to, with the members in the function's order."""
        self._names = dict.fromkeys(parameter.wire for parameter in self.parameters)
        by_keyword = {p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
        self._reserved = by_keyword.difference(self._names)
        """Names of parameters that `**rest` cannot have."""
        self._has_custom_types = any(has_custom_types(parameter.hint) for parameter in self.parameters)
        self.is_simple: bool = self.rest is UNSET and all(p.kind in _POSITIONAL for p in parameters)
        """True if the function takes the members of `struct` by position, and the context if it takes that."""
        self.call: Callable[[Any, Any], Any] = self._make_caller(parameters)
        """Calls the function with what `bind` returned, and the context."""

    @cached_property
    def docstring(self) -> ParsedDocstring:
        """The docstring. Parsed on first use, so that servers with many tools start fast."""
        return parse_docstring(None if is_partial(self.function) else inspect.getdoc(self.function))

    def description_of(self, parameter: Parameter) -> str:
        """Return the description of a parameter, from its annotation or the docstring."""
        return parameter.description or self.docstring.parameters.get(parameter.name, "")

    @property
    def return_hint(self) -> Any:
        """Return the return type. Raises `UsageError` for an unknown name in it."""
        return self._return_hint if self._return_hint is not UNSET else return_hint_of(self.function, self._what)

    def _reject_unbound_method(self, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        first = parameters[0].name if parameters else ""
        outer = getattr(unwrap(self.function), "__qualname__", "").rpartition(".")[0]
        if first in ("self", "cls") and first not in hints and outer and not outer.endswith("<locals>"):
            raise self._error(
                first, "a method needs its object: pass object.method, as in server.add_tool(object.method)"
            )

    def _find_context(self, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> str | None:
        names = [parameter.name for parameter in parameters if is_context_parameter(parameter, hints)]
        typed = [name for name in names if name in hints]
        if len(typed) > 1:
            raise self._error(typed[1], f"only one parameter can take the context, and {typed[0]!r} does")
        return next(iter(typed or names), None)

    def _parameter(self, given: inspect.Parameter, hint: object) -> Parameter:
        default, wire, field = given.default, given.name, msgspec.field
        if type(default).__name__ == "FieldInfo":  # Pydantic's `Field(…)` in place of a default
            hint, default = Annotated[hint, default], inspect.Parameter.empty
        metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        for item in metadata:
            wire = _alias_in(item) or wire
            if default is inspect.Parameter.empty and type(item).__name__ == "FieldInfo":
                default, field = self._default_in(item, given.name)
        if default is not inspect.Parameter.empty and field is msgspec.field:
            field = field_with_default(default)
        if any(wire == parameter.wire for parameter in self.parameters):
            raise self._error(given.name, f"another parameter is called {wire!r}, too")
        return Parameter(
            name=given.name,
            wire=wire,
            member=f"f{len(self.parameters)}{given.name}" if given.name.startswith("__") else given.name,
            hint=self._adapt(given.name, hint),
            required=default is inspect.Parameter.empty,
            default=default,
            field=field,
            description=read_metadata(metadata).annotations.get("description") or "",
        )

    def _default_in(self, field: Any, name: str) -> tuple[Any, Callable[..., Any]]:
        """Return the default in Pydantic's `Field(…)`, and a function that creates a Struct field with it."""
        if field.default_factory is None:
            return inspect.Parameter.empty if field.is_required() else field.default, msgspec.field
        try:
            return field.default_factory(), partial(msgspec.field, default_factory=field.default_factory)
        except TypeError as error:
            raise self._error(name, f"default_factory: {error}") from error

    def _adapt(self, name: str, hint: object) -> Any:
        try:
            made = to_msgspec(hint)
            schema_of(made)
        except _TYPE_ERRORS as error:
            raise self._error(name, str(error).partition("\n")[0]) from error
        return made

    def _error(self, name: str, text: str) -> UsageError:
        return UsageError(f"{self._what}: {name_of(self.function)}(), parameter {name!r}: {text}")

    def _make_struct(self) -> type[msgspec.Struct]:
        fields = [(p.member, p.hint, p.field(name=p.wire)) for p in self.parameters]
        try:
            return msgspec.defstruct(
                f"{name_of(self.function)} arguments", fields, kw_only=True, forbid_unknown_fields=self.rest is UNSET
            )
        except (TypeError, ValueError) as error:
            raise UsageError(f"{self._what}: {name_of(self.function)}(): {error}") from error

    @property
    def is_plain(self) -> bool:
        """Return whether binding needs only `msgspec.convert` to `struct`, without hooks."""
        return not self._has_custom_types and not self.takes_rest

    def choices(self) -> dict[str, list[str]]:
        """Return the strings that each parameter with a `Literal` or an enum accepts, by the parameter's name."""
        options = {parameter.wire: choices_of(parameter.hint) for parameter in self.parameters}
        return {name: texts for name, texts in options.items() if texts}

    @property
    def takes_rest(self) -> bool:
        """Return whether the function takes arguments beyond its named parameters (`**rest`)."""
        return self.rest is not UNSET

    def accepts(self, argument: str) -> bool:
        """Return whether the function takes an argument with this name."""
        return self.takes_rest or argument in self._names

    def schema(self) -> JsonSchema:
        """Return the schema of the arguments, which are an object."""
        properties = {p.wire: _property_schema(p, self.description_of(p)) for p in self.parameters}
        made = object_schema(properties, schema_of(self.rest) or True if self.takes_rest else False)
        if required := [parameter.wire for parameter in self.parameters if parameter.required]:
            made["required"] = required
        return made

    # Binding

    def bind(self, arguments: Mapping[str, Any]) -> Any:
        """Check and convert arguments, for `call`. Raises `ArgumentError`."""
        try:
            bound = msgspec.convert(arguments, self.struct, dec_hook=dec_hook)
            return bound if self.rest is UNSET else (bound, self._bind_rest(arguments))
        except ArgumentError:
            raise
        except Exception as error:
            raise ArgumentError(self._explain(error, arguments)) from error

    def _explain(self, error: Exception, arguments: Mapping[str, Any]) -> str:
        if not isinstance(error, msgspec.ValidationError | RecursionError):  # it names no place: find the argument
            for parameter in self.parameters:
                try:
                    convert(arguments.get(parameter.wire, UNSET), parameter.hint)
                except ValueConversionError as found:
                    if type(found.__cause__) is type(error):
                        return explain(found, format_path_part(parameter.wire))
        return explain(ValueConversionError.of(error, arguments, self.struct), member="argument")

    def _bind_rest(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        rest: dict[str, Any] = {}
        for name in self._rest_names(arguments):
            try:
                rest[name] = convert(arguments[name], self.rest)
            except (ValueConversionError, RecursionError) as error:
                raise ArgumentError(explain(error, format_path_part(name))) from error
        return rest

    def _rest_names(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the names for `**rest`. Raises `ArgumentError` for names that the function cannot take there."""
        names = [name for name in arguments if name not in self._names]
        for name in names:
            if self.rest is UNSET or name in self._reserved:
                raise ArgumentError(explain_unknown("argument", name, [*self._names]))
        return names

    def bind_texts(self, arguments: Mapping[str, str]) -> Any:
        """Check and convert arguments that are all strings, as in prompts and URIs. Raises `ArgumentError`."""
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            text = arguments.get(parameter.wire)
            if text is not None:
                values[parameter.member] = _convert_text(text, parameter.wire, parameter.hint)
            elif parameter.required:
                raise ArgumentError(f"{parameter.wire}: required, but missing")
        rest = {name: _convert_text(arguments[name], name, self.rest) for name in self._rest_names(arguments)}
        bound = self.struct(**values)
        return bound if self.rest is UNSET else (bound, rest)

    def _make_caller(self, parameters: list[inspect.Parameter]) -> Callable[[Any, Any], Any]:
        function, context = self.function, self.context
        positional = [p.name for p in parameters if p.kind in _POSITIONAL]
        if self.is_simple and context is None:
            return lambda bound, _: function(*astuple(bound))
        if self.is_simple and positional[0] == context:
            return lambda bound, ctx: function(ctx, *astuple(bound))
        names, takes_no_rest = [p.name for p in self.parameters], not self.takes_rest
        nothing: dict[str, Any] = {}

        def call(bound: Any, ctx: Any) -> Any:
            struct, rest = (bound, nothing) if takes_no_rest else bound
            values: dict[str, Any] = dict(zip(names, astuple(struct), strict=True))
            if context is not None:
                values[context] = ctx
            return function(*[values.pop(name) for name in positional], **values, **rest)

        return call


def _alias_in(item: object) -> str | None:
    """Return the alias that Pydantic's `Field` gives to a parameter."""
    names = (getattr(item, name, None) for name in ("validation_alias", "alias"))
    return next((name for name in names if isinstance(name, str)), None)


def _property_schema(parameter: Parameter, description: str) -> JsonSchema:
    made = schema_of(parameter.hint)
    if description:
        made["description"] = description
    if not parameter.required and (default := encode_default(parameter.default)) is not UNSET:
        made["default"] = default
    return made


def _convert_text(text: str, name: str, hint: object) -> Any:
    """Convert a string to a type: unchanged, parsed as a number, or parsed as JSON."""
    try:
        return msgspec.convert(text, hint, strict=False, dec_hook=dec_hook)
    except Exception as error:
        try:
            return from_json(text, hint)
        except Exception:
            raise ArgumentError(explain(ValueConversionError.of(error, text, hint), format_path_part(name))) from error


def choices_of(hint: Any) -> list[str]:
    """Return the strings that a `Literal` or an enum accepts, also within a union; empty for other types."""
    if get_origin(hint) is Annotated:
        return choices_of(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [text for option in get_args(hint) for text in choices_of(option)]
    if get_origin(hint) is Literal:
        options = get_args(hint)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        members: Any = hint
        options = tuple(member.value for member in members)
    else:
        options = schema_of(cast(object, hint)).get("enum", ())
    return [option for option in options if isinstance(option, str)]
