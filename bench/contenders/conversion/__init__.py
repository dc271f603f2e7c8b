"""Conversion of one value to another revision: each module has a `make_converter(case)`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

import mcpspec
from bench.corpus import REVISIONS, make_message, make_tool_list

__all__ = ["DIRECTIONS", "VALUES", "ConversionCase", "Converter", "make_case", "support"]

Converter: TypeAlias = Callable[[Any], Any]
"""Converts a value, and returns one of the other revision."""

_OLDEST, _PREVIOUS, _NEWEST = REVISIONS[0], *REVISIONS[-2:]
DIRECTIONS = {
    "newest-to-oldest": (_NEWEST, _OLDEST),
    "newest-to-previous": (_NEWEST, _PREVIOUS),
    "oldest-to-newest": (_OLDEST, _NEWEST),
}
"""The revisions of value and result."""
VALUES = ("result", "result, with loss", "50 tools", "50 tools, with loss", "request")
"""The values that are converted. Nothing is lost if a value becomes newer, so there they are not `with loss`."""


@dataclass(frozen=True)
class ConversionCase:
    """A value of exact structs, and what it becomes."""

    value: Any
    target: Any
    """Its type in the other revision."""
    to: str
    meta: dict[str, Any] | None
    """Members that the other revision requires in the `_meta` of a request."""
    kept: Any
    """JSON that the result must have."""


def make_case(direction: str, name: str) -> ConversionCase | None:
    """Make a case by its names; None if nothing can be lost in this direction."""
    source, to = DIRECTIONS[direction]
    is_newer = to == _NEWEST
    if is_newer and name.endswith("with loss"):
        return None
    kind, kept, plain, meta = _make_value(name, source, is_newer=is_newer)
    theirs, ours = (mcpspec.revision(version).exact.structs for version in (source, to))
    value = theirs.from_builtins(plain, getattr(theirs, kind))
    return ConversionCase(value, getattr(ours, kind), to, meta, kept)


def support(convert: Converter, case: ConversionCase) -> Converter | None:
    """Return a converter, or None if the types of the other revision reject what it makes of the value."""
    try:
        convert(case.value)
    except (ValueError, msgspec.ValidationError):
        return None
    return convert


def _make_value(name: str, source: str, *, is_newer: bool) -> tuple[str, Any, Any, dict[str, Any] | None]:
    """Return the name of the type, the JSON that is kept, all JSON, and the `_meta` that the other revision needs."""
    if name == "request":
        newest = json.loads(make_message("tools-call").data)
        kept = json.loads(make_message(f"tools-call@{_OLDEST}").data)
        return "CallToolRequest", kept, kept if is_newer else newest, newest["params"]["_meta"] if is_newer else None
    defaults: dict[str, Any] = {} if is_newer else {"resultType": "complete"}
    if name.startswith("50 tools"):
        tools = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in _list_tools()]
        defaults |= {} if is_newer else {"ttlMs": 60_000 if "loss" in name else 0, "cacheScope": "private"}
        return "ListToolsResult", {"tools": tools}, {"tools": tools, **defaults}, None
    content = [{"type": "text", "text": "12 degrees"}, {"type": "text", "text": "light rain"}]
    lost: dict[str, Any] = {"structuredContent": [12, "rain"]} if "loss" in name else {}
    return "CallToolResult", {"content": content}, {"content": content, **lost, **defaults}, None


def _list_tools() -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = make_tool_list(50)["result"]["tools"]
    return tools
