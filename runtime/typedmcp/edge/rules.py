"""The exceptions of the edge, by name: what the members of two types cannot say for themselves.

A key is a type, for content that the other revision does not know, or `Type.member`, by Python names. A rule gets
the source object and gives the value over there, or UNSET, and names in `lost` what did not make it.
"""

from __future__ import annotations

import secrets
from functools import cache, partial
from typing import Any

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object
from mcpspec._support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.edge.convert import Compiler, Lost, Rule
from typedmcp.edge.revisions import methods, types
from typedmcp.errors import DecodeError

__all__ = ["SILENT", "capabilities", "down", "older_input", "up"]

_RESULTS = (
    "CallToolResult", "CompleteResult", "DiscoverResult", "GetPromptResult", "ListPromptsResult",
    "ListResourceTemplatesResult", "ListResourcesResult", "ListToolsResult", "ReadResourceResult",
)  # fmt: skip

SILENT = frozenset(f"{name}.{member}" for name in _RESULTS for member in ("result_type", "ttl_ms", "cache_scope"))
"""Members that a modern wire has for its own sake: nothing is lost without them."""


@cache
def down(revision: str) -> Compiler:
    """Converters from types of the dialect to those of an older revision."""
    return Compiler(_down_rules(revision), SILENT)


@cache
def up(revision: str) -> Compiler:
    """Converters from types of an older revision to those of the dialect."""
    return Compiler(_up_rules(revision), reuse=False)


def _down_rules(revision: str) -> dict[str, Rule]:
    older = types(revision)
    rules: dict[str, Rule] = {
        "ToolInputSchema": _input_schema,
        "Tool.input_schema": lambda tool, lost: _input_schema(tool.input_schema, lost),
        "Tool.output_schema": _output_schema,
        "CallToolResult.structured_content": _structured_content,
    }
    if not hasattr(older, "AudioContent"):
        rules["AudioContent"] = partial(_as_text, older, "[audio, {0.mime_type}]")
    if not hasattr(older, "ResourceLink"):
        rules["ResourceLink"] = partial(_as_text, older, "[resource {0.name}: {0.uri}]")
    return rules


def _up_rules(revision: str) -> dict[str, Rule]:
    """The rules towards the dialect: `ref/resource` changed the name of its type with 2025-06-18."""
    older = types(revision)
    if not hasattr(older, "ResourceReference"):
        return {}
    return {"ResourceReference": lambda ref, _lost: dialect.structs.ResourceTemplateReference(uri=ref.uri)}


def _as_text(older: Any, text: str, content: Any, lost: Lost) -> Any:
    """Content that the revision does not know, as text that says what it was."""
    lost.append(type(content).__name__)
    return older.TextContent(text=text.format(content))


def _structured_content(value: Any, lost: Lost) -> Any:
    """Older revisions take objects only; the text beside it is what their clients read."""
    content = value.structured_content
    if content is UNSET or is_object(content):
        return content
    if isinstance(content, msgspec.Struct) and is_object(content := to_builtins(content)):
        return content
    lost.append(f"{type(value).__name__}.structured_content")
    return UNSET


def _input_schema(schema: Any, lost: Lost) -> Any:
    return _older_schema(schema, lost, "Tool.input_schema")


def _older_schema(schema: Any, lost: Lost, name: str) -> Any:
    """In older revisions each property is described by an object, though JSON Schema also takes a boolean."""
    if _is_usual(schema):
        return schema
    properties = schema.get("properties")
    described = _described(properties)
    if described is not properties:
        schema = {**schema, "properties": described}
    return _without_misfits(schema, lost, name)


def _is_usual(schema: Any) -> bool:
    """Whether a schema fits, seen at a glance: servers have many tools, and nearly all of their schemas do."""
    properties, required = schema.get("properties", _NOTHING), schema.get("required", _NONE)
    return (
        properties.__class__ is dict
        and required.__class__ is list
        and _OBJECTS.issuperset(map(type, properties.values()))
        and _NAMES.issuperset(map(type, required))
    )


_NOTHING: dict[str, Any] = {}
_NONE: list[str] = []
_OBJECTS, _NAMES = {dict}, {str}


def _described(properties: Any) -> Any:
    """Boolean schemas as the objects that mean the same."""
    if not is_object(properties) or not any(isinstance(schema, bool) for schema in properties.values()):
        return properties
    never: dict[str, Any] = {"not": {}}
    return {
        name: ({} if schema else never) if isinstance(schema, bool) else schema for name, schema in properties.items()
    }


def _without_misfits(schema: Any, lost: Lost, name: str) -> Any:
    """What older revisions say of the keywords they declare: `properties` an object of objects, `required` names."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    fits = {
        "properties": is_object(properties) and all(is_object(each) for each in properties.values()),
        "required": is_array(required) and all(isinstance(each, str) for each in required),
    }
    for keyword in (keyword for keyword, fit in fits.items() if not fit):
        schema = {key: value for key, value in schema.items() if key != keyword}
        lost.append(f"{name}.{keyword}")
    return schema


def _output_schema(tool: Any, lost: Lost) -> Any:
    """In older revisions a tool's output is an object, or not described."""
    schema = tool.output_schema
    if schema is UNSET:
        return UNSET
    if schema.get("type") != "object":
        lost.append("Tool.output_schema")
        return UNSET
    return _older_schema(schema, lost, "Tool.output_schema")


def capabilities(plain: dict[str, Any], kind: Any) -> Any:
    """A peer's capabilities in the dialect; one that says something else there is still declared."""
    made: dict[str, Any] = {}
    for name, value in plain.items():
        try:
            from_builtins({name: value}, kind)
        except DecodeError:
            value = {}
        made[name] = value
    return from_builtins(made, kind)


def older_input(method: str, params: Any, revision: str, lost: Lost) -> Any:
    """The parameters of a request to the client, as the older revision has them.

    A person or a model takes its time over such a request, so this goes the plain way, through JSON.
    Raises `DecodeError` where the revision cannot say it at all.
    """
    plain = to_builtins(params)
    mended = _MENDED[method](plain, revision, lost) if method in _MENDED else plain
    older = from_builtins(mended, methods(revision).METHODS[method].params)
    lost += _missing(mended, to_builtins(older), "params")
    return older


def _elicit(params: dict[str, Any], revision: str, lost: Lost) -> dict[str, Any]:
    if params.get("mode") == "url":
        return {**params, "elicitationId": secrets.token_urlsafe(16)}
    if hasattr(types(revision), "ElicitRequestFormParams"):
        return params
    schema = params["requestedSchema"]
    fields = {name: _choice(field) for name, field in schema["properties"].items()}
    known = {name: field for name, field in fields.items() if field is not None}
    lost += [f"params.requestedSchema.properties.{name}" for name in fields if name not in known]
    kept: dict[str, Any] = {"properties": known}
    if "required" in schema:
        kept["required"] = [name for name in schema["required"] if name in known]
    return {**params, "requestedSchema": {**schema, **kept}}


def _choice(field: dict[str, Any]) -> dict[str, Any] | None:
    """A titled choice the way 2025-06-18 writes it; a choice of several it does not have."""
    if field.get("type") == "array":
        return None
    if "oneOf" not in field:
        return field
    rest = {key: value for key, value in field.items() if key != "oneOf"}
    return {**rest, "enum": [o["const"] for o in field["oneOf"]], "enumNames": [o["title"] for o in field["oneOf"]]}


def _sample(params: dict[str, Any], revision: str, lost: Lost) -> dict[str, Any]:
    """A message with several contents as several messages; content that is unknown there as text."""
    older = types(revision)
    if hasattr(older, "ToolUseContent"):
        return {**params, **_with_tools(params, revision, lost)}
    messages = [
        {**message, "content": _plain_content(content, older, lost)}
        for message in params["messages"]
        for content in _contents(message)
    ]
    return {**params, "messages": messages}


def _contents(message: dict[str, Any]) -> list[Any]:
    content: Any = message["content"]
    return content if is_array(content) else [content]


def _with_tools(params: dict[str, Any], revision: str, lost: Lost) -> dict[str, Any]:
    """Tools and their results, whose schemas and structured content older revisions want to be objects."""
    convert = down(revision).between(dialect.structs.Tool, types(revision).Tool)
    assert convert is not None
    made: dict[str, Any] = {}
    if "tools" in params:
        tools = from_builtins(params["tools"], list[dialect.structs.Tool])
        made["tools"] = [to_builtins(convert(tool, lost)) for tool in tools]
    made["messages"] = [
        {**message, "content": [_object_result(content, lost) for content in _contents(message)]}
        if is_array(message["content"])
        else {**message, "content": _object_result(message["content"], lost)}
        for message in params["messages"]
    ]
    return made


def _object_result(content: dict[str, Any], lost: Lost) -> dict[str, Any]:
    if is_object(content.get("structuredContent", {})):
        return content
    lost.append("ToolResultContent.structured_content")
    return {key: value for key, value in content.items() if key != "structuredContent"}


def _plain_content(content: dict[str, Any], older: Any, lost: Lost) -> dict[str, Any]:
    kind = content["type"]
    if kind in ("text", "image") or (kind == "audio" and hasattr(older, "AudioContent")):
        return content
    lost.append(f"params.messages: {kind}")
    return {"type": "text", "text": f"[{kind}]"}


_MENDED = {"elicitation/create": _elicit, "sampling/createMessage": _sample}


def _missing(before: Any, after: Any, path: str) -> Lost:
    """The paths of what was there and is not any more."""
    if is_object(before) and is_object(after):
        return [
            lost
            for key, value in before.items()
            for lost in (_missing(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"])
        ]
    if is_array(before) and is_array(after) and len(before) == len(after):
        return [lost for i, item in enumerate(before) for lost in _missing(item, after[i], f"{path}[{i}]")]
    return [] if before == after else [path]
