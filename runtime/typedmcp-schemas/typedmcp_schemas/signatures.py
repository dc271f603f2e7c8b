"""Signatures of functions: the schema of the arguments, and how arguments from JSON are checked and passed."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from types import MethodType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from typedmcp_schemas.adapt import has_custom_types, schema_of, to_msgspec
from typedmcp_schemas.annotations import annotations_of, evaluate, signature_of
from typedmcp_schemas.arguments import MAX_FAULTS, ArgumentError, join_faults, join_repairs
from typedmcp_schemas.constraints import read_metadata
from typedmcp_schemas.definitions import JsonSchema, object_schema
from typedmcp_schemas.error_text import format_path_part
from typedmcp_schemas.examination import NOT_EXAMINED, Examined, ValueFault, examine, explain_unknown
from typedmcp_schemas.explanations import explain
from typedmcp_schemas.integers import to_integers
from typedmcp_schemas.portable import portable_schema_of
from typedmcp_schemas.records import field_with_default, fill_defaults, has_dataclass, parameters_of
from typedmcp_schemas.values import (
    UnsupportedTypeError,
    convert,
    dec_hook,
    encode_default,
    from_json,
)

if TYPE_CHECKING:
    from typedmcp_schemas.docstrings import ParsedDocstring

__all__ = [
    "Parameter", "Signature", "SignatureError", "UnboundMethodError", "hints_of", "is_context_parameter", "name_of",
]  # fmt: skip

_CONTEXT_NAMES = ("ctx", "context")


class SignatureError(TypeError):
    """A function that cannot be called with JSON: the text names the function and the parameter."""


class UnboundMethodError(SignatureError):
    """A method without its object."""


def name_of(function: Any) -> str:
    """Return the name of a function, or of the class of a callable object."""
    while _is_partial(function):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def _is_partial(function: object) -> bool:
    """Return whether a function is a `functools.partial`."""
    return isinstance(function, partial)


def _unwrap(function: Any) -> Any:
    """Return the function that has the annotations: the one inside partials and wrappers, or an object's `__call__`."""
    while _is_partial(function):
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, type) or inspect.isroutine(function):
        return function
    return getattr(function.__class__, "__call__", function)  # noqa: B004  # a callable object


def _innermost_partial(function: Any) -> Any:
    """Return the partial that a function is, or that it wraps; None if there is none."""
    while not _is_partial(function):
        if hasattr(function, "__signature__") or not hasattr(function, "__wrapped__"):
            return None
        function = function.__wrapped__
    return function


def _parameters_in(function: Callable[..., Any], label: str) -> tuple[list[inspect.Parameter], set[str]]:
    """Return the parameters of a function, and the names of those that partials have bound, which are none any more.

    Raises `SignatureError` if it has no signature.
    """
    try:
        return _read_parameters(function)
    except (TypeError, ValueError) as error:
        raise SignatureError(f"{label}{name_of(function)} has no readable signature: {error}") from error


def _read_parameters(function: Any) -> tuple[list[inspect.Parameter], set[str]]:
    # `inspect` follows `__wrapped__`, which `update_wrapper` sets to the function with all of its parameters.
    made = _innermost_partial(function)
    if made is None:
        return [*signature_of(function).parameters.values()], set()
    inner, names = _read_parameters(made.func)
    inspect.Signature(inner).bind_partial(*made.args, **made.keywords)
    positional = [parameter.name for parameter in inner if parameter.kind in _POSITIONAL]
    filled = {name for name, given in zip(positional, made.args, strict=False) if given is not _PLACEHOLDER}
    left: list[inspect.Parameter] = []
    by_keyword = False
    for parameter in inner:
        if parameter.name in made.keywords:
            by_keyword = True
        elif parameter.name not in filled:
            is_free = not by_keyword or parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD
            left.append(parameter if is_free else parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    return left, names | filled | made.keywords.keys()


def is_context_parameter(parameter: inspect.Parameter, hints: Mapping[str, Any], context: type) -> bool:
    """Return whether a parameter takes the context, of the class `context`: by its type, or without one by its name."""
    if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
        return False
    if parameter.name not in hints:
        return parameter.name in _CONTEXT_NAMES
    hint = hints[parameter.name]
    if hint.__class__ is type and type(context) is not type:
        return False  # its subclasses have its metaclass
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    classes = (get_origin(option) or option for option in options)  # the context may be a `Context[Database]`
    return any(isinstance(kind, type) and issubclass(kind, context) for kind in classes)


def hints_of(function: Callable[..., Any], what: str = "") -> dict[str, Any]:
    """Return the types of a function's parameters, and its return type as `return` if all names in that are known.

    Raises `SignatureError`, whose text begins with `what`, for an unknown name in the type of a parameter.
    """
    inner = _unwrap(function)
    if isinstance(inner, type):
        inner = MethodType(cast(Any, inner).__init__, inner)  # whose type variables the annotations may name
    else:
        with suppress(SignatureError):
            return _resolve_hints(inner, what, name_of(function))
    return _resolve_hints(inner, what, name_of(function), is_return=False)


def _return_hint_of(function: Callable[..., Any], what: str) -> Any:
    """Return the return type, or `inspect.Parameter.empty`. Raises `SignatureError` for an unknown name in it."""
    inner = _unwrap(function)
    if isinstance(inner, type):
        return inner
    return _resolve_hints(inner, what, name_of(function), is_return=True).get("return", inspect.Parameter.empty)


def _resolve_hints(function: Any, what: str, name: str, *, is_return: bool | None = None) -> dict[str, Any]:
    """Resolve the types of the return value, of the parameters, or of both."""
    try:
        annotations = annotations_of(function)
    except TypeError as error:
        raise SignatureError(f"{_label(what)}{name}(): {error}") from error
    if is_return is not None:
        annotations = {key: hint for key, hint in annotations.items() if (key == "return") is is_return}
    if not annotations:
        return {}
    known: dict[str, Any] = getattr(function, "__globals__", {})
    owner: Any = getattr(function, "__self__", None)
    names: dict[str, Any] = {
        **parameters_of(cast(object, type(owner))),
        **parameters_of(owner),
        **parameters_of(function),
    }
    cause: Exception = NameError()
    for more in _enclosing_locals(known):
        try:
            return evaluate(annotations, known, names or None)
        except NameError as error:
            cause, names = error, {**more, **names}
        except TypeError as error:
            cause = error
            break
    raise SignatureError(f"{_label(what)}{name}(), {_find_unreadable(annotations, known, names)}: {cause}") from cause


def _label(what: str) -> str:
    """Return the beginning of a text about `what`."""
    return f"{what}: " if what else ""


def _find_unreadable(annotations: Mapping[str, Any], known: Mapping[str, Any], names: Mapping[str, Any]) -> str:
    """Return the annotation that cannot be resolved, for an error message."""
    for parameter, hint in annotations.items():
        try:
            evaluate({parameter: hint}, known, names)
        except (NameError, TypeError):
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
_PLACEHOLDER: Any = getattr(functools, "Placeholder", None)
"""Stands for an argument that a partial leaves open, since Python 3.14."""
_TYPE_ERRORS = (UnsupportedTypeError, TypeError, ValueError, NameError, RuntimeError, re.error)
"""The exceptions for types that have no JSON form, or that cannot be described."""
_MAX_MISFITS = 1000
"""Arguments of a call that may fail to be converted. The others are left to the examination, whose work is bounded."""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function that callers pass as JSON."""

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
    """The compiled signature of a function: the JSON Schema of its arguments, and how JSON is bound to them.

    Errors begin with `what`, if it is given. `context` is the class of an object that the function may take beside the
    arguments, in a parameter that is annotated with it, or is called `ctx` or `context` and has no annotation. Raises
    `SignatureError` for a function that cannot be called with JSON.
    """

    def __init__(self, function: Callable[..., Any], what: str = "", context: type | None = None) -> None:
        self.function = function
        self._what = what
        hints = hints_of(function, what)
        self._return_hint = hints.pop("return", UNSET)
        parameters, bound = _parameters_in(function, _label(what))
        self._reject_unbound_method(parameters, hints)
        self.context: str | None = None if context is None else self._find_context(parameters, hints, context)
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
        self._by_name = {parameter.wire: parameter for parameter in self.parameters}
        by_keyword = {p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
        self._reserved = by_keyword.difference(self._by_name) | bound
        """Names of parameters that `**rest` cannot have."""
        self._has_custom_types = any(has_custom_types(parameter.hint) for parameter in self.parameters)
        self._has_dataclasses = any(has_dataclass(p.hint) for p in self.parameters) or has_dataclass(self.rest)
        self.is_simple: bool = self.rest is UNSET and all(p.kind in _POSITIONAL for p in parameters)
        """True if the function takes the members of `struct` by position, and the context if it takes that."""
        self.call: Callable[[Any, Any], Any] = self._make_caller(parameters)
        """Calls the function with what `bind` returned, and the context."""

    @cached_property
    def docstring(self) -> ParsedDocstring:
        """The docstring. Parsed on first use, so that servers with many tools start fast."""
        from typedmcp_schemas.docstrings import parse_docstring

        if _is_partial(self.function):  # whose class has a docstring
            return parse_docstring(vars(self.function).get("__doc__"))
        own = getattr(self.function, "__doc__", None)  # otherwise the docstring may be inherited
        return parse_docstring(own if isinstance(own, str) else inspect.getdoc(self.function))

    def description_of(self, parameter: Parameter) -> str:
        """Return the description of a parameter, from its annotation or the docstring."""
        return parameter.description or self.docstring.parameters.get(parameter.name, "")

    @property
    def return_hint(self) -> Any:
        """Return the return type. Raises `SignatureError` for an unknown name in it."""
        return self._return_hint if self._return_hint is not UNSET else _return_hint_of(self.function, self._what)

    def _reject_unbound_method(self, parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        first = parameters[0].name if parameters else ""
        outer = getattr(_unwrap(self.function), "__qualname__", "").rpartition(".")[0]
        if first in ("self", "cls") and first not in hints and outer and not outer.endswith("<locals>"):
            raise UnboundMethodError(str(self._error(first, "a method needs its object: pass object.method")))

    def _find_context(self, parameters: list[inspect.Parameter], hints: Mapping[str, Any], context: type) -> str | None:
        names = [parameter.name for parameter in parameters if is_context_parameter(parameter, hints, context)]
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

    def _error(self, name: str, text: str) -> SignatureError:
        return SignatureError(f"{_label(self._what)}{name_of(self.function)}(), parameter {name!r}: {text}")

    def _make_struct(self) -> type[msgspec.Struct]:
        fields = [(p.member, p.hint, p.field(name=p.wire)) for p in self.parameters]
        try:
            return msgspec.defstruct(
                f"{name_of(self.function)} arguments", fields, kw_only=True, forbid_unknown_fields=self.rest is UNSET
            )
        except (TypeError, ValueError) as error:
            raise SignatureError(f"{_label(self._what)}{name_of(self.function)}(): {error}") from error

    @property
    def is_plain(self) -> bool:
        """Return whether binding needs only `msgspec.convert` to `struct`, without hooks."""
        return not (self._has_custom_types or self._has_dataclasses or self.takes_rest)

    def choices(self) -> dict[str, list[str]]:
        """Return the strings that each parameter with a `Literal` or an enum accepts, by the parameter's name."""
        options = {parameter.wire: _choices_of(parameter.hint) for parameter in self.parameters}
        return {name: texts for name, texts in options.items() if texts}

    @property
    def takes_rest(self) -> bool:
        """Return whether the function takes arguments beyond its named parameters (`**rest`)."""
        return self.rest is not UNSET

    def accepts(self, argument: str) -> bool:
        """Return whether the function takes an argument with this name."""
        return self.takes_rest or argument in self._by_name

    def schema(self, *, references: bool = False) -> JsonSchema:
        """Return the schema of the arguments, which are an object. `references` keeps all definitions."""
        properties = {p.wire: _property_schema(p, self.description_of(p), references) for p in self.parameters}
        rest = portable_schema_of(self.rest, references=references) or True if self.takes_rest else False
        made = object_schema(properties, rest)
        if required := [parameter.wire for parameter in self.parameters if parameter.required]:
            made["required"] = required
        return made

    @cached_property
    def _exact_schema(self) -> JsonSchema:
        """The schema by which arguments that do not fit are examined, with all keywords."""
        properties = {parameter.wire: schema_of(parameter.hint) for parameter in self.parameters}
        made = object_schema(properties, schema_of(self.rest) or True if self.takes_rest else False)
        return {**made, "required": [parameter.wire for parameter in self.parameters if parameter.required]}

    # Binding

    def bind(self, arguments: Mapping[str, Any], on_repair: Callable[[str], None] | None = None) -> Any:
        """Check and convert arguments, for `call`. Raises `ArgumentError`.

        `on_repair` gets a description of what was repaired; without it, nothing is repaired. Integers may be written as
        1.0, which JSON Schema allows.
        """
        try:
            return self.bind_exact(arguments)
        except Exception as error:
            fault = error
        with suppress(Exception):
            return self.bind_exact(to_integers(arguments))
        fitting, found = self._examine(arguments, convert, is_strict=on_repair is None)
        if found.repairs and not found.faults:
            try:
                bound = self.bind_exact({**{name: arguments[name] for name in fitting}, **found.value})
            except Exception as error:
                fault = error
            else:
                if on_repair is not None:
                    on_repair(join_repairs(found.repairs))
                return bound
        raise ArgumentError(join_faults(self._faults_of(found)) or explain(fault)) from fault

    def bind_exact(self, arguments: Mapping[str, Any]) -> Any:
        """Convert arguments that fit, for `call`. Raises various exceptions, which `bind` explains."""
        struct = msgspec.convert(arguments, self.struct, dec_hook=dec_hook)
        bound = struct if self.rest is UNSET else (struct, self._bind_rest(arguments))
        if self._has_dataclasses:
            fill_defaults(bound)
        return bound

    def _examine(
        self, arguments: Mapping[str, Any], read: Callable[[Any, Any], Any], *, is_strict: bool
    ) -> tuple[dict[str, Any], Examined]:
        """Convert each argument with `read`. Return those that fit their types, and the others examined.

        Classes may accept more than their schemas say, for example with validators that run before the conversion.
        """
        fitting: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in arguments.items():
            others[name] = value
            if len(others) > _MAX_MISFITS:
                continue
            with suppress(Exception):
                fitting[name] = read(value, self._hint_of(name))
                del others[name]
        required = [name for name in self._exact_schema["required"] if name not in fitting]
        schema = {**self._exact_schema, "required": required}
        return fitting, examine(others, schema, member="argument", is_strict=is_strict)

    def _faults_of(self, found: Examined) -> list[ValueFault]:
        """Return the faults that the schema finds in arguments, and those that it does not say."""
        faults = [*found.faults]
        if len(faults) > MAX_FAULTS or (NOT_EXAMINED in faults and len(faults) > 1):
            return faults  # more are not shown, or would need too much work
        from typedmcp_schemas.faults import find_other_faults  # few calls have faults

        parts = [
            (format_path_part(name), value, self._hint_of(name))
            for name, value in found.value.items()
            if name in self._by_name or self.takes_rest
        ]
        return faults + find_other_faults(parts, faults, MAX_FAULTS)

    def _bind_rest(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: convert(arguments[name], self.rest) for name in self._names_of_rest(arguments)}

    def _names_of_rest(self, arguments: Mapping[str, Any]) -> list[str]:
        names = [name for name in arguments if name not in self._by_name]
        if reserved := self._reserved.intersection(names):
            raise ArgumentError(explain_unknown("argument", min(reserved), [*self._by_name]))
        return names

    def _hint_of(self, name: str) -> Any:
        """Return the type of an argument. Raises `KeyError` for one that the function does not take."""
        return self._by_name[name].hint if name in self._by_name or self.rest is UNSET else self.rest

    def bind_texts(self, arguments: Mapping[str, str]) -> Any:
        """Check and convert arguments that are all strings, as in prompts and URIs. Raises `ArgumentError`.

        An empty string means no argument where there is a default and the type takes no empty string, as for a field of
        a form that was not filled in.
        """
        given = {name: text for name, text in arguments.items() if text or not self._is_left_out(name)}
        read, found = self._examine(given, _read_text, is_strict=False)
        if faults := self._faults_of(found):
            raise ArgumentError(join_faults(faults) or NOT_EXAMINED)
        read.update((name, convert(value, self._hint_of(name))) for name, value in found.value.items())
        bound = self.struct(**{p.member: read[p.wire] for p in self.parameters if p.wire in read})
        return bound if self.rest is UNSET else (bound, {name: read[name] for name in self._names_of_rest(read)})

    def _is_left_out(self, name: str) -> bool:
        """Return whether an empty string means that there is no argument."""
        parameter = self._by_name.get(name)
        if parameter is None or parameter.required:
            return False
        with suppress(Exception):
            _read_text("", parameter.hint)
            return False
        return True

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


def _property_schema(parameter: Parameter, description: str, references: bool) -> JsonSchema:
    made = portable_schema_of(parameter.hint, references=references)
    if description:
        made["description"] = description
    if not parameter.required and (default := encode_default(parameter.default)) is not UNSET:
        made["default"] = default
        with suppress(Exception):  # a default of another type, or without equality
            if parameter.default != convert(default, parameter.hint):  # such as a secret, which becomes a mask
                del made["default"]
    return made


def _read_text(text: str, hint: object) -> Any:
    """Convert a string to a type: unchanged, parsed as a number, or parsed as JSON. Raises various exceptions."""
    with suppress(Exception):
        return msgspec.convert(text, hint, strict=False, dec_hook=dec_hook)
    return from_json(text, hint)


def _choices_of(hint: object) -> list[str]:
    """Return the strings that a `Literal` or an enum accepts, also within a union; empty for other types."""
    schema = schema_of(hint)
    options: list[JsonSchema] = schema.get("anyOf", [schema])
    return [choice for option in options for choice in option.get("enum", ()) if isinstance(choice, str)]
