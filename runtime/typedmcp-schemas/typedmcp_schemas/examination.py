"""Arguments that do not fit their schema: what is wrong with them, and what can be repaired without a guess.

Models and hosts send `"3"` for 3, the JSON text of a list for the list, null for an argument that may be absent, and
`2026-01-01` for a time. All types have JSON Schemas, so one walk along value and schema repairs these for every kind of
class. It is a proposal: the conversion, or the validator of a given schema, decides.

Only what the walk understands is judged: types, `enum`, `const`, alternatives, members, items, bounds, and the formats
of dates and times. All else is left to the conversion. The work is bounded, since values and schemas together may offer
exponentially many ways to read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from typedmcp_schemas.definitions import JsonSchema
from typedmcp_schemas.error_text import (
    KINDS,
    clip,
    describe_mismatch,
    escape_unprintable,
    format_path_part,
    format_value,
)
from typedmcp_schemas.integers import to_integer
from typedmcp_schemas.json_types import is_array, is_object
from typedmcp_schemas.keywords import ANNOTATIONS, KEY_PATTERNS
from typedmcp_schemas.nesting import decode_json

__all__ = ["NOT_EXAMINED", "Examined", "ValueFault", "choose_option", "examine", "explain_unknown", "is_known"]

_MAX_STEPS: Final = 20_000
"""Steps for the arguments of one call: a value that is compared with a schema, or 64 bytes of text that are parsed."""
_BYTES_PER_STEP: Final = 64
_CHOICE_STEPS: Final = 1000
"""Steps for each option when the one is searched that a value is meant for."""
_COMPARED_NAMES: Final = 100
"""Known names that an unknown one is compared with."""
_SHOWN_NAMES: Final = 20
_SHOWN_NAME_CHARACTERS: Final = 60
_MAX_REASONS: Final = 5
"""Alternatives whose faults are named."""
_OF_UNIONS: Final = ANNOTATIONS | {"anyOf", "oneOf", "discriminator", "$defs"}
"""Keywords of a schema that is nothing but a union."""
_MAX_DEPTH: Final = 100
"""Levels that are examined. Deeper values are left to the conversion."""

_ZONE: Final = r"(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?)?"
_CLOCK: Final = rf"(?P<clock>\d\d:\d\d)(?P<seconds>:\d\d(?:\.\d+)?)? ?{_ZONE}"
_FORMS: Final[Mapping[str, str]] = {
    "date-time": rf"(?P<date>\d{{4}}-\d\d-\d\d)(?:[Tt ]{_CLOCK})?",
    "time": _CLOCK,
    "date": r"(?P<date>\d{4}-\d\d-\d\d)",
}
"""The forms of dates and times that are read, by `format`."""
_COMPLETE: Final = r"(\d{4}-\d\d-\d\d[Tt ])?\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?"
"""The forms of times that are kept as they are: those of RFC 3339, with or without a zone."""
_BOUNDS: Final[tuple[tuple[str, str, bool], ...]] = (
    ("minimum", ">=", False), ("exclusiveMinimum", ">", False), ("maximum", "<=", False),
    ("exclusiveMaximum", "<", False), ("minLength", ">=", True), ("maxLength", "<=", True), ("minItems", ">=", True),
    ("maxItems", "<=", True), ("minProperties", ">=", True), ("maxProperties", "<=", True),
)  # fmt: skip
"""Keywords of bounds, with their sign, and whether they are about the length."""
_SIZED: Final[Mapping[str, str]] = {"Length": "string", "Items": "array", "Properties": "object"}


NOT_EXAMINED: Final = "further arguments were not examined"
"""The last fault of a value that would need too much work."""


class _TooMuchWorkError(Exception):
    """A value and its schema need more work than an examination may do."""


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


class ValueFault(str):
    """The text of a fault, with its place."""

    place: str = ""
    """The place that the text begins with."""
    depth: int = 0
    """The level of the place in the value; 0 if it is not known."""

    @classmethod
    def at(cls, place: str, reason: str, depth: int = 0) -> ValueFault:
        """Return the fault of what is at a place."""
        made = cls(_at(place, reason))
        made.place, made.depth = place, depth
        return made


def is_known(place: str, known: Sequence[ValueFault]) -> bool:
    """Return whether one of the known faults is at a place, or in what is there."""
    where = place.removeprefix(".")
    places = (fault.place.removeprefix(".") for fault in known)
    return any(not where or each == where or each.startswith((f"{where}.", f"{where}[")) for each in places)


class _Option(NamedTuple):
    """An alternative of a union."""

    given: object
    """The schema in the union, which may be a reference."""
    schema: JsonSchema
    tags: Mapping[str, Sequence[Any]]
    """The values of the members that accept certain values only, by their names."""


class Examined(NamedTuple):
    """A value with its repairs, the faults that remain, and descriptions of the repairs."""

    value: Any
    faults: Sequence[ValueFault] = ()
    repairs: Sequence[str] = ()


def examine(
    value: object,
    schema: JsonSchema,
    place: str = "",
    *,
    member: str = "property",
    is_strict: bool = False,
    has_formats: bool = True,
) -> Examined:
    """Find the faults of a value, and repair what can be repaired.

    The last fault is `NOT_EXAMINED` if that took too much work. The value is then not repaired.

    `place` is the path of the value in texts, and `member` the word for its members. `is_strict` repairs nothing, and
    without `has_formats` the keyword `format` is ignored, as in JSON Schema 2020-12.
    """
    examination = _Examination(schema, member, has_formats)
    try:
        return examination.examine(value, schema, place, is_strict=is_strict)
    except _TooMuchWorkError:
        return Examined(value, [*examination.found, ValueFault(NOT_EXAMINED)])


def choose_option(value: object, schemas: Sequence[JsonSchema]) -> int | None:
    """Return the index of the schema that a value is meant for: by its tags, or the closest. None if it is unclear."""
    found, options = list[Examined](), list[_Option]()
    owners: list[int] = []
    try:
        for index, schema in enumerate(schemas):
            examination = _Examination(schema, "property", has_formats=True, steps=_CHOICE_STEPS)
            for option in examination.options_of([schema]):
                options.append(option)
                owners.append(index)
                found.append(examination.examine(value, option.given, "", is_strict=True))
        chosen = _Examination({}, "property", has_formats=True).choose(value, options, found)
    except _TooMuchWorkError:
        return None
    indexes = {owners[index] for index in chosen}
    return indexes.pop() if len(indexes) == 1 else None


class _Examination:
    """One walk along a value and its schema."""

    def __init__(self, root: JsonSchema, member: str, has_formats: bool, steps: int = _MAX_STEPS) -> None:
        self._root = root
        self._member, self._has_formats = member, has_formats
        self._left = steps
        self._depth = 0
        self._options: dict[int, tuple[Sequence[object], list[_Option]]] = {}
        """The alternatives of unions with the list in the schema, by its identity."""
        self.found: list[ValueFault] = []
        """The faults of the members of the whole value that were examined."""

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuchWorkError

    def examine(self, value: object, schema: object, place: str, *, is_strict: bool) -> Examined:
        self._spend(1)
        if self._depth >= _MAX_DEPTH:
            return Examined(value)
        self._depth += 1
        try:
            resolved = self.resolve(schema)
            return Examined(value) if resolved is None else self._examine(value, resolved, place, is_strict)
        finally:
            self._depth -= 1

    def resolve(self, schema: object) -> JsonSchema | None:
        """Return the schema that a reference names, with the members that are required beside the reference.

        None if the schema is unknown, or if it accepts every value.
        """
        required: list[str] = []
        while is_object(schema) and isinstance(reference := schema.get("$ref"), str):
            self._spend(1)
            required += schema.get("required", ())
            found: object = self._root
            for part in reference.removeprefix("#").split("/")[1:]:
                found = found.get(part.replace("~1", "/").replace("~0", "~")) if is_object(found) else None
            schema = found if reference.startswith("#") else None
        if not is_object(schema):
            return None
        return {**schema, "required": [*schema.get("required", ()), *required]} if required else schema

    def _examine(self, value: Any, schema: JsonSchema, place: str, is_strict: bool) -> Examined:
        for keyword in ("anyOf", "oneOf"):
            if is_array(options := schema.get(keyword)):
                return self._examine_union(value, self.options_of(options), place, is_strict)
        kinds = _kinds_of(schema)
        number = to_integer(value) if "integer" in kinds else value
        kind = _kind_of(number)
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        is_choice = not is_array(choices) or any(_are_equal(number, choice) for choice in choices)
        if (kinds and not _is_among(kind, kinds)) or not is_choice:
            parsed = None if is_strict or _takes_text(schema) else self._examine_text(value, schema, kinds, place)
            if parsed is not None:
                return parsed
            names = [*map(format_value, choices)] if is_array(choices) else []
            return self._faulty(value, place, describe_mismatch(names, value) if names else _expected(kinds, kind))
        if kind == "object":
            found = self._examine_object(value, schema, place, is_strict)
        elif kind == "array":
            found = self._examine_array(value, schema, place, is_strict)
        else:
            found = self._examine_format(number, schema, place, is_strict) if kind == "string" else Examined(number)
        faults = _violations(found.value, kind, schema)
        return found._replace(faults=[*found.faults, *self._at(place, *faults)]) if faults else found

    def _at(self, place: str, *reasons: str) -> list[ValueFault]:
        return [ValueFault.at(place, reason, self._depth) for reason in reasons]

    def _faulty(self, value: object, place: str, reason: str) -> Examined:
        return Examined(value, self._at(place, reason))

    def _examine_text(self, text: object, schema: JsonSchema, kinds: Sequence[str], place: str) -> Examined | None:
        """Examine the value that a text is the JSON of; None if it is not, or if that is of another type."""
        if not isinstance(text, str):
            return None
        self._spend(len(text) // _BYTES_PER_STEP)
        try:
            value = decode_json(text)
        except ValueError:
            return None
        kind = _kind_of(to_integer(value))
        if kind == "string" or (kinds and not _is_among(kind, kinds)):
            return None
        found = self.examine(value, schema, place, is_strict=False)
        return found._replace(repairs=[_at(place, f"a string with JSON was read as {kind}"), *found.repairs])

    # Alternatives

    def options_of(self, given: Sequence[object]) -> list[_Option]:
        """Return the alternatives of a union, also those of unions within it."""
        if id(given) in self._options:
            return self._options[id(given)][1]
        made = list[_Option]()
        self._options[id(given)] = given, made  # already now, since a union may be an alternative of itself
        for option in given:
            schema = self.resolve(option) or {}
            inner = schema.get("anyOf", schema.get("oneOf"))
            if is_array(inner) and schema.keys() <= _OF_UNIONS:
                made += self.options_of(inner)
            else:
                made.append(_Option(option, schema, self._tags_of(schema)))
        return made

    def _tags_of(self, schema: JsonSchema) -> Mapping[str, Sequence[Any]]:
        properties: JsonSchema = schema.get("properties", {}) if _is_among("object", _kinds_of(schema)) else {}
        choices = {name: _choices_of(self.resolve(inner) or {}) for name, inner in properties.items()}
        return {name: values for name, values in choices.items() if values}

    def _examine_union(self, value: Any, options: Sequence[_Option], place: str, is_strict: bool) -> Examined:
        self._spend(len(options))
        repairs: Sequence[str] = ()
        if is_object(value):
            tag, options, found = self._narrow(value, _for_objects(options), place, is_strict)
            value, repairs = found.value, found.repairs
            if found.faults:
                return found
            if len(options) == 1:
                made = self.examine(value, options[0].given, place, is_strict=is_strict)
                return made._replace(repairs=[*repairs, *made.repairs]) if repairs else made
            if tag is not None:
                return self._without_tag(value, tag, options, place)
        made = self._try_options(value, options, place, is_strict)
        return made._replace(repairs=[*repairs, *made.repairs]) if repairs else made

    def choose(self, value: Any, options: Sequence[_Option], found: Sequence[Examined]) -> list[int]:
        """Return the indexes of the options that a value may be meant for."""
        left = options
        if is_object(value):
            _, left, narrowed = self._narrow(value, _for_objects(options), "", is_strict=True)
            if narrowed.faults:
                return []
        possible = [index for index, option in enumerate(options) if option in left]
        fitting = [index for index in possible if not found[index].faults] or possible
        closest = _closest(value, [found[index] for index in fitting], [options[index].schema for index in fitting])
        return [fitting[index] for index in closest]

    def _narrow(
        self, value: Any, options: Sequence[_Option], place: str, is_strict: bool
    ) -> tuple[str | None, Sequence[_Option], Examined]:
        """Leave out the alternatives that the tags in an object exclude.

        Return the tag that is missing, the alternatives that are left, and the object with the fault of its tag.
        """
        missing = None
        repairs: list[str] = []
        before = 0
        while before != len(options) > 1:
            before = len(options)
            for name in options[0].tags:
                if not all(name in each.tags for each in options):
                    continue
                if name not in value:
                    is_tag = any(each.tags[name] != options[0].tags[name] for each in options)
                    is_required = all(name in each.schema.get("required", ()) for each in options)
                    missing = missing or (name if is_tag and is_required else None)
                    continue
                where = place + format_path_part(name)
                known = [*{repr(tag): tag for each in options for tag in each.tags[name]}.values()]
                found = self.examine(value[name], {"enum": known}, where, is_strict=is_strict)
                if found.faults:
                    return None, options, Examined(value, found.faults)
                value, repairs = {**value, name: found.value} if found.repairs else value, [*repairs, *found.repairs]
                tag = found.value
                options = [each for each in options if any(_are_equal(tag, other) for other in each.tags[name])]
        return missing if len(options) > 1 else None, options, Examined(value, (), repairs)

    def _without_tag(self, value: Any, name: str, options: Sequence[_Option], place: str) -> Examined:
        """Return the faults of an object without its tag: those of the alternative that is meant, if that is clear."""
        names = [*dict.fromkeys(format_value(tag) for each in options for tag in each.tags[name])]
        where = place + format_path_part(name)
        found = [self.examine(value, each.given, place, is_strict=True) for each in options]
        closest = _closest(value, found, [each.schema for each in options])
        others = (
            found[closest[0]].faults
            if len(closest) == 1 and value.keys() & options[closest[0]].schema.get("properties", {}).keys()
            else ()
        )
        missing = self._at(where, f"required, but missing; expected {_join(names)}")
        return Examined(value, [*missing, *(each for each in others if each.place != where)])

    def _try_options(self, value: Any, options: Sequence[_Option], place: str, is_strict: bool) -> Examined:
        found = [self.examine(value, each.given, place, is_strict=True) for each in options]
        for each in found:
            if not each.faults:
                return each
        if not (is_strict or (isinstance(value, str) and any(_takes_text(each.schema) for each in options))):
            tried = [self.examine(value, each.given, place, is_strict=False) for each in options]
            fitting = sorted((each for each in tried if not each.faults), key=lambda each: len(each.repairs))
            best = [each for each in fitting if len(each.repairs) == len(fitting[0].repairs)]
            if best and all(_are_equal(each.value, best[0].value) for each in best):
                return best[0]
            found = tried
        return self._explain_union(value, found, options, place)

    def _explain_union(
        self, value: object, found: Sequence[Examined], options: Sequence[_Option], place: str
    ) -> Examined:
        """Return the faults of a value that fits no option: those of the option that is closest to it."""
        kind, schemas = _kind_of(value), [each.schema for each in options]
        possible = [schema for schema in schemas if _is_among(kind, _kinds_of(schema))]
        if any(map(_choices_of, schemas)) and all(map(_choices_of, possible)):
            names = [name for schema in schemas for name in _names_of(schema)]
            return self._faulty(value, place, describe_mismatch(names, value))
        if not possible:
            kinds = dict.fromkeys(name for schema in schemas for name in _kinds_of(schema))
            return self._faulty(value, place, _expected([*kinds], kind))
        closest = _closest(value, found, schemas)
        if len(closest) == 1:
            return found[closest[0]]
        titles = [_title_of(each.given) for each in options]
        names_of_all = " | ".join(titles) if all(titles) else f"{len(options)} alternatives"
        texts = dict.fromkeys(
            fault.removeprefix(place.removeprefix(".")).removeprefix(".").removeprefix(": ")
            for index in closest
            for fault in found[index].faults
        )
        reasons = "; ".join([*texts][:_MAX_REASONS])
        return self._faulty(value, place, f"fits none of {names_of_all}: {reasons}")

    # Members and items

    def _examine_object(self, value: Any, schema: JsonSchema, place: str, is_strict: bool) -> Examined:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        others = True if "patternProperties" in schema else schema.get("additionalProperties", True)
        made: dict[str, Any] = {}
        faults = [
            ValueFault.at(place + format_path_part(name), "required, but missing", self._depth)
            for name in required
            if name not in value
        ]
        if self._depth == 1:
            self.found = faults
        repairs: list[str] = []
        names = schema.get("propertyNames", True)
        for name, item in value.items():
            wrong = self._key_faults(name, names)
            faults += self._at(place, *(f"key {format_value(name)}: {fault}" for fault in wrong))
            where = place + format_path_part(name)
            if name not in properties and others is False:
                self._spend(50 + 10 * min(len(properties), _COMPARED_NAMES))
                word = "property" if place else self._member
                faults += self._at(place, explain_unknown(word, name, [*properties]))
                continue
            found = self.examine(item, properties.get(name, others), where, is_strict=is_strict)
            if item is None and found.faults and name in properties and name not in required and not is_strict:
                repairs.append(_at(where, "null was read as absence"))
                continue
            made[name] = found.value
            faults += found.faults
            repairs += found.repairs
        return Examined(made, faults, repairs)

    def _key_faults(self, name: str, schema: Any) -> Sequence[str]:
        if is_object(schema) and (kind := KEY_PATTERNS.get(str(schema.get("pattern")))) is not None:
            return () if re.fullmatch(schema["pattern"], name) else [f"expected {kind}, got string"]
        return () if schema is True else self.examine(name, schema, "", is_strict=True).faults

    def _examine_array(self, value: Any, schema: JsonSchema, place: str, is_strict: bool) -> Examined:
        items, prefix = schema.get("items", True), schema.get("prefixItems", ())
        if is_array(items):  # of older dialects
            items, prefix = schema.get("additionalItems", True), items
        made: list[Any] = []
        faults: list[ValueFault] = []
        repairs: list[str] = []
        for index, item in enumerate(value):
            kind = prefix[index] if index < len(prefix) else items
            found = self.examine(item, kind, place + format_path_part(index), is_strict=is_strict)
            made.append(found.value)
            faults += found.faults
            repairs += found.repairs
        return Examined(made, faults, repairs)

    def _examine_format(self, text: Any, schema: JsonSchema, place: str, is_strict: bool) -> Examined:
        name = str(schema.get("format"))
        if not self._has_formats or name not in _FORMS:
            return Examined(text)
        normal = _normalize(name, text)
        if normal == text:
            return Examined(text)
        if normal is None or is_strict:
            return self._faulty(text, place, f"expected {name}, got {format_value(text)}")
        return Examined(normal, (), [_at(place, f"an incomplete {name} was completed")])


def _normalize(name: str, text: str) -> str | None:
    """Return a date or time in the form of RFC 3339, with or without a zone; None for other text."""
    found = re.fullmatch(_FORMS[name], text, re.ASCII)
    if found is None:
        return None
    if re.fullmatch(_COMPLETE, text, re.ASCII) or name == "date":
        return text
    parts = found.groupdict("")
    zone = parts["zone"].upper()
    clock = (parts["clock"] or "00:00") + (parts["seconds"] or ":00") + zone + (":00" if len(zone) == 3 else "")
    return f"{parts['date']}T{clock}" if name == "date-time" else clock


def _for_objects(options: Sequence[_Option]) -> Sequence[_Option]:
    """Return the options that accept objects, or all if none does."""
    return [each for each in options if _is_among("object", _kinds_of(each.schema))] or options


def _closest(value: object, found: Sequence[Examined], schemas: Sequence[JsonSchema]) -> list[int]:
    """Return the indexes of the schemas that are closest to a value: of its type, and that know most of its members.

    Of these, the closest ones have faults only deep within the value, and few of them.
    """
    kind = _kind_of(value)

    def rank(index: int) -> tuple[int, int, int]:
        faults = found[index].faults
        known = len(value.keys() & schemas[index].get("properties", {}).keys()) if is_object(value) else 0
        return -known, -min((fault.depth for fault in faults), default=_MAX_DEPTH), len(faults)

    possible = [index for index, schema in enumerate(schemas) if _is_among(kind, _kinds_of(schema))]
    best = min(map(rank, possible), default=None)
    return [index for index in possible if rank(index) == best]


def _title_of(option: object) -> str:
    """Return the name of an alternative: its title, or that of its definition; empty if it has none."""
    if not is_object(option):
        return ""
    return str(option.get("title") or str(option.get("$ref", "")).rpartition("/")[2])


# Schemas and values


def _kinds_of(schema: JsonSchema) -> list[str]:
    """Return the names of the JSON types that a schema accepts; empty if it does not say."""
    kinds: object = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    if is_array(kinds):
        return kinds
    return [*dict.fromkeys(map(_kind_of, _choices_of(schema)))]


def _choices_of(schema: JsonSchema) -> Sequence[Any]:
    """Return the values that a schema accepts; empty if it accepts others, too."""
    return [schema["const"]] if "const" in schema else schema.get("enum", ())


def _takes_text(schema: JsonSchema) -> bool:
    """Return whether any text may be meant for itself: the schema accepts strings, and neither a choice nor dates."""
    kinds = _kinds_of(schema)
    is_open = "enum" not in schema and "const" not in schema and schema.get("format") not in _FORMS
    return is_open and (not kinds or "string" in kinds)


def _kind_of(value: object) -> str:
    """Return the name of the JSON type of a value; `integer` for an integer without a fraction."""
    return KINDS.get(type(value), "number")


def _is_among(kind: str, kinds: Sequence[str]) -> bool:
    return not kinds or kind in kinds or (kind == "integer" and "number" in kinds)


def _are_equal(one: object, other: object) -> bool:
    """Return whether values are the same in JSON, where true is not 1."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)


def _violations(value: Any, kind: str, schema: JsonSchema) -> list[str]:
    """Return the bounds that a value is outside of."""
    faults: list[str] = []
    for keyword, sign, is_length in _BOUNDS:
        limit = schema.get(keyword)
        if not isinstance(limit, int | float) or isinstance(limit, bool):
            continue
        if is_length and _SIZED[keyword[3:]] == kind and not _holds(len(value), sign, limit):
            faults.append(f"expected {kind} of length {sign} {limit}")
        elif not is_length and kind in ("integer", "number") and not _holds(value, sign, limit):
            faults.append(f"expected {_join(_kinds_of(schema))} {sign} {limit}, got {format_value(value)}")
    return faults


def _holds(value: float, sign: str, limit: float) -> bool:
    if sign in (">=", "<="):
        return value >= limit if sign == ">=" else value <= limit
    return value > limit if sign == ">" else value < limit


def _names_of(schema: JsonSchema) -> list[str]:
    """Return the values that a schema accepts, or else their types."""
    return [*map(format_value, _choices_of(schema))] or _kinds_of(schema)


def _expected(kinds: Sequence[str], kind: str) -> str:
    return f"expected {_join(kinds)}, got {kind}"


def _join(names: Sequence[str]) -> str:
    return " or ".join(([", ".join(names[:-1])] if names[:-1] else []) + [*names[-1:]])


def _at(place: str, text: str) -> str:
    where = place.removeprefix(".")
    return f"{where}: {text}" if where else text
