"""The text in results, messages and content, in the types of every revision and of both libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from typedmcp.client.results import text
from typedmcp.dialect import models, structs
from typedmcp.revisions.features import SUPPORTED

TEXT = {"type": "text", "text": "it rains"}
PICTURE = {"type": "image", "data": "", "mimeType": "image/png"}
SOUND = {"type": "audio", "data": "", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
PAGE = {"uri": "file:///a", "text": "Ålesund 🌧"}
BLOB = {"uri": "file:///b", "blob": ""}
EMBEDDED = {"type": "resource", "resource": PAGE}
USE: dict[str, Any] = {"type": "tool_use", "id": "1", "name": "x", "input": {}}
RESULT = {"type": "tool_result", "toolUseId": "1", "content": [TEXT, PICTURE]}
MESSAGE = {"role": "user", "content": TEXT}
DONE = {"resultType": "complete"}
KEPT = {**DONE, "ttlMs": 0, "cacheScope": "private"}

VALUES: list[tuple[str, dict[str, Any], str]] = [
    ("TextContent", TEXT, "it rains"),
    ("ImageContent", PICTURE, ""),
    ("AudioContent", SOUND, ""),
    ("ResourceLink", LINK, ""),
    ("EmbeddedResource", EMBEDDED, "Ålesund 🌧"),
    ("EmbeddedResource", {"type": "resource", "resource": BLOB}, ""),
    ("TextResourceContents", PAGE, "Ålesund 🌧"),
    ("BlobResourceContents", BLOB, ""),
    ("ToolUseContent", USE, ""),
    ("ToolResultContent", RESULT, "it rains"),
    ("PromptMessage", MESSAGE, "it rains"),
    ("SamplingMessage", {"role": "user", "content": [TEXT, RESULT]}, "it rains\nit rains"),
    ("CallToolResult", {**DONE, "content": [TEXT, PICTURE, EMBEDDED]}, "it rains\nÅlesund 🌧"),
    ("CallToolResult", {**DONE, "content": []}, ""),
    ("GetPromptResult", {**DONE, "messages": [MESSAGE, MESSAGE]}, "it rains\nit rains"),
    ("ReadResourceResult", {**KEPT, "contents": [PAGE, BLOB, PAGE]}, "Ålesund 🌧\nÅlesund 🌧"),
    ("CreateMessageResult", {"role": "assistant", "model": "m", "content": TEXT}, "it rains"),
    ("CreateMessageResult", {"role": "assistant", "model": "m", "content": [TEXT, USE]}, "it rains"),
]


@each("types", [structs, models], ids=["structs", "models"])
@each("name, value, text", VALUES, ids=[name for name, _, _ in VALUES])
def test_text_of_takes_everything_that_may_have_text(name: str, value: Any, text: str, types: Any) -> None:
    made = types.from_builtins(value, getattr(types, name))
    assert typedmcp.text_of(made) == text
    assert typedmcp.text_of([made, "and more"]).removesuffix("and more").strip() == text


@each("version", SUPPORTED)
def test_text_of_takes_types_of_legacy_revisions(version: str) -> None:
    types = import_module(f"mcpspec.v{version.replace('-', '_')}.structs")
    result = types.from_builtins({**DONE, "content": [TEXT, EMBEDDED]}, types.CallToolResult)
    assert typedmcp.text_of(result) == "it rains\nÅlesund 🌧"


def test_text_of_knows_every_content_type_of_the_supported_revisions() -> None:
    known: set[str] = set(getattr(text, "TEXT_MEMBERS"))  # noqa: B009  # it is the module's own
    there = {name for version in SUPPORTED for name in _content_of(version)}
    assert there <= known
    assert known - there == {
        "CallToolResult", "CreateMessageResult", "SamplingMessage", "PromptMessage", "GetPromptResult",
        "ReadResourceResult", "TextResourceContents", "BlobResourceContents",
    }  # fmt: skip


def _content_of(version: str) -> list[str]:
    types = import_module(f"mcpspec.v{version.replace('-', '_')}.structs")
    return [
        name
        for name, kind in vars(types).items()
        if isinstance(kind, type) and name.endswith(("Content", "ResourceLink", "EmbeddedResource")) and name[0] != "_"
    ]


@each("value", [3, None, {"type": "text", "text": "x"}, structs.Implementation(name="x", version="1")])
def test_text_of_rejects_other_values(value: Any) -> None:
    with pytest.raises(typedmcp.UsageError, match="expected a result, a message or content"):
        typedmcp.text_of(value)
