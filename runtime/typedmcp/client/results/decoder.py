"""Decoding of results: from the bytes of a server to the types of the dialect, leaving out or repairing invalid parts.

The fast path is one decode: straight into the plain types for the dialect, for an older revision into its exact types,
and one converter. Only if that fails, the result is
taken apart, member by member and item by item. Valid parts are returned. Invalid parts are left out, or repaired if
their meaning is clear, and each gives a `ResultProblem` that names its place.

Without the slow path, one invalid tool would hide all others of its server, and a server that sends `null` for an
absent member could not be used at all. It costs nothing for valid results: 100 tools take 0.13 ms, 0.27 ms if one of
them is invalid, and 1.4 ms if each has a `null` that is repaired.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, Protocol, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, UnsetType

from mcpspec.support.converters import RESULT_DEFAULTS, Converter, DroppedFields
from mcpspec.support.members import declared_members, is_open, is_struct
from mcpspec.support.objects import Member, Shape, UnionOptions, is_array, is_object, spread_union, strip_absent
from mcpspec.support.structs import OpenObject, dec_hook, decode
from typedmcp import dialect
from typedmcp.client.results.open_members import member_checks
from typedmcp.errors import DecodeError, ProtocolError, UsageError
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.protocol.backends import to_struct
from typedmcp.revisions.conversions import convert_with, exact_upgrader, upgrader
from typedmcp.revisions.features import DIALECT, methods_of
from typedmcp.revisions.results import build_open_object

__all__ = ["MAX_PROBLEMS", "ResultDecoder", "ResultProblem", "result_decoder", "to_protocol_error"]

MAX_PROBLEMS: Final = 100
"""Problems of one result that are described. One more says how many others there are."""

_ASSUMED: Final[Mapping[tuple[str, str], Callable[[], Any]]] = {("CallToolResult", "content"): list[Any]}
"""Further required members that clients assume if they are absent, by the name of their type."""

_ESSENTIAL: Final = frozenset({"isError", "inputRequests", "requestState"})
"""Optional members that change the meaning of a result if they are missing: they are never left out."""

_LARGE_BYTES: Final = 1 << 16
"""Bytes of a result above which it is large."""

_ABSENT: Final = object()
_INVALID: Final = object()
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

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ResultDecoder(Protocol):
    """The decoder for the results of one method."""

    def __call__(
        self, raw: bytes | Raw, problems: list[ResultProblem], limit: int = DEFAULT_LIMITS.result_problems
    ) -> Any:
        """Return the result in the dialect, and append its problems, of which there may be `limit`.

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
    pairs = {
        kind.__name__: (sources[kind.__name__], kind)
        for kind in spread_union(known.exact.result)
        if kind.__name__ in sources
    }
    input_required = pairs.pop("InputRequiredResult", None)
    (complete,) = pairs.values()
    return _compile(_SlowDecoder(method, revision, complete, input_required, dict(extended)), revision)


def _compile(slow_decoder: _SlowDecoder, revision: str) -> ResultDecoder:
    exact = slow_decoder.complete[0]
    plain = getattr(dialect.structs, exact.__name__)
    complete = _TypedPlace(exact, plain, upgrader(revision).method(exact.__name__))
    decode_straight = _compile_straight(exact, plain, complete) if revision == DIALECT else complete.decode_valid

    def decode_result(
        raw: bytes | Raw, problems: list[ResultProblem], limit: int = DEFAULT_LIMITS.result_problems
    ) -> Any:
        result = decode_straight(raw)
        if result is not _INVALID and result.result_type == "complete":
            return result
        return to_struct(slow_decoder.decode(raw, problems, limit))

    return decode_result


def _compile_straight(exact: Any, plain: Any, place: _TypedPlace) -> Callable[[bytes | Raw], Any]:
    """Return the decoder of a result of the dialect, straight into plain types. It returns `_INVALID` if it is invalid.

    A null may be one that plain types take for absence and exact ones reject: then `place` decodes by way of those. It
    also decodes large results: most are a few long texts, in which the search for a null, and the copy that it needs,
    would take longer. A page of a list has many items.
    """
    decode_plain, checks = _decoder(plain), member_checks(exact)
    large = sys.maxsize if "next_cursor" in plain.__struct_fields__ else _LARGE_BYTES

    def decode_straight(raw: bytes | Raw) -> Any:
        try:
            # The format is the fastest way to the bytes, and a search from the end takes half the time.
            if len(raw) > large or (b"%b" % raw).rfind(b"null") >= 0:
                return place.decode_valid(raw)
            result = decode_plain(raw)
            for read, check in checks:
                if (value := read(result)) is not None:
                    check([value])
        except _FAILURES:
            return _INVALID
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

    __slots__ = ("_convert", "_decode", "source", "target")

    def __init__(self, source: Any, target: Any, convert: Converter | None) -> None:
        self.source = source
        self.target = target
        self._decode = _decoder(source)
        self._convert = convert

    def decode_valid(self, raw: bytes | Raw) -> Any:
        """Return the value in the dialect, or `_INVALID` if it does not fit the types completely."""
        try:
            value = self._decode(raw)
            if self._convert is None:
                return value
            dropped: DroppedFields = []
            value = self._convert(value, lost=dropped)
        except _FAILURES:
            return _INVALID
        return _INVALID if dropped else value

    def explain(self, raw: bytes | Raw, path: str) -> DecodeError:
        """Return the reason why a value does not fit."""
        for kind in (self.source, self.target):
            try:
                decode(bytes(raw), kind)
            except DecodeError as error:
                return DecodeError(_join(path, error.path), error.reason)
        return DecodeError(path, f"has no place in {DIALECT}")


class _SlowDecoder:
    """Decodes results that do not fit their type, as far as they are valid."""

    def __init__(
        self,
        method: str,
        revision: str,
        complete: tuple[Any, Any],
        input_required: tuple[Any, Any] | None,
        extended: Mapping[str, Any],
    ) -> None:
        self.complete = complete
        self._method = method
        self._extended = extended
        self._input_required = input_required
        self._has_result_type = "result_type" in _members(complete[0])
        self._conversion = exact_upgrader(revision)
        self._places: dict[tuple[Any, Any], _TypedPlace] = {}

    def place(self, source: Any, target: Any) -> _TypedPlace:
        key = (source, target)
        if key not in self._places:
            self._places[key] = _TypedPlace(source, target, convert_with(self._conversion, source, target))
        return self._places[key]

    def decode(self, raw: bytes | Raw, problems: list[ResultProblem], limit: int) -> Any:
        try:
            parts = _split_object(raw)
        except _FAILURES:
            raise self.place(*self.complete).explain(raw, "result") from None
        if (kind := self._extension_type(parts)) is not None:
            return _decode_extension(raw, kind)
        source, target = self._select_types(parts)
        report = _ProblemReport(problems, limit)
        try:
            return self._decode_object(parts, source, target, "result", report)
        finally:
            report.close()

    def _extension_type(self, parts: dict[str, Raw]) -> Any:
        """Return the type of a result that a declared extension adds to the method, or None for other results."""
        if not self._extended or not self._has_result_type or "resultType" not in parts:
            return None
        name = _to_plain(parts["resultType"])
        return self._extended.get(name) if isinstance(name, str) else None

    def _select_types(self, parts: dict[str, Raw]) -> tuple[Any, Any]:
        """Return the types for the `resultType` of a result. Legacy revisions do not have it."""
        if not self._has_result_type or "resultType" not in parts:
            return self.complete
        types = {"complete": self.complete} | ({"input_required": self._input_required} if self._input_required else {})
        raw = parts["resultType"]
        name = _to_plain(raw)
        if isinstance(name, str) and name in types:
            return types[name]
        known: Any = Literal[tuple(types)]  # pyright: ignore[reportInvalidTypeForm]
        raise ProtocolError(str(self.place(known, known).explain(raw, "result.resultType")))

    def _decode_object(self, parts: dict[str, Raw], source: Any, target: Any, path: str, report: _ProblemReport) -> Any:
        """Return an object of the dialect with the valid members."""
        source_members, values = _members(source), dict[str, Any]()
        for name, member in _members(target).items():
            value = RESULT_DEFAULTS.get(name, _ABSENT)
            if name in source_members:
                place = self.place(source_members[name].hint, member.hint)
                default = _default_of(target, name, parts.get(member.wire))
                member_path = f"{path}.{member.wire}"
                value = self._decode_member(parts, source_members[name], default, place, member_path, report)
            if value is not _ABSENT:
                values[name] = value
        return target(**values)

    def _decode_member(
        self,
        parts: dict[str, Raw],
        member: Member,
        default: Any,
        place: _TypedPlace,
        path: str,
        report: _ProblemReport,
    ) -> Any:
        """Return the value of a member, `_ABSENT`, or the default of a required one. Raises `DecodeError`."""
        raw = parts.get(member.wire)
        if raw is None:
            missing = DecodeError(path, "required, but missing")
            return _use_default(default, missing, None, report) if member.required else _ABSENT
        is_null = bytes(raw) == b"null" and not member.required and not _options(place.source).accepts_null
        value = _INVALID if is_null else self._decode_value(raw, member, place, path, report)
        if value is not _INVALID:
            return value
        fault, plain = place.explain(raw, path), _to_plain(raw)
        if member.required or not (is_null or member.wire not in _ESSENTIAL):
            return _use_default(default, fault, plain, report)
        report.add(fault, plain, is_tolerated=is_null)
        return _ABSENT

    def _decode_value(self, raw: Raw, member: Member, place: _TypedPlace, path: str, report: _ProblemReport) -> Any:
        """Return the value of a member, or its valid parts if it is not valid as a whole."""
        item = _item_type(place.source)
        if item is not None and (items := _try(_split_array, raw)) is not _INVALID:
            values = self._decode_items(items, self.place(item, _item_type(place.target)), path, report)
            return _truncate(values, place.source, path, report)
        value = self._decode_or_repair(raw, place, path, report)
        if value is not _INVALID or (parts := _try(_split_object, raw)) is _INVALID:
            return value
        if is_open(place.target):
            return self._decode_open_object(parts, place.target, path, report)
        if member.required and is_struct(place.source):
            return self._decode_object(parts, place.source, place.target, path, report)
        return _INVALID

    def _decode_items(self, items: list[Raw], place: _TypedPlace, path: str, report: _ProblemReport) -> list[Any]:
        values: list[Any] = []
        for i, raw in enumerate(items):
            item_path = f"{path}[{i}]"
            item = self._decode_or_repair(raw, place, item_path, report)
            if item is not _INVALID:
                values.append(item)
            elif report.has_room():
                report.add(place.explain(raw, item_path), _to_plain(raw))
        return values

    def _decode_open_object(
        self, parts: dict[str, Raw], kind: type[OpenObject], path: str, report: _ProblemReport
    ) -> Any:
        """Return an open object without the declared members that are invalid."""
        members = {key: _to_plain(raw) for key, raw in parts.items()}
        for wire, (declared, is_required) in declared_members(kind).items():
            hint, member_path = strip_absent(declared, UnsetType), f"{path}[{json.dumps(wire)}]"
            place = self.place(hint, hint)
            value = self._decode_or_repair(parts[wire], place, member_path, report) if wire in parts else _INVALID
            if value is not _INVALID:
                members[wire] = value
            elif is_required:
                return _INVALID
            elif wire in parts:
                report.add(place.explain(parts[wire], member_path), members.pop(wire))
        return build_open_object(kind, members)

    def _decode_or_repair(self, raw: Raw, place: _TypedPlace, path: str, report: _ProblemReport) -> Any:
        """Decode a value, repaired if necessary. Also accept a value that only the dialect allows."""
        value = place.decode_valid(raw)
        if value is not _INVALID or (value := self._repair(raw, place, path, report)) is not _INVALID:
            return value
        if place.source == place.target:
            return _INVALID
        in_dialect = self.place(place.target, place.target)
        value = in_dialect.decode_valid(raw)
        if value is _INVALID:
            value = self._repair(raw, in_dialect, path, report)
        if value is not _INVALID and report.has_room():
            fault = place.explain(raw, path)
            kept = DecodeError(fault.path, f"{fault.reason}; kept, since {DIALECT} allows it")
            report.add(kept, _to_plain(raw), is_tolerated=True)
        return value

    def _repair(self, raw: Raw, place: _TypedPlace, path: str, report: _ProblemReport) -> Any:
        """Return a repaired value, and report each repair. Return `_INVALID` if the value is still invalid."""
        repairs: list[_Repair] = []
        repaired = _repair_value(_to_plain(raw), place.source, path, repairs)
        text: Any = _try(_encode, repaired) if repairs else _INVALID
        value = _INVALID if text is _INVALID else place.decode_valid(text)
        if value is not _INVALID:
            for repair in repairs:
                if report.has_room():
                    fault = self.place(repair.hint, repair.hint).explain(_encode(repair.value), repair.path)
                    repaired_fault = DecodeError(fault.path, f"{fault.reason}; {repair.description}")
                    report.add(repaired_fault, repair.value, is_tolerated=True)
        return value


def _decode_extension(raw: bytes | Raw, kind: Any) -> Any:
    try:
        return decode(bytes(raw), kind)
    except DecodeError as error:
        raise DecodeError(_join("result", error.path), error.reason) from None


class _ProblemReport:
    """Collects the problems of one result: the first ones in full, and the number of others.

    Raises `DecodeError` for more than `limit`, since each takes time.
    """

    def __init__(self, problems: list[ResultProblem], limit: int) -> None:
        self._problems = problems
        self._limit = limit
        self._count = 0

    def has_room(self) -> bool:
        """Return whether the next problem will be described. If not, count it."""
        if self._count < MAX_PROBLEMS:
            return True
        self._add_to_count()
        return False

    def add(self, fault: DecodeError, value: Any, *, is_tolerated: bool = False) -> None:
        self._add_to_count()
        if self._count <= MAX_PROBLEMS:
            self._problems.append(ResultProblem(fault.path, fault.reason, value, is_tolerated))

    def _add_to_count(self) -> None:
        if self._count == self._limit:
            raise DecodeError("result", f"more than {self._limit} invalid parts (result_problems)")
        self._count += 1

    def close(self) -> None:
        if self._count > MAX_PROBLEMS:
            self._problems.append(ResultProblem("result", f"{self._count - MAX_PROBLEMS} more problems"))


def _default_of(kind: Any, name: str, raw: Raw | None) -> Any:
    """Return what clients assume for a required member that is absent or invalid, or `_ABSENT` for nothing."""
    is_absent = raw is None or bytes(raw) == b"null"
    make = _ASSUMED.get((kind.__name__, name)) if is_absent else None
    return RESULT_DEFAULTS.get(name, _ABSENT) if make is None else make()


def _use_default(default: Any, fault: DecodeError, value: Any, report: _ProblemReport) -> Any:
    """Return the default of a required member. Raises the fault if it has none."""
    if default is _ABSENT:
        raise fault
    report.add(DecodeError(fault.path, f"{fault.reason}; read as {json.dumps(default)}"), value, is_tolerated=True)
    return default


def _truncate(values: list[Any], hint: Any, path: str, report: _ProblemReport) -> list[Any]:
    """Return as many items of a list as its type allows."""
    bounds = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    limit = next((bound.max_length for bound in bounds if bound.max_length is not None), len(values))
    if len(values) > limit:
        report.add(DecodeError(path, f"expected at most {limit} items, got {len(values)}"), values)
    return values[:limit]


_encode = msgspec.json.Encoder().encode
_parse = msgspec.json.Decoder().decode
_split_object = msgspec.json.Decoder(dict[str, Raw]).decode
_split_array = msgspec.json.Decoder(list[Raw]).decode


def _try(function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except _FAILURES:
        return _INVALID


def _to_plain(raw: Raw) -> Any:
    """Return a value as plain JSON, or as text if it is not valid JSON."""
    value = _try(_parse, raw)
    return bytes(raw).decode(errors="replace") if value is _INVALID else value


def _join(path: str, inner: str) -> str:
    return f"{path}.{inner}" if inner and not inner.startswith("[") else path + inner


# Repairs


@dataclass(frozen=True, slots=True)
class _Repair:
    """An invalid value, and a description of its repair."""

    path: str
    value: Any
    hint: Any
    description: str


def _repair_value(value: Any, hint: Any, path: str, repairs: list[_Repair]) -> Any:
    """Return a copy of a value in which everything is repaired whose meaning is clear.

    That is: without `null` members, with constants that an open object requires, such as the type of a tool's schema,
    and with `sizes` of an icon as a list, as since 2025-11-25.
    """
    options = _options(hint)
    if is_array(value) and options.item is not None:
        return [_repair_value(item, options.item, f"{path}[{i}]", repairs) for i, item in enumerate(value)]
    if is_object(value) and options.open is not None:
        return _add_constants(value, options.open, path, repairs)
    kind = options.select(value) if is_object(value) else None
    if kind is None:
        return value
    repaired: dict[str, Any] = dict(value)
    for member in _members(kind).values():
        if member.wire not in repaired:
            continue
        member_path, inner = f"{path}.{member.wire}", repaired[member.wire]
        if inner is None and not member.required and not _options(member.hint).accepts_null:
            repairs.append(_Repair(member_path, inner, member.hint, "read as absent"))
            del repaired[member.wire]
        elif isinstance(inner, str) and (kind.__name__, member.wire) == ("Icon", "sizes"):
            repairs.append(_Repair(member_path, inner, member.hint, "read as a list"))
            repaired[member.wire] = inner.split()
        else:
            repaired[member.wire] = _repair_value(inner, member.hint, member_path, repairs)
    return repaired


def _add_constants(value: dict[str, Any], kind: type[OpenObject], path: str, repairs: list[_Repair]) -> dict[str, Any]:
    """Return an open object with the constants that it lacks."""
    missing = {wire: constant for wire, constant in _constants(kind).items() if wire not in value}
    repairs += [_Repair(path, value, kind, f"read as {json.dumps(constant)}") for constant in missing.values()]
    return {**value, **missing}


# Types


@cache
def _constants(kind: type[OpenObject]) -> dict[str, Any]:
    """Return the constants among the members that an open object requires."""
    return {
        wire: get_args(hint)[0]
        for wire, (hint, is_required) in declared_members(kind).items()
        if is_required and get_origin(hint) is Literal and len(get_args(hint)) == 1
    }


@cache
def _members(kind: Any) -> dict[str, Member]:
    """Return the members of an object type by their Python names."""
    if not is_struct(kind):
        return {}
    hints = get_type_hints(kind, include_extras=True)
    return {
        f.name: Member(f.encode_name, strip_absent(hints[f.name], UnsetType), f.required)
        for f in msgspec.structs.fields(kind)
    }


@dataclass(frozen=True, slots=True)
class _TypeOptions:
    """The values that a type accepts: an array of items, objects of some types, null."""

    item: Any
    kinds: list[Any]
    accepts_null: bool
    open: type[OpenObject] | None
    union: UnionOptions[Any]

    def select(self, value: dict[str, Any]) -> Any:
        """Return the type that an object fits best: by its tag, or by its members."""
        if len(self.kinds) < 2:
            return self.kinds[0] if self.kinds else None
        config = self.kinds[0].__struct_config__
        if config.tag_field is None:
            return self.union.rank(value)[0]
        tag = value.get(config.tag_field)
        return next((kind for kind in self.kinds if kind.__struct_config__.tag == tag), None)


@cache
def _options(hint: Any) -> _TypeOptions:
    options = spread_union(hint)
    kinds = [option for option in options if is_struct(option)]
    return _TypeOptions(
        item=next((item for option in options if (item := _item_type(option)) is not None), None),
        kinds=kinds,
        union=UnionOptions(kinds, lambda kind: Shape(tuple(_members(kind).values()))),
        accepts_null=any(option in (Any, NoneType) for option in options),
        open=next((option for option in options if is_open(option)), None),
    )


def _item_type(hint: Any) -> Any:
    """Return the type of a list's items, or None for other types."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_args(hint)[0] if get_origin(hint) is list else None
