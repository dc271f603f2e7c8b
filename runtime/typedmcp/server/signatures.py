"""Functions as JSON: what arguments a function takes, as a schema, checked, and passed to it."""

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

from mcpspec._support.words import path_part
from typedmcp.context import Context
from typedmcp.errors import UsageError
from typedmcp.jsonfaults import Unfit
from typedmcp.jsonnotes import read
from typedmcp.jsonrecords import defaulted, parameters_of
from typedmcp.jsontypes import (
    Unsupported,
    adapted,
    convert,
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
_UNFIT = (Unsupported, TypeError, ValueError, NameError, RuntimeError, re.error)
"""What is raised for types that have no JSON form, or none that can be described."""


class BadArgument(ValueError):  # noqa: N818
    """Arguments that a function does not take; the text says which, and why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function, as its callers on the wire see it."""

    name: str
    """What it is called in Python,"""
    wire: str
    """and on the wire,"""
    member: str
    """and in the Struct of all of them."""
    hint: Any
    """Its type, as `jsontypes.adapted` gives it."""
    required: bool
    default: Any
    field: Callable[..., Any]
    """What `msgspec.field` is called with, its name aside."""
    description: str
    """What a note on it says."""


class Signature:
    """What a function takes, compiled.

    `what` says what it is used for, in errors: `tool 'add'`. Raises `UsageError`, with the names of the function and
    the parameter, for one that cannot be called with JSON.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self.function = function
        self._what = what
        hints = hints_of(function, what)
        self._result = hints.pop("return", UNSET)
        parameters = _parameters_of(function, what)
        self._refuse_unbound(parameters, hints)
        self.context: str | None = self._context_of(parameters, hints)
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
        self._taken = {p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY} - self._known
        self._needs_hook = any(needs_hook(parameter.hint) for parameter in self.parameters)
        self.is_simple: bool = self.rest is UNSET and all(p.kind in _POSITIONAL for p in parameters)
        """Whether it is called with the members of `struct` in their order, and with the context if it takes that."""
        self.call: Callable[[Any, Any], Any] = self._caller(parameters)

    @cached_property
    def described(self) -> Described:
        """What its docstring says. Read when it is asked for, since servers with many tools are to start soon."""
        return described(None if _is_partial(self.function) else inspect.getdoc(self.function))

    def description_of(self, parameter: Parameter) -> str:
        """What is said of a parameter, by a note or by the docstring."""
        return parameter.description or self.described.parameters.get(parameter.name, "")

    @property
    def returns(self) -> Any:
        """What it says that it returns. Raises `UsageError` where that names what there is not."""
        return self._result if self._result is not UNSET else _result_of(self.function, self._what)

    def _refuse_unbound(self, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        """A method of a class, which nobody could call without an object."""
        first = parameters[0].name if parameters else ""
        outer = getattr(_unwrapped(self.function), "__qualname__", "").rpartition(".")[0]
        if first in ("self", "cls") and first not in hints and outer and not outer.endswith("<locals>"):
            raise self._error(first, "a method is added with its object: server.add_tool(object.method), and the like")

    def _context_of(self, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> str | None:
        found = [parameter.name for parameter in parameters if takes_context(parameter, hints)]
        typed = [name for name in found if name in hints]
        if len(typed) > 1:
            raise self._error(typed[1], f"{typed[0]!r} is for the context already")
        return next(iter(typed or found), None)

    def _parameter(self, given: inspect.Parameter, hint: Any) -> Parameter:
        default, wire, field = given.default, given.name, msgspec.field
        if type(default).__name__ == "FieldInfo":  # Pydantic's `Field(…)` in the place of a default
            hint, default = Annotated[hint, default], inspect.Parameter.empty
        notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        for note in notes:
            wire = _alias(note) or wire
            if default is inspect.Parameter.empty and type(note).__name__ == "FieldInfo":
                default, field = self._default_in(note, given.name)
        if default is not inspect.Parameter.empty and field is msgspec.field:
            field = defaulted(default)
        if any(wire == parameter.wire for parameter in self.parameters):
            raise self._error(given.name, f"another is called {wire!r} as well")
        said = read(notes).about.get("description")
        return Parameter(
            name=given.name,
            wire=wire,
            member=f"f{len(self.parameters)}{given.name}" if given.name.startswith("__") else given.name,
            hint=self._adapted(given.name, hint),
            required=default is inspect.Parameter.empty,
            default=default,
            field=field,
            description=said or "",
        )

    def _default_in(self, field: Any, name: str) -> tuple[Any, Callable[..., Any]]:
        """The default in Pydantic's `Field(…)`, and as a field has it."""
        if field.default_factory is None:
            return inspect.Parameter.empty if field.is_required() else field.default, msgspec.field
        try:
            return field.default_factory(), partial(msgspec.field, default_factory=field.default_factory)
        except TypeError as error:
            raise self._error(name, f"its default: {error}") from error

    def _adapted(self, name: str, hint: Any) -> Any:
        try:
            made = adapted(hint)
            schema_of(made)
        except _UNFIT as error:
            raise self._error(name, str(error).partition("\n")[0]) from error
        return made

    def _error(self, name: str, text: str) -> UsageError:
        return UsageError(f"{self._what}: {name_of(self.function)}(), parameter {name!r}: {text}")

    def _struct(self) -> type[msgspec.Struct]:
        fields = [(p.member, p.hint, p.field(name=p.wire)) for p in self.parameters]
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

    def takes(self, argument: str) -> bool:
        """Whether it takes an argument of that name."""
        return self.takes_rest or argument in self._known

    def schema(self) -> dict[str, Any]:
        """The schema of its arguments: an object's."""
        rest = schema_of(self.rest) or True if self.takes_rest else False
        made = object_schema(
            {
                parameter.wire: _described_schema(parameter, self.description_of(parameter))
                for parameter in self.parameters
            },
            rest,
        )
        if required := [parameter.wire for parameter in self.parameters if parameter.required]:
            made["required"] = required
        return made

    # Calling

    def bind(self, arguments: Mapping[str, Any]) -> Any:
        """Arguments, checked and converted, for `call`. Raises `BadArgument`."""
        try:
            bound = msgspec.convert(arguments, self.struct, dec_hook=dec_hook)
            return bound if self.rest is UNSET else (bound, self._bind_rest(arguments))
        except BadArgument:
            raise
        except Exception as error:
            raise BadArgument(self._fault(error, arguments)) from error

    def _fault(self, error: Exception, arguments: Mapping[str, Any]) -> str:
        if not isinstance(error, msgspec.ValidationError | RecursionError):  # which names no place
            for parameter in self.parameters:
                try:
                    convert(arguments.get(parameter.wire, UNSET), parameter.hint)
                except Unfit as found:
                    if type(found.__cause__) is type(error):
                        return fault(found, path_part(parameter.wire))
        return fault(Unfit.of(error, arguments, self.struct))

    def _bind_rest(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        rest: dict[str, Any] = {}
        for name in self._rest_of(arguments):
            try:
                rest[name] = convert(arguments[name], self.rest)
            except (Unfit, RecursionError) as error:
                raise BadArgument(fault(error, path_part(name))) from error
        return rest

    def _rest_of(self, arguments: Mapping[str, Any]) -> list[str]:
        """The names that no parameter has. Raises `BadArgument` where the function could not tell which it is."""
        names = [name for name in arguments if name not in self._known]
        for name in names:
            if self.rest is UNSET or name in self._taken:
                raise BadArgument(fault(Unfit("there is no such argument"), path_part(name)))
        return names

    def bind_texts(self, arguments: Mapping[str, str]) -> Any:
        """The same for arguments that are all strings: those of prompts, and of URIs."""
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            text = arguments.get(parameter.wire)
            if text is not None:
                values[parameter.member] = _from_text(text, parameter.wire, parameter.hint)
            elif parameter.required:
                raise BadArgument(f"{parameter.wire}: required, but missing")
        rest = {name: _from_text(arguments[name], name, self.rest) for name in self._rest_of(arguments)}
        bound = self.struct(**values)
        return bound if self.rest is UNSET else (bound, rest)

    def _caller(self, parameters: list[inspect.Parameter]) -> Callable[[Any, Any], Any]:
        """What calls the function with what `bind` gave, and the context."""
        function, context = self.function, self.context
        first = [p.name for p in parameters if p.kind in _POSITIONAL]
        if self.is_simple and context is None:
            return lambda bound, _: function(*astuple(bound))
        if self.is_simple and first[0] == context:
            return lambda bound, ctx: function(ctx, *astuple(bound))
        names, takes_no_rest = [p.name for p in self.parameters], not self.takes_rest
        nothing: dict[str, Any] = {}

        def call(bound: Any, ctx: Any) -> Any:
            struct, rest = (bound, nothing) if takes_no_rest else bound
            values: dict[str, Any] = dict(zip(names, astuple(struct), strict=True))
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
    """The types of a function's parameters, and as `return` what it returns, where there are all names for that.

    Raises `UsageError` for a name that there is not among those of the parameters.
    """
    inner = _unwrapped(function)
    if isinstance(inner, type):
        inner = MethodType(cast(Any, inner).__init__, inner)  # whose variables it may name
    elif "return" in getattr(inner, "__annotations__", {}):
        with suppress(UsageError):
            return _hints_of(inner, what, name_of(function))
    return _hints_of(inner, what, name_of(function), of_result=False)


def _result_of(function: Callable[..., Any], what: str) -> Any:
    inner = _unwrapped(function)
    if isinstance(inner, type):
        return inner
    return _hints_of(inner, what, name_of(function), of_result=True).get("return", inspect.Parameter.empty)


def _unwrapped(function: Any) -> Any:
    """What has a function's annotations: the function itself, but for partials, and for what wraps others."""
    while _is_partial(function):
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, type) or hasattr(function, "__annotations__"):
        return function
    return getattr(function.__class__, "__call__", function)  # noqa: B004  # an object that can be called


def _hints_of(function: Any, what: str, name: str, *, of_result: bool | None = None) -> dict[str, Any]:
    """The types of its parameters, that of its result, or both: who needs the one need not know the other."""
    said: dict[str, Any] = getattr(function, "__annotations__", {})
    if of_result is not None:
        said = {key: hint for key, hint in said.items() if (key == "return") is of_result}
    if not said:
        return {}
    holder = SimpleNamespace(__annotations__=said, __globals__=getattr(function, "__globals__", {}))
    owner = getattr(function, "__self__", None)
    names: dict[str, Any] = {**parameters_of(type(owner)), **parameters_of(owner), **parameters_of(function)}
    wrong: Exception = NameError()
    for more in _locals(holder.__globals__):
        try:
            return get_type_hints(holder, localns=names or None, include_extras=True)
        except NameError as error:
            wrong, names = error, {**more, **names}
        except (TypeError, SyntaxError) as error:
            wrong = error
            break
    raise UsageError(f"{what}: {name}(), {_culprit(holder, names)}: {wrong}") from wrong


def _culprit(holder: Any, names: dict[str, Any]) -> str:
    """Which annotation of a function cannot be read."""
    for parameter, hint in holder.__annotations__.items():
        alone = SimpleNamespace(__annotations__={parameter: hint}, __globals__=holder.__globals__)
        try:
            get_type_hints(alone, localns=names)
        except (NameError, TypeError, SyntaxError):
            return "what it returns" if parameter == "return" else f"parameter {parameter!r}"
    return "its annotations"


def _locals(names: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """The names in those functions around the call that see these global ones, for annotations that are strings."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_globals is names:
            yield frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]
    yield {}


def takes_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Whether a parameter is for the context: by its type, or without one by its name."""
    if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
        return False
    if parameter.name not in hints:
        return parameter.name in _CONTEXT_NAMES
    hint = hints[parameter.name]
    if hint.__class__ is type:
        return False  # of classes only Structs have another one of their own, and so has the context
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(isinstance(option, type) and issubclass(option, Context) for option in options)


def name_of(function: Any) -> str:
    """What a function is called."""
    while _is_partial(function):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def _is_partial(function: Any) -> bool:
    return isinstance(function, partial)


def _alias(note: Any) -> str | None:
    """What a note says that a parameter is called on the wire."""
    names = (getattr(note, name, None) for name in ("validation_alias", "alias"))
    return next((name for name in names if isinstance(name, str)), None)


def _described_schema(parameter: Parameter, description: str) -> dict[str, Any]:
    made = schema_of(parameter.hint)
    if description:
        made["description"] = description
    if not parameter.required and (default := default_of(parameter.default)) is not UNSET:
        made["default"] = default
    return made


def _from_text(text: str, name: str, hint: Any) -> Any:
    """An argument that came as text, as it is, as the number that it says, or as JSON."""
    try:
        return msgspec.convert(text, hint, strict=False, dec_hook=dec_hook)
    except Exception as error:
        try:
            return from_json(text, hint)
        except Exception:
            raise BadArgument(fault(Unfit.of(error, text, hint), path_part(name))) from error


def options_of(hint: Any) -> list[str]:
    """The texts that a type takes, where it takes only certain ones: those of `Literal`, and of enums."""
    if get_origin(hint) is Annotated:
        return options_of(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [text for option in get_args(hint) for text in options_of(option)]
    if get_origin(hint) is Literal:
        options = get_args(hint)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        options = tuple(member.value for member in hint)
    else:
        options = schema_of(hint).get("enum", ())
    return [option for option in options if isinstance(option, str)]
