"""Find the first fault of a value that does not fit its type: path, cause and expectation.

Runs only after decoding has failed, so that the fast path needs no bookkeeping. Both backends use
it, so they report the same fault with the same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast, get_args, get_origin

from mcpspec.support.error_text import KINDS, describe_mismatch, escape_unprintable, format_path_part, format_value
from mcpspec.support.errors import DecodeError
from mcpspec.support.objects import Shape, is_array, is_object, rank_fit, spread_union

__all__ = ["TypeAccess", "decode_error", "explain"]

Path: TypeAlias = tuple[str | int, ...]


class TypeAccess(NamedTuple):
    """Access to the types of one library."""

    shape: Callable[[Any], Shape | None]
    """Return the members of an object type; None for other types."""
    fits: Callable[[Any, Any], bool]
    """Return whether a parsed JSON value fits a type. This is far faster than the search for the fault."""


class Fault(NamedTuple):
    """The path and the cause of a fault."""

    path: Path
    reason: str
    is_bound: bool = False
    """True if the type is right and the value is out of bounds."""


def decode_error(
    buf: bytes | bytearray | memoryview | str, hint: Any, types: TypeAccess, cause: Exception
) -> DecodeError:
    """Return the error for bytes that could not be decoded, given the library's own error."""
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


def explain(value: Any, hint: Any, types: TypeAccess, cause: Exception) -> DecodeError:
    """Return the error for a parsed value that does not fit its type."""
    try:
        fault = _fault(value, hint, (), types)
    except RecursionError:
        return DecodeError("", "nested too deeply")
    if fault is None:
        text = str(cause)
        return DecodeError(
            "", "nested too deeply" if "recursion limit" in text else escape_unprintable(text.partition("\n")[0])
        )
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
    """The kind of a type hint. It is cached, since finding it takes longer than finding a fault."""

    hint: Any
    """The hint itself, held so that no other hint gets its identity."""
    kind: Literal["any", "class", "bounded", "union", "literal", "plain"]
    parts: list[Any]
    """Type and bounds of a bounded type, options of a union, values of a literal."""


_forms: dict[int, _Form] = {}
"""Cache of forms, by the identity of the hints."""
_MAX_FORMS = 4096


def _form(hint: Any) -> _Form:
    found = _forms.get(id(hint))
    if found is None:
        if len(_forms) >= _MAX_FORMS:
            _forms.clear()
        found = _forms[id(hint)] = _read_form(hint)
    return found


def _read_form(hint: Any) -> _Form:
    if hint is Any:
        return _Form(hint, "any", [])
    if isinstance(hint, type) and not hasattr(hint, "__union__"):
        return _Form(hint, "class", [])
    if get_origin(hint) is Annotated:
        return _Form(hint, "bounded", [*get_args(hint)])
    options = spread_union(hint)
    if len(options) > 1 or options[0] is not hint:
        known = [option for option in options if isinstance(option, type) or get_origin(option) is not None]
        return _Form(hint, "union", known)
    return _Form(hint, "literal", [*get_args(hint)]) if get_origin(hint) is Literal else _Form(hint, "plain", [])


def _fault(value: Any, hint: Any, path: Path, types: TypeAccess) -> Fault | None:
    return _type_fault(value, hint, path, types) or _check_fault(value, hint, path, types)


def _check_fault(value: Any, owner: Any, path: Path, types: TypeAccess) -> Fault | None:
    """Return the fault by the check of a type, or of a marker of one, whose value fits the type."""
    if (check := getattr(owner, "__check__", None)) is None:
        return None
    from mcpspec.support.checks import find_check_fault  # here, since few types have one

    fault = find_check_fault(value, check, owner.__module__, types.fits)
    return None if fault is None else Fault((*path, *fault.path), fault.reason, is_bound=True)


def _type_fault(value: Any, hint: Any, path: Path, types: TypeAccess) -> Fault | None:
    _, kind, parts = _form(hint)
    if kind == "any":
        return None
    if kind == "class" and (shape := types.shape(hint)) is not None:
        return _object_fault(value, shape, path, types)
    if kind == "bounded":
        base, *bounds = parts
        return _fault(value, base, path, types) or _bounds_fault(value, bounds, path, types)
    if kind == "union":
        return _union_fault(value, parts, path, types)
    if kind == "literal":
        fits = any(value == option and type(value) is type(option) for option in parts)
        return None if fits else Fault(path, _expected([format_value(option) for option in parts], value))
    return _plain_fault(value, hint, path, types)


def _plain_fault(value: Any, hint: Any, path: Path, types: TypeAccess) -> Fault | None:
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


def _is_fine(value: Any, hint: Any, types: TypeAccess) -> bool:
    """Return whether an item certainly has no fault, by the library's fast check."""
    return (is_object(value) or is_array(value)) and types.fits(value, hint)


def _object_fault(value: Any, shape: Shape, path: Path, types: TypeAccess) -> Fault | None:
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


def _union_fault(value: Any, options: list[Any], path: Path, types: TypeAccess) -> Fault | None:
    options = _select_by_constant(value, options, types)
    if len(options) == 1:
        return _fault(value, options[0], path, types)
    options = _without_notifications(value, options, types)
    faults = [_fault(value, option, path, types) for option in options]
    if any(fault is None for fault in faults):
        return None
    if is_object(value) and (objects := [(o, s) for o in options if (s := types.shape(o)) is not None]):
        return _best_object_fault(value, [shape for _, shape in objects], path, types)
    # A fault below this place, or of a bound, is closer to the cause than the fault that no option has the right type.
    nearer = _first(fault for fault in faults if fault is not None and (len(fault.path) > len(path) or fault.is_bound))
    names = [name for option in options for name in _option_names(option, types)]
    return nearer or Fault(path, _expected(names, value))


def _select_by_constant(value: Any, options: list[Any], types: TypeAccess) -> list[Any]:
    """Select the object type that a value claims by a constant member, if all types have such a member.

    Searching the fault of one type is cheap; searching the faults of all types of a protocol is not.
    """
    if not is_object(value) or not all(types.shape(option) is not None for option in options):
        return options
    objects = [cast(Shape, types.shape(option)) for option in options]
    for key in _common_constants(objects):
        meant = [o for o, shape in zip(options, objects, strict=True) if value.get(key) in shape.literals[key]]
        if len(meant) < 2:  # the claimed type; or none, and then this member is the first fault
            return meant or options
    return options


def _without_notifications(value: Any, options: list[Any], types: TypeAccess) -> list[Any]:
    """Return the types of a union without those that a value with an `id` cannot be."""
    if not is_object(value) or "id" not in value:
        return options
    return [o for o in options if (shape := types.shape(o)) is None or not shape.is_notification] or options


def _common_constants(objects: list[Shape]) -> list[str]:
    """List the members that have constant values in all types."""
    return sorted(key for key in objects[0].literals if all(key in shape.literals for shape in objects))


def _best_object_fault(value: dict[str, Any], objects: list[Shape], path: Path, types: TypeAccess) -> Fault | None:
    """Return the fault of the object type that the value was most likely meant to be."""
    for key in _common_constants(objects):
        allowed = [option for shape in objects for option in shape.literals[key]]
        if key in value and value[key] not in allowed:
            return Fault((*path, key), _expected([format_value(option) for option in allowed], value[key]))
        if len(set(allowed)) == len(allowed):  # the member distinguishes the types
            if key not in value:
                return Fault((*path, key), "required, but missing")
            objects = [shape for shape in objects if value[key] in shape.literals[key]]
    best = min(_likeness(value, shape) for shape in objects)
    meant = [shape for shape in objects if _likeness(value, shape) == best]
    faults = [_object_fault(value, shape, path, types) for shape in meant]
    return max((fault for fault in faults if fault is not None), key=lambda fault: len(fault.path), default=None)


def _likeness(value: dict[str, Any], shape: Shape) -> tuple[int, int, int]:
    """Return a sort key: the type that an object was most likely meant to be has the smallest."""
    present, missing, _ = rank_fit(value, shape)
    return (
        present,
        sum(key in value and value[key] not in options for key, options in shape.literals.items()),
        missing,
    )


def _option_names(option: Any, types: TypeAccess) -> list[str]:
    if get_origin(option) is Annotated:
        return _option_names(get_args(option)[0], types)
    if get_origin(option) is Literal:
        return [format_value(allowed) for allowed in get_args(option)]
    kind = dict if types.shape(option) is not None else (get_origin(option) or option)
    return [KINDS.get(kind, str(kind))]


def _bounds_fault(value: Any, bounds: list[Any], path: Path, types: TypeAccess) -> Fault | None:
    if (fault := _first(_check_fault(value, bound, path, types) for bound in bounds)) is not None:
        return fault
    if value is None:  # a type that admits null does not limit it
        return None
    for bound in (inner for outer in bounds for inner in getattr(outer, "metadata", [outer])):
        for name, (fails, text) in _BOUNDS.items():
            limit = getattr(bound, name, None)
            if limit is not None and fails(value, limit):
                unit = _UNITS.get(value.__class__, " members") if name.endswith("length") else ""
                got = f"{len(value)}" if unit else format_value(value)
                shown = getattr(limit, "pattern", limit)
                shown = shown if isinstance(shown, str) else f"{shown:g}"
                return Fault(path, f"expected {text} {shown}{unit}, got {got}", is_bound=True)
    return None


_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (lambda value, limit: value < limit, "at least"),
    "le": (lambda value, limit: value > limit, "at most"),
    "gt": (lambda value, limit: value <= limit, "more than"),
    "lt": (lambda value, limit: value >= limit, "less than"),
    "min_length": (lambda value, limit: len(value) < limit, "at least"),
    "max_length": (lambda value, limit: len(value) > limit, "at most"),
    "multiple_of": (lambda value, limit: value % limit != 0, "a multiple of"),
    "pattern": (lambda value, limit: re.search(limit, value) is None, "a text that matches"),
}
_UNITS: dict[type, str] = {str: " characters", list: " items"}


def _first(faults: Iterable[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault is not None), None)


def _expected(names: list[str], value: Any) -> str:
    unique = [name for name in dict.fromkeys(names) if name != "integer" or "number" not in names]
    return describe_mismatch(unique, value)


def _path_text(path: Path) -> str:
    return "".join(map(format_path_part, path)).removeprefix(".")
