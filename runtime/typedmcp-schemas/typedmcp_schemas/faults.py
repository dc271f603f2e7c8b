"""Faults of a value that only a conversion finds, since no schema says them: those of patterns, validators and classes.

A conversion stops at its first fault, so each part of a value is converted by itself where the whole does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from types import UnionType
from typing import Annotated, Any, Final, NewType, TypeAlias, Union, get_args, get_origin

from typedmcp_schemas.adapt import schema_of, to_msgspec
from typedmcp_schemas.custom_types import CustomType
from typedmcp_schemas.error_text import format_path_part
from typedmcp_schemas.examination import NOT_EXAMINED, ValueFault, choose_option, is_known
from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.reasons import explain_reason, locate_error
from typedmcp_schemas.records import fields_of, is_record, resolve_alias
from typedmcp_schemas.values import LibraryError, ValueConversionError, convert

__all__ = ["Part", "find_other_faults"]

Part: TypeAlias = tuple[str, Any, Any]
"""A value with its place and its type."""

_MAX_PARTS: Final = 10_000
"""Parts of the arguments of a call that are converted by themselves."""
_MAX_UNIONS: Final = 50
"""Unions in them whose option is chosen."""
_MAX_DEPTH: Final = 20
"""Levels of a value whose parts are converted by themselves: each level converts what is below once more."""
_IN_SCHEMAS: Final = frozenset({
    "enum", "extra_forbidden", "greater_than", "greater_than_equal", "less_than", "less_than_equal", "literal_error",
    "missing", "none_required", "string_too_long", "string_too_short", "too_long", "too_short", "union_tag_invalid",
    "union_tag_not_found",
})  # fmt: skip
"""Pydantic's names of faults that its schemas say, beside those of types, `…_type`."""


def find_other_faults(parts: Iterable[Part], known: Sequence[ValueFault], limit: int) -> list[ValueFault]:
    """Return the faults of values that their schemas do not say, up to a limit. `known` are those that they say."""
    search = _Search(known, limit)
    for place, value, hint in parts:
        search.find(place, value, hint, 0)
    return [*search.found, ValueFault(NOT_EXAMINED)] if search.is_cut else search.found


class _Search:
    """One walk along values and their types."""

    def __init__(self, known: Sequence[ValueFault], limit: int) -> None:
        self._known, self._limit = known, limit
        self._parts, self._unions = _MAX_PARTS, _MAX_UNIONS
        self.found: list[ValueFault] = []
        self.is_cut = False
        """True if there may be faults in what was not searched."""

    def find(self, place: str, value: object, hint: object, depth: int) -> bool:
        """Find the faults of a value: those of its parts, or else its own. Return whether it has any."""
        self._parts -= 1
        if self._parts < 0 or len(self.found) >= self._limit:
            self.is_cut = True
            return False
        try:
            convert(value, hint)
        except (ValueConversionError, RecursionError) as error:
            before = len(self.found)
            parts = self._parts_of(value, hint) if depth < _MAX_DEPTH else ()
            wrong = [part for part, item, inner in parts if self.find(place + part, item, inner, depth + 1)]
            # The error of an array or a map does not say which item it is about. Those of records have own validators.
            if len(self.found) == before and (not wrong or is_record(get_origin(hint) or hint)):
                self.found += [each for each in self._faults_of(error, value, place) if not self._is_known(each.place)]
            return True
        return False

    def _is_known(self, place: str) -> bool:
        return is_known(place.partition("[]")[0], self._known)  # `[]` is a key that msgspec does not name

    def _parts_of(self, value: Any, hint: Any) -> Iterable[Part]:
        """Return the parts of a value, with their places in it; the value itself for a type made of others."""
        kind = get_origin(hint) or hint
        if (options := _options_of(hint, kind)) is not None:
            option = self._choose(value, options) if len(options) > 1 else 0
            return [] if option is None else [("", value, options[option])]
        if is_record(kind):
            return _members_of(value, hint)
        arguments = get_args(hint)
        if is_object(value) and len(arguments) == 2:
            return [(format_path_part(key), item, arguments[1]) for key, item in value.items()]
        if not is_array(value) or not arguments:
            return []
        is_fixed = kind is tuple and arguments[-1] is not ...
        kinds = arguments if is_fixed else repeat(arguments[0])
        return [(format_path_part(index), *pair) for index, pair in enumerate(zip(value, kinds, strict=False))]

    def _choose(self, value: object, options: Sequence[Any]) -> int | None:
        self._unions -= 1
        return choose_option(value, [*map(schema_of, options)]) if self._unions >= 0 else None

    def _faults_of(self, error: BaseException, value: object, place: str) -> list[ValueFault]:
        """Return the faults of what has no parts, or whose parts fit."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ValueConversionError) and cause.others:
                return self._read_errors(cause.others, value, place)
            cause = cause.__cause__
        where, reason = locate_error(error, place)
        return [ValueFault.at(where, explain_reason(reason, value) if where == place.removeprefix(".") else reason)]

    def _read_errors(self, errors: Sequence[LibraryError], value: object, place: str) -> list[ValueFault]:
        """Return the errors of a library, without those of alternatives that the schema excludes."""
        rows = [(error, *_follow(value, error)) for error in errors]
        excluded: set[tuple[int | str, ...]] = set()
        for error, path, _, alternative in rows:
            is_said = error.kind in _IN_SCHEMAS or error.kind.endswith("_type")
            where = path.rpartition(".")[0] if error.kind == "extra_forbidden" else path
            if alternative and is_said and not self._is_known(place + where):
                excluded.add(alternative)
        made: dict[str, ValueFault] = {}
        for error, path, item, _ in rows:
            if not any(error.place[: len(alternative)] == alternative for alternative in excluded):
                fault = ValueFault.at(place + path, explain_reason(error.reason, item))
                made.setdefault(fault, fault)
        return [*made.values()] or [ValueFault.at(place, explain_reason(errors[0].reason, None))]


def _options_of(hint: Any, kind: Any) -> Sequence[Any] | None:
    """Return the types that the values of a type are decoded as: one, or the options of a union. None for others."""
    if isinstance(hint, CustomType):
        return hint.options or None
    if kind in (Union, UnionType):
        return get_args(hint)
    if isinstance(hint, NewType):
        return [hint.__supertype__]
    if type(kind).__name__ == "TypeAliasType":
        return [to_msgspec(resolve_alias(hint))]
    return get_args(hint)[:1] if kind is Annotated else None


def _members_of(value: Any, hint: Any) -> Iterable[Part]:
    """Yield the members of a record, which is an object or an array."""
    members: Any = value if is_object(value) else dict(enumerate(value)) if is_array(value) else {}
    for index, field in enumerate(fields_of(hint)):
        key = field.wire if is_object(value) else index
        if key in members:
            yield format_path_part(key), members[key], to_msgspec(field.hint)


def _follow(value: Any, error: LibraryError) -> tuple[str, Any, tuple[int | str, ...]]:
    """Return the path of an error in a value, what is there, and the place up to the last name of an alternative."""
    path, alternative = "", tuple[int | str, ...]()
    for index, part in enumerate(error.place):
        is_last = index == len(error.place) - 1
        inner: Any = value if is_object(value) else dict(enumerate(value)) if is_array(value) else {}
        if part in inner:
            value = inner[part]
        elif not (is_last and error.kind == "missing"):
            alternative = error.place[: index + 1]
            continue
        path += format_path_part(part)
    return path, value, alternative
