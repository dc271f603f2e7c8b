"""Decoding of results: from the bytes of a server to the types of the dialect, leaving out or repairing invalid parts.

The fast path is one decode: straight into the plain types for the dialect, for an older revision into its exact types,
and one converter. Only if that fails, the result is
taken apart, member by member and item by item. Valid parts are returned. Invalid parts are left out, or repaired if
their meaning is clear, and each gives a `ResultProblem` that names its place.

Without the slow path, one invalid tool would hide all others of its server, and a server that sends `null` for an
absent member could not be used at all. It costs nothing for valid results: 100 tools take 0.1 ms, 0.4 ms if one of
them is invalid, and about 4 ms if each has a `null` that is repaired.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw

from mcpspec.support.converters import IMPLIED, RESULT_DEFAULTS, Converter, DroppedFields
from mcpspec.support.members import accepts_null, is_open, is_struct, item_type, max_items
from mcpspec.support.objects import Member, Shape, spread_union
from mcpspec.support.structs import OpenObject, build_open_object, dec_hook, decode, shape_of
from mcpspec.support.tolerance import find_newer_members, newer_names, repair
from mcpspec.support.walk import format_path
from typedmcp import dialect
from typedmcp.client.results.open_members import member_checks
from typedmcp.errors import DecodeError, ProtocolError, UsageError
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.protocol.backends import to_struct
from typedmcp.revisions.conversions import convert_with, exact_upgrader, upgrader
from typedmcp.revisions.features import DIALECT, methods_of

__all__ = ["MAX_PROBLEMS", "ResultDecoder", "ResultProblem", "result_decoder", "to_protocol_error"]

MAX_PROBLEMS: Final = 100
"""Problems of one result that are described. One more says how many others there are."""

_ASSUMED: Final[Mapping[tuple[str, str], Callable[[], Any]]] = {("CallToolResult", "content"): list[Any]}
"""Further required members that clients assume if they are absent, by the name of their type."""

_ESSENTIAL: Final = frozenset({"isError", "inputRequests", "requestState"})
"""Optional members that change the meaning of a result if they are missing: they are never left out."""

_LARGE_BYTES: Final = 1 << 16
"""Bytes of a result above which it is large."""

_NOTHING: Final = object()
"""Stands for the value of a part that is absent, or not valid."""
_FAILURES = (ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class ResultProblem:
    """An invalid part of a result. The other parts were decoded."""

    path: str
    """The place of the part, such as `result.tools[17].inputSchema.type`."""
    reason: str
    """The fault, as in a `DecodeError`. For a part that was kept, also its repair."""
    value: Any = field(default=None, hash=False)
    """The part as the server sent it."""
    is_tolerated: bool = False
    """True if the part was understood, so that nothing is missing in the result."""
    is_allowed: bool = False
    """True for a member of a newer revision: the revision that is spoken ignores it."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ResultDecoder(Protocol):
    """The decoder for the results of one method."""

    def __call__(
        self,
        raw: bytes | Raw,
        problems: list[ResultProblem],
        limit: int = DEFAULT_LIMITS.result_problems,
        newer: set[str] | None = None,
    ) -> Any:
        """Return the result in the dialect, and append its problems, of which there may be `limit`.

        Members of newer revisions whose names are in `newer` are no problems, and the names of others are added to it.
        Raises `DecodeError`, with a path that begins with `result`, if the bytes are not a result of the method, and
        `ProtocolError` for a `resultType` that the method does not have.
        """
        ...


@cache
def result_decoder(method: str, revision: str, extended: tuple[tuple[str, Any], ...] = ()) -> ResultDecoder:
    """Return the decoder for the results of a method in a revision.

    `extended` are the types that extensions of the client add to the results of the method, by `resultType`. Raises
    `UsageError` for a method that the revision or the dialect does not have.
    """
    known = dialect.methods.CLIENT_REQUESTS.get(method)
    spoken = methods_of(revision).CLIENT_REQUESTS.get(method)
    if known is None or spoken is None:
        raise UsageError(f"{method}: not a method of {revision if spoken is None else DIALECT}")
    sources = {kind.__name__: kind for kind in spread_union(spoken.exact.result)}
    types = {
        "input_required" if kind.__name__ == "InputRequiredResult" else "complete": (sources[kind.__name__], kind)
        for kind in spread_union(known.exact.result)
        if kind.__name__ in sources
    }
    exact = types["complete"][0]
    plain = getattr(dialect.structs, exact.__name__)
    place = _TypedPlace(exact, plain, upgrader(revision).method(exact.__name__))
    decode_straight = _compile_straight(exact, plain, place) if revision == DIALECT else place.decode_older
    added = dict(extended)

    def decode_result(
        raw: bytes | Raw,
        problems: list[ResultProblem],
        limit: int = DEFAULT_LIMITS.result_problems,
        newer: set[str] | None = None,
    ) -> Any:
        result = decode_straight(raw)
        if result is not _NOTHING and result.result_type == "complete":
            return result
        return to_struct(_Recovery(revision, problems, limit, newer).decode(raw, types, added))

    return decode_result


def _compile_straight(exact: Any, plain: Any, place: _TypedPlace) -> Callable[[bytes | Raw], Any]:
    """Return the decoder of a result of the dialect, straight into plain types. It returns `_NOTHING` if it is invalid.

    A null may be one that plain types take for absence and exact ones reject: then `place` decodes by way of those. It
    also decodes large results: most are a few long texts, in which the search for a null, and the copy that it needs,
    would take longer. A page of a list has many items.
    """
    decode_plain, checks = _decoder(plain), member_checks(exact)
    large = sys.maxsize if hasattr(plain, "next_cursor") else _LARGE_BYTES

    def decode_straight(raw: bytes | Raw) -> Any:
        try:
            # The format is the fastest way to the bytes, and `rpartition` to search a word in a short text.
            if len(raw) > large or (b"%b" % raw).rpartition(b"null")[1]:
                return place.decode_valid(raw)
            result = decode_plain(raw)
            for read, check in checks:
                if (value := read(result)) is not None:
                    check([value])
        except _FAILURES:
            return _NOTHING
        return result

    return decode_straight


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    with suppress(DecodeError):
        decode(b"", kind)  # lets msgspec build its tables for the type under the lock of all generated types
    return msgspec.json.Decoder(kind, dec_hook=dec_hook).decode


def to_protocol_error(error: DecodeError) -> ProtocolError:
    """Return the error for a result that does not fit its method."""
    if error.path.startswith("result"):
        return ProtocolError(str(error))
    separator = "." if error.path and not error.path.startswith("[") else ""
    return ProtocolError(f"result{separator}{error.path}: {error.reason}")


# The slow path


class _TypedPlace:
    """The types at a place in a result, in the revision and in the dialect, and the converter between them."""

    __slots__ = ("_convert", "_decode", "_newer", "source", "target")

    def __init__(self, source: Any, target: Any, convert: Converter | None) -> None:
        self.source = source
        self.target = target
        self._decode = _decoder(source)
        self._convert = convert
        self._newer = [b'"%b"' % name.encode() for name in newer_names(source, target) - IMPLIED.keys()]

    def may_have_newer(self, raw: bytes | Raw) -> bool:
        """Return whether a value may have members that only the dialect has. It does not if this is False."""
        return bool(self._newer) and any(map((b"%b" % raw).__contains__, self._newer))

    def decode_older(self, raw: bytes | Raw) -> Any:
        """Return the value in the dialect, or `_NOTHING` if it does not fit, or may have newer members."""
        return _NOTHING if self.may_have_newer(raw) else self.decode_valid(raw)

    def decode_valid(self, raw: bytes | Raw) -> Any:
        """Return the value in the dialect, or `_NOTHING` if it does not fit the types completely."""
        try:
            value = self._decode(raw)
            if self._convert is None:
                return value
            dropped: DroppedFields = []
            value = self._convert(value, lost=dropped)
        except _FAILURES:
            return _NOTHING
        return _NOTHING if dropped else value

    def explain(self, raw: bytes | Raw | None, path: str) -> DecodeError:
        """Return the reason why a value does not fit, or is missing."""
        if raw is None:
            return DecodeError(path, "required, but missing")
        for kind in (self.source, self.target):
            try:
                decode(bytes(raw), kind)
            except DecodeError as error:
                return DecodeError(_join(path, error.path), error.reason)
        return DecodeError(path, f"has no place in {DIALECT}")


@cache
def _place_of(revision: str, source: Any, target: Any) -> _TypedPlace:
    return _TypedPlace(source, target, convert_with(exact_upgrader(revision), source, target))


class _Recovery:
    """Decodes one result that does not fit its type, as far as it is valid.

    It reports the first problems in full, and the number of others. Raises `DecodeError` for more than `limit`, since
    each takes time.
    """

    def __init__(self, revision: str, problems: list[ResultProblem], limit: int, newer: set[str] | None) -> None:
        self._revision, self._newer = revision, set[str]() if newer is None else newer
        self._place: Callable[[Any, Any], _TypedPlace] = partial(_place_of, revision)
        self._problems = problems
        self._limit = limit
        self._count = 0

    def decode(self, raw: bytes | Raw, types: Mapping[str, tuple[Any, Any]], extended: Mapping[str, Any]) -> Any:
        """Decode a result of one of these types, or of those of extensions, by its `resultType`."""
        try:
            parts = _split_object(raw)
        except _FAILURES:
            raise self._place(*types["complete"]).explain(raw, "result") from None
        name: Any = "complete"
        if "resultType" in parts and "result_type" in _members(types["complete"][0]):  # legacy revisions have none
            name = _to_plain(parts["resultType"])
            if isinstance(name, str) and (kind := extended.get(name)) is not None:
                try:
                    return decode(bytes(raw), kind)
                except DecodeError as error:
                    raise DecodeError(_join("result", error.path), error.reason) from None
            if not isinstance(name, str) or name not in types:
                known: Any = Literal[tuple(sorted(types))]  # pyright: ignore[reportInvalidTypeForm]
                raise ProtocolError(str(self._place(known, known).explain(parts["resultType"], "result.resultType")))
        try:
            return self._decode_object(parts, *types[name], "result")
        finally:
            if self._count > MAX_PROBLEMS:
                self._problems.append(ResultProblem("result", f"{self._count - MAX_PROBLEMS} more problems"))

    def _decode_object(self, parts: dict[str, Raw], source: Any, target: Any, path: str) -> Any:
        """Return an object of the dialect with the valid members."""
        source_members, values = _members(source), dict[str, Any]()
        for name, member in _members(target).items():
            value = RESULT_DEFAULTS.get(name, _NOTHING)
            if name in source_members:
                place = self._place(source_members[name].hint, member.hint)
                raw = parts.get(member.wire)
                default = _default_of(target, name, raw)
                value = self._decode_member(raw, source_members[name], default, place, f"{path}.{member.wire}")
            elif member.wire in parts and value is _NOTHING:
                value = self._place(member.hint, member.hint).decode_valid(parts[member.wire])
                self._report_newer(f"{path}.{member.wire}", parts[member.wire], is_kept=value is not _NOTHING)
            if value is not _NOTHING:
                values[name] = value
        return target(**values)

    def _decode_member(self, raw: Raw | None, member: Member, default: Any, place: _TypedPlace, path: str) -> Any:
        """Return the value of a member, `_NOTHING`, or the default of a required one. Raises `DecodeError`."""
        is_null, value = False, _NOTHING
        if raw is not None:
            is_null = bytes(raw) == b"null" and not member.required and not accepts_null(place.source)
            value = _NOTHING if is_null else self._decode_value(raw, member, place, path)
        if value is not _NOTHING or (raw is None and not member.required):
            return value
        explain = partial(place.explain, raw, path)
        if not member.required and (is_null or member.wire not in _ESSENTIAL):
            self._report(explain, raw, is_tolerated=is_null)
            return _NOTHING
        if default is _NOTHING:
            raise explain()
        self._report(explain, raw, f"; read as {json.dumps(default)}", is_tolerated=True)
        return default

    def _decode_value(self, raw: Raw, member: Member, place: _TypedPlace, path: str) -> Any:
        """Return the value of a member, or its valid parts if it is not valid as a whole."""
        item = item_type(place.source)
        if item is not None and (items := _try(_split_array, raw)) is not _NOTHING:
            values = self._decode_items(items, self._place(item, item_type(place.target)), path)
            if (limit := max_items(place.source)) is not None and len(values) > limit:
                text = f"expected at most {limit} items, got {len(values)}"
                self._report(partial(DecodeError, path, text), raw)
            return values[:limit]
        value = self._decode_or_repair(raw, place, path)
        if value is not _NOTHING or (parts := _try(_split_object, raw)) is _NOTHING:
            return value
        if is_open(place.target):
            return self._decode_open_object(parts, place.target, path)
        if member.required and is_struct(place.source):
            return self._decode_object(parts, place.source, place.target, path)
        return _NOTHING

    def _decode_items(self, items: list[Raw], place: _TypedPlace, path: str) -> list[Any]:
        values: list[Any] = []
        for i, raw in enumerate(items):
            item_path = f"{path}[{i}]"
            item = self._decode_or_repair(raw, place, item_path)
            if item is not _NOTHING:
                values.append(item)
            else:
                self._report(partial(place.explain, raw, item_path), raw)
        return values

    def _decode_open_object(self, parts: dict[str, Raw], kind: type[OpenObject], path: str) -> Any:
        """Return an open object without the declared members that are invalid."""
        members = {key: _to_plain(raw) for key, raw in parts.items()}
        for wire, hint, is_required in _shape_of(kind).members:
            place, member_path = self._place(hint, hint), f"{path}[{json.dumps(wire)}]"
            value = self._decode_or_repair(parts[wire], place, member_path) if wire in parts else _NOTHING
            if value is not _NOTHING:
                members[wire] = value
            elif is_required:
                return _NOTHING
            elif wire in parts:
                self._report(partial(place.explain, parts[wire], member_path), parts[wire])
                del members[wire]
        return build_open_object(kind, members)

    def _decode_or_repair(self, raw: Raw, place: _TypedPlace, path: str) -> Any:
        """Decode a value, repaired if necessary. Also accept a value that only the dialect allows."""
        value = self._keep_newer(raw, place, path) if place.may_have_newer(raw) else _NOTHING
        value = place.decode_valid(raw) if value is _NOTHING else value
        if value is not _NOTHING or (value := self._repair(raw, place, path)) is not _NOTHING:
            return value
        if place.source == place.target:
            return _NOTHING
        value = self._decode_or_repair(raw, self._place(place.target, place.target), path)
        if value is not _NOTHING:
            note = f"; kept, since {DIALECT} allows it"
            self._report(partial(place.explain, raw, path), raw, note, is_tolerated=True)
        return value

    def _keep_newer(self, raw: Raw, place: _TypedPlace, path: str) -> Any:
        """Return a value by its type of the dialect if it has members that only that type has, and report these."""
        newer = [*find_newer_members(_to_plain(raw), place.source, place.target)]
        value = self._place(place.target, place.target).decode_valid(raw) if newer else _NOTHING
        for where, part in newer:
            self._report_newer(_join(path, format_path(where)), _encode(part), is_kept=value is not _NOTHING)
        return value

    def _report_newer(self, path: str, raw: bytes | Raw, *, is_kept: bool) -> None:
        """Report a newer member, once for each name: servers send them in every result."""
        if (name := path.rpartition(".")[2]) not in self._newer:
            self._newer.add(name)
            note = f"{DIALECT} has it" if is_kept else f"it does not fit {DIALECT}"
            text = f"not a member in {self._revision}; {'kept' if is_kept else 'left out'}, since {note}"
            self._problems.append(ResultProblem(path, text, _to_plain(raw), is_kept, is_allowed=True))

    def _repair(self, raw: Raw, place: _TypedPlace, path: str) -> Any:
        """Return a repaired value, and report each repair. Return `_NOTHING` if the value is still invalid."""
        plain = _to_plain(raw)
        repairs = [*repair(plain, place.source)]
        text: Any = _try(_encode, plain) if repairs else _NOTHING
        value = _NOTHING if text is _NOTHING else place.decode_valid(text)
        for where, hint, part, note in repairs if value is not _NOTHING else ():
            text = None if part is UNSET else _encode(part)
            explain = partial(self._place(hint, hint).explain, text, _join(path, format_path(where)))
            self._report(explain, text, f"; {note}", is_tolerated=True)
        return value

    def _report(
        self, explain: Callable[[], DecodeError], raw: bytes | Raw | None, note: str = "", *, is_tolerated: bool = False
    ) -> None:
        """Count a problem, and describe it if it is one of the first."""
        if self._count == self._limit:
            raise DecodeError("result", f"more than {self._limit} invalid parts (result_problems)")
        self._count += 1
        if self._count <= MAX_PROBLEMS:
            fault = explain()
            part = None if raw is None else _to_plain(raw)
            self._problems.append(ResultProblem(fault.path, fault.reason + note, part, is_tolerated))


def _default_of(kind: Any, name: str, raw: Raw | None) -> Any:
    """Return what clients assume for a required member that is absent or invalid, or `_NOTHING`."""
    is_absent = raw is None or bytes(raw) == b"null"
    make = _ASSUMED.get((kind.__name__, name)) if is_absent else None
    return RESULT_DEFAULTS.get(name, _NOTHING) if make is None else make()


_encode = msgspec.json.Encoder().encode
_parse = msgspec.json.Decoder().decode
_split_object = msgspec.json.Decoder(dict[str, Raw]).decode
_split_array = msgspec.json.Decoder(list[Raw]).decode


def _try(function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except _FAILURES:
        return _NOTHING


def _to_plain(raw: bytes | Raw) -> Any:
    """Return a value as plain JSON, or as text if it is not valid JSON."""
    value = _try(_parse, raw)
    return bytes(raw).decode(errors="replace") if value is _NOTHING else value


def _join(path: str, inner: str) -> str:
    return f"{path}.{inner}" if inner and not inner.startswith("[") else path + inner


# Types


@cache
def _members(kind: Any) -> dict[str, Member]:
    """Return the members of an object type by their Python names."""
    names = kind.__attributes__ if is_open(kind) else kind.__struct_fields__
    return dict(zip(names, _shape_of(kind).members, strict=False))  # a tag follows them


def _shape_of(kind: Any) -> Shape:
    shape = shape_of(kind)
    assert shape is not None
    return shape
