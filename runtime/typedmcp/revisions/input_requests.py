"""Conversion of input requests and their results between the dialect and older revisions.

In the dialect a server asks for input inside a result; on a legacy revision it sends the client a request. Both
conversions go through plain JSON: a person or a model takes much longer to answer than any conversion.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

from mcpspec.support.objects import is_array, is_object
from mcpspec.support.structs import decode, from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.revisions.convert import DroppedFields
from typedmcp.revisions.features import methods_of, structs_of
from typedmcp.revisions.rules import downgrader

__all__ = ["REQUEST_DOWNGRADES", "downgrade_request", "downgrade_result", "upgrade_request", "upgrade_result"]

D = dialect.structs

Json: TypeAlias = "dict[str, Any]"

# Requests, from server to client


def downgrade_request(method: str, params: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert the parameters of a request for input to the types of a legacy revision.

    Raises `DecodeError` if the revision cannot express them.
    """
    plain = to_builtins(params)
    adapted = REQUEST_DOWNGRADES[method](plain, revision, dropped) if method in REQUEST_DOWNGRADES else plain
    older = from_builtins(adapted, methods_of(revision).METHODS[method].params)
    dropped += _find_dropped(adapted, to_builtins(older), "params")
    return older


def upgrade_request(method: str, params: bytes, revision: str) -> Any:
    """Decode the parameters of a legacy server's request for input, and return the request of the dialect.

    Raises `DecodeError` for parameters that the revision does not allow.
    """
    record = methods_of(revision).SERVER_REQUESTS[method]
    plain: Json = {} if record.params is NoneType else to_builtins(decode(params, record.params))
    kept = {key: value for key, value in plain.items() if key not in ("_meta", "task", "elicitationId")}
    if method == "elicitation/create":
        kept = {"mode": "form", **kept}
    return from_builtins({"method": method, "params": kept}, dialect.methods.INPUT_REQUESTS[method].message)


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
    older = structs_of(revision)
    if hasattr(older, "ToolUseContent"):
        return {**params, **_downgrade_tools(params, revision, dropped)}
    messages = [
        {**message, "content": _downgrade_content(content, older, dropped)}
        for message in params["messages"]
        for content in _contents_of(message)
    ]
    return {**params, "messages": messages}


def _contents_of(message: Json) -> list[Any]:
    content: Any = message["content"]
    return content if is_array(content) else [content]


def _downgrade_tools(params: Json, revision: str, dropped: DroppedFields) -> Json:
    """Convert tools and their results: older revisions require objects as schemas and as structured content."""
    convert = downgrader(revision).between(D.Tool, structs_of(revision).Tool)
    assert convert is not None
    made: Json = {}
    if "tools" in params:
        tools = from_builtins(params["tools"], list[D.Tool])
        made["tools"] = [to_builtins(convert(tool, dropped)) for tool in tools]
    made["messages"] = [
        {**message, "content": [_drop_structured(content, dropped) for content in _contents_of(message)]}
        if is_array(message["content"])
        else {**message, "content": _drop_structured(message["content"], dropped)}
        for message in params["messages"]
    ]
    return made


def _drop_structured(content: Json, dropped: DroppedFields) -> Json:
    """Remove structured content that is not an object."""
    if is_object(content.get("structuredContent", {})):
        return content
    dropped.append("ToolResultContent.structured_content")
    return {key: value for key, value in content.items() if key != "structuredContent"}


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
    return from_builtins(to_builtins(from_builtins(value, exact)), result)


def downgrade_result(method: str, result: Any, revision: str) -> Any:
    """Convert a client's result to the types of a legacy revision.

    Raises `DecodeError` if the revision cannot express it.
    """
    record = methods_of(revision).SERVER_REQUESTS[method]
    kept = {key: value for key, value in to_builtins(result).items() if key != "resultType"}
    if method == "sampling/createMessage" and not hasattr(structs_of(revision), "ToolUseContent"):
        content = kept["content"]  # a message has one content there
        if is_array(content):
            kept["content"] = content[0] if content else {"type": "text", "text": ""}
    return from_builtins(kept, record.result)
