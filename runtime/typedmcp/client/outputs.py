"""What tools return, checked against their `outputSchema`.

Needs the extra `jsonschema`, which is jsonschema-rs; without it nothing is checked. It knows JSON Schema 2020-12, which
is meant where a schema names no other, 2019-09, and drafts 7, 6 and 4. `format` is checked where the draft says so.

Schemas come from servers, so they are not trusted: nothing that they refer to is fetched, patterns give up after so
many steps, and a schema that could keep the validator busy for long is refused.
https://modelcontextprotocol.io/specification/2026-07-28/basic#schema-validation
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object
from typedmcp import dialect
from typedmcp.client.replies import Problem

__all__ = ["OutputChecker", "available"]

D = dialect.structs

KEPT: Final = 512
"""How many compiled schemas are kept."""

STEPS: Final = 10_000
"""How many steps a pattern may take on one string, where it needs to go back at all."""

EFFORT: Final = 10_000
"""How many schemas may apply to one value and the path below it."""

DEPTH: Final = 150
"""How many schemas may be inside one another, references followed."""

LARGEST: Final = 256 << 10
"""How many bytes a schema may have."""

SMALL: Final = 64 << 10
"""How many bytes a value may have for alternatives to be explained."""

_UNWRITABLE = (ValueError, TypeError, OverflowError, RecursionError)
_SHOWN: Final = 300
_CONTENT: Final = "structuredContent"
_SCHEMA: Final = "outputSchema"
_DRAFTS: Final = "//json-schema.org/draft"
_DIALECTS: Final = frozenset(
    f"{scheme}:{_DRAFTS}{name}/schema"
    for scheme in ("http", "https")
    for name in ("/2020-12", "/2019-09", "-07", "-06", "-04")
)


@cache
def available() -> bool:
    """Whether outputs can be checked: jsonschema-rs is installed."""
    return find_spec("jsonschema_rs") is not None


class OutputChecker:
    """Checks results of tools. Compiles each schema once, and keeps the last ones used."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._checks: OrderedDict[bytes, _Check | Problem] = OrderedDict()

    def problem(self, tool: D.Tool) -> Problem | None:
        """Why a tool's results cannot be checked; None if they can, or need not be."""
        check = self._check(tool)
        return check if isinstance(check, Problem) else None

    def check(self, tool: D.Tool, result: D.CallToolResult) -> str | None:
        """What is wrong with a result, such as `structuredContent.degrees: "warm" is not of type "number"`.

        None for what fits, for errors, and for tools without a schema. Where the schema itself cannot be used the text
        begins with `outputSchema`: the specification has such a schema be rejected, not be taken for one that allows
        everything.
        """
        if result.is_error is True:
            return None
        check = self._check(tool)
        if check is None:
            return None
        if isinstance(check, Problem):
            return str(check)
        if result.structured_content is UNSET:
            return f"{_CONTENT}: required by the tool's outputSchema, but missing"
        return check.fault(result.structured_content)

    def _check(self, tool: D.Tool) -> _Check | Problem | None:
        if tool.output_schema is UNSET or not available():
            return None
        try:
            key = msgspec.json.encode(tool.output_schema)
        except _UNWRITABLE as error:
            return Problem(_SCHEMA, f"is no JSON: {error}")
        check = self._checks.get(key)
        if check is None:
            check = self._checks[key] = _compile(key)
            if len(self._checks) > self._kept:
                self._checks.popitem(last=False)
        self._checks.move_to_end(key)
        return check


@dataclass(frozen=True, slots=True)
class _Check:
    """A schema that can be used."""

    validator: Any
    explained: float
    """How many bytes a value may have for what is wrong with it to be looked for, which takes longer."""

    def fault(self, value: Any) -> str | None:
        try:
            if self.validator.is_valid(value):
                return None
            if self.explained == inf or len(msgspec.json.encode(value)) <= self.explained:
                self.validator.validate(value)
        except _UNWRITABLE as error:
            if hasattr(error, "instance_path"):  # if not, the value is too deep to be looked into
                return str(_problem(_CONTENT, error))
        return f"{_CONTENT}: does not fit the tool's outputSchema"


def _compile(key: bytes) -> _Check | Problem:
    library = import_module("jsonschema_rs")
    try:
        schema = _accepted(key)
        effort = _Effort(schema).of(schema, ())
        if effort.steps > EFFORT:
            raise _Refused((), "too complex: too many of its parts apply to the same value")
        patterns = library.FancyRegexOptions(backtrack_limit=STEPS)
        validator = library.validator_for(schema, offline=True, pattern_options=patterns)
    except RecursionError:
        return Problem(_SCHEMA, "nested too deeply")
    except _Refused as refused:
        return Problem(_place(_SCHEMA, refused.path), refused.reason)
    except (ValueError, library.ReferencingError) as error:
        return _problem(_SCHEMA, error)
    return _Check(validator, _explained(key, effort))


def _explained(key: bytes, effort: _Work) -> float:
    """Every alternative is gone through for it: too much in a recursive schema, and in a large value."""
    if effort.returns > 1:
        return 0
    return SMALL if b'"anyOf"' in key or b'"oneOf"' in key else inf


def _accepted(key: bytes) -> dict[str, Any]:
    """A schema that may be looked at."""
    if len(key) > LARGEST:
        raise _Refused((), f"too large: {len(key)} bytes, and {LARGEST} are allowed")
    schema: dict[str, Any] = msgspec.json.decode(key)
    dialect = str(schema.get("$schema", ""))
    if dialect and dialect.removesuffix("#") not in _DIALECTS:
        raise _Refused(("$schema",), f"{_quoted(dialect)} is a dialect that is not supported")
    return schema


def _problem(root: str, error: Exception) -> Problem:
    """What a validator says, on one line and not much longer than it has to be."""
    text = str(getattr(error, "message", error))
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return Problem(_place(root, getattr(error, "instance_path", ())), text)


def _quoted(text: str) -> str:
    return json.dumps(text[:_SHOWN])


Path: TypeAlias = tuple[str | int, ...]


def _place(root: str, path: Any) -> str:
    for part in path:
        if isinstance(part, str) and part.replace("$", "_").isidentifier() and part.isascii():
            root += f".{part}"
        else:
            root += f"[{json.dumps(part)}]"
    return root


# How much work a schema can make


class _Refused(Exception):  # noqa: N818  # named for the state, as all of them are
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


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
                raise _Refused((), "nested too deeply")
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
        raise _Refused(path, f"refers to {_quoted(reference)}, which is elsewhere and is not fetched")

    def _target(self, fragment: str, path: Path) -> Any:
        """What a JSON pointer, or the name of an anchor, leads to."""
        if fragment and not fragment.startswith("/"):
            found = [place for name, place in self._anchors if name == fragment]
            if len(found) == 1:
                return found[0]
            raise _Refused(path, f"refers to {_quoted(fragment)}, which is {'several places' if found else 'nowhere'}")
        place: Any = self._root
        for part in fragment.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if is_object(place) and name in place:
                place = place[name]
            elif is_array(place) and name.isdecimal() and int(name) < len(place):
                place = place[int(name)]
            else:
                raise _Refused(path, f"refers to {_quoted(fragment)}, which is nowhere")
            _refuse_address(place, path)
        return place


def _refuse_address(schema: Any, path: Path) -> None:
    """Inside such a schema, references would mean other places than they do outside."""
    if is_object(schema) and isinstance(schema.get("$id"), str):
        raise _Refused((*path, "$id"), "schemas inside that have an address of their own are not supported")


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
