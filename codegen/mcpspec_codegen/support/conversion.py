"""Conversion of messages, and of all other values of the protocol, between any two revisions.

`make generate` writes the conversions between a modern revision and each older one. Between two legacy revisions a
value passes through the newest one. A value in which nothing is lost costs one call of its converter. Otherwise the
JSON of both values is compared, to name the places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec import UNSET

from mcpspec.features import FEATURES
from mcpspec.support.converters import (
    IMPLIED,
    RESULT_DEFAULTS,
    Converter,
    DroppedFields,
    leave,
    load_conversion,
    open_converter,
    positional,
)
from mcpspec.support.errors import ConversionError, DecodeError
from mcpspec.support.lazy import load_revision
from mcpspec.support.members import StructMember, is_open, is_struct, members_of
from mcpspec.support.objects import find_differences, spread_union
from mcpspec.support.structs import OpenObject, from_builtins, to_builtins

__all__ = ["Converted", "convert_value"]

T = TypeVar("T")


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
    if way.source is None:
        made = way.convert(value, lost)
        implied = way.read_implied
        if not (lost or way.is_checked or meta is not None or (implied is not None and implied(value) != way.implied)):
            return _converted(Converted, (made, lost))
    else:
        made = way.convert(_to_exact(value, way), lost)
    made, lost = _check(value, made, meta, way)
    if way.target_types is not None:
        made = way.target_types.from_builtins(to_builtins(made), getattr(way.target_types, way.target.__name__))
    return Converted(made, lost)


_converted: Callable[[type[Converted[Any]], tuple[Any, list[str]]], Converted[Any]] = cast("Any", tuple).__new__
"""Makes a result without the constructor of the class, which takes a twelfth of the conversion of a small result."""


@dataclass(frozen=True, slots=True)
class _Way:
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
    read_implied: Callable[[Any], Any] | None
    """Reads the members that the target lacks, and that clients assume to have certain values; None without such."""
    implied: Any
    """These values, which are no loss."""
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
    convert, is_checked = _find_conversion(source, found, place.package, target.__name__.rpartition(".")[2])
    fields = getattr(source, "__struct_fields__", ())
    theirs = getattr(found, "__struct_fields__", ())
    implied = {n: value for n, value in RESULT_DEFAULTS.items() if n in fields and n not in theirs}
    return _Way(
        convert,
        is_checked or place.face.endswith("models"),  # models keep undeclared members
        import_module(kind.__module__),
        None if is_exact else source,
        found,
        None if is_exact else import_module(f"{target.__name__}.{place.face}"),
        attrgetter(*implied) if implied else None,
        tuple(implied.values()) if len(implied) > 1 else next(iter(implied.values()), None),
        (place.version, to),
    )


def _to_exact(value: Any, way: _Way) -> Any:
    """Return a model, or an everyday struct, as an exact struct. Raises `ConversionError` if it is not valid as one."""
    try:
        return from_builtins(way.types.to_builtins(value), way.source)
    except DecodeError as error:
        reason = f"{error.reason}, as the exact type of {way.versions[0]} says"
        raise ConversionError(error.path, reason, *way.versions) from error


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
    return name in IMPLIED and bool(result[name] == IMPLIED[name])


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
    renamed: Mapping[str, str] = import_module(f"mcpspec.{_newest_modern()}.conversions").RENAMED
    names = [kind.__name__, renamed.get(kind.__name__)]
    names += [newer for newer, older in renamed.items() if older == kind.__name__]
    for name in names:
        found = getattr(types, name, None) if name is not None else None
        if isinstance(found, type) and issubclass(found, msgspec.Struct | OpenObject):
            return found
    source = kind.__module__.split(".")[1].removeprefix("v").replace("_", "-")
    raise ConversionError("", f"{kind.__name__} does not exist there", source, to)


def _find_conversion(source: Any, target: Any, package: str, to: str) -> tuple[Converter, bool]:
    """Return the converter from an exact type to another, and whether its results have to be checked.

    `package` and `to` are the packages of both revisions.
    """
    if is_open(source) and is_open(target):
        return open_converter(source, target), True
    if is_struct(target) and not _PARTS.isdisjoint(getattr(source, "__struct_fields__", ())):
        return _message_converter(source, target, package, to), True
    older, newer = sorted((package, to), key=lambda each: (_is_modern(each), each))
    if _is_modern(newer):
        conversion = _load(("Upgrade" if to == newer else "Downgrade"), newer, older)
        found = conversion.method_between(source, target)
        if found is None:
            return _by_json(source, target), True
        return positional(found), source.__name__ in conversion.partial
    if newer > _newest_modern():  # of a legacy revision that is newer, it knows nothing
        return _by_json(source, target), True
    return _by_newest(source, target, package, to), True


def _by_newest(source: Any, target: Any, package: str, to: str) -> Converter:
    """Return the converter between types of two legacy revisions, by way of the newest one."""
    newest = _newest_modern()
    up, down = _load("Upgrade", newest, package), _load("Downgrade", newest, to)
    method = up.method(source.__name__)
    if method is None:
        return _by_json(source, target)
    upgrade = positional(method)
    copy_meta = _meta_converter(source, target)

    def convert(value: Any, lost: DroppedFields) -> Any:
        made = upgrade(value, lost)
        found = down.method_between(made.__class__, target) or leave
        result = found(made, lost=lost)
        if copy_meta is not None and isinstance(result, target):  # modern types lack it, or reserve names in it
            result.meta = UNSET if value.meta is UNSET else copy_meta(value.meta, lost)
        return result

    return convert


def _meta_converter(source: Any, target: Any) -> Converter | None:
    """Return the converter of the `_meta` of two types, or None if one of them has none."""
    if not is_struct(target):
        return None
    mine, theirs = members_of(source).get("meta"), members_of(target).get("meta")
    return None if mine is None or theirs is None else open_converter(mine.hint, theirs.hint)


@cache
def _load(direction: str, modern: str, older: str) -> Any:
    """Return the conversion between the exact types of two revisions."""
    kind = load_conversion(direction, modern, older)
    if direction == "Upgrade":
        return kind(import_module(f"mcpspec.{modern}.exact.structs"), is_exact=True)
    types = import_module(f"mcpspec.{older}.exact.structs")
    return kind(types, is_exact=True, copies=load_conversion("Upgrade", modern, modern)(types, is_exact=True))


def _newest_modern() -> str:
    return max(package for package in map(_package, FEATURES) if _is_modern(package))


def _is_modern(package: str) -> bool:
    """Return whether a revision has conversions to all older and all legacy ones. The draft is newer than all."""
    known = {_package(version): features for version, features in FEATURES.items()}
    return package not in known or known[package].is_modern


def _package(version: str) -> str:
    return "v" + version.replace("-", "_")


def _by_json(source: Any, target: Any) -> Converter:
    """Return a converter through plain JSON, for types without a conversion of their own."""
    if not is_struct(target):
        return lambda value, lost: to_builtins(value)  # noqa: ARG005  # it is checked
    mine, theirs = members_of(source), members_of(target)
    implied = {m.wire: IMPLIED[m.wire] for m in theirs.values() if not m.optional and m.wire in IMPLIED}
    parts = {
        name: (member.wire, open_converter(member.hint, theirs[name].hint))
        for name, member in mine.items()
        if is_open(member.hint) and name in theirs
    }

    def convert(value: Any, lost: DroppedFields) -> Any:
        plain = {**implied, **to_builtins(value)}
        for name, (wire, convert_part) in parts.items():
            if wire in plain:
                plain[wire] = convert_part(getattr(value, name), lost)
        return plain

    return convert


_PARTS: Final = frozenset({"params", "result"})


def _message_converter(source: Any, target: Any, package: str, to: str) -> Converter:
    """Return the converter of messages, whose parameters or result are converted as values of their own.

    It returns the members by their names in JSON, from which `_check` makes the message.
    """
    mine, theirs = members_of(source), members_of(target)
    hints = {member.wire: member.hint for member in theirs.values()}
    read = [(name, mine[name].wire) for name in theirs if name in mine]
    config = target.__struct_config__
    tag = {} if config.tag is None else {config.tag_field: config.tag}
    results = _open_type(mine.get("result")), _open_type(theirs.get("result"))
    convert_open_result = open_converter(*results) if None not in results else leave
    parts = [wire for wire in hints if wire in _PARTS]
    ways: dict[type, Converter] = {}

    def convert(value: Any, lost: DroppedFields) -> Any:
        members = dict(tag)
        for name, wire in read:
            if (part := getattr(value, name)) is not UNSET:
                members[wire] = part
        for wire in parts:
            part = members.get(wire, UNSET)
            kind = part.__class__
            if kind in ways:
                members[wire] = ways[kind](part, lost)
            elif is_struct(kind) or is_open(kind):
                ways[kind] = _part_converter(kind, hints[wire], package, to)
                members[wire] = ways[kind](part, lost)
            elif wire == "result":
                members[wire] = convert_open_result(part, lost)
        return members

    return convert


def _open_type(member: StructMember | None) -> Any:
    """Return the open object that a member may be, or None."""
    options = [] if member is None else spread_union(member.hint)
    return next((option for option in options if is_open(option)), None)


def _part_converter(kind: type, hint: Any, package: str, to: str) -> Converter:
    known = [option for option in spread_union(hint) if is_struct(option) or is_open(option)]
    same = [option for option in known if option.__name__ == kind.__name__]
    same = same or [option for option in known if is_open(option) or is_struct(kind)]
    return _find_conversion(kind, same[0], package, to)[0] if len(same) == 1 else leave
