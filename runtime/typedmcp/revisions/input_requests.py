"""Conversion of input requests and their results between the dialect and older revisions.

In the dialect a server asks for input inside a result; on a legacy revision it sends the client a request. The
compiled converters convert what they can, and the functions here the rest, as plain JSON: a person or a model takes
much longer to answer than any conversion.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

import msgspec

from mcpspec.support.objects import is_array, is_object
from mcpspec.support.structs import decode, from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.revisions.convert import DroppedFields
from typedmcp.revisions.features import methods_of, structs_of
from typedmcp.revisions.rules import downgrade, downgrader, upgrader

__all__ = [
    "REQUEST_DOWNGRADES", "downgrade_request", "downgrade_result", "is_compiled", "upgrade_request", "upgrade_result",
]  # fmt: skip

Json: TypeAlias = "dict[str, Any]"

# Requests, from server to client


def downgrade_request(method: str, params: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert the parameters of a request for input to the types of a legacy revision.

    Raises `DecodeError` if the revision cannot express them.
    """
    if is_compiled(method, revision):
        params = downgrade(params, methods_of(revision).METHODS[method].params, revision, dropped)
    plain = to_builtins(params)
    adapted = REQUEST_DOWNGRADES[method](plain, revision, dropped) if method in REQUEST_DOWNGRADES else plain
    older = from_builtins(adapted, methods_of(revision).METHODS[method].params)
    dropped += _find_dropped(adapted, to_builtins(older), "params")
    return older


def is_compiled(method: str, revision: str) -> bool:
    """Return whether requests of a method are converted to a revision by a compiled converter, with its rules."""
    return method == "sampling/createMessage" and hasattr(structs_of(revision), "ToolUseContent")


def upgrade_request(method: str, params: bytes, revision: str) -> Any:
    """Decode the parameters of a legacy server's request for input, and return the request of the dialect.

    Raises `DecodeError` for parameters that the revision does not allow.
    """
    record = methods_of(revision).SERVER_REQUESTS[method]
    known = dialect.methods.INPUT_REQUESTS[method]
    exact: Any = {} if record.params is NoneType else decode(params, record.params)
    if isinstance(exact, msgspec.Struct):
        exact = _upgrade(exact, record.params, known.params, revision)
    plain: Json = to_builtins(exact)
    kept = {key: value for key, value in plain.items() if key not in ("_meta", "task", "elicitationId")}
    return from_builtins({"method": method, "params": kept}, known.message)


def _upgrade(value: Any, source: Any, target: Any, revision: str) -> Any:
    convert = upgrader(revision).between(source, target)
    return value if convert is None else convert(value, [])


def _downgrade_elicitation(params: Json, revision: str, dropped: DroppedFields) -> Json:
    if params.get("mode") == "url":
        return {**params, "elicitationId": secrets.token_urlsafe(16)}
    if hasattr(structs_of(revision), "ElicitRequestFormParams"):
        return params
    schema = params["requestedSchema"]
    fields = {name: _downgrade_field(field) for name, field in schema["properties"].items()}
    known = {name: field for name, field in fields.items() if field is not None}
    dropped += [f"params.requestedSchema.properties.{name}" for name in fields if name not in known]
    kept: Json = {"properties": known}
    if "required" in schema:
        kept["required"] = [name for name in schema["required"] if name in known]
    return {**params, "requestedSchema": {**schema, **kept}}


def _downgrade_field(field: Json) -> Json | None:
    """Rewrite a titled choice with `enumNames`, as in 2025-06-18. None for multiple choices, which it does not have."""
    if field.get("type") == "array":
        return None
    if "oneOf" not in field:
        return field
    rest = {key: value for key, value in field.items() if key != "oneOf"}
    return {**rest, "enum": [o["const"] for o in field["oneOf"]], "enumNames": [o["title"] for o in field["oneOf"]]}


def _downgrade_sampling(params: Json, revision: str, dropped: DroppedFields) -> Json:
    """Split messages with several contents, and replace content that the revision does not have with text."""
    if is_compiled("sampling/createMessage", revision):
        return params
    older = structs_of(revision)
    messages = [
        {**message, "content": _downgrade_content(content, older, dropped)}
        for message in params["messages"]
        for content in _contents_of(message)
    ]
    return {**params, "messages": messages}


def _contents_of(message: Json) -> list[Any]:
    content: Any = message["content"]
    return content if is_array(content) else [content]


def _downgrade_content(content: Json, older: Any, dropped: DroppedFields) -> Json:
    kind = content["type"]
    if kind in ("text", "image") or (kind == "audio" and hasattr(older, "AudioContent")):
        return content
    dropped.append(f"params.messages: {kind}")
    return {"type": "text", "text": f"[{kind}]"}


REQUEST_DOWNGRADES: Final[Mapping[str, Callable[[Json, str, DroppedFields], Json]]] = {
    "elicitation/create": _downgrade_elicitation,
    "sampling/createMessage": _downgrade_sampling,
}
"""The functions that adapt the parameters of a method, as plain JSON, to a legacy revision."""


def _find_dropped(before: Any, after: Any, path: str) -> DroppedFields:
    """Find the paths of the values that a conversion has dropped."""
    if is_object(before) and is_object(after):
        return [
            lost
            for key, value in before.items()
            for lost in (_find_dropped(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"])
        ]
    if is_array(before) and is_array(after) and len(before) == len(after):
        return [lost for i, item in enumerate(before) for lost in _find_dropped(item, after[i], f"{path}[{i}]")]
    return [] if before == after else [path]


# Results, from client to server


def upgrade_result(method: str, value: Any, revision: str) -> Any:
    """Convert the result of a legacy client, as plain JSON, to the dialect. Raises `DecodeError` if it is invalid."""
    result: Any = dialect.methods.INPUT_REQUESTS[method].result
    exact = getattr(structs_of(revision), result.__name__)
    return from_builtins(to_builtins(_upgrade(from_builtins(value, exact), exact, result, revision)), result)


def downgrade_result(method: str, result: Any, revision: str) -> Any:
    """Convert a client's result to the types of a legacy revision.

    Raises `DecodeError` if the revision cannot express it.
    """
    record = methods_of(revision).SERVER_REQUESTS[method]
    known: Any = dialect.methods.INPUT_REQUESTS[method].result
    convert = downgrader(revision).between(known, getattr(structs_of(revision), known.__name__))
    kept: Json = to_builtins(result if convert is None else convert(result, []))
    if method == "sampling/createMessage" and not hasattr(structs_of(revision), "ToolUseContent"):
        content = kept["content"]  # a message has one content there
        if is_array(content):
            kept["content"] = content[0] if content else {"type": "text", "text": ""}
    return from_builtins(kept, record.result)
