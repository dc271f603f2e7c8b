"""Make the messages of a schema that names its methods in annotations of the types of parameters and results.

`x-method` is the name of the method, `x-side` the side that handles it. The other side sends the message. So

    "OpenParams": {"type": "object", …, "x-method": "file/open", "x-side": "server"}
    "OpenResult": {"type": "object", …, "x-method": "file/open", "x-side": "server"}

become the message `OpenRequest`, the response `OpenResultResponse`, and a member of the union `ClientRequest`. A method
without a result is a notification. All other steps see definitions as if the schema had written them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mcpspec_codegen.errors import Pointer, SchemaError
from mcpspec_codegen.messages import CLIENT, MESSAGE, NOTIFICATION, REQUEST, SERVER, base_name
from mcpspec_codegen.names import to_pascal
from mcpspec_codegen.nodes import Schema, constants, is_schema, pointer_text

__all__ = ["METHOD_KEYWORDS", "add_annotated_messages"]

_METHOD, _SIDE = "x-method", "x-side"
METHOD_KEYWORDS = frozenset({_METHOD, _SIDE})
"""Annotations of a definition that say which method it belongs to."""
_SENDERS = {
    **dict.fromkeys(("client",), (SERVER,)),
    **dict.fromkeys(("server", "agent"), (CLIENT,)),
    **dict.fromkeys(("both", "protocol"), (CLIENT, SERVER)),
}
"""The side that handles a method → those that send it."""
_RESULT = re.compile(r"(Result|Response)$")
_REQUEST = re.compile(r"Request(Params)?$")
_PARAMS = [re.compile(end) for end in (r"((Request|Notification)?Params|Request|Notification)$", r"Params$")]
_RESULTS = [_RESULT]
"""Ends of the names of types that the names of messages do not have."""


@dataclass(frozen=True, slots=True)
class _AnnotatedMethod:
    """A method that annotations name. Types are names of definitions."""

    name: str
    kind: str
    senders: tuple[str, ...]
    params: str | None
    result: str | None

    @property
    def types(self) -> list[str]:
        return [name for name in (self.params, self.result) if name is not None]


def add_annotated_messages(defs: Mapping[str, Schema], protocol: Collection[str], file: str) -> dict[str, Schema]:
    """Return the definitions with a message for each method that annotations name, and the unions of them.

    `protocol` are the names of definitions elsewhere, to which these may refer. Raises `SchemaError` for annotations
    that contradict each other.
    """
    made = dict(defs)
    for found in _find_methods(defs, file):
        message = found.params
        if message is None or not _is_message(defs[message]):
            message = _name(found, {*made, *protocol})
            made[message] = _message(found, made, protocol)
        if found.result is not None:
            _add(made, base_name(message) + "ResultResponse", _response(found.result, made, protocol), found, file)
        for side in found.senders:
            _join(made, side + found.kind, message)
    return made


def _find_methods(defs: Mapping[str, Schema], file: str) -> Iterator[_AnnotatedMethod]:
    """Yield the methods in the order of the schema."""
    named = [(name, *_annotations(name, node, file)) for name, node in defs.items() if _METHOD in node]
    owners: dict[str, dict[str, str]] = {}
    for name, method, _ in named:
        role = "result" if _RESULT.search(name) else "parameters"
        types = owners.setdefault(method, {})
        if (other := types.setdefault(role, name)) != name:
            raise _error(file, name, f"`{other}` has the {role} of {method!r}, too; expected one type of each", _METHOD)
    senders = {name: _SENDERS[side] for name, _, side in named}
    for method, types in owners.items():
        params, result = types.get("parameters"), types.get("result")
        first = params or result or ""
        if result is not None and senders[result] != senders[first]:
            raise _error(file, result, f"differs from `{_SIDE}` of `{first}`", _SIDE)
        is_request = result is not None or _REQUEST.search(first)
        yield _AnnotatedMethod(method, REQUEST if is_request else NOTIFICATION, senders[first], params, result)


def _annotations(name: str, node: Schema, file: str) -> tuple[str, str]:
    method, side = node[_METHOD], node.get(_SIDE)
    if not isinstance(method, str) or not method:
        raise _error(file, name, f"`{_METHOD}` must be the name of a method", _METHOD)
    if side not in _SENDERS:
        known = ", ".join(f'"{each}"' for each in _SENDERS)
        text = f"`{_SIDE}` must be the side that handles the method: {known}"
        raise _error(file, name, text, *([_SIDE] if side else []))
    if _is_message(node) and [method] != constants(node["properties"]["method"]):
        raise _error(file, name, f"`{_METHOD}` is not the constant `method` of the message", _METHOD)
    return method, side


def _error(file: str, name: str, reason: str, *below: str) -> SchemaError:
    at: Pointer = ("$defs", name, *below)
    return SchemaError(file, pointer_text(at), reason)


def _is_message(node: Schema) -> bool:
    method = node.get("properties", {}).get("method")
    return is_schema(method) and len(constants(method) or ()) == 1


def _name(found: _AnnotatedMethod, taken: Collection[str]) -> str:
    """Name a message by the type of its parameters or its result. `Message` is added to a name that is taken."""
    ends = _PARAMS if found.params else _RESULTS
    bases = [end.sub("", found.params or found.result or "") for end in ends]
    stated = to_pascal(found.name)  # `MergePullRequestParams` has two readings
    name = (stated if stated in bases else bases[0]) + found.kind
    while name in taken:
        name += MESSAGE
    return name


def _message(found: _AnnotatedMethod, defs: Mapping[str, Schema], protocol: Collection[str]) -> Schema:
    properties: Schema = {"jsonrpc": {"const": "2.0"}}
    if found.kind == REQUEST:
        properties["id"] = _request_id(defs, protocol)
    properties["method"] = {"const": found.name}
    required = [*properties]
    if found.params is not None:
        properties["params"] = {"$ref": f"#/$defs/{found.params}"}
        required += ["params"] if _needs_members(defs[found.params]) else []
    text = next((text for name in found.types if (text := defs[name].get("description"))), None)
    described = {"description": text} if text else {}
    return {**described, "type": "object", "properties": properties, "required": required}


def _needs_members(node: Schema) -> bool:
    """Return whether an object may not be empty, so that a message may not leave it out."""
    return bool(node.get("required")) or not node.keys().isdisjoint(("$ref", "allOf", "anyOf", "oneOf"))


def _response(result: str, defs: Mapping[str, Schema], protocol: Collection[str]) -> Schema:
    properties = {
        "jsonrpc": {"const": "2.0"},
        "id": _request_id(defs, protocol),
        "result": {"$ref": f"#/$defs/{result}"},
    }
    return {"type": "object", "properties": properties, "required": [*properties]}


def _request_id(defs: Mapping[str, Schema], protocol: Collection[str]) -> Schema:
    is_known = "RequestId" in defs or "RequestId" in protocol
    return {"$ref": "#/$defs/RequestId"} if is_known else {"type": ["string", "integer"]}


def _add(defs: dict[str, Schema], name: str, node: Schema, found: _AnnotatedMethod, file: str) -> None:
    if name in defs:
        raise _error(file, found.types[0], f"its response would be named `{name}`, which is another definition")
    defs[name] = node


def _join(defs: dict[str, Schema], union: str, message: str) -> None:
    """Add a message to a union of a sender's messages. If its name is taken by another type, `Message` is added."""
    reference = {"$ref": f"#/$defs/{message}"}
    while union in defs and not _lists_messages(defs[union], defs):
        union += MESSAGE
    known = defs.get(union, {})
    listed = [{"$ref": known["$ref"]}] if "$ref" in known else known.get("anyOf", [])
    if reference not in listed:
        rest = {key: value for key, value in known.items() if key != "$ref"}
        defs[union] = {**rest, "anyOf": [*listed, reference]}


def _lists_messages(node: Schema, defs: Mapping[str, Schema]) -> bool:
    members = node.get("anyOf", [node])
    names = [str(member.get("$ref", "")).rpartition("/")[2] for member in members if is_schema(member)]
    return all(name in defs and _is_message(defs[name]) for name in names)
