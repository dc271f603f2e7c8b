"""Names that a protocol may have, and types, for new members and definitions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tests.codegen.helpers import Schema
from tests.futures.plan import Plan

__all__ = ["ODD_MEMBERS", "message", "new_member", "new_name", "new_object", "new_type"]

_MEMBERS = [
    "priority", "sha256", "expiresAt", "labels", "owner", "etag", "ttlSeconds", "locale", "costPerCall", "parentId",
    "kind", "schemaVersion", "retryAfterMs", "isDefault", "summary", "homepageUrl", "sizeInBytes", "details", "scope",
    "children", "related", "origin", "reason", "weight", "createdAt", "category", "count", "items", "keys", "values",
]  # fmt: skip
ODD_MEMBERS = [
    "class", "from", "import", "self", "dict", "x-vendor", "_internal", "URL", "iconURLs", "copy", "json", "model",
    "model_config", "modelFields", "schema", "validate", "field", "str", "int", "list", "None", "async", "match",
    "$schema", "$id", "$ref", "@type", "foo.bar", "io.acme/flag", "type", "method", "properties", "required", "const",
    "__class__", "mro", "tag", "meta", "absent", "encode", "Any", "UNSET", "object",
]  # fmt: skip
"""Names of members that Python, the libraries or JSON Schema use for something else."""
_DEFINITIONS = [
    "Event", "Artifact", "Agent", "Quota", "Attachment", "Profile", "Workspace", "Usage", "Checkpoint", "Locale",
    "Person", "Rule", "Trace", "Ticket", "Bundle",
]  # fmt: skip


_NONE: Mapping[str, str] = MappingProxyType({})


def new_name(plan: Plan, suffix: str = "") -> str:
    return plan.fresh(plan.pick(_DEFINITIONS) + suffix)


def new_member(plan: Plan, node: Schema) -> str:
    """Return a name that an object lacks."""
    return plan.pick([name for name in _MEMBERS if name not in node.get("properties", {})])


def new_object(plan: Plan, depth: int = 1, *, constants: Mapping[str, str] = _NONE) -> Schema:
    """Make an object with some members, and with members that are constants."""
    node: Schema = {"type": "object", "properties": {}}
    for name, value in constants.items():
        node["properties"][name] = {"const": value, "type": "string"}
    for _ in range(plan.random.randint(1, 3)):
        node["properties"][new_member(plan, node)] = new_type(plan, depth - 1)
    required = [name for name in node["properties"] if name in constants or plan.random.random() < 0.5]
    if required:
        node["required"] = sorted(required)
    return node


def new_type(plan: Plan, depth: int = 1) -> Schema:
    """Make the type of a member."""
    random = plan.random
    if depth < 0 or random.random() < 0.55:
        scalars: list[Schema] = [
            {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"},
            {"type": ["string", "null"]}, {"type": ["string", "integer"]}, {"enum": ["low", "high"], "type": "string"},
            {"type": "string", "format": random.choice(["uri", "date-time", "byte", "uuid"])},
            {"type": "integer", "minimum": 0, "maximum": 100}, {"type": "number", "minimum": 0, "maximum": 1},
            {"type": "string", "minLength": 1, "maxLength": 64}, {"type": "string", "const": "fixed"},
        ]  # fmt: skip
        return random.choice(scalars)
    below = depth - 1
    kind = random.choice(["reference", "reference", "array", "array", "map", "object", "union", "nullable", "any"])
    if kind == "reference":
        return plan.ref(plan.pick(plan.records()))
    if kind == "array":
        return {"type": "array", "items": new_type(plan, below)}
    if kind == "map":
        return {"type": "object", "additionalProperties": new_type(plan, below)}
    if kind == "object":
        return new_object(plan, below)
    if kind == "union":
        return {"anyOf": [plan.ref(plan.pick(plan.records())), {"type": "string"}]}
    if kind == "nullable":
        return {"anyOf": [new_object(plan, below), {"type": "null"}]}
    return {}


def message(plan: Plan, method: str, params: str, *, is_request: bool) -> Schema:
    """Make a request or a notification, as the schema spells those that it has."""
    properties: dict[str, Any] = {"method": {"const": method, "type": "string"}, "params": plan.ref(params)}
    required = ["method", "params"]
    like = plan.defs["ListToolsRequest" if "ListToolsRequest" in plan.defs else "CallToolRequest"]
    if "jsonrpc" in like["properties"]:
        properties["jsonrpc"] = {"const": "2.0", "type": "string"}
        required.append("jsonrpc")
        if is_request:
            properties["id"] = plan.ref("RequestId")
            required.append("id")
    return {"type": "object", "properties": properties, "required": sorted(required)}
