"""Rules for conversion between revisions: what does not follow from the types of two revisions.

The key of a rule is `Type.member`, in Python names: the type of the source and the member of the target. For a type of
content that the target does not have, it is the name of the type. Other keys have no effect. A rule gets the source
object and returns the value of the member, or of the whole content. It returns UNSET to leave a member out, and appends
to `dropped` the names of the members that the other revision cannot express. A member of the source that the target
lacks is reported as dropped, even if a rule has moved its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, get_type_hints

import msgspec
from msgspec import UNSET

from mcpspec.support.converters import DroppedFields, Rule, strip_optional
from mcpspec.support.objects import is_array, is_object
from mcpspec.support.structs import to_builtins

__all__ = [
    "RENAMED", "RENAMED_TYPES", "REPLACED_CONTENT", "RESULT_DEFAULTS",
    "downgrade_elicitation", "downgrade_rules", "downgrade_sampling", "has_content_lists", "upgrade_rules",
]  # fmt: skip

Json: TypeAlias = "dict[str, Any]"

RESULT_DEFAULTS: Final[Mapping[str, Any]] = {"result_type": "complete", "ttl_ms": 0, "cache_scope": "private"}
"""Members that modern results require, with the values that clients assume if they are absent."""

RENAMED: Final[Mapping[str, str]] = {}
"""Members of the newest revision, as `Type.member`, with their names in older revisions."""

RENAMED_TYPES: Final[Mapping[str, str]] = {
    "ResourceTemplateReference": "ResourceReference",
    "ElicitRequestFormParams": "ElicitRequestParams",
    "JSONRPCErrorResponse": "JSONRPCError",
    "JSONRPCResultResponse": "JSONRPCResponse",
}
"""Types of newer revisions, with their names in older ones, which lack the new name."""

REPLACED_CONTENT: Final[Mapping[str, str]] = {
    "AudioContent": "[audio, {0.mime_type}]",
    "ResourceLink": "[resource {0.name}: {0.uri}]",
}
"""Types of content that older revisions lack, with the text that replaces the content there."""


def downgrade_rules(older: Any, absent: object) -> dict[str, Rule]:
    """Return the rules towards an older revision, whose module of exact structs is `older`.

    `absent` is what the source types have for an absent member: UNSET in exact types, None in everyday ones.
    """
    rules: dict[str, Rule] = {}
    if "properties" in older.ToolInputSchema.__attributes__:
        rules["Tool.input_schema"] = _downgrade_input_schema
        rules["Tool.output_schema"] = partial(_downgrade_output_schema, absent)
    if strip_optional(get_type_hints(older.CallToolResult).get("structured_content", Any)) is not Any:
        rules["CallToolResult.structured_content"] = partial(_downgrade_structured_content, absent)
        rules["ToolResultContent.structured_content"] = partial(_downgrade_structured_content, absent)
    for name, text in REPLACED_CONTENT.items():
        if not hasattr(older, name):
            rules[name] = partial(_replace_by_text, older, text)
    return rules | dict(_renamed_references(older))


def upgrade_rules(types: Any) -> dict[str, Rule]:
    """Return the rules towards a newer revision, whose module of structs is `types`."""
    return dict(_renamed_references(types))


def _renamed_references(types: Any) -> Iterator[tuple[str, Rule]]:
    """Yield the rule for the reference to a resource template, whose type has got another name."""
    names = ["ResourceTemplateReference", "ResourceReference"]
    for name, other in (names, names[::-1]):
        if hasattr(types, other) and not hasattr(types, name):
            yield name, partial(_copy_reference, getattr(types, other))


def _copy_reference(kind: Any, reference: Any, _dropped: DroppedFields) -> Any:
    return kind(uri=reference.uri)


def _replace_by_text(older: Any, text: str, content: Any, dropped: DroppedFields) -> Any:
    """Replace content of a type that the revision does not have with a text that names it."""
    dropped.append(type(content).__name__)
    return older.TextContent(text=text.format(content))


def _downgrade_structured_content(absent: object, value: Any, dropped: DroppedFields) -> Any:
    """Keep structured content only if it is an object: older revisions allow nothing else."""
    content = value.structured_content
    if content is absent:
        return UNSET
    if is_object(content):
        return content
    if isinstance(content, msgspec.Struct) and is_object(content := to_builtins(content)):
        return content
    dropped.append(f"{type(value).__name__}.structured_content")
    return UNSET


# Schemas of tools: older revisions require a type `object`, a schema object for each property, and names in `required`


def _downgrade_input_schema(tool: Any, dropped: DroppedFields) -> Any:
    return _downgrade_schema(tool.input_schema, dropped, "Tool.input_schema")


def _downgrade_output_schema(absent: object, tool: Any, dropped: DroppedFields) -> Any:
    schema = tool.output_schema
    if schema is absent:
        return UNSET
    if schema.get("type") != "object":
        dropped.append("Tool.output_schema")
        return UNSET
    return _downgrade_schema(schema, dropped, "Tool.output_schema")


def _downgrade_schema(schema: Any, dropped: DroppedFields, name: str) -> Any:
    """Rewrite the properties that are booleans, and leave out keywords that older revisions would reject."""
    if _is_unchanged(schema):
        return schema
    properties = schema.get("properties")
    described = _replace_booleans(properties)
    if described is not properties:
        schema = {**schema, "properties": described}
    return _drop_invalid_keywords(schema, dropped, name)


_NO_PROPERTIES: Final[dict[str, Any]] = {}
_NO_NAMES: Final[list[str]] = []
_DICT, _STR = {dict}, {str}


def _is_unchanged(schema: Any) -> bool:
    """Return whether a schema is valid on older revisions. It is fast, since servers have many tools."""
    properties, required = schema.get("properties", _NO_PROPERTIES), schema.get("required", _NO_NAMES)
    return (
        properties.__class__ is dict
        and required.__class__ is list
        and _DICT.issuperset(map(type, properties.values()))
        and _STR.issuperset(map(type, required))
    )


def _replace_booleans(properties: Any) -> Any:
    """Replace boolean schemas of properties with equivalent schema objects."""
    if not is_object(properties) or not any(isinstance(schema, bool) for schema in properties.values()):
        return properties
    never: dict[str, Any] = {"not": {}}
    return {
        name: ({} if schema else never) if isinstance(schema, bool) else schema for name, schema in properties.items()
    }


def _drop_invalid_keywords(schema: Any, dropped: DroppedFields, name: str) -> Any:
    """Leave out `properties` that is not an object of objects, and `required` that is not a list of names."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    is_valid = {
        "properties": is_object(properties) and all(is_object(each) for each in properties.values()),
        "required": is_array(required) and all(isinstance(each, str) for each in required),
    }
    for keyword in (keyword for keyword, valid in is_valid.items() if not valid):
        schema = {key: value for key, value in schema.items() if key != keyword}
        dropped.append(f"{name}.{keyword}")
    return schema


# Requests for input, as plain JSON: a person or a model takes much longer to answer than any conversion


def has_content_lists(types: Any) -> bool:
    """Return whether a message of a model may have several contents, as in revisions in which models use tools."""
    return hasattr(types, "ToolUseContent")


def downgrade_elicitation(params: Json, older: Any, dropped: DroppedFields) -> Json:
    """Adapt the parameters of a request for a form, as plain JSON, to an older revision with these structs."""
    if hasattr(older, "ElicitRequestFormParams"):
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


def downgrade_sampling(params: Json, older: Any, dropped: DroppedFields) -> Json:
    """Split messages with several contents, and replace content that an older revision does not have with text."""
    if has_content_lists(older):
        return params
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
