"""Explanations of conversion errors, with the place: `days["next week"]: expected integer, got string`.

msgspec writes the place at the end of its messages. The rest of a message may contain text that a peer sent, so only
the end is parsed, and long texts are cut. What msgspec does not write, such as the keys of mappings, is found by
walking down the value and its type together after the conversion has failed.
"""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Annotated, Any, Final, Literal, NamedTuple, NewType, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from mcpspec.support.error_text import (
    KINDS,
    clip,
    describe_mismatch,
    escape_unprintable,
    format_path_part,
    format_value,
)
from mcpspec.support.objects import is_array, is_object, spread_union
from typedmcp.jsonschema import records
from typedmcp.jsonschema.records import is_record
from typedmcp.jsonschema.values import REJECTED, ValueConversionError, convert, dec_hook

__all__ = ["explain", "explain_key", "explain_unknown"]

_PLACE_PREFIX: Final = " - at `"
_KEY_PREFIX: Final = "key` in `"
_MISSING_PREFIX: Final = "Object missing required field `"
_UNKNOWN_PREFIX: Final = "Object contains unknown field `"
_UNHASHABLE: Final = r"unhashable type: '\w+'"
_SHOWN_CHARACTERS: Final = 500
"""Characters shown of a reason, and of a place."""
_SHOWN_NAME_CHARACTERS: Final = 60
_SHOWN_NAMES: Final = 20
_COMPARED_NAMES: Final = 100
"""Known names that an unknown one is compared with."""
_JSON_WORDS: Final = {"int": "integer", "str": "string", "float": "number", "bool": "boolean"}
"""The words of JSON Schema for those of msgspec, where they differ."""
_MAPPINGS: Final = (dict, abc.Mapping, abc.MutableMapping)


def explain(error: BaseException, place: str = "", *, member: str = "property") -> str:
    """Return the place and the reason of a conversion error: `forecast.days: expected integer, got string`.

    `place` is the name of the whole value, and `member` the word for its members.
    """
    where = place
    while True:
        value = hint = UNSET
        if isinstance(error, ValueConversionError):
            where += error.path
            if error.hint is UNSET or error.__cause__ is None:
                reason = _plain(error.reason())
                break
            value, hint, error = error.value, error.hint, error.__cause__
        parsed, path, value, hint = _locate(error, value, hint)
        where += path
        if not isinstance(error.__cause__, ValueConversionError):
            path, reason = _describe(parsed, value, hint, "property" if where else member)
            where += path
            break
        error = error.__cause__
    where = _shorten(where.removeprefix("."))
    reason = _shorten(reason)
    return f"{where}: {reason}" if where else reason


def explain_key(key: object, reason: str) -> str:
    """Return the message for a key that does not fit, with the mapping as its place."""
    return f"key {format_value(key)}: {_plain(reason)}"


def explain_unknown(member: str, name: str, known: Sequence[str]) -> str:
    """Return the message for an unknown name: `unknown argument 'y'; known: x`, and the known name that is like it."""
    from difflib import get_close_matches  # few calls have such errors

    names = [*known[:_SHOWN_NAMES]]
    if len(known) > _SHOWN_NAMES:
        names.append(f"{len(known) - _SHOWN_NAMES} others")
    quoted = escape_unprintable(clip(name, _SHOWN_NAME_CHARACTERS))
    similar = get_close_matches(name[:_SHOWN_NAME_CHARACTERS], known[:_COMPARED_NAMES], 1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return f"unknown {member} '{quoted}'; known: {', '.join(names) or 'none'}{hint}"


def _shorten(text: str) -> str:
    return escape_unprintable(clip(text, _SHOWN_CHARACTERS), kept="\n")


def _plain(reason: str) -> str:
    """Return a reason in the words of JSON Schema, without msgspec's quotes, beginning with a lower-case letter."""
    if reason.startswith("Expected `"):
        reason = re.sub(r"(?<![\w\[])(int|str|float|bool)(?![\w\],])", lambda found: _JSON_WORDS[found[0]], reason)
    return (reason[:1].lower() + reason[1:]).replace("`", "")


# Messages of msgspec


class _ParsedError(NamedTuple):
    """The parts of an error's message."""

    reason: str
    path: str = ""
    """The place as msgspec writes it, without the `$`."""
    is_about_key: bool = False
    """True if a key of the object at the place does not fit."""
    is_by_msgspec: bool = False
    """True if the reason is in msgspec's words."""

    @property
    def unknown_member(self) -> str | None:
        """Return the name of the member that the type does not have."""
        is_unknown = self.is_by_msgspec and self.reason.startswith(_UNKNOWN_PREFIX)
        return self.reason.removeprefix(_UNKNOWN_PREFIX).removesuffix("`") if is_unknown else None


def _parse_error(error: BaseException) -> _ParsedError:
    if isinstance(error, RecursionError):
        return _ParsedError("nested too deeply")
    if not isinstance(error, ValueError | TypeError):
        return _ParsedError(REJECTED)
    text, cause = str(error), error.__cause__
    if not isinstance(error, msgspec.ValidationError):
        unhashable = re.search(_UNHASHABLE, text)  # before that, Python 3.14 names a class of the server
        return _ParsedError(text if unhashable is None else unhashable[0])
    if cause is not None and text.startswith(str(cause)):
        return _parse_place(str(cause), text[len(str(cause)) :])._replace(is_by_msgspec=False)
    reason, _, _ = text.rpartition(_PLACE_PREFIX)
    if reason.startswith(_UNKNOWN_PREFIX) and not reason.endswith("`"):  # the name of the member looks like a place
        return _ParsedError(text, is_by_msgspec=True)
    return _parse_place(reason, text[len(reason) :])


def _parse_place(reason: str, end: str) -> _ParsedError:
    """Parse the end of a message, which is empty or a place: `` - at `$.a[0]` ``."""
    place = end.removeprefix(_PLACE_PREFIX)
    path = place.removeprefix(_KEY_PREFIX)
    if place == end or not (path.startswith("$") and path.endswith("`")):
        return _ParsedError(reason + end, is_by_msgspec=True)
    return _ParsedError(reason, path[1:-1], path != place, is_by_msgspec=True)


def _locate(error: BaseException, value: object, hint: object) -> tuple[_ParsedError, str, Any, Any]:
    """Return an error's parts, its place, and the value and the type there."""
    parsed = _parse_error(error)
    where, inner, kind = _walk(value, hint, parsed.path)
    unknown = parsed.unknown_member
    if hint is not UNSET and unknown is not None and not (is_object(inner) and unknown in inner):
        return _ParsedError(str(error), is_by_msgspec=True), "", value, hint  # the member's name contains a place
    return parsed, where, inner, kind


def _describe(parsed: _ParsedError, value: object, hint: object, member: str) -> tuple[str, str]:
    """Return the rest of the place, and the reason in the words of JSON Schema."""
    reason, unknown = parsed.reason, parsed.unknown_member
    if parsed.is_about_key:
        kind = next((get_args(kind)[0] for kind in _possible_types(hint) if get_origin(kind) in _MAPPINGS), UNSET)
        key = None if kind is UNSET or not is_object(value) else _find_unfit_key([*value], kind)
        return "", _plain(reason) if key is None else explain_key(key, _describe_choice(key, kind) or reason)
    if not parsed.is_by_msgspec:
        return "", _plain(reason)
    if reason.startswith(_MISSING_PREFIX):
        return format_path_part(reason.removeprefix(_MISSING_PREFIX).removesuffix("`")), "required, but missing"
    if unknown is not None:
        known = {name: None for kind in _possible_types(hint, value) for name, _ in _members(kind)}
        return "", explain_unknown(member, unknown, [*known])
    if reason.startswith("Invalid ") or (reason.startswith("Expected `") and ", got `" in reason):
        return "", _describe_choice(value, hint) or _plain(reason)
    return "", _plain(reason)


def _describe_choice(value: Any, hint: Any) -> str | None:
    """Return the reason for a `Literal` or an enum, which lists the expected values; None for other types."""
    names: list[str] = []
    is_choice = False
    for kind in _possible_types(hint):
        options = get_args(kind) if get_origin(kind) is Literal else ()
        if isinstance(kind, type) and issubclass(kind, Enum):
            options = tuple(kind)
        is_choice = is_choice or bool(options)
        names += [format_value(option) for option in options] or [_json_name(kind)]
    return describe_mismatch(names, value) if is_choice else None


def _json_name(kind: Any) -> str:
    kind = get_origin(kind) or kind
    if kind in KINDS:
        return KINDS[kind]
    return "object" if kind in _MAPPINGS or is_record(kind) else getattr(kind, "__name__", str(kind))


# Walking down a value and its type


class _PathStep(NamedTuple):
    where: str
    rest: str
    """The rest of msgspec's path."""
    value: Any
    hint: Any


def _walk(value: object, hint: object, path: str) -> tuple[str, Any, Any]:
    """Return the place that msgspec's path means, and the value and the type there; `UNSET` if unknown."""
    where = ""
    while path:
        try:
            steps = [step for kind in _possible_types(hint, value) if (step := _step(value, kind, path)) is not None]
        except (TypeError, NameError, LookupError):  # a type whose members cannot be read
            steps = []
        if not steps:
            return where + path.replace("[...]", "[]"), UNSET, UNSET
        part, path, value, hint = steps[0]
        where += part
        if not path:  # several members of a union may lead here
            hint = Union[tuple(step.hint for step in steps if step[:2] == steps[0][:2])]  # noqa: UP007
    return where, value, hint


def _possible_types(hint: object, value: object = UNSET) -> list[Any]:
    """Return the members of a union, or the one that the value's tag names."""
    kinds: list[Any] = []
    for leaf in () if hint is UNSET else spread_union(hint):
        kind = get_args(leaf)[0] if get_origin(leaf) is Annotated else leaf
        while isinstance(kind, NewType):
            kind = kind.__supertype__
        if not records.is_tag_guard(kind):
            kinds.append(kind)
    return [kind for kind in kinds if _has_tag_of(value, kind)] or kinds


def _has_tag_of(value: object, kind: object) -> bool:
    name, tag = records.tag_of(kind)
    if name is None:
        return False
    return value.get(name) == tag if is_object(value) else is_array(value) and value[:1] == [tag]


def _step(value: object, kind: object, path: str) -> _PathStep | None:
    """Go one step down a path, or return None if the type does not have it."""
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if path.startswith("[...]"):
        if origin not in _MAPPINGS or not arguments or not is_object(value):
            return None
        index = _find_unfit_item([*value.values()], arguments[1])
        key = None if index is None else [*value][index]
        return None if key is None else _PathStep(format_path_part(key), path[5:], value[key], arguments[1])
    if path.startswith("["):
        index = int(path[1:].partition("]")[0])
        item = value[index] if is_array(value) and index < len(value) else UNSET
        return _PathStep(f"[{index}]", path.partition("]")[2], item, _item_type(origin, kind, index))
    for name, hint in sorted(_members(kind), key=lambda member: -len(member[0])):
        rest = path.removeprefix(f".{name}")
        if rest != path and rest[:1] in ("", ".", "["):
            return _PathStep(format_path_part(name), rest, value.get(name, UNSET) if is_object(value) else UNSET, hint)
    return None


def _members(kind: object) -> Iterator[tuple[str, Any]]:
    """Yield the names and types of a record's members."""
    if is_record(get_origin(kind) or kind):
        yield from ((field.wire, field.hint) for field in records.fields_of(kind))
    name, tag = records.tag_of(kind)
    if name is not None:
        yield name, Literal[tag]  # pyright: ignore[reportInvalidTypeForm]


def _item_type(origin: object, kind: object, index: int) -> Any:
    """Return the type of an item of an array."""
    if is_record(origin):
        hints = [field.hint for field in records.fields_of(kind)]
        name, tag = records.tag_of(kind)
        return (hints if name is None else [Literal[tag], *hints])[index]  # pyright: ignore[reportInvalidTypeForm]
    arguments = get_args(kind)
    is_tuple = origin is tuple and arguments[-1:] != (...,)
    return arguments[index if is_tuple else 0] if arguments else Any


def _find_unfit_item(values: list[Any], hint: object) -> int | None:
    """Return the index of the first value that does not fit: msgspec names it if the values are an array."""
    try:
        msgspec.convert(values, list.__class_getitem__(hint), dec_hook=dec_hook, str_keys=True)
    except Exception as error:
        number = _parse_error(error).path[1:].partition("]")[0]
        return int(number) if number.isdecimal() else None
    return None


def _find_unfit_key(keys: list[str], hint: object) -> str | None:
    """Return a key that does not fit, by bisection: msgspec does not name it."""
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        try:
            convert(dict.fromkeys(half), dict.__class_getitem__((hint, Any)))
        except ValueConversionError:
            keys = half
        else:
            keys = keys[len(half) :]
    return keys[0] if keys else None
