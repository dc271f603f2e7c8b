"""The method table, read off a normalised schema.

Three rules: the unions `ClientRequest`, `ServerNotification`, … give the sender of a message; the message's
`method` constant and `params` give name and parameters; the result of `XRequest` is that of `XResultResponse`,
else `XResult`, else `EmptyResult`. The last rule may be wrong, so `find_assumed_results` lists its results.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcpspec_codegen import names
from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.messages import (
    CLIENT,
    INPUT_REQUEST,
    MESSAGE,
    NOTIFICATION,
    REQUEST,
    SERVER,
    base_name,
    list_direct_members,
    name_alternatives,
)
from mcpspec_codegen.nodes import Schema, pointer_text, ref_name
from mcpspec_codegen.unions import list_members

__all__ = [
    "EMPTY_RESULT",
    "TABLES",
    "LookupTable",
    "MethodDefinition",
    "check_constants",
    "find_assumed_results",
    "read_error_codes",
    "read_methods",
]

_INPUT = "input"
_METHOD = re.compile(r"[\w./:$-]+")


@dataclass(frozen=True, slots=True)
class MethodDefinition:
    """A method of a revision. Types are names of definitions."""

    name: str
    sender: str
    """`client`, `server` or `both`."""
    kind: str
    message: str
    params: str | None
    params_required: bool
    result: str | None
    doc: str | None = None
    """The description of the message."""

    @property
    def constant(self) -> str:
        return names.name_constant(self.name)

    @property
    def handler(self) -> str:
        return names.to_snake(base_name(self.message))

    @property
    def group(self) -> str:
        """The capability that the method belongs to: the first part of its name, or `core`."""
        first, slash, _ = self.name.removeprefix("notifications/").partition("/")
        is_group = slash and names.to_pascal(first) and first not in (CLIENT.lower(), SERVER.lower())
        return first if is_group else "core"

    @property
    def definitions(self) -> set[str]:
        """The definitions that the method names."""
        return {name for name in (self.message, self.params, self.result) if name is not None}

    def is_sent_by(self, side: str) -> bool:
        return self.sender in (side, "both")


def read_methods(document: Schema, senders: dict[str, list[str]], file: str) -> list[MethodDefinition]:
    """Read the methods of a schema, sorted by name.

    `senders` lists the messages of each side for a schema without unions that do, such as that of an extension.
    """
    defs = document["$defs"]
    found: dict[str, MethodDefinition] = {}
    for side in (CLIENT, SERVER):
        for message, kind in _messages(defs, side, senders.get(side, [])):
            method = _method(defs, message, kind, side.lower(), file)
            known = found.get(method.name)
            if known is not None and known.message != message:
                raise SchemaError(file, f"/$defs/{message}", f"a second message for the method {method.name!r}")
            found[method.name] = replace(method, sender="both") if known else method
    _check_handlers(found, file)
    return [found[name] for name in sorted(found)]


def _messages(defs: dict[str, Schema], side: str, extra: list[str]) -> list[tuple[str, str]]:
    messages = [
        (name, kind.lower())
        for kind in (REQUEST, NOTIFICATION)
        for union in (side + kind, side + kind + MESSAGE)
        for name in _members(defs, union)
    ]
    messages += [(name, (REQUEST if name.endswith(REQUEST) else NOTIFICATION).lower()) for name in extra]
    if side == SERVER and SERVER + REQUEST not in defs and INPUT_REQUEST in defs:
        messages += [(name, _INPUT) for name in _members(defs, INPUT_REQUEST)]
    return messages


def _members(defs: dict[str, Schema], union: str) -> list[str]:
    """List the messages of a union and of the unions in it. Other types are listed, too, to be rejected by name."""
    found: list[str] = []
    for name in list_direct_members(defs, union):
        spread = [ref_name(member["$ref"]) for member in list_members({"$ref": name}, defs) if "$ref" in member]
        found += spread or [name]
    return found


def _method(defs: dict[str, Schema], message: str, kind: str, sender: str, file: str) -> MethodDefinition:
    node = defs.get(message, {})
    properties = node.get("properties", {})
    name = properties.get("method", {}).get("const")
    if not isinstance(name, str):
        raise SchemaError(file, f"/$defs/{message}", "expected a message with a `method` that is a constant string")
    if not (_METHOD.fullmatch(name) and names.name_constant(name).isidentifier()):
        raise SchemaError(file, f"/$defs/{message}", f"the method {name!r} has no Python name")
    params: Any = properties.get("params")
    return MethodDefinition(
        name=name,
        sender=sender,
        kind=kind,
        message=message,
        params=None if params is None else ref_name(params.get("$ref", "")) or "dict[str, Any]",
        params_required="params" in node.get("required", []),
        result=None if kind == NOTIFICATION.lower() else _result(defs, message, file),
    )


def _result(defs: dict[str, Schema], message: str, file: str) -> str:
    if name := _stated_result(defs, base := base_name(message)):
        return name
    if EMPTY_RESULT in defs:
        return EMPTY_RESULT
    raise SchemaError(
        file, pointer_text(("$defs", message)), f"no result: neither `{base}Result` nor `EmptyResult` is defined"
    )


EMPTY_RESULT = "EmptyResult"


def _stated_result(defs: dict[str, Schema], base: str) -> str | None:
    """Return the result that a schema states for a request, by the name or by the response."""
    response = defs.get(f"{base}ResultResponse", {}).get("properties", {}).get("result", {})
    candidates = [name_alternatives(base), ref_name(response.get("$ref", "")), f"{base}Result"]
    return next((name for name in candidates if name in defs), None)


def find_assumed_results(
    document: Schema, methods: list[MethodDefinition], known: Mapping[str, str | None]
) -> dict[str, str]:
    """Find the requests with `EmptyResult` for want of a stated result: method → a line about it.

    `known` are the results before: method → definition. A request that had `EmptyResult` there is not listed.
    """
    lines: dict[str, str] = {}
    for method in methods:
        base, before = base_name(method.message), known.get(method.name)
        if method.result != EMPTY_RESULT or before == EMPTY_RESULT or _stated_result(document["$defs"], base):
            continue
        text = f"{method.name}: no {base}Result is defined, so its result is {EMPTY_RESULT}"
        lines[method.name] = f"{text}; before it was {before}" if before else text
    return lines


def _check_handlers(found: dict[str, MethodDefinition], file: str) -> None:
    """Raise `SchemaError` if the name of a handler's method is no name, or that of another method or Protocol."""
    for method in found.values():
        if not method.handler.isidentifier() or keyword.iskeyword(method.handler):
            reason = f"the handler of {method.name!r} would be named {method.handler!r}, which is no name in Python"
            raise SchemaError(file, pointer_text(("$defs", method.message)), reason)
    for side in (CLIENT.lower(), SERVER.lower()):
        handlers: dict[str, str] = {}
        groups = {"Handler": "", "Stub": ""}
        for method in (method for method in found.values() if method.is_sent_by(side)):
            if (other := handlers.setdefault(method.handler, method.name)) != method.name:
                reason = f"{other!r} and {method.name!r} would both be handled by `{method.handler}`"
                raise SchemaError(file, pointer_text(("$defs", method.message)), reason)
            group = names.to_pascal(method.group)
            if groups.setdefault(group, method.group) != method.group:
                reason = f"the Protocol `{group}` of {method.name!r} has the name of another; choose another prefix"
                raise SchemaError(file, pointer_text(("$defs", method.message)), reason)


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A lookup table of the methods of one kind that one side sends."""

    sender: str
    kind: str
    doc: str


TABLES = {
    "CLIENT_REQUESTS": LookupTable("client", "request", "Requests that the client may send"),
    "SERVER_REQUESTS": LookupTable("server", "request", "Requests that the server may send"),
    "INPUT_REQUESTS": LookupTable("server", _INPUT, "Requests that the server puts into a result, and never sends"),
    "CLIENT_NOTIFICATIONS": LookupTable("client", "notification", "Notifications that the client may send"),
    "SERVER_NOTIFICATIONS": LookupTable("server", "notification", "Notifications that the server may send"),
}


_RESERVED = {*TABLES, "METHODS", "PROTOCOL_VERSION", "EXTENSION_ID", "EXTENSION_VERSION"}
"""Constants that every `methods` module may have."""


def check_constants(methods: list[MethodDefinition], codes: dict[str, int], file: str) -> None:
    """Raise `SchemaError` if two constants of a `methods` module would have the same name."""
    taken = dict.fromkeys({*codes, *_RESERVED}, "another constant")
    for method in methods:
        if (other := taken.setdefault(method.constant, repr(method.name))) != repr(method.name):
            reason = f"{method.name!r} and {other} would both be named `{method.constant}`"
            raise SchemaError(file, f"/$defs/{method.message}", reason)


def read_error_codes(
    document: Schema, known: dict[str, int], file: str, *, is_carried_over: bool = False
) -> dict[str, int]:
    """Collect JSON-RPC error codes by constant name: the known ones, and those in the schema.

    Known codes that are carried over from an older revision give way to those of the schema. Raises `SchemaError` for a
    code whose constant would have the name of another.
    """
    found = [*_codes_of(document)]
    renumbered = {_code_name(owner) for owner, _ in found} if is_carried_over else set[str]()
    kept = {code for _, code in found}
    codes = {name: code for name, code in known.items() if code in kept or name not in renumbered}
    for owner, code in found:
        if code not in codes.values():
            constant = _code_name(owner)
            if constant in codes or constant in _RESERVED:
                other = f"the code {codes[constant]}" if constant in codes else "another constant"
                reason = f"the code {code} and {other} would both be named `{constant}`"
                raise SchemaError(file, pointer_text(("$defs", owner)), reason)
            codes[constant] = code
    return codes


def _codes_of(document: Schema) -> Iterator[tuple[str, int]]:
    """Yield the codes that definitions state, each with the definition of the schema that it is from."""
    for name, node in document["$defs"].items():
        code = node.get("properties", {}).get("code", {}).get("const")
        if isinstance(code, int):
            yield node["x"].get("origin", [name])[0], code


def _code_name(definition: str) -> str:
    """Name an error code: `HeaderMismatchError` → `HEADER_MISMATCH`; a single word keeps its `_ERROR`."""
    name = names.name_constant(definition)
    short = name.removesuffix("_ERROR")
    return short if "_" in short else name
