"""Why a value does not fit a type: the first fault, its path, and what was expected.

Used only after decoding has failed, so that the fast path carries no bookkeeping, and by both
backends, so that they report the same fault in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast, get_args, get_origin

from mcpspec._support.errors import DecodeError
from mcpspec._support.objects import Shape, fit, is_array, is_object, leaves
from mcpspec._support.words import KINDS, expected, path_part, printable, shown

__all__ = ["Types", "decode_error", "explain"]

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Types:
    """What a library knows of its types."""

    shape: Callable[[Any], Shape | None]
    """The members of an object type; None for other types."""
    fits: Callable[[Any, Any], bool]
    """Whether a parsed JSON value is of a type, which is found out far faster than why not."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where."""

    path: Path
    reason: str
    of_bound: bool = False
    """The type is right, and only a bound is not kept."""


def decode_error(buf: bytes | bytearray | memoryview | str, hint: Any, types: Types, cause: Exception) -> DecodeError:
    """The error for bytes that could not be decoded, given the library's own complaint."""
    import msgspec

    try:
        value = msgspec.json.decode(buf)
    except RecursionError:
        return DecodeError("", "nested too deeply")
    except UnicodeError as error:
        return DecodeError("", _encoding_fault(buf, error), is_json=False)
    except msgspec.DecodeError as error:
        return DecodeError("", f"not JSON: {error}", is_json=False)
    return explain(value, hint, types, cause)


def explain(value: Any, hint: Any, types: Types, cause: Exception) -> DecodeError:
    """The error for a parsed value that does not fit its type."""
    try:
        fault = _fault(value, hint, (), types)
    except RecursionError:
        return DecodeError("", "nested too deeply")
    if fault is None:
        text = str(cause)
        return DecodeError("", "nested too deeply" if "recursion limit" in text else printable(text.partition("\n")[0]))
    return DecodeError(_path_text(fault.path), fault.reason)


def _encoding_fault(buf: bytes | bytearray | memoryview | str, error: UnicodeError) -> str:
    if isinstance(buf, str):
        return f"not Unicode text: {getattr(error, 'reason', error)} at character {getattr(error, 'start', '?')}"
    try:
        bytes(buf).decode()
    except UnicodeDecodeError as found:
        return f"not UTF-8: {found.reason} at byte {found.start}"
    return f"not UTF-8: {error}"


class _Form(NamedTuple):
    """What kind of type a hint is, which takes longer to find out than to look for a fault."""

    hint: Any
    """The hint itself, which so stays the only one of its identity."""
    kind: Literal["any", "class", "bounded", "union", "literal", "plain"]
    parts: list[Any]
    """Type and bounds of a bounded one, the options of a union, the values of a literal."""


_forms: dict[int, _Form] = {}
"""Those that have been met, by the identity of their hints."""
_MOST = 4096


def _form(hint: Any) -> _Form:
    found = _forms.get(id(hint))
    if found is None:
        if len(_forms) >= _MOST:
            _forms.clear()
        found = _forms[id(hint)] = _formed(hint)
    return found


def _formed(hint: Any) -> _Form:
    if hint is Any:
        return _Form(hint, "any", [])
    if isinstance(hint, type) and not hasattr(hint, "__union__"):
        return _Form(hint, "class", [])
    if get_origin(hint) is Annotated:
        return _Form(hint, "bounded", [*get_args(hint)])
    options = leaves(hint)
    if len(options) > 1 or options[0] is not hint:
        known = [option for option in options if isinstance(option, type) or get_origin(option) is not None]
        return _Form(hint, "union", known)
    return _Form(hint, "literal", [*get_args(hint)]) if get_origin(hint) is Literal else _Form(hint, "plain", [])


def _fault(value: Any, hint: Any, path: Path, types: Types) -> Fault | None:
    _, kind, parts = _form(hint)
    if kind == "any":
        return None
    if kind == "class" and (shape := types.shape(hint)) is not None:
        return _object_fault(value, shape, path, types)
    if kind == "bounded":
        base, *bounds = parts
        return _fault(value, base, path, types) or _bounds_fault(value, bounds, path)
    if kind == "union":
        return _union_fault(value, parts, path, types)
    if kind == "literal":
        fits = any(value == option and type(value) is type(option) for option in parts)
        return None if fits else Fault(path, _expected([shown(option) for option in parts], value))
    return _plain_fault(value, hint, path, types)


def _plain_fault(value: Any, hint: Any, path: Path, types: Types) -> Fault | None:
    kind = hint if isinstance(hint, type) else get_origin(hint)
    if type(value) is not kind and not (kind is dict and is_object(value)):
        return Fault(path, _expected([KINDS.get(kind, str(kind))], value))
    if not (arguments := get_args(hint)):
        return None
    items: list[tuple[str | int, Any]] = (
        [*value.items()] if is_object(value) else [*enumerate(cast("list[Any]", value))]
    )
    hint = arguments[-1]
    return _first(_fault(item, hint, (*path, key), types) for key, item in items if not _is_fine(item, hint, types))


def _is_fine(value: Any, hint: Any, types: Types) -> bool:
    """Whether one of many values need not be looked into."""
    return (is_object(value) or is_array(value)) and types.fits(value, hint)


def _object_fault(value: Any, shape: Shape, path: Path, types: Types) -> Fault | None:
    if not is_object(value):
        return Fault(path, _expected(["object"], value))
    for member in shape.ordered:
        here = (*path, member.wire)
        if member.wire not in value:
            if member.required:
                return Fault(here, "required, but missing")
        elif (fault := _fault(value[member.wire], member.hint, here, types)) is not None:
            return fault
    if shape.closed and (unknown := sorted(value.keys() - {member.wire for member in shape.members})):
        return Fault((*path, unknown[0]), "not allowed here")
    return None


def _union_fault(value: Any, options: list[Any], path: Path, types: Types) -> Fault | None:
    options = _told_apart(value, options, types)
    if len(options) == 1:
        return _fault(value, options[0], path, types)
    faults = [_fault(value, option, path, types) for option in options]
    if any(fault is None for fault in faults):
        return None
    if is_object(value) and (objects := [(o, s) for o in options if (s := types.shape(o)) is not None]):
        return _best_object_fault(value, [shape for _, shape in objects], path, types)
    # A fault below this place, or of a bound, is nearer the cause than that no option has the right type.
    nearer = _first(fault for fault in faults if fault is not None and (len(fault.path) > len(path) or fault.of_bound))
    names = [name for option in options for name in _option_names(option, types)]
    return nearer or Fault(path, _expected(names, value))


def _told_apart(value: Any, options: list[Any], types: Types) -> list[Any]:
    """The one object type that a fixed member says a value is of, if all types have such a member; else all.

    Looking for the fault of one type is cheap, and of all types of a protocol it is not.
    """
    if not is_object(value) or not all(types.shape(option) is not None for option in options):
        return options
    objects = [cast(Shape, types.shape(option)) for option in options]
    for key in _fixed_in_all(objects):
        meant = [o for o, shape in zip(options, objects, strict=True) if value.get(key) in shape.literals[key]]
        if len(meant) < 2:  # the type, or a fault that is nearer the beginning than others
            return meant or options
    return options


def _fixed_in_all(objects: list[Shape]) -> list[str]:
    """The members that take only certain values in all of some types."""
    return sorted(key for key in objects[0].literals if all(key in shape.literals for shape in objects))


def _best_object_fault(value: dict[str, Any], objects: list[Shape], path: Path, types: Types) -> Fault | None:
    """The fault of the object type that was most likely meant."""
    for key in _fixed_in_all(objects):
        allowed = [option for shape in objects for option in shape.literals[key]]
        if key in value and value[key] not in allowed:
            return Fault((*path, key), _expected([shown(option) for option in allowed], value[key]))
        if len(set(allowed)) == len(allowed):  # it tells the types apart
            if key not in value:
                return Fault((*path, key), "required, but missing")
            objects = [shape for shape in objects if value[key] in shape.literals[key]]
    best = min(_likeness(value, shape) for shape in objects)
    meant = [shape for shape in objects if _likeness(value, shape) == best]
    faults = [_object_fault(value, shape, path, types) for shape in meant]
    return max((fault for fault in faults if fault is not None), key=lambda fault: len(fault.path), default=None)


def _likeness(value: dict[str, Any], shape: Shape) -> tuple[int, int, int]:
    """How likely it is that an object was meant to be of a type, most likely first."""
    present, missing, _ = fit(value, shape)
    return present, sum(key in value and value[key] not in options for key, options in shape.literals.items()), missing


def _option_names(option: Any, types: Types) -> list[str]:
    if get_origin(option) is Annotated:
        return _option_names(get_args(option)[0], types)
    if get_origin(option) is Literal:
        return [shown(allowed) for allowed in get_args(option)]
    kind = dict if types.shape(option) is not None else (get_origin(option) or option)
    return [KINDS.get(kind, str(kind))]


def _bounds_fault(value: Any, bounds: list[Any], path: Path) -> Fault | None:
    for bound in (inner for outer in bounds for inner in getattr(outer, "metadata", [outer])):
        for name, (fails, text) in _BOUNDS.items():
            limit = getattr(bound, name, None)
            if limit is not None and fails(value, limit):
                unit = (" characters" if isinstance(value, str) else " items") if name.endswith("length") else ""
                got = f"{len(value)}" if unit else shown(value)
                return Fault(path, f"expected {text} {limit:g}{unit}, got {got}", of_bound=True)
    return None


_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (lambda value, limit: value < limit, "at least"),
    "le": (lambda value, limit: value > limit, "at most"),
    "gt": (lambda value, limit: value <= limit, "more than"),
    "lt": (lambda value, limit: value >= limit, "less than"),
    "min_length": (lambda value, limit: len(value) < limit, "at least"),
    "max_length": (lambda value, limit: len(value) > limit, "at most"),
}


def _first(faults: Iterable[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault is not None), None)


def _expected(names: list[str], value: Any) -> str:
    unique = [name for name in dict.fromkeys(names) if name != "integer" or "number" not in names]
    return expected(unique, value)


def _path_text(path: Path) -> str:
    return "".join(map(path_part, path)).removeprefix(".")
