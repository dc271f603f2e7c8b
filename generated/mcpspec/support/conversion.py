"""Conversion of messages, and of all other values of the protocol, between any two revisions.

The converters are compiled from the types of both revisions, and from the rules in `mcpspec.support.rules`, once for
each pair of types. A value in which nothing is lost costs one call of its converter. Otherwise the JSON of both values
is compared, to name the places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from mcpspec.support.converters import (
    Converter,
    ConverterCompiler,
    DroppedFields,
    Rule,
    declared_members,
    is_open,
    is_plain,
    is_struct,
    is_union,
    members_of,
)
from mcpspec.support.differences import find_differences
from mcpspec.support.errors import ConversionError, DecodeError
from mcpspec.support.lazy import load_revision
from mcpspec.support.rules import (
    RENAMED,
    RENAMED_TYPES,
    RESULT_DEFAULTS,
    downgrade_elicitation,
    downgrade_rules,
    downgrade_sampling,
    has_content_lists,
)
from mcpspec.support.structs import OpenObject, from_builtins, to_builtins

__all__ = ["Converted", "convert_value"]

T = TypeVar("T")


_IMPLIED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Converted(NamedTuple, Generic[T]):
    """A value of another revision."""

    value: T
    """The value, of the type with the same name in the other revision, in the same library."""
    lost: list[str]
    """Paths of the members that the other revision cannot express, or that changed, such as `tools[0].icons`."""


def convert_value(value: Any, to: str, meta: Mapping[str, Any] | None, versions: Sequence[str]) -> Converted[Any]:
    """Convert a value to a revision, as `mcpspec.convert` describes."""
    kind = value.__class__
    try:
        way = _ways[kind, to]
    except KeyError:
        way = _ways[kind, to] = _find_way(kind, to, versions)
    if way is None:
        return Converted(value, [])
    lost: DroppedFields = []
    made = way.convert(value if way.source is None else _to_exact(value, way), lost)
    if lost or way.is_checked or meta is not None:
        made, lost = _check(value, made, meta, way)
    if way.target_types is not None:
        made = way.target_types.from_builtins(to_builtins(made), getattr(way.target_types, way.target.__name__))
    return Converted(made, lost)


class _Way(NamedTuple):
    """A compiled way to turn the values of a type into values of another revision."""

    convert: Converter
    is_checked: bool
    """True if a result may be invalid or incomplete even if the converter drops nothing."""
    types: Any
    """The module of the values."""
    source: Any
    """The exact type of the values, or None if they are exact structs."""
    target: Any
    """The exact type of the results."""
    target_types: Any
    """The module of the results, or None if they are exact structs."""
    versions: tuple[str, str]
    """The revisions of values and results."""


_ways: dict[tuple[type, str], _Way | None] = {}
"""The ways found so far, by the types of the values and the revision of the results. None for the same revision."""


def _find_way(kind: type, to: str, versions: Sequence[str]) -> _Way | None:
    """Find the way from a type to a revision; None if the type is of that revision."""
    place = _Place.of(kind)
    target = load_revision(to, versions)
    if place.version == to:
        return None
    is_exact = place.face == "exact.structs"
    source = kind if is_exact else getattr(import_module(f"mcpspec.{place.package}.exact.structs"), kind.__name__)
    found = _target_type(source, target.exact.structs, to)
    conversion = _conversion(source, found)
    return _Way(
        conversion.convert,
        conversion.is_partial or place.face.endswith("models"),  # models keep undeclared members
        import_module(kind.__module__),
        None if is_exact else source,
        found,
        None if is_exact else import_module(f"{target.__name__}.{place.face}"),
        (place.version, to),
    )


def _to_exact(value: Any, way: _Way) -> Any:
    """Return a model, or an everyday struct, as an exact struct."""
    return from_builtins(way.types.to_builtins(value), way.source)


def _check(value: Any, made: Any, meta: Mapping[str, Any] | None, way: _Way) -> tuple[Any, list[str]]:
    """Return a result that is valid, with members in its `_meta`, and the paths of what it has lost."""
    before = way.types.to_builtins(value)
    try:
        made = from_builtins(_with_meta(to_builtins(made), meta), way.target)
    except DecodeError as error:
        raise ConversionError(error.path, error.reason, *way.versions) from error
    return made, [path for path in _differences(before, to_builtins(made)) if not _is_implied(before, path)]


def _differences(before: Any, after: Any) -> list[str]:
    return [path.removeprefix(".") for path in find_differences(before, after, "")]


def _is_implied(plain: Any, path: str) -> bool:
    """Return whether a member of a result, or of a response with a result, says what every client assumes."""
    result, name = (plain["result"], path.removeprefix("result.")) if path.startswith("result.") else (plain, path)
    return name in _IMPLIED and bool(result[name] == _IMPLIED[name])


def _with_meta(plain: Any, meta: Mapping[str, Any] | None) -> Any:
    """Add members to the `_meta` of a message or of parameters, as plain JSON."""
    if meta is None:
        return plain
    if "method" in plain:
        return {**plain, "params": _with_meta(plain.get("params", {}), meta)}
    return {**plain, "_meta": {**plain.get("_meta", {}), **meta}}


class _Place(NamedTuple):
    """The revision of a type, and its module in the package of the revision, such as `exact.models`."""

    package: str
    face: str

    @classmethod
    def of(cls, kind: type) -> _Place:
        """Return the place of a type. Raises `TypeError` for a type of no revision."""
        root, package, *face = f"{kind.__module__}..".split(".")
        if (root, package) == ("mcpspec", "compat"):
            text = f"{kind.__name__} of mcpspec.compat is of no revision; decode it as a type of the revision first"
            raise TypeError(text)
        if root != "mcpspec" or package in ("ext", "support") or not face[0]:
            raise TypeError(f"expected a value of a type of mcpspec, got {kind.__name__}")
        return cls(package, ".".join(filter(None, face)))

    @property
    def version(self) -> str:
        return self.package.removeprefix("v").replace("_", "-")


def _target_type(kind: type, types: Any, to: str) -> Any:
    """Return the type that values of a type become. Raises `ConversionError` if the revision has none."""
    names = [kind.__name__, RENAMED_TYPES.get(kind.__name__)]
    names += [newer for newer, older in RENAMED_TYPES.items() if older == kind.__name__]
    for name in names:
        found = getattr(types, name, None) if name is not None else None
        if isinstance(found, type) and issubclass(found, msgspec.Struct | OpenObject):
            return found
    source = kind.__module__.split(".")[1].removeprefix("v").replace("_", "-")
    raise ConversionError("", f"{kind.__name__} does not exist there", source, to)


class _Conversion(NamedTuple):
    convert: Converter
    is_partial: bool
    """True if the result may be invalid, or incomplete, so that it has to be checked."""


@cache
def _conversion(source: Any, target: Any) -> _Conversion:
    compiler = _AnyPairCompiler(import_module(source.__module__), import_module(target.__module__))
    convert = compiler.between(source, target)
    return _Conversion(convert or _keep, compiler.is_partial or convert is None)


def _keep(value: Any, _dropped: DroppedFields) -> Any:
    return value


class _AnyPairCompiler(ConverterCompiler):
    """Compiles the converters from one revision's exact types to those of any other.

    What may make a result invalid is noted in `is_partial`, and found when the result is checked.
    """

    def __init__(self, source: Any, target: Any) -> None:
        older_names = {f"{key.partition('.')[0]}.{older}": key.partition(".")[2] for key, older in RENAMED.items()}
        rules = downgrade_rules(target, UNSET) | dict(_input_rules(target))
        rules = {key: rule for key, rule in rules.items() if _has_member(source, key)}
        rules |= dict(_result_rules(source, target)) | dict(_schema_rules(rules, target))
        super().__init__(rules, renamed={**RENAMED, **older_names}, reuse=False)
        self.is_partial: bool = False

    def handle_missing_member(self, name: str, target: Any) -> str | None:  # noqa: ARG002
        self.is_partial = True
        return "UNSET"

    def _compile(self, source: Any, target: Any) -> Converter | None:
        is_scalar = not any(each is Any or is_union(each) or not is_plain(each) for each in (source, target))
        if is_scalar and source != target:
            return partial(_convert_scalar, target)
        if is_struct(source) != is_struct(target) and not is_union(source) and not is_union(target):
            self.is_partial = True  # a struct drops what it does not declare
        return super()._compile(source, target)

    def _mapping(self, source: Any, target: Any) -> Converter | None:
        # Open objects are checked when they are converted, and name what they cannot express.
        if is_open(source):
            theirs = declared_members(target) if is_open(target) else {}
            lost = [wire for wire in declared_members(source) if wire not in theirs and not _is_schema(source)]
            implied = {wire: _IMPLIED[wire] for wire, (_, required) in theirs.items() if required and wire in _IMPLIED}
            return _open_converter(lost, implied, source, target)
        self.is_partial = self.is_partial or not is_open(target)
        return super()._mapping(source, target)

    def _struct(self, source: Any, target: Any, given: str | None = None) -> Converter:
        mine, theirs = members_of(source), members_of(target)
        if any(mine[name].optional and not member.optional for name, member in theirs.items() if name in mine):
            self.is_partial = True
        convert = super()._struct(source, target, given)
        implied = {
            n: value
            for n, value in RESULT_DEFAULTS.items()
            if n in mine and n not in theirs and source.__constants__.get(n) != value  # equal constants are not dropped
        }
        return partial(_without_implied, convert, source.__name__, implied) if implied else convert


def _without_implied(
    convert: Converter, name: str, implied: Mapping[str, Any], value: Any, dropped: DroppedFields
) -> Any:
    """Convert a result, of which the members that say what every client assumes are not lost."""
    own: DroppedFields = []
    made = convert(value, own)
    dropped += [
        each for each in own if not any(each == f"{name}.{n}" and getattr(value, n) == v for n, v in implied.items())
    ]
    return made


def _convert_scalar(target: Any, value: Any, dropped: DroppedFields) -> Any:
    """Return a value of a type that may not have it. Then the result is checked, and the place reported."""
    try:
        msgspec.convert(value, target)
    except msgspec.ValidationError:
        dropped.append(str(target))
    return value


def _open_converter(lost: Sequence[str], implied: Mapping[str, Any], source: Any, target: Any) -> Converter:
    """Return a converter that copies an open object, without the members that only its own revision declares."""
    make: Callable[[Any], Any] = target.__decoder__() if is_open(target) else dict[str, Any]
    is_json = _is_schema(source) and not lost  # other objects may hold values of their revision

    def convert(value: Any, dropped: DroppedFields) -> Any:
        plain: dict[str, Any] = value if is_json else {**implied, **to_builtins(value)}
        for wire in lost:
            if wire in plain:
                del plain[wire]
                dropped.append(wire)
        try:
            return make(plain)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            dropped.append(str(error))
            return plain

    return convert


def _result_rules(source: Any, target: Any) -> Iterator[tuple[str, Rule]]:
    """Yield the rules for the members that only newer results require."""
    for name in target.__all__:
        kind: Any = getattr(target, name)
        older: Any = getattr(source, name, object)
        if is_struct(kind) and is_struct(older):
            for member in RESULT_DEFAULTS.keys() & ({*kind.__struct_fields__} - {*older.__struct_fields__}):
                yield f"{name}.{member}", partial(_return, RESULT_DEFAULTS[member])


def _is_schema(kind: type) -> bool:
    """Return whether a type is of JSON Schemas, which keep all members, even those that a revision does not declare."""
    return kind.__name__ in ("ToolInputSchema", "ToolOutputSchema")


def _schema_rules(rules: Mapping[str, Rule], target: Any) -> Iterator[tuple[str, Rule]]:
    """Yield the rules for the schemas of tools, whose values become values of the target's types."""
    for name, member in members_of(target.Tool).items():
        rule = rules.get(f"Tool.{name}")
        if rule is not None and is_open(member.hint):
            yield f"Tool.{name}", partial(_apply_rule, rule, _open_converter((), {}, member.hint, member.hint))


def _apply_rule(rule: Rule, convert: Converter, tool: Any, dropped: DroppedFields) -> Any:
    schema = rule(tool, dropped)
    return schema if schema is UNSET else convert(schema, dropped)


def _has_member(types: Any, key: str) -> bool:
    """Return whether structs have a member, such as `Tool.input_schema`, or a type if only that is named."""
    name, _, member = key.partition(".")
    kind: Any = getattr(types, name, None)
    return kind is not None and is_struct(kind) and member in ("", *kind.__struct_fields__)


def _return(value: Any, _source: Any, _dropped: DroppedFields) -> Any:
    return value


def _input_rules(target: Any) -> Iterator[tuple[str, Rule]]:
    """Yield the rules for requests for input, which older revisions allow less in."""
    if not hasattr(target, "ElicitRequestFormParams") and hasattr(target, "ElicitRequestParams"):
        yield "ElicitRequestFormParams", partial(_convert_form, target)
        yield (
            "ElicitRequestFormParams.requested_schema",
            lambda form, dropped: _convert_form(target, form, dropped).requested_schema,
        )
    if not has_content_lists(target):
        yield "CreateMessageRequestParams.messages", partial(_split_messages, target)
        yield "CreateMessageResult.content", partial(_take_first_content, target)


def _convert_form(older: Any, form: Any, dropped: DroppedFields) -> Any:
    plain = to_builtins(form)
    fields = downgrade_elicitation(plain, older, dropped)
    fields = {key: value for key, value in fields.items() if key != "mode"}
    return _rebuild(plain, fields, older.ElicitRequestParams, dropped)


def _split_messages(older: Any, params: Any, dropped: DroppedFields) -> Any:
    plain = {"messages": to_builtins(params.messages)}
    messages = downgrade_sampling(plain, older, dropped)["messages"]
    return _rebuild(plain["messages"], messages, list[older.SamplingMessage], dropped)


def _take_first_content(older: Any, result: Any, dropped: DroppedFields) -> Any:
    plain = to_builtins(result.content)
    messages = downgrade_sampling({"messages": [{"content": plain}]}, older, dropped)["messages"]
    hint = members_of(older.CreateMessageResult)["content"].hint
    if messages:
        return _rebuild(plain, messages[0]["content"], hint, dropped)
    dropped.append("CreateMessageResult.content")
    return UNSET


def _rebuild(before: Any, plain: Any, hint: Any, dropped: DroppedFields) -> Any:
    """Make a value of an older revision from the JSON that a rule has rewritten, and report what the JSON lost."""
    made = from_builtins(plain, hint)
    dropped += find_differences(before, to_builtins(made), "")
    return made
