"""Requests and notifications: their senders, and the members that they inherit from base types."""

from __future__ import annotations

import re

from mcpspec_codegen.nodes import Schema, ref_name

__all__ = [
    "CLIENT",
    "INPUT_REQUEST",
    "MESSAGE",
    "NOTIFICATION",
    "REQUEST",
    "SERVER",
    "add_alternatives",
    "base_name",
    "inherit_envelope",
    "list_direct_members",
    "name_alternatives",
    "reference_single_members",
]

CLIENT, SERVER = "Client", "Server"
REQUEST, NOTIFICATION = "Request", "Notification"
MESSAGE = "Message"
"""The end of the name of a message, or of a union of messages, whose own name is that of another definition."""
INPUT_REQUEST = "InputRequest"
"""Parts of the names of the unions that list messages by sender: `ClientRequest`, `ServerNotification`, …"""

_SENDER_UNIONS = [side + kind for kind in (REQUEST, NOTIFICATION) for side in (CLIENT, SERVER)]
_META = "_meta"


_KIND = re.compile(rf"(?<=.)({NOTIFICATION})?({REQUEST}|(?<={NOTIFICATION}))({MESSAGE})*$")


def base_name(message: str) -> str:
    """Return the name of a message without its kind: `CallToolRequest` → `CallTool`."""
    return _KIND.sub("", message)


def reference_single_members(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Replace a union of a single message, which upstream writes out, by a reference to the message."""
    defs = dict(defs)
    for union in [*_SENDER_UNIONS, INPUT_REQUEST]:
        node = defs.get(union, {})
        twins = [name for name, other in defs.items() if name != union and other == node]
        if "properties" in node and twins:
            defs[union] = {"$ref": f"#/$defs/{twins[0]}"}
    return defs


def inherit_envelope(defs: dict[str, Schema]) -> dict[str, Schema]:
    """Write out `jsonrpc`, `id` and `_meta`, which older messages leave to their base types.

    `jsonrpc` and `id` are required, as on the wire: a request without an id would be taken for a notification. By the
    letter of those schemas, they may be absent.
    """
    defs = dict(defs)
    for union in _SENDER_UNIONS:
        kind = REQUEST if union.endswith(REQUEST) else NOTIFICATION
        envelope = defs.get("JSONRPC" + kind)
        for name in list_direct_members(defs, union):
            if envelope and "jsonrpc" not in defs.get(name, {}).get("properties", {"jsonrpc": {}}):
                defs[name] = _with_envelope(defs[name], envelope)
    return defs


def list_direct_members(defs: dict[str, Schema], union: str) -> list[str]:
    """List the definitions that a sender's union names; none if a revision has no such union."""
    node = defs.get(union, {})
    return [ref_name(member["$ref"]) for member in node.get("anyOf", [node]) if "$ref" in member]


def _with_envelope(message: Schema, envelope: Schema) -> Schema:
    inherited = {key: node for key, node in envelope["properties"].items() if key in ("jsonrpc", "id")}
    properties = {**inherited, **message["properties"]}
    meta = envelope["properties"].get("params", {}).get("properties", {}).get(_META)
    params = properties.get("params", {})
    if meta is not None and "properties" in params and _META not in params["properties"]:
        properties["params"] = {**params, "properties": {_META: meta, **params["properties"]}}
    required = [key for key in envelope["required"] if key in inherited]
    return {**message, "properties": properties, "required": [*required, *message.get("required", [])]}


def name_alternatives(base: str) -> str:
    """Name the union of a request's own result and its alternatives: `CallTool` → `CallToolRequestResult`."""
    return f"{base}{REQUEST}Result"


def add_alternatives(defs: dict[str, Schema], alternatives: dict[str, list[str]]) -> dict[str, Schema]:
    """Add a union for each request that has alternative results."""
    unions = {}
    for name, node in defs.items():
        if others := alternatives.get(node.get("properties", {}).get("method", {}).get("const")):
            base = name.removesuffix(REQUEST)
            members = [f"{base}Result", *others]
            unions[name_alternatives(base)] = {"anyOf": [{"$ref": f"#/$defs/{member}"} for member in members]}
    return {**defs, **unions}
