"""Requests and notifications: who sends them, and what they inherit from their base types."""

from __future__ import annotations

from codegen.nodes import Schema, ref_name

__all__ = [
    "CLIENT",
    "INPUT_REQUEST",
    "NOTIFICATION",
    "REQUEST",
    "SERVER",
    "add_alternatives",
    "alternative_name",
    "direct_members",
    "inherit_envelope",
    "single_member_unions",
]

CLIENT, SERVER = "Client", "Server"
REQUEST, NOTIFICATION = "Request", "Notification"
INPUT_REQUEST = "InputRequest"
"""The names by which upstream's schemas say who sends what: `ClientRequest`, `ServerNotification`, …"""

_DIRECTIONS = [side + kind for kind in (REQUEST, NOTIFICATION) for side in (CLIENT, SERVER)]
_META = "_meta"


def single_member_unions(defs: dict[str, Schema]) -> dict[str, Schema]:
    """A direction union of one message that upstream wrote out in place becomes a reference to the message."""
    defs = dict(defs)
    for union in _DIRECTIONS:
        node = defs.get(union, {})
        twins = [name for name, other in defs.items() if name != union and other == node]
        if "properties" in node and twins:
            defs[union] = {"$ref": f"#/$defs/{twins[0]}"}
    return defs


def inherit_envelope(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Older messages leave `jsonrpc`, `id` and `_meta` to their base types: write them out, optional as there."""
    defs = dict(defs)
    for union in _DIRECTIONS:
        kind = REQUEST if union.endswith(REQUEST) else NOTIFICATION
        envelope = defs.get("JSONRPC" + kind)
        for name in direct_members(defs, union):
            if envelope and "jsonrpc" not in defs.get(name, {}).get("properties", {"jsonrpc": {}}):
                defs[name] = _with_envelope(defs[name], envelope)
    return defs


def direct_members(defs: dict[str, Schema], union: str) -> list[str]:
    """The definitions that a direction union names; none where a revision has no such union."""
    node = defs.get(union, {})
    return [ref_name(member["$ref"]) for member in node.get("anyOf", [node]) if "$ref" in member]


def _with_envelope(message: Schema, envelope: Schema) -> Schema:
    inherited = {key: node for key, node in envelope["properties"].items() if key in ("jsonrpc", "id")}
    properties = {**inherited, **message["properties"]}
    meta = envelope["properties"].get("params", {}).get("properties", {}).get(_META)
    params = properties.get("params", {})
    if meta is not None and "properties" in params and _META not in params["properties"]:
        properties["params"] = {**params, "properties": {_META: meta, **params["properties"]}}
    return {**message, "properties": properties}


def alternative_name(base: str) -> str:
    """The union of a request's own result and its alternatives: `CallTool` → `CallToolRequestResult`."""
    return f"{base}{REQUEST}Result"


def add_alternatives(defs: dict[str, Schema], alternatives: dict[str, list[str]]) -> dict[str, Schema]:
    """Unions for the requests that may have other results than their own."""
    unions = {}
    for name, node in defs.items():
        if others := alternatives.get(node.get("properties", {}).get("method", {}).get("const")):
            base = name.removesuffix(REQUEST)
            members = [f"{base}Result", *others]
            unions[alternative_name(base)] = {"anyOf": [{"$ref": f"#/$defs/{member}"} for member in members]}
    return {**defs, **unions}
