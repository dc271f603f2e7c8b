"""Rules for conversion between revisions: what does not follow from the types of two revisions.

Generated conversions call them. A rule gets a value, or the object that it is a member of, and returns what becomes of
it. It returns UNSET to leave a member out, and appends to `lost` the names of what the other revision cannot express.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from mcpspec.support.converters import DroppedFields
from mcpspec.support.members import members_of
from mcpspec.support.objects import find_differences, is_array, is_object
from mcpspec.support.structs import from_builtins, to_builtins

__all__ = [
    "convert_form", "downgrade_elicitation", "downgrade_input_schema", "downgrade_output_schema", "downgrade_sampling",
    "downgrade_structured_content", "has_content_lists", "replace_by_text", "split_messages", "take_first_content",
]  # fmt: skip

Json: TypeAlias = "dict[str, Any]"


def replace_by_text(make_text: Any, text: str, content: Any, lost: DroppedFields) -> Any:
    """Replace content of a type that the revision does not have with a text that names it."""
    lost.append(type(content).__name__)
    return make_text(text=text.format(content))


def downgrade_structured_content(content: Any, absent: object, name: str, lost: DroppedFields) -> Any:
    """Keep structured content only if it is an object: older revisions allow nothing else."""
    if content is absent:
        return UNSET
    if is_object(content):
        return content
    if isinstance(content, msgspec.Struct) and is_object(content := to_builtins(content)):
        return content
    lost.append(f"{name}.structured_content")
    return UNSET


# Schemas of tools: older revisions require a type `object`, a schema object for each property, and names in `required`


def downgrade_input_schema(schema: Any, lost: DroppedFields) -> Any:
    """Adapt the schema of a tool's arguments."""
    return _downgrade_schema(schema, lost, "Tool.input_schema")


def downgrade_output_schema(schema: Any, lost: DroppedFields) -> Any:
    """Adapt the schema of a tool's structured content, or leave it out if it does not describe an object."""
    if schema is None or schema is UNSET:
        return UNSET
    if schema.get("type") != "object":
        lost.append("Tool.output_schema")
        return UNSET
    return _downgrade_schema(schema, lost, "Tool.output_schema")


def _downgrade_schema(schema: Any, lost: DroppedFields, name: str) -> Any:
    """Rewrite the properties that are booleans, and leave out keywords that older revisions would reject."""
    if _is_unchanged(schema):
        return schema
    properties = schema.get("properties")
    described = _replace_booleans(properties)
    if described is not properties:
        schema = {**schema, "properties": described}
    return _drop_invalid_keywords(schema, lost, name)


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


def _drop_invalid_keywords(schema: Any, lost: DroppedFields, name: str) -> Any:
    """Leave out `properties` that is not an object of objects, and `required` that is not a list of names."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    is_valid = {
        "properties": is_object(properties) and all(is_object(each) for each in properties.values()),
        "required": is_array(required) and all(isinstance(each, str) for each in required),
    }
    for keyword in (keyword for keyword, valid in is_valid.items() if not valid):
        schema = {key: value for key, value in schema.items() if key != keyword}
        lost.append(f"{name}.{keyword}")
    return schema


# Requests for input, as plain JSON: a person or a model takes much longer to answer than any conversion


def has_content_lists(types: Any) -> bool:
    """Return whether a message of a model may have several contents, as in revisions in which models use tools."""
    return hasattr(types, "ToolUseContent")


def downgrade_elicitation(params: Json, older: Any, lost: DroppedFields) -> Json:
    """Adapt the parameters of a request for a form, as plain JSON, to an older revision with these structs."""
    if hasattr(older, "ElicitRequestFormParams"):
        return params
    schema = params["requestedSchema"]
    fields = {name: _downgrade_field(field) for name, field in schema["properties"].items()}
    known = {name: field for name, field in fields.items() if field is not None}
    lost.extend([f"params.requestedSchema.properties.{name}" for name in fields if name not in known])
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


def downgrade_sampling(params: Json, older: Any, lost: DroppedFields) -> Json:
    """Split messages with several contents, and replace content that an older revision does not have with text."""
    if has_content_lists(older):
        return params
    messages = [
        {**message, "content": _downgrade_content(content, older, lost)}
        for message in params["messages"]
        for content in _contents_of(message)
    ]
    return {**params, "messages": messages}


def _contents_of(message: Json) -> list[Any]:
    content: Any = message["content"]
    return content if is_array(content) else [content]


def _downgrade_content(content: Json, older: Any, lost: DroppedFields) -> Json:
    kind = content.get("type", "content")  # a revision may have made it optional
    if kind in ("text", "image") or (kind == "audio" and hasattr(older, "AudioContent")):
        return content
    lost.append(f"params.messages: {kind}")
    return {"type": "text", "text": f"[{kind}]"}


# The same requests as structs


def convert_form(form: Any, older: Any, lost: DroppedFields) -> Any:
    """Convert the parameters of a request for a form to a revision that has only forms. `older` are its structs."""
    plain = to_builtins(form)
    fields = downgrade_elicitation(plain, older, lost)
    fields = {key: value for key, value in fields.items() if key != "mode"}
    return _rebuild(plain, fields, older.ElicitRequestParams, lost)


def split_messages(params: Any, older: Any, lost: DroppedFields) -> Any:
    """Return the messages of a request for sampling, for a revision whose messages have one content."""
    plain = {"messages": to_builtins(params.messages)}
    messages = downgrade_sampling(plain, older, lost)["messages"]
    return _rebuild(plain["messages"], messages, list[older.SamplingMessage], lost)


def take_first_content(result: Any, older: Any, lost: DroppedFields) -> Any:
    """Return the content of a model's message, for a revision whose messages have one content."""
    plain = to_builtins(result.content)
    messages = downgrade_sampling({"messages": [{"content": plain}]}, older, lost)["messages"]
    hint = members_of(older.CreateMessageResult)["content"].hint
    if messages:
        return _rebuild(plain, messages[0]["content"], hint, lost)
    lost.append("CreateMessageResult.content")
    return UNSET


def _rebuild(before: Any, plain: Any, hint: Any, lost: DroppedFields) -> Any:
    """Make a value of an older revision from the JSON that a rule has rewritten, and report what the JSON lost."""
    made = from_builtins(plain, hint)
    lost.extend(find_differences(before, to_builtins(made), ""))
    return made
