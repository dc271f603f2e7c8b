"""What is wrong with a value that does not fit its type, and where: `days["next week"]: expected int, got str`.

msgspec says it in a text that ends with the place. There may be anything in such a text that a peer sent, so no more
than its end is read, and not more of it is told than people read. What is missing there, such as the keys of
mappings, is found by going down the value and the type together, once the value has been refused.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Final, Literal, NamedTuple, NewType, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object, leaves
from mcpspec._support.words import KINDS, clipped, expected, path_part, printable, shown
from typedmcp import jsonrecords

__all__ = ["REFUSED", "Unfit", "convert", "dec_hook", "fault", "of_key"]

REFUSED: Final = "the value is refused"
"""What is said where the reason is an exception that was not meant for callers."""
_PLACE: Final = " - at `"
_KEY: Final = "key` in `"
_MISSING: Final = "Object missing required field `"
_UNKNOWN: Final = "Object contains unknown field `"
_TOLD: Final = 500
"""Characters that are told of a value, or of its place."""
_MAPPINGS: Final = (dict, abc.Mapping, abc.MutableMapping)


class Unfit(ValueError):  # noqa: N818  # named for the state, as all of them are
    """A value does not fit: because of `what`, at `path`; or because of its cause, which came of converting it."""

    def __init__(self, what: str = "", path: str = "", *, value: Any = UNSET, hint: Any = UNSET) -> None:
        super().__init__(what)
        self.path: str = path
        self.value: Any = value
        self.hint: Any = hint

    @classmethod
    def of(cls, error: Exception, value: Any, hint: Any) -> Unfit:
        """What came of converting a value."""
        made = cls(value=value, hint=hint)
        made.__cause__ = error
        return made

    def what(self) -> str:
        """Why it does not fit. msgspec puts `str` of it before the place, so that is to be had at no cost."""
        return str(self)


# Converting


def dec_hook(kind: Any, value: Any) -> Any:
    """How msgspec decodes what it does not know."""
    try:
        return kind.decode(value)
    except (Unfit, RecursionError):
        raise
    except (ValueError, TypeError) as error:
        raise Unfit(str(error)) from error  # for msgspec adds no place to errors of its own
    except Exception as error:
        raise Unfit(REFUSED) from error


def convert(value: Any, hint: Any) -> Any:
    """The value of parsed JSON as an adapted type. Raises `Unfit`, of which `fault` says what is wrong."""
    try:
        return msgspec.convert(value, hint, dec_hook=dec_hook, str_keys=True)
    except RecursionError:
        raise
    except Exception as error:
        raise Unfit(value=value, hint=hint) from error


# Telling


def fault(error: BaseException, place: str = "") -> str:
    """What is wrong with a value, its place first: `forecast.days: expected int, got str`."""
    where = place
    while True:
        value = hint = UNSET
        if isinstance(error, Unfit):
            where += error.path
            if error.hint is UNSET or error.__cause__ is None:
                what = error.what()
                break
            value, hint, error = error.value, error.hint, error.__cause__
        said, more, value, hint = _located(error, value, hint)
        where += more
        if not isinstance(error.__cause__, Unfit):
            more, what = _told(said, value, hint)
            where += more
            break
        error = error.__cause__
    where = _short(where.removeprefix("."))
    what = _short(_uncapitalised(what).replace("`", ""))
    return f"{where}: {what}" if where else what


def _short(text: str) -> str:
    return printable(clipped(text, _TOLD), kept="\n")


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


class _Said(NamedTuple):
    """What an error says."""

    what: str
    path: str = ""
    """As msgspec writes it, without the `$`."""
    of_key: bool = False
    """Whether it is about a key of what is there."""
    by_msgspec: bool = False

    @property
    def member(self) -> str | None:
        """The member that there should not be."""
        is_unknown = self.by_msgspec and self.what.startswith(_UNKNOWN)
        return self.what.removeprefix(_UNKNOWN).removesuffix("`") if is_unknown else None


def _said(error: BaseException) -> _Said:
    if isinstance(error, RecursionError):
        return _Said("nested too deeply")
    if not isinstance(error, ValueError | TypeError):
        return _Said(REFUSED)
    text, cause = str(error), error.__cause__
    if not isinstance(error, msgspec.ValidationError):
        return _Said(text)
    if cause is not None and text.startswith(str(cause)):
        return _placed(str(cause), text[len(str(cause)) :])._replace(by_msgspec=False)
    what, _, _ = text.rpartition(_PLACE)
    if what.startswith(_UNKNOWN) and not what.endswith("`"):  # what looks like a place is in the member's name
        return _Said(text, by_msgspec=True)
    return _placed(what, text[len(what) :])


def _placed(what: str, end: str) -> _Said:
    """With the end that msgspec puts to a text: `` - at `$.a[0]` ``, or none."""
    place = end.removeprefix(_PLACE)
    path = place.removeprefix(_KEY)
    if place == end or not (path.startswith("$") and path.endswith("`")):
        return _Said(what + end, by_msgspec=True)
    return _Said(what, path[1:-1], path != place, by_msgspec=True)


def _located(error: BaseException, value: Any, hint: Any) -> tuple[_Said, str, Any, Any]:
    """What an error says, where, what is there, and its type."""
    said = _said(error)
    where, inner, kind = _walked(value, hint, said.path)
    if hint is not UNSET and said.member is not None and not (is_object(inner) and said.member in inner):
        return _Said(str(error), by_msgspec=True), "", value, hint  # the place is within the member's name
    return said, where, inner, kind


def _told(said: _Said, value: Any, hint: Any) -> tuple[str, str]:
    """The rest of the place, and what is said of it."""
    what = said.what
    if said.of_key:
        kind = next((get_args(kind)[0] for kind in _kinds(hint) if get_origin(kind) in _MAPPINGS), UNSET)
        key = None if kind is UNSET or not is_object(value) else _unfit_key([*value], kind)
        return "", what if key is None else of_key(key, _choices(key, kind) or what)
    if not said.by_msgspec:
        return "", what
    if what.startswith(_MISSING):
        return path_part(what.removeprefix(_MISSING).removesuffix("`")), "required, but missing"
    if said.member is not None:
        return path_part(said.member), "there is no such member"
    if what.startswith("Invalid ") or (what.startswith("Expected `") and ", got `" in what):
        return "", _choices(value, hint) or what
    return "", what


def _choices(value: Any, hint: Any) -> str | None:
    """What is said where only certain values are taken, and others are of no type that is taken."""
    names: list[str] = []
    is_choice = False
    for kind in _kinds(hint):
        options = get_args(kind) if get_origin(kind) is Literal else ()
        if isinstance(kind, type) and issubclass(kind, Enum):
            options = tuple(kind)
        is_choice = is_choice or bool(options)
        names += [shown(option) for option in options] or [_name(kind)]
    return expected(names, value) if is_choice else None


def _name(kind: Any) -> str:
    kind = get_origin(kind) or kind
    if kind in KINDS:
        return KINDS[kind]
    return "object" if kind in _MAPPINGS or jsonrecords.is_record(kind) else getattr(kind, "__name__", str(kind))


def of_key(key: Any, what: str) -> str:
    """What is wrong with a key of a mapping that is there."""
    return f"key {shown(key)}: {_uncapitalised(what)}"


# Going down a value and its type


class _Step(NamedTuple):
    where: str
    rest: str
    """Of the path."""
    value: Any
    hint: Any


def _walked(value: Any, hint: Any, path: str) -> tuple[str, Any, Any]:
    """The place that msgspec means by a path, what is there, and its type; these are `UNSET` where they are unknown."""
    where = ""
    while path:
        try:
            steps = [step for kind in _kinds(hint, value) if (step := _step(value, kind, path)) is not None]
        except (TypeError, NameError, LookupError):  # of a type that is like no other
            steps = []
        if not steps:
            return where + path.replace("[...]", "[]"), UNSET, UNSET
        more, path, value, hint = steps[0]
        where += more
        if not path:  # which of several it was is not known
            hint = Union[tuple(step.hint for step in steps if step[:2] == steps[0][:2])]  # noqa: UP007
    return where, value, hint


def _kinds(hint: Any, value: Any = UNSET) -> list[Any]:
    """The types that a value may be of: those in a union, and of these the one that its tag names."""
    kinds: list[Any] = []
    for leaf in () if hint is UNSET else leaves(hint):
        kind = get_args(leaf)[0] if get_origin(leaf) is Annotated else leaf
        while isinstance(kind, NewType):
            kind = kind.__supertype__
        if not jsonrecords.is_never(kind):
            kinds.append(kind)
    return [kind for kind in kinds if _has_tag_of(value, kind)] or kinds


def _has_tag_of(value: Any, kind: Any) -> bool:
    name, tag = jsonrecords.tag_of(kind)
    if name is None:
        return False
    return value.get(name) == tag if is_object(value) else is_array(value) and value[:1] == [tag]


def _step(value: Any, kind: Any, path: str) -> _Step | None:
    """One step along a path, if a type has it."""
    of, arguments = get_origin(kind) or kind, get_args(kind)
    if path.startswith("[...]"):
        if of not in _MAPPINGS or not arguments or not is_object(value):
            return None
        index = _unfit_item([*value.values()], arguments[1])
        key = None if index is None else [*value][index]
        return None if key is None else _Step(path_part(key), path[5:], value[key], arguments[1])
    if path.startswith("["):
        index = int(path[1:].partition("]")[0])
        item = value[index] if is_array(value) and index < len(value) else UNSET
        return _Step(f"[{index}]", path.partition("]")[2], item, _item(of, kind, index))
    for name, hint in sorted(_members(kind), key=lambda found: -len(found[0])):
        rest = path.removeprefix(f".{name}")
        if rest != path and rest[:1] in ("", ".", "["):
            return _Step(path_part(name), rest, value.get(name, UNSET) if is_object(value) else UNSET, hint)
    return None


def _members(kind: Any) -> Iterator[tuple[str, Any]]:
    """What a record has, by name, and what its type is."""
    if jsonrecords.is_record(get_origin(kind) or kind):
        yield from ((field.wire, field.hint) for field in jsonrecords.fields_of(kind))
    name, tag = jsonrecords.tag_of(kind)
    if name is not None:
        yield name, Literal[tag]  # pyright: ignore[reportInvalidTypeForm]


def _item(of: Any, kind: Any, index: int) -> Any:
    """The type of an item of an array."""
    if jsonrecords.is_record(of):
        hints = [field.hint for field in jsonrecords.fields_of(kind)]
        name, tag = jsonrecords.tag_of(kind)
        return (hints if name is None else [Literal[tag], *hints])[index]  # pyright: ignore[reportInvalidTypeForm]
    arguments = get_args(kind)
    is_tuple = of is tuple and arguments[-1:] != (...,)
    return arguments[index if is_tuple else 0] if arguments else Any


def _unfit_item(values: list[Any], hint: Any) -> int | None:
    """Which of several values does not fit a type: as items of an array msgspec numbers them."""
    try:
        msgspec.convert(values, list.__class_getitem__(hint), dec_hook=dec_hook, str_keys=True)
    except Exception as error:
        number = _said(error).path[1:].partition("]")[0]
        return int(number) if number.isdecimal() else None
    return None


def _unfit_key(keys: list[str], hint: Any) -> str | None:
    """Which key of a mapping does not fit: the first half is looked into if it is there, else the second."""
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        try:
            convert(dict.fromkeys(half), dict.__class_getitem__((hint, Any)))
        except Unfit:
            keys = half
        else:
            keys = keys[len(half) :]
    return keys[0] if keys else None
