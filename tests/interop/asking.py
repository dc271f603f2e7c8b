"""Ask a server for all that it has, and return its answers in a form in which those of two servers can be compared."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import typedmcp
from typedmcp.building import is_array, is_object
from typedmcp.revisions.features import LEGACY

__all__ = ["ask_all"]

JSON = dict[str, Any]

LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


async def ask_all(target: Any, **options: Any) -> JSON:
    """Ask a server for its lists and for every item of them."""
    told: list[JSON] = []

    def on_frame(sender: str, frame: bytes) -> None:
        message = json.loads(frame)
        if sender == "server" and "method" in message:
            params = {key: value for key, value in message.get("params", {}).items() if key != "progressToken"}
            told.append({"method": message["method"], "params": _without_meta(params)})

    answers: JSON = {}
    async with typedmcp.connect(
        target,
        revisions=LEGACY,
        elicit=lambda params: _sample(typedmcp.types.to_builtins(params)["requestedSchema"]),
        elicit_url=lambda _params: True,
        sample=lambda _params: "a text of the model",
        roots=["file:///home/ada"],
        on_frame=on_frame,
        timeout=20,
        check_capabilities=False,
        check_output=False,
        on_diagnostic=lambda _diagnostic: None,
        **options,
    ) as client:
        answers["capabilities"] = _declared(typedmcp.types.to_builtins(client.server.capabilities))
        answers["instructions"] = client.server.instructions
        items: dict[str, list[JSON]] = {}
        for method, member in LISTS.items():
            answers[method] = found = await _call(client, method, {}, told)
            items[method] = found.get(member, [])
        for tool in items["tools/list"]:
            params = {"name": tool["name"], "arguments": _sample(tool["inputSchema"])}
            answers[f"tools/call {tool['name']}"] = await _call(client, "tools/call", params, told)
        for prompt in items["prompts/list"]:
            arguments = {each["name"]: "7" for each in prompt.get("arguments") or ()}
            params = {"name": prompt["name"], "arguments": arguments}
            answers[f"prompts/get {prompt['name']}"] = await _call(client, "prompts/get", params, told)
        uris = [each["uri"] for each in items["resources/list"]]
        uris += [re.sub(r"{.*?}", "7", each["uriTemplate"]) for each in items["resources/templates/list"]]
        for uri in uris:
            answers[f"resources/read {uri}"] = await _call(client, "resources/read", {"uri": uri}, told)
    return answers


async def _call(client: typedmcp.Client, method: str, params: JSON, told: list[JSON]) -> JSON:
    told.clear()
    on_progress = _ignore if method == "tools/call" else None
    try:
        made: JSON = json.loads(bytes(await client.send_raw(method, params, on_progress=on_progress)))
    except typedmcp.RemoteError as error:
        made = {"error": error.message}
    # What the server sent beside the call, on a stream of its own, was written before a later response.
    await client.ping()
    result: JSON = _normal(made)
    return {**result, "told": [_normal(each) for each in told]} if told else result


def _ignore(_step: object) -> None: ...


def _declared(capabilities: JSON) -> JSON:
    """Return the capabilities that say something: no empty `experimental`, no `false`."""
    made: dict[str, JSON] = {
        name: {key: value for key, value in members.items() if value} for name, members in capabilities.items()
    }
    return {name: members for name, members in made.items() if members or name != "experimental"}


def _without_meta(members: JSON) -> JSON:
    return {key: value for key, value in members.items() if key != "_meta"}


def _normal(value: Any) -> Any:
    """Return a value without what means the same if it is left out."""
    if is_object(value):
        members = {key: _normal(item) for key, item in value.items() if key not in _OF_FASTMCP}
        return {key: item for key, item in members.items() if item is not None and (key, item) not in _DEFAULTS}
    return [_normal(item) for item in value] if is_array(value) else value


_OF_FASTMCP: Final = ("_fastmcp", "x-fastmcp-wrap-result")
"""Members that fastmcp adds for its own client."""
_DEFAULTS: Final[list[tuple[str, object]]] = [("isError", False), ("_meta", {}), ("description", ""), ("mode", "form")]


def _sample(schema: JSON, root: JSON | None = None) -> Any:
    """Return a value that fits a schema."""
    root = schema if root is None else root
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return _sample(target, root)
    for fixed in ("default", "const"):
        if fixed in schema:
            return schema[fixed]
    for choice in ("enum", "anyOf", "oneOf", "allOf"):
        if choice in schema:
            first = schema[choice][0]
            return first if choice == "enum" else _sample(first, root)
    return _sample_of_type(schema, root)


def _sample_of_type(schema: JSON, root: JSON) -> Any:
    match schema.get("type"):
        case "object":
            return {name: _sample(schema["properties"][name], root) for name in schema.get("required", [])}
        case "array":
            return [_sample(schema.get("items", {}), root)] * max(schema.get("minItems", 1), 1)
        case "integer" | "number":
            return schema.get("minimum", 3)
        case "boolean":
            return True
        case _:
            return _TEXTS.get(schema.get("format", ""), "text"[: schema.get("maxLength", 9)])


_TEXTS: Final = {"email": "ada@example.com", "uri": "https://example.com", "date": "2026-01-01"}
"""Texts of some formats."""
