"""The messages that codecs are measured with, always the same, generated from a seed.

They have only members that the schema of their revision declares. So no codec drops anything, and the benchmark can
check that a codec returns what it was given.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

__all__ = ["MESSAGES", "REVISIONS", "Message", "make_message"]

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
NEWEST = REVISIONS[-1]
SEED = 20260728

_WORDS = ("weather", "city", "wind", "rain", "list", "file", "read", "write", "query", "index", "value", "result")

Kind: TypeAlias = Literal["request", "result", "notification", "error", "batch"]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A message with its bytes."""

    name: str
    title: str
    kind: Kind
    method: str
    """The method of a request or notification, or of the request of a result."""
    data: bytes
    wrong: bytes
    """The same with one value of a wrong type, deep inside, for codecs to reject."""
    revision: str = NEWEST


def make_text(rng: random.Random, count: int) -> str:
    """Return a text of `count` words."""
    return " ".join(rng.choice(_WORDS) for _ in range(count))


def _meta(revision: str) -> Json:
    if revision != NEWEST:
        return {}
    client = {"name": "bench", "title": "A benchmark", "version": "1.0.0"}
    capabilities: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
    prefix = "io.modelcontextprotocol/"
    members: Json = {"protocolVersion": revision, "clientCapabilities": capabilities, "clientInfo": client}
    return {"_meta": {f"{prefix}{name}": value for name, value in members.items()}}


def _request(revision: str, id: int = 1) -> Json:
    arguments = {"city": "Zürich", "days": 3, "units": "metric", "hourly": True, "place": {"lat": 47.37, "lon": 8.54}}
    params = {"name": "get_forecast", "arguments": arguments, **_meta(revision)}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def _schema(rng: random.Random, properties: int) -> Json:
    found: Json = {}
    for number in range(properties):
        kind = rng.choice(("string", "integer", "number", "boolean"))
        found[f"argument_{number}"] = {"type": kind, "description": make_text(rng, 6)}
    return {"type": "object", "properties": found, "required": list(found)[:2]}


def _tool(rng: random.Random, number: int) -> Json:
    return {
        "name": f"tool_{number}",
        "title": make_text(rng, 3),
        "description": make_text(rng, 18),
        "inputSchema": _schema(rng, 4),
        "annotations": {"readOnlyHint": rng.random() < 0.5, "openWorldHint": rng.random() < 0.5},
    }


def make_tool_list(count: int) -> Json:
    """Return a response that lists `count` tools."""
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    tools = [_tool(rng, number) for number in range(count)]
    return _response({"tools": tools, "resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"})


def _response(result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def _text(size: int) -> Json:
    text = make_text(random.Random(SEED), size // 5)[:size]  # noqa: S311
    return _response({"content": [{"type": "text", "text": text}], "resultType": "complete"})


def _blob(size: int) -> Json:
    blob = base64.b64encode(random.Random(SEED).randbytes(size * 3 // 4)).decode()  # noqa: S311
    contents = [{"uri": "file:///picture.png", "mimeType": "image/png", "blob": blob}]
    return _response({"contents": contents, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})


def _elicitation(fields: int = 40) -> Json:
    """Return a result that asks for input with a form, the most deeply nested message of the protocol."""
    rng = random.Random(SEED)  # noqa: S311
    properties: Json = {}
    for number in range(fields):
        choices = [{"const": f"{number}-{choice}", "title": make_text(rng, 2)} for choice in range(5)]
        properties[f"text_{number}"] = {"type": "string", "title": make_text(rng, 2), "minLength": 1, "maxLength": 80}
        properties[f"number_{number}"] = {"type": "number", "minimum": 0, "maximum": 100, "default": 5}
        properties[f"choice_{number}"] = {"type": "string", "oneOf": choices}
        properties[f"many_{number}"] = {"type": "array", "items": {"anyOf": choices}, "minItems": 1}
    schema = {"type": "object", "properties": properties, "required": list(properties)[:3]}
    params = {"mode": "form", "message": make_text(rng, 12), "requestedSchema": schema}
    requests = {"form": {"method": "elicitation/create", "params": params}}
    return _response({"inputRequests": requests, "requestState": "x" * 64, "resultType": "input_required"})


def _progress() -> Json:
    params = {"progressToken": 7, "progress": 41.5, "total": 100, "message": "halfway there"}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def _error() -> Json:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "params.name: expected a string"}}


def _replace(value: Any, path: tuple[str | int, ...], replacement: Any) -> Any:
    """Copy a message with another value at a path."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = replacement
    return copy


_Definition: TypeAlias = tuple[str, Kind, str, Callable[[], Any], tuple[str | int, ...]]

_KINDS: dict[str, _Definition] = {
    "tools-call": ("A call of a tool, 0.4 KB", "request", "tools/call", lambda: _request(NEWEST), ("params", "name")),
    "tools-list-50": (
        "A list of 50 tools", "result", "tools/list", lambda: make_tool_list(50),
        ("result", "tools", 49, "description"),
    ),
    "tools-list-1000": (
        "A list of 1,000 tools", "result", "tools/list", lambda: make_tool_list(1000),
        ("result", "tools", 999, "description"),
    ),
    "text-100k": (
        "A result of 100 KB of text", "result", "tools/call", lambda: _text(100_000), ("result", "resultType"),
    ),
    "blob-10m": (
        "A resource of 10 MB in Base64", "result", "resources/read", lambda: _blob(10 << 20),
        ("result", "resultType"),
    ),
    "elicitation": (
        "A question with a deep form", "result", "tools/call", _elicitation,
        ("result", "inputRequests", "form", "params", "message"),
    ),
    "progress": (
        "A progress notification", "notification", "notifications/progress", _progress, ("params", "progress"),
    ),
    "error": ("An error", "error", "", _error, ("error", "code")),
}  # fmt: skip
"""Title, kind, method, message, and the path of the value that is wrong in the wrong copy."""

BATCH = "batch-20"
BATCH_REVISION = "2025-03-26"
"""The only revision with batches."""

MESSAGES: tuple[str, ...] = (*_KINDS, BATCH, *(f"tools-call@{revision}" for revision in REVISIONS[:-1]))
"""The names of all messages. `@` precedes an older revision."""


@cache
def make_message(name: str) -> Message:
    """Make a message by its name, which may also be `tools-list-N` for any N."""
    if name == BATCH:
        batch = [_request(BATCH_REVISION, id) for id in range(20)]
        return _message(
            name, "A batch of 20 calls", "batch", "tools/call", batch, (19, "params", "name"), BATCH_REVISION
        )
    kind, _, revision = name.partition("@")
    if revision:
        title = f"A call of a tool, in {revision}"
        return _message(name, title, "request", "tools/call", _request(revision), ("params", "name"), revision)
    if kind not in _KINDS and kind.startswith("tools-list-"):
        count = int(kind.rpartition("-")[2])
        last = ("result", "tools", count - 1, "description")
        return _message(name, f"A list of {count} tools", "result", "tools/list", make_tool_list(count), last)
    title, of, method, make, place = _KINDS[kind]
    return _message(name, title, of, method, make(), place)


def _message(
    name: str, title: str, kind: Kind, method: str, value: Any, place: tuple[str | int, ...], revision: str = NEWEST
) -> Message:
    wrong = 7 if place[-1] not in ("code", "progress") else "seven"
    return Message(name, title, kind, method, _encode(value), _encode(_replace(value, place, wrong)), revision)


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
