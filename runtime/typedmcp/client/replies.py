"""Results of servers, read into the dialect's types.

The fast path is one decode with the exact type of the revision, and one converter of the edge. Only where that fails
is a result taken apart, member by member and item by item. What is good is returned; what is not is left out, or
mended where its meaning is plain, and gives a `Problem` that names its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, MsgspecError, Raw, UnsetType

from mcpspec._support.objects import Member, Options, Shape, is_array, is_object, leaves, present
from mcpspec._support.structs import OpenObject, dec_hook, decode
from typedmcp import dialect
from typedmcp.edge.convert import Compiler, Converter, Lost, Rule
from typedmcp.edge.revisions import DIALECT, methods, types
from typedmcp.edge.rules import up
from typedmcp.errors import DecodeError, ProtocolError, UsageError

__all__ = ["LIMIT", "Problem", "Reader", "reader"]

LIMIT: Final = 100
"""How many problems of one result are described; one more says how many there were besides."""

_FILLED: Final[dict[str, Any]] = {"result_type": "complete", "ttl_ms": 0, "cache_scope": "private"}
"""Members that the dialect requires, with what the specification has clients take for absent ones."""

_MEANT: Final = frozenset({"is_error", "input_requests", "request_state"})
"""Optional members without which the rest would mean something else: bad ones are not left out."""

_SILENT: Final = frozenset({"Tool.execution"})
"""Members of older revisions that the dialect does without: tasks are an extension there."""

_ABSENT: Final = object()
_BAD: Final = object()
_FAILURES = (MsgspecError, ValueError, RecursionError, OverflowError)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a part of what a server sent. The rest could be used."""

    path: str
    """Where it is, such as `result.tools[17].inputSchema.type`."""
    reason: str
    """What is wrong there, in the words of `DecodeError`; for what was kept all the same, followed by how."""
    value: Any = field(default=None, hash=False)
    """The item or the member as it came."""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


Reader: TypeAlias = Callable[[bytes | Raw, list[Problem]], Any]
"""Gives the dialect's result for the bytes of one, and appends what is wrong with it.

Raises `DecodeError` for what is no result of the method, with a path that begins with `result`, and `ProtocolError`
for a `resultType` that the method does not have.
"""


@cache
def reader(method: str, revision: str) -> Reader:
    """The reader of a method's results on a revision, compiled when it is first asked for.

    Raises `UsageError` for a method that the revision or the dialect does not have.
    """
    known = dialect.methods.CLIENT_REQUESTS.get(method)
    spoken = methods(revision).CLIENT_REQUESTS.get(method)
    if known is None or spoken is None:
        raise UsageError(f"{revision if spoken is None else DIALECT} has no method {method}")
    sources = {kind.__name__: kind for kind in leaves(spoken.result)}
    pairs = {kind.__name__: (sources[kind.__name__], kind) for kind in leaves(known.result) if kind.__name__ in sources}
    asking = pairs.pop("InputRequiredResult", None)
    (final,) = pairs.values()
    return _compile(_Salvage(revision, final, asking))


def _compile(salvage: _Salvage) -> Reader:
    final = salvage.slot(*salvage.final)

    def read(raw: bytes | Raw, problems: list[Problem]) -> Any:
        result = final.fit(raw)
        if result is not _BAD and result.result_type == "complete":
            return result
        return salvage.read(raw, problems)

    return read


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    with suppress(DecodeError):
        decode(b"", kind)  # has msgspec look at the type under the lock that all generated types have
    return msgspec.json.Decoder(kind, dec_hook=dec_hook).decode


# What older results lack


@cache
def _compiler(revision: str) -> Compiler:
    return Compiler({**up(revision).rules, **dict(_rules(revision))}, _SILENT, reuse=False)


def _rules(revision: str) -> Iterator[tuple[str, Rule]]:
    older = types(revision)
    for method in dialect.methods.CLIENT_REQUESTS.values():
        for kind in leaves(method.result):
            lacking = _FILLED.keys() & _members(kind).keys() - _members(getattr(older, kind.__name__, None)).keys()
            yield from ((f"{kind.__name__}.{name}", _constant(_FILLED[name])) for name in lacking)
    if revision != DIALECT:
        yield "Tool.input_schema", _schema("input_schema", dialect.structs.ToolInputSchema)
        yield "Tool.output_schema", _schema("output_schema", dialect.structs.ToolOutputSchema)


def _constant(value: Any) -> Rule:
    return lambda _result, _lost: value


def _schema(name: str, kind: type[OpenObject]) -> Rule:
    """Schemas keep all of their members, so nothing has to be converted in them."""

    def rule(tool: Any, _lost: Lost) -> Any:
        schema = getattr(tool, name, UNSET)
        if schema is UNSET:
            return UNSET
        if not isinstance(schema.get("$schema", ""), str):  # older revisions do not declare it
            raise ValueError("$schema")
        return _opened(kind, schema)

    return rule


def _opened(kind: type[OpenObject], members: dict[str, Any]) -> OpenObject:
    made = kind.__new__(kind)
    made.update(members)
    return made


# The slow path


class _Slot:
    """A place: the type that the revision has there, that of the dialect, and the converter between them."""

    __slots__ = ("convert", "decode", "source", "target")

    def __init__(self, source: Any, target: Any, convert: Converter | None) -> None:
        self.source = source
        self.target = target
        self.decode = _decoder(source)
        self.convert = convert

    def fit(self, raw: bytes | Raw) -> Any:
        """The dialect's value; `_BAD` where the revision's type does not take it, or it does not arrive whole."""
        try:
            value = self.decode(raw)
            if self.convert is None:
                return value
            lost: Lost = []
            value = self.convert(value, lost)
        except _FAILURES:
            return _BAD
        return _BAD if lost else value

    def fault(self, raw: bytes | Raw, path: str) -> DecodeError:
        """Why a value does not fit."""
        for kind in (self.source, self.target):
            try:
                decode(bytes(raw), kind)
            except DecodeError as error:
                return DecodeError(_joined(path, error.path), error.reason)
        return DecodeError(path, f"has no place in {DIALECT}")


class _Salvage:
    """Reads results that are not what their type says, as far as that can be done."""

    def __init__(self, revision: str, final: tuple[Any, Any], asking: tuple[Any, Any] | None) -> None:
        self.final = final
        self._asking = asking
        self._typed = "result_type" in _members(final[0])
        self._compiler = _compiler(revision)
        self._slots: dict[tuple[Any, Any], _Slot] = {}

    def slot(self, source: Any, target: Any) -> _Slot:
        key = (source, target)
        if key not in self._slots:
            self._slots[key] = _Slot(source, target, self._compiler.between(source, target))
        return self._slots[key]

    def read(self, raw: bytes | Raw, problems: list[Problem]) -> Any:
        try:
            parts = _parts(raw)
        except _FAILURES:
            raise self.slot(*self.final).fault(raw, "result") from None
        source, target = self._kind(parts)
        report = _Report(problems)
        try:
            return self._object(parts, source, target, "result", report)
        finally:
            report.close()

    def _kind(self, parts: dict[str, Raw]) -> tuple[Any, Any]:
        """The types of a result, by its `resultType`; older revisions have none."""
        if not self._typed or "resultType" not in parts:
            return self.final
        kinds = {"complete": self.final} | ({"input_required": self._asking} if self._asking else {})
        raw = parts["resultType"]
        said = _plain(raw)
        if isinstance(said, str) and said in kinds:
            return kinds[said]
        known: Any = Literal[tuple(kinds)]  # pyright: ignore[reportInvalidTypeForm]
        raise ProtocolError(str(self.slot(known, known).fault(raw, "result.resultType")))

    def _object(self, parts: dict[str, Raw], source: Any, target: Any, path: str, report: _Report) -> Any:
        """An object of the dialect, from those of its members that are good."""
        theirs, values = _members(source), dict[str, Any]()
        for name, member in _members(target).items():
            made = _FILLED.get(name, _ABSENT)
            if name in theirs:
                slot = self.slot(theirs[name].hint, member.hint)
                made = self._member(parts, name, theirs[name], slot, f"{path}.{member.wire}", report)
            if made is not _ABSENT:
                values[name] = made
        return target(**values)

    def _member(self, parts: dict[str, Raw], name: str, member: Member, slot: _Slot, path: str, report: _Report) -> Any:
        raw = parts.get(member.wire)
        if raw is None:
            missing = DecodeError(path, "required, but missing")
            return _instead(name, missing, None, report) if member.required else _ABSENT
        is_null = bytes(raw) == b"null" and not member.required and not _options(slot.source).null
        made = _BAD if is_null else self._value(raw, member, slot, path, report)
        if made is not _BAD:
            return made
        fault, value = slot.fault(raw, path), _plain(raw)
        if member.required or not (is_null or name not in _MEANT):
            return _instead(name, fault, value, report)
        report.add(fault, value)
        return _ABSENT

    def _value(self, raw: Raw, member: Member, slot: _Slot, path: str, report: _Report) -> Any:
        """The value of a member; of its parts, where it has some and is not good as a whole."""
        inner = _items(slot.source)
        if inner is not None and (items := _try(_split, raw)) is not _BAD:
            made = self._list(items, self.slot(inner, _items(slot.target)), path, report)
            return _cut(made, slot.source, path, report)
        made = self._take(raw, slot, path, report)
        if made is not _BAD or (parts := _try(_parts, raw)) is _BAD:
            return made
        if _is_open(slot.target):
            return self._open(parts, slot.target, path, report)
        if member.required and _is_struct(slot.source):
            return self._object(parts, slot.source, slot.target, path, report)
        return _BAD

    def _list(self, items: list[Raw], slot: _Slot, path: str, report: _Report) -> list[Any]:
        made: list[Any] = []
        for i, raw in enumerate(items):
            here = f"{path}[{i}]"
            item = self._take(raw, slot, here, report)
            if item is not _BAD:
                made.append(item)
            elif report.has_room():
                report.add(slot.fault(raw, here), _plain(raw))
        return made

    def _open(self, parts: dict[str, Raw], kind: type[OpenObject], path: str, report: _Report) -> Any:
        """An open object, without those of its declared members that are bad."""
        made = {key: _plain(raw) for key, raw in parts.items()}
        hints = get_type_hints(kind, include_extras=True)
        for name, declared in kind.__attributes__.items():
            wire, hint = declared.wire, present(hints[name], UnsetType)
            slot, here = self.slot(hint, hint), f"{path}[{json.dumps(wire)}]"
            found = self._take(parts[wire], slot, here, report) if wire in parts else _BAD
            if found is not _BAD:
                made[wire] = found
            elif declared.required:
                return _BAD
            elif wire in parts:
                report.add(slot.fault(parts[wire], here), made.pop(wire))
        return _opened(kind, made)

    def _take(self, raw: Raw, slot: _Slot, path: str, report: _Report) -> Any:
        """A value as it is, or mended, or as the dialect takes it where the revision does not."""
        made = slot.fit(raw)
        if made is _BAD and (made := self._mend(raw, slot, path, report)) is _BAD and slot.source != slot.target:
            newer = self.slot(slot.target, slot.target)
            made = newer.fit(raw)
            if made is _BAD:
                made = self._mend(raw, newer, path, report)
            if made is not _BAD and report.has_room():
                fault = slot.fault(raw, path)
                report.add(DecodeError(fault.path, f"{fault.reason}; kept, since {DIALECT} allows it"), _plain(raw))
        return made

    def _mend(self, raw: Raw, slot: _Slot, path: str, report: _Report) -> Any:
        notes: list[_Note] = []
        mended = _mended(_plain(raw), slot.source, path, notes)
        text: Any = _try(_encode, mended) if notes else _BAD
        made = _BAD if text is _BAD else slot.fit(text)
        if made is not _BAD:
            for note in notes:
                if report.has_room():
                    fault = self.slot(note.hint, note.hint).fault(_encode(note.value), note.path)
                    report.add(DecodeError(fault.path, f"{fault.reason}; {note.reading}"), note.value)
        return made


class _Report:
    """Problems of one result: the first ones as they are, and how many more there were."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._seen = 0

    def has_room(self) -> bool:
        """Whether the next problem will be described. If not, it is counted here."""
        if self._seen < LIMIT:
            return True
        self._seen += 1
        return False

    def add(self, fault: DecodeError, value: Any) -> None:
        self._seen += 1
        if self._seen <= LIMIT:
            self._problems.append(Problem(fault.path, fault.reason, value))

    def close(self) -> None:
        if self._seen > LIMIT:
            self._problems.append(Problem("result", f"{self._seen - LIMIT} more problems"))


def _instead(name: str, fault: DecodeError, value: Any, report: _Report) -> Any:
    """What is taken for a member that the result cannot do without."""
    if name not in _FILLED:
        raise fault
    report.add(fault, value)
    return _FILLED[name]


def _cut(values: list[Any], hint: Any, path: str, report: _Report) -> list[Any]:
    """A list no longer than its type allows."""
    bounds = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    longest = next((bound.max_length for bound in bounds if bound.max_length is not None), len(values))
    if len(values) > longest:
        report.add(DecodeError(path, f"expected at most {longest} items, got {len(values)}"), values)
    return values[:longest]


_encode = msgspec.json.Encoder().encode
_parse = msgspec.json.Decoder().decode
_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_split = msgspec.json.Decoder(list[Raw]).decode


def _try(do: Callable[[Any], Any], value: Any) -> Any:
    try:
        return do(value)
    except _FAILURES:
        return _BAD


def _plain(raw: Raw) -> Any:
    """A value as plain JSON, or as text where it is none."""
    value = _try(_parse, raw)
    return bytes(raw).decode(errors="replace") if value is _BAD else value


def _joined(path: str, inner: str) -> str:
    return f"{path}.{inner}" if inner and not inner.startswith("[") else path + inner


# What is plain though it is wrong


@dataclass(frozen=True, slots=True)
class _Note:
    """A value that is wrong in its place, and how it was read all the same."""

    path: str
    value: Any
    hint: Any
    reading: str


def _mended(value: Any, hint: Any, path: str, notes: list[_Note]) -> Any:
    """A copy of a value in which null is absence, and `sizes` of an icon a list as they are since 2025-11-25."""
    options = _options(hint)
    if is_array(value) and options.item is not None:
        return [_mended(item, options.item, f"{path}[{i}]", notes) for i, item in enumerate(value)]
    kind = options.meant(value) if is_object(value) else None
    if kind is None:
        return value
    made: dict[str, Any] = dict(value)
    for member in _members(kind).values():
        if member.wire not in made:
            continue
        here, inner = f"{path}.{member.wire}", made[member.wire]
        if inner is None and not member.required and not _options(member.hint).null:
            notes.append(_Note(here, inner, member.hint, "read as absent"))
            del made[member.wire]
        elif isinstance(inner, str) and (kind.__name__, member.wire) == ("Icon", "sizes"):
            notes.append(_Note(here, inner, member.hint, "read as a list"))
            made[member.wire] = inner.split()
        else:
            made[member.wire] = _mended(inner, member.hint, here, notes)
    return made


# Types


@cache
def _members(kind: Any) -> dict[str, Member]:
    """The members of an object type, by their names in Python."""
    if not _is_struct(kind):
        return {}
    hints = get_type_hints(kind, include_extras=True)
    return {
        f.name: Member(f.encode_name, present(hints[f.name], UnsetType), f.required)
        for f in msgspec.structs.fields(kind)
    }


@dataclass(frozen=True, slots=True)
class _Options:
    """What a type may be: an array of these items, one of these objects, null."""

    item: Any
    kinds: list[Any]
    null: bool
    choice: Options[Any]

    def meant(self, value: dict[str, Any]) -> Any:
        """The object type that a value is most likely of: by its tag, or by its members."""
        if len(self.kinds) < 2:
            return self.kinds[0] if self.kinds else None
        config = self.kinds[0].__struct_config__
        if config.tag_field is None:
            return self.choice.best_first(value)[0]
        tag = value.get(config.tag_field)
        return next((kind for kind in self.kinds if kind.__struct_config__.tag == tag), None)


@cache
def _options(hint: Any) -> _Options:
    options = leaves(hint)
    kinds = [option for option in options if _is_struct(option)]
    return _Options(
        item=next((item for option in options if (item := _items(option)) is not None), None),
        kinds=kinds,
        choice=Options(kinds, lambda kind: Shape(tuple(_members(kind).values()))),
        null=any(option in (Any, NoneType) for option in options),
    )


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _items(hint: Any) -> Any:
    """The type of a list's items; None for what is no list."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_args(hint)[0] if get_origin(hint) is list else None


def _is_open(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, OpenObject)
