"""Values of the protocol that an author builds: wrong ones are errors of the author, with file and line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from typedmcp import Context, Server
from typedmcp.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    GetPromptResult,
    ImageContent,
    PromptMessage,
    ReadResourceResult,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

TEXT = TextContent(text="a")


def make(kind: Any, **members: Any) -> Any:
    """Call something with members that a type checker would reject."""
    return kind(**members)


TOOLS: dict[str, tuple[Callable[..., Any], str]] = {
    "a text that is a number": (lambda: make(TextContent, text=5), "TextContent: text: expected string, got 5"),
    "one of several": (lambda: ["a", make(TextContent, text=None)], "list: text: expected string, got null"),
    "a media type": (
        lambda: make(ImageContent, data="", mime_type=1),
        "ImageContent: mimeType: expected string, got 1",
    ),
    "content that is a text": (
        lambda: make(CallToolResult, content="text"),
        'CallToolResult: content: expected array, got "text"',
    ),
    "a block in it": (
        lambda: make(CallToolResult, content=[make(TextContent, text=5)]),
        "CallToolResult: content[0].text: expected string, got 5",
    ),
    "a flag": (
        lambda: make(CallToolResult, content=[TEXT], is_error="yes"),
        'CallToolResult: isError: expected boolean, got "yes"',
    ),
    "metadata": (
        lambda: make(CallToolResult, content=[TEXT], meta=5),
        "CallToolResult: _meta: expected object or null, got 5",
    ),
    "a text in it": (
        lambda: make(CallToolResult, content=["text"]),
        'CallToolResult: content[0]: expected object, got "text"',
    ),
}
PROMPTS: dict[str, tuple[Callable[..., Any], str]] = {
    "a role": (
        lambda: make(PromptMessage, role="system", content=TEXT),
        'PromptMessage: role: expected "assistant" or "user", got "system"',
    ),
    "a role in a list": (
        lambda: ["a", make(PromptMessage, role="system", content=TEXT)],
        'list: role: expected "assistant" or "user", got "system"',
    ),
    "a role in a result": (
        lambda: make(GetPromptResult, messages=[make(PromptMessage, role="system", content=TEXT)]),
        'GetPromptResult: messages[0].role: expected "assistant" or "user", got "system"',
    ),
    "content that is a text": (
        lambda: make(PromptMessage, role="user", content="a"),
        'PromptMessage: content: expected object, got "a"',
    ),
}
RESOURCES: dict[str, tuple[Callable[..., Any], str]] = {
    "a text": (
        lambda: make(TextResourceContents, uri="it://x", text=5),
        "TextResourceContents: text: expected string, got 5",
    ),
    "a result": (
        lambda: make(ReadResourceResult, contents=[make(TextResourceContents, uri=1, text="a")]),
        "ReadResourceResult: contents[0].uri: expected string, got 1",
    ),
}


def place_of(function: Callable[..., Any]) -> str:
    return f"{function.__name__}() at {__file__}:{function.__code__.co_firstlineno} returned "


async def report_of(server: Server, call: str, *args: str) -> tuple[str, object]:
    """Return the one report about a call, and its result or its error."""
    reports = list[typedmcp.Diagnostic]()
    async with typedmcp.connect(typedmcp.ServerConfig(server, on_diagnostic=reports.append)) as client:
        result: object
        try:
            result = await getattr(client, call)(*args)
        except typedmcp.Error as error:
            result = error
    (report,) = reports
    return report.text, result


@each("name", TOOLS)
def test_wrong_content_of_a_tool_is_reported_with_the_place_of_its_function(name: str) -> None:
    function, fault = TOOLS[name]
    server = Server("built")
    server.add_tool(function, name="it")
    text, result = asyncio.run(report_of(server, "call_tool", "it"))
    assert text == f"tool 'it' failed: {place_of(function)}{fault}"
    assert isinstance(result, CallToolResult)
    assert result.is_error


@each("name", PROMPTS)
def test_a_wrong_message_of_a_prompt_is_reported_with_the_place_of_its_function(name: str) -> None:
    function, fault = PROMPTS[name]
    server = Server("built")
    server.add_prompt(function, name="it")
    text, error = asyncio.run(report_of(server, "get_prompt", "it"))
    assert place_of(function) + fault in text
    assert isinstance(error, typedmcp.RemoteError)
    assert error.code == -32603


@each("name", RESOURCES)
def test_wrong_contents_of_a_resource_are_reported_with_the_place_of_its_function(name: str) -> None:
    function, fault = RESOURCES[name]
    server = Server("built")
    server.add_resource(function, "it://x", name="it")
    text, error = asyncio.run(report_of(server, "read_resource", "it://x"))
    assert place_of(function) + fault in text
    assert isinstance(error, typedmcp.RemoteError)
    assert error.code == -32603


def sample(_: object) -> str:
    return "a"


def consent(_: object) -> bool:
    return True


@each("revision", ["2025-11-25", "2026-07-28"])
def test_wrong_questions_and_notifications_are_errors_where_they_are_made(revision: str) -> None:
    async def role(ctx: Context) -> None:
        message = make(SamplingMessage, role="system", content=TEXT)
        await ctx.sample(CreateMessageRequestParams(messages=[message], max_tokens=5))

    async def messages(ctx: Context) -> None:
        await ctx.sample(make(CreateMessageRequestParams, messages="Hello", max_tokens=5))

    async def url(ctx: Context) -> None:
        await make(ctx.elicit_url, message="Sign in", url=5)

    async def progress(ctx: Context) -> None:
        await make(ctx.progress, progress="half")

    async def main() -> None:
        faults = {
            role: r'is wrong: params\.messages\[0\]\.role: expected "assistant" or "user", got "system"',
            messages: r'is wrong: params\.messages: expected array, got "Hello"',
            url: r"is wrong: params\.url: expected string, got 5",
            progress: r"progress and total must be numbers, not 'half'",
        }
        for function, fault in faults.items():
            seen = list[Exception]()

            async def tool(ctx: Context) -> str:
                with pytest.raises(typedmcp.UsageError) as caught:
                    await function(ctx)  # noqa: B023  # it is called before the next one
                seen.append(caught.value)  # noqa: B023
                return "seen"

            server = Server("asking")
            server.add_tool(tool, name="it")
            async with typedmcp.connect(server, revisions=[revision], sample=sample, elicit_url=consent) as client:
                assert typedmcp.text_of(await client.call_tool("it")) == "seen", function
            assert re.search(fault, str(seen[0]))

    asyncio.run(main())


def test_a_wrong_answer_of_a_callback_is_an_error_of_the_client() -> None:
    async def main() -> None:
        server = Server("asking")

        @server.tool
        async def ask(ctx: Context) -> str:
            return typedmcp.text_of(await ctx.sample("Hello"))

        reports = list[typedmcp.Diagnostic]()

        def answer(_: object) -> CreateMessageResult:
            result: CreateMessageResult = make(CreateMessageResult, role="system", model="m", content=TEXT)
            return result

        async with typedmcp.connect(server, sample=answer, on_diagnostic=reports.append) as client:
            with pytest.raises(typedmcp.Error, match='role: expected "assistant" or "user", got "system"'):
                await client.call_tool("ask")

    asyncio.run(main())


def test_right_values_are_sent_as_they_are() -> None:
    async def main() -> None:
        server = Server("right")
        blocks: list[Any] = [TEXT, ImageContent(data="", mime_type="image/png", meta={"a": 1})]
        server.add_tool(lambda: blocks, name="blocks")
        server.add_tool(lambda: CallToolResult(content=[*blocks], structured_content={"a": [1]}), name="result")
        async with typedmcp.connect(server) as client:
            assert (await client.call_tool("blocks")).content == blocks
            result = await client.call_tool("result")
            assert (result.content, result.structured_content) == (blocks, {"a": [1]})

    asyncio.run(main())
