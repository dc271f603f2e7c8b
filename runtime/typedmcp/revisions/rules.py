"""Conversion rules that do not follow from the types of two revisions.

The key of a rule is `Type.member`, in Python names: the type of the source and the member of the target. For a type of
content that the target does not have, it is the name of the type. Other keys have no effect. A rule gets the source
object and returns the value of the member, or of the whole content. It returns UNSET to leave a member out, and appends
to `dropped` the names of the members that the other revision cannot express. A member of the source that the target
lacks is reported as dropped, even if a rule has moved its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import UNSET

from mcpspec.support.objects import is_array, is_object, spread_union
from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.revisions.convert import ConverterCompiler, DroppedFields, Rule, strip_optional
from typedmcp.revisions.features import structs_of

__all__ = ["IGNORED_FIELDS", "RESULT_DEFAULTS", "downgrade", "downgrader", "upgrade_rules", "upgrader"]

RESULT_DEFAULTS: Final[Mapping[str, Any]] = {"result_type": "complete", "ttl_ms": 0, "cache_scope": "private"}
"""Members that modern results require, with the values that clients assume if they are absent."""

IGNORED_FIELDS: Final = frozenset(
    f"{kind.__name__}.{name}"
    for method in dialect.methods.CLIENT_REQUESTS.values()
    for kind in spread_union(method.result)
    for name in RESULT_DEFAULTS
)
"""Members that only modern revisions need. It is not reported if an older revision lacks them."""


RENAMED: Final[Mapping[str, str]] = {}
"""Members of the dialect, as `Type.member`, with their names in older revisions."""

REPLACED_CONTENT: Final[Mapping[str, str]] = {
    "AudioContent": "[audio, {0.mime_type}]",
    "ResourceLink": "[resource {0.name}: {0.uri}]",
}
"""Types of content that older revisions lack, with the text that replaces the content there."""

_NO_TASKS = "tasks of 2025-11-25 are not offered"
_HANDSHAKE = "the runtime handles the handshake"
_SESSION = "the runtime handles it in legacy sessions"
_INPUT = "revisions/input_requests.py converts it"

DECIDED: Final[Mapping[str, str]] = {
    "initialize": _HANDSHAKE,
    "notifications/initialized": _HANDSHAKE,
    "ping": _SESSION,
    "logging/setLevel": _SESSION,
    "resources/subscribe": _SESSION,
    "resources/unsubscribe": _SESSION,
    "notifications/roots/list_changed": "roots are listed again for each request",
    "notifications/elicitation/complete": "the client reports it as a diagnostic",
    "tasks/cancel": _NO_TASKS,
    "tasks/get": _NO_TASKS,
    "tasks/list": _NO_TASKS,
    "tasks/result": _NO_TASKS,
    "notifications/tasks/status": _NO_TASKS,
    "CreateTaskResult": _NO_TASKS,
    "CallToolRequestParams.task": _NO_TASKS,
    "CreateMessageRequestParams.task": _NO_TASKS,
    "ElicitRequestFormParams.task": _NO_TASKS,
    "ElicitRequestURLParams.task": _NO_TASKS,
    "ServerCapabilities.tasks": _NO_TASKS,
    "ClientCapabilities.tasks": _NO_TASKS,
    "Tool.execution": _NO_TASKS,
    "elicitation/create": "a client that lacks it cannot declare the capability, which is checked first",
    "CancelledNotificationParams.request_id": "a cancellation without it is about a task",
    "ElicitRequestURLParams.elicitation_id": _INPUT,
    "ElicitRequestFormParams": _INPUT,
    "ElicitRequestURLParams": _INPUT,
    "ElicitRequestParams": _INPUT,
}
"""Methods, members and types of older revisions that need no rule, or types of the dialect, with the reason."""


@cache
def downgrader(revision: str) -> ConverterCompiler:
    """Return the compiler of converters from types of the dialect to exact types of a revision."""
    older_names = {f"{name.partition('.')[0]}.{older}": name.partition(".")[2] for name, older in RENAMED.items()}
    return ConverterCompiler(_downgrade_rules(revision), IGNORED_FIELDS, renamed=older_names)


@cache
def upgrader(revision: str) -> ConverterCompiler:
    """Return the compiler of converters from exact types of a revision to types of the dialect."""
    return ConverterCompiler(upgrade_rules(revision, dialect.structs), renamed=RENAMED, reuse=False, absent=None)


def downgrade(value: Any, target: Any, revision: str, dropped: DroppedFields) -> Any:
    """Convert a value of the dialect to a type of a revision."""
    convert = downgrader(revision).between(type(value), target)
    return value if convert is None else convert(value, dropped)


def _downgrade_rules(revision: str) -> dict[str, Rule]:
    older = structs_of(revision)
    rules: dict[str, Rule] = {}
    if "properties" in older.ToolInputSchema.__attributes__:
        rules["Tool.input_schema"] = _downgrade_input_schema
        rules["Tool.output_schema"] = _downgrade_output_schema
    if strip_optional(get_type_hints(older.CallToolResult).get("structured_content", Any)) is not Any:
        rules["CallToolResult.structured_content"] = _downgrade_structured_content
        rules["ToolResultContent.structured_content"] = _downgrade_structured_content
    for name, text in REPLACED_CONTENT.items():
        if not hasattr(older, name):
            rules[name] = partial(_replace_by_text, older, text)
    if hasattr(older, "ResourceReference"):
        rules["ResourceTemplateReference"] = lambda ref, _dropped: older.ResourceReference(uri=ref.uri)
    return rules


def upgrade_rules(revision: str, types: Any) -> dict[str, Rule]:
    """Build the rules towards the dialect, whose `types` are plain or exact. One renamed the type of `ref/resource`."""
    if not hasattr(structs_of(revision), "ResourceReference"):
        return {}
    return {"ResourceReference": lambda ref, _dropped: types.ResourceTemplateReference(uri=ref.uri)}


def _replace_by_text(older: Any, text: str, content: Any, dropped: DroppedFields) -> Any:
    """Replace content of a type that the revision does not have with a text that names it."""
    dropped.append(type(content).__name__)
    return older.TextContent(text=text.format(content))


def _downgrade_structured_content(value: Any, dropped: DroppedFields) -> Any:
    """Keep structured content only if it is an object: older revisions allow nothing else."""
    content = value.structured_content
    if content is None:
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


def _downgrade_output_schema(tool: Any, dropped: DroppedFields) -> Any:
    schema = tool.output_schema
    if schema is None:
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
