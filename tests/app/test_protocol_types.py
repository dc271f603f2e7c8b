"""Functions that return the protocol's types: of either library, exact, free of revisions, or of another revision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import mcpspec
from mcpspec import compat
from mcpspec.v2026_07_28 import models, structs
from mcpspec.v2026_07_28.exact import models as exact_models
from mcpspec.v2026_07_28.exact import structs as exact
from tests.cases import each
from typedmcp import Client, Diagnostic, RemoteError, Server, ServerConfig, connect

LIBRARIES: dict[str, Any] = {
    "structs": structs,
    "models": models,
    "exact structs": exact,
    "exact models": exact_models,
    "compat": compat,
}
TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}
CONTENTS = {"uri": "a://b", "text": "a"}
MESSAGE = {"role": "assistant", "content": IMAGE}

TOOL_VALUES = {
    "TextContent": TEXT,
    "ImageContent": IMAGE,
    "CallToolResult": {"resultType": "complete", "content": [TEXT], "isError": True},
    "ToolAnnotations": {"title": "a", "readOnlyHint": True},
    "Tool": {"name": "a", "inputSchema": {"type": "object"}},
    "PromptMessage": MESSAGE,
}
PROMPT_VALUES = {
    "TextContent": TEXT,
    "PromptMessage": MESSAGE,
    "GetPromptResult": {"resultType": "complete", "description": "d", "messages": [MESSAGE]},
}
RESOURCE_VALUES = {
    "TextResourceContents": CONTENTS,
    "BlobResourceContents": {"uri": "a://b", "blob": ""},
    "ReadResourceResult": {"resultType": "complete", "contents": [CONTENTS], "ttlMs": 7, "cacheScope": "public"},
}


def returned(types: Any, name: str, value: Any) -> Any:
    return types.from_builtins(value, getattr(types, name))


def giving(value: Any) -> Callable[[], Any]:
    """Return a function without annotations that returns a value."""

    def give():  # type: ignore[no-untyped-def]
        return value

    return give


def call(make: Callable[[], Any], use: Callable[[Client], Any], reports: list[Diagnostic] | None = None) -> Any:
    """Call the function as a tool, a prompt or a resource, and return what the server sent, without its own name."""
    server = Server()
    server.tool(name="f")(make)
    server.prompt(name="f")(make)
    server.resource("a://b", name="f")(make)

    async def main() -> Any:
        config: Any = ServerConfig(server, on_diagnostic=([] if reports is None else reports).append)
        async with connect(config) as client:
            return structs.to_builtins(await use(client))

    made = asyncio.run(main())
    made.pop("_meta", None)
    return made


def tool(client: Client) -> Any:
    return client.call_tool("f")


def prompt(client: Client) -> Any:
    return client.get_prompt("f")


def resource(client: Client) -> Any:
    return client.read_resource("a://b")


def check_alike(values: dict[str, Any], use: Callable[[Client], Any], library: str) -> None:
    """Check that the values of a library mean the same as those of the everyday Structs, in a list, too."""
    for name, value in values.items():
        made, expected = (returned(types, name, value) for types in (LIBRARIES[library], structs))
        assert call(giving(made), use) == call(giving(expected), use), name
        if not name.endswith("Result") and (use is not tool or "type" in value) and library != "compat":
            assert call(giving([made]), use) == call(giving([expected]), use), name


@each("library", LIBRARIES)
def test_a_tool_returns_types_of_any_library(library: str) -> None:
    without_nulls = {name: value for name, value in TOOL_VALUES.items() if library != "compat" or "Content" in name}
    check_alike(without_nulls, tool, library)


@each("library", LIBRARIES)
def test_a_prompt_returns_types_of_any_library(library: str) -> None:
    check_alike(PROMPT_VALUES, prompt, library)


@each("library", LIBRARIES)
def test_a_resource_returns_types_of_any_library(library: str) -> None:
    check_alike(RESOURCE_VALUES, resource, library)


@each("library", LIBRARIES)
def test_a_list_of_data_is_no_content(library: str) -> None:
    annotations = returned(LIBRARIES[library], "ToolAnnotations", {"title": "a"})
    (block,) = call(giving([annotations]), tool)["content"]
    assert block["type"] == "text"
    assert '"title":"a"' in block["text"]


def test_a_result_free_of_revisions_has_no_nulls() -> None:
    content: Any = [compat.TextContent(type="text", text="a")]
    assert "structuredContent" not in call(giving(compat.CallToolResult(content=content)), tool)
    structured = {"a": None}
    made = call(giving(compat.CallToolResult(content=content, structured_content=structured)), tool)
    assert made["structuredContent"] == structured


def test_a_result_of_the_official_package_has_no_nulls() -> None:
    official = pytest.importorskip("mcp_types", reason="the official package is not in this environment")
    block = official.TextContent(type="text", text="a")
    expected = {"resultType": "complete", "content": [TEXT]}
    for made in (block, [block], official.CallToolResult(content=[block])):
        assert call(giving(made), tool) == expected


@each("use, values", [(tool, TOOL_VALUES), (prompt, PROMPT_VALUES), (resource, RESOURCE_VALUES)])
def test_a_type_of_another_revision_is_an_error_that_says_how_to_convert(
    use: Callable[[Client], Any], values: dict[str, Any]
) -> None:
    for face in ("structs", "models"):
        older = getattr(mcpspec.v2025_06_18, face)
        for name, value in values.items():
            if name in ("Tool", "ToolAnnotations") or (use is tool and name == "PromptMessage"):
                continue  # data
            made = returned(older, name, {key: each for key, each in value.items() if key != "resultType"})
            reports: list[Diagnostic] = []
            try:
                assert call(giving(made), use, reports)["isError"]
            except RemoteError as error:
                assert "internal error" in str(error)  # noqa: PT017
            text = str(reports[0])
            assert f"returned {name} of mcpspec.v2025_06_18; return that of typedmcp.types" in text
            assert "mcpspec.convert(value, to='2026-07-28').value" in text


def text_model() -> models.TextContent:
    return models.TextContent(text="a")


def exact_text_or_none() -> exact_models.TextContent | None:
    return exact_models.TextContent(text="a")


def blocks() -> list[models.ContentBlock]:
    return [models.TextContent(text="a")]


def whole() -> models.CallToolResult:
    return models.CallToolResult(content=[models.TextContent(text="a")])


def exact_data() -> exact.ToolAnnotations:
    return exact.ToolAnnotations(title="a")


def model_data() -> models.ToolAnnotations:
    return models.ToolAnnotations(title="a")


@each("function", [text_model, exact_text_or_none, blocks, whole])
def test_an_annotation_with_content_of_any_library_describes_no_data(function: Callable[[], Any]) -> None:
    assert call(function, tool) == {"resultType": "complete", "content": [TEXT]}
    assert output_schema(function) is None


@each("function", [exact_data, model_data])
def test_an_annotation_with_data_of_the_protocol_describes_it(function: Callable[[], Any]) -> None:
    assert call(function, tool)["structuredContent"] == {"title": "a"}
    schema = output_schema(function)
    assert schema is not None
    assert "readOnlyHint" in schema["properties"]


def output_schema(function: Callable[[], Any]) -> Any:
    server = Server()
    server.tool(name="f")(function)

    async def main() -> Any:
        async with connect(server) as client:
            return (await client.list_tools()).tools[0].output_schema

    return asyncio.run(main())
