"""Validation by JSON Schema, for schemas that were given rather than compiled from types.

Needs the extra `jsonschema`, which is jsonschema-rs. It knows JSON Schema 2020-12, which is meant where a schema names
no other, 2019-09, and drafts 7, 6 and 4. `format` is checked where the draft says so.

Schemas are not trusted, since a client's come from servers: nothing that they refer to is fetched, patterns give up
after so many steps, and a schema that could keep the validator busy for long is refused.
https://modelcontextprotocol.io/specification/2026-07-28/basic#schema-validation
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

import msgspec

from mcpspec._support.objects import is_array, is_object
from mcpspec._support.words import clipped, path_part, printable

__all__ = ["Check", "Refused", "available", "compiled"]

STEPS: Final = 10_000
"""How many steps a pattern may take on one string, where it needs to go back at all."""

EFFORT: Final = 10_000
"""How many schemas may apply to one value and the path below it."""

DEPTH: Final = 150
"""How many schemas may be inside one another, references followed."""

LARGEST: Final = 256 << 10
"""How many bytes a schema may have."""

SMALL: Final = 64 << 10
"""How many bytes a value may have for alternatives to be explained: each of them keeps what it was tried on,"""
KEPT: Final = 4 << 20
"""and so many bytes may be kept."""

MANY: Final = 100
"""From how many schemas on that may apply to one value the size of values is limited,"""
WORK: Final = 256 << 20
"""to so many bytes by the number of schemas."""

UNWRITABLE = (ValueError, TypeError, OverflowError, RecursionError)
"""What is raised for values that are no JSON."""
_SHOWN: Final = 300
_DRAFTS: Final = "//json-schema.org/draft"
_DIALECTS: Final = frozenset(
    f"{scheme}:{_DRAFTS}{name}/schema"
    for scheme in ("http", "https")
    for name in ("/2020-12", "/2019-09", "-07", "-06", "-04")
)


Path: TypeAlias = tuple[str | int, ...]


@cache
def available() -> bool:
    """Whether values can be checked: jsonschema-rs is installed."""
    return find_spec("jsonschema_rs") is not None


class Refused(ValueError):  # noqa: N818  # named for the state, as all of them are
    """A schema that cannot be used. `path` leads to the part that is why, `reason` says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{_place('', path)}: {reason}" if path else reason)
        self.path = path
        self.reason = reason

    def place(self, root: str) -> str:
        """Where that part is, in a schema that is called `root`."""
        return _place(root, self.path)


@dataclass(frozen=True, slots=True)
class Check:
    """A schema, compiled."""

    validator: Any
    explained: float
    """How many bytes a value may have for what is wrong with it to be looked for, which takes longer."""
    longest: float = inf
    """How many bytes a value may have to be checked at all."""

    def fault(self, value: Any, name: str, otherwise: str = "does not fit its schema") -> str | None:
        """What is wrong with a value that is called so, and where: `name.degrees: "warm" is not of type "number"`.

        None for one that fits. `otherwise` is said where finding out what is wrong would take too long.
        """
        try:
            if self.longest < inf and len(msgspec.json.encode(value)) > self.longest:
                return _told(
                    name, f"it has more than {self.longest:.0f} bytes, too many to be checked by such a schema"
                )
            if self.validator.is_valid(value):
                return None
            if self.explained == inf or len(msgspec.json.encode(value)) <= self.explained:
                self.validator.validate(value)
        except UNWRITABLE as error:
            if hasattr(error, "instance_path"):  # if not, the value is too deep to be looked into
                path, said = _said(error)
                return _told(_place(name, path), said)
        return _told(name, otherwise)


def compiled(schema: Mapping[str, Any] | bytes) -> Check:
    """A schema, or its JSON text, compiled. Raises `Refused`; also where the extra is missing."""
    if not available():
        raise Refused((), "schemas need the extra jsonschema: pip install 'typedmcp[jsonschema]'")
    library = import_module("jsonschema_rs")
    try:
        key = schema if isinstance(schema, bytes) else msgspec.json.encode(schema)
        accepted = _accepted(key)
        effort = _Effort(accepted).of(accepted, ())
        if effort.steps > EFFORT:
            raise Refused((), "too complex: too many of its parts apply to the same value")
        patterns = library.FancyRegexOptions(backtrack_limit=STEPS)
        validator = library.validator_for(accepted, offline=True, pattern_options=patterns)
    except RecursionError:
        raise Refused((), "nested too deeply") from None
    except Refused:
        raise
    except (ValueError, TypeError, library.ReferencingError) as error:
        raise Refused(*_said(error)) from error
    return Check(validator, _explained(key, effort), WORK // effort.steps if effort.steps > MANY else inf)


def _explained(key: bytes, effort: _Work) -> float:
    """Every alternative is gone through for it: too much in a recursive schema, and in a large value."""
    if effort.returns > 1:
        return 0
    return min(SMALL, KEPT // effort.steps) if b'"anyOf"' in key or b'"oneOf"' in key else inf


def _accepted(key: bytes) -> dict[str, Any]:
    """A schema that may be looked at."""
    if len(key) > LARGEST:
        raise Refused((), f"too large: {len(key)} bytes, and {LARGEST} are allowed")
    schema: dict[str, Any] = msgspec.json.decode(key)
    dialect = str(schema.get("$schema", ""))
    if dialect and dialect.removesuffix("#") not in _DIALECTS:
        raise Refused(("$schema",), f"{_quoted(dialect)} is a dialect that is not supported")
    return schema


def _said(error: Exception) -> tuple[Path, str]:
    """Where a validator finds something, and what: on one line and not much longer than it has to be."""
    text = str(getattr(error, "message", error))
    return tuple(getattr(error, "instance_path", ())), printable(clipped(text, _SHOWN))


def _told(place: str, text: str) -> str:
    place = place.removeprefix(".")
    return f"{place}: {text}" if place else text


def _quoted(text: str) -> str:
    return json.dumps(text[:_SHOWN])


def _place(root: str, path: Path) -> str:
    """The name of a place below one that is called `root`."""
    return root + "".join(map(path_part, path))


# How much work a schema can make


@dataclass(frozen=True, slots=True)
class _Work:
    """How many schemas apply to a value and down one path below it, and how many times the path leads back up."""

    steps: int = 0
    returns: int = 0

    def __add__(self, other: _Work) -> _Work:
        return _Work(self.steps + other.steps, self.returns + other.returns)

    def __or__(self, other: _Work) -> _Work:
        return _Work(max(self.steps, other.steps), max(self.returns, other.returns))


_META: Final = _Work(100, 2)
"""What a reference to a draft's own schema is taken for."""

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = (
    "not", "if", "then", "else", "additionalProperties", "unevaluatedProperties", "propertyNames", "items",
    "additionalItems", "unevaluatedItems", "contains", "contentSchema",
)  # fmt: skip
_MAPS: Final = ("patternProperties", "dependentSchemas", "dependencies")
_ONE_OF_MANY: Final = ("prefixItems", "items")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class _Effort:
    """Estimates the work before any of it is done.

    The validator takes time that doubles with each definition in a chain such as `{"allOf": [{"$ref": "#/$defs/b"},
    {"$ref": "#/$defs/b"}]}`. It knows when a recursive schema meets the same value again; but to explain a fault it
    goes through all of them, which is why `returns` matters.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._address = urldefrag(str(root.get("$id", root.get("id", "")))).url
        self._anchors = list(_anchors(root))
        self._done: dict[int, _Work] = {}
        self._open: set[int] = set()

    def of(self, schema: Any, path: Path) -> _Work:
        if not is_object(schema):
            return _Work(1)
        if schema is not self._root:
            _refuse_address(schema, path)
        at = id(schema)
        if at in self._open:
            return _Work(1, 1)
        if at not in self._done:
            if len(self._open) == DEPTH:
                raise Refused((), "nested too deeply")
            self._open.add(at)
            work = _Work(1)
            for part in self._parts(schema, path):
                work += part
            if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
                work += work  # they go through the others once more
            self._open.discard(at)
            self._done[at] = work
        return self._done[at]

    def _parts(self, schema: dict[str, Any], path: Path) -> Iterator[_Work]:
        for word, value in schema.items():
            here = (*path, word)
            if word in _REFERENCES and isinstance(value, str):
                yield self._reference(value, here)
            elif (word == "properties" and is_object(value)) or (word in _ONE_OF_MANY and is_array(value)):
                most = _Work()
                for part in self._each(value, here):
                    most |= part
                yield most
            elif (word in _LISTS and is_array(value)) or (word in _MAPS and is_object(value)):
                yield from self._each(value, here)
            elif word in _SINGLE:
                yield self.of(value, here)

    def _each(self, schemas: dict[str, Any] | list[Any], path: Path) -> Iterator[_Work]:
        for name, schema in schemas.items() if is_object(schemas) else enumerate(schemas):
            yield self.of(schema, (*path, name))

    def _reference(self, reference: str, path: Path) -> _Work:
        document, fragment = urldefrag(urljoin(self._address, reference) if self._address else reference)
        if reference.startswith("#") or document == self._address:
            return self.of(self._target(unquote(fragment), path), path)
        if document.partition(":")[2].startswith(_DRAFTS):
            return _META
        raise Refused(path, f"refers to {_quoted(reference)}, which is elsewhere and is not fetched")

    def _target(self, fragment: str, path: Path) -> Any:
        """What a JSON pointer, or the name of an anchor, leads to."""
        if fragment and not fragment.startswith("/"):
            found = [place for name, place in self._anchors if name == fragment]
            if len(found) == 1:
                return found[0]
            raise Refused(path, f"refers to {_quoted(fragment)}, which is {'several places' if found else 'nowhere'}")
        place: Any = self._root
        for part in fragment.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if is_object(place) and name in place:
                place = place[name]
            elif is_array(place) and name.isdecimal() and int(name) < len(place):
                place = place[int(name)]
            else:
                raise Refused(path, f"refers to {_quoted(fragment)}, which is nowhere")
            _refuse_address(place, path)
        return place


def _refuse_address(schema: Any, path: Path) -> None:
    """Inside such a schema, references would mean other places than they do outside."""
    if is_object(schema) and isinstance(schema.get("$id"), str):
        raise Refused((*path, "$id"), "schemas inside that have an address of their own are not supported")


def _anchors(root: Any) -> Iterator[tuple[str, Any]]:
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if is_object(place):
            waiting += place.values()
            for word in ("$anchor", "$dynamicAnchor"):
                if isinstance(name := place.get(word), str):
                    yield name, place
        elif is_array(place):
            waiting += place
