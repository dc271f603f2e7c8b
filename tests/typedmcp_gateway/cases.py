"""The uses of a server behind a gateway: one function for each thing that has to pass.

A case returns None if everything passed, or the text of the message that could not be said across the revisions.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

import typedmcp
from tests.typedmcp_gateway.everyday_server import PICTURE, Sum
from typedmcp.dialect import structs
from typedmcp.revisions.features import structs_of

__all__ = ["CASES", "Case", "connect_options", "run_case", "unsaid"]

Case: TypeAlias = Callable[[typedmcp.Client], Awaitable[None]]

ROOT = "file:///work"


def connect_options(revision: str) -> typedmcp.ConnectOptions:
    """Return the options of a client of a revision, which answers every question."""
    logs: list[str] = []
    return {
        "revisions": [revision],
        "sample": lambda _params: "blue",
        "elicit": lambda params: {"value": True} if "Really" in params.message else {"name": "Ada", "age": 36},
        "elicit_url": lambda params: params.url == "https://example.com/sign-in",
        "roots": [ROOT],
        "on_log": lambda params: logs.append(params.data),
        "on_diagnostic": lambda _: None,
        "timeout": 60.0,
    }


async def run_case(case: Case, client: typedmcp.Client) -> str | None:
    """Return None if a case works, or what could not be said."""
    try:
        await case(client)
    except (typedmcp.RemoteError, typedmcp.UsageError) as error:
        return str(error)
    return None


def _text_of(result: Any) -> str:
    return typedmcp.text_of(result)


async def lists(client: typedmcp.Client) -> None:
    tools = {tool.name: tool async for tool in client.tools()}
    assert tools["add"].description == "Add two numbers."
    assert {prompt.name async for prompt in client.prompts()} == {"greeting"}
    assert {resource.uri async for resource in client.resources()} == {"note://tea"}
    assert {template.uri_template async for template in client.resource_templates()} == {"city://{name}"}


async def contents(client: typedmcp.Client) -> None:
    for uri, text in (("note://tea", ("hot", "cold")), ("city://Oslo", ("Oslo is large",))):
        (read,) = (await client.read_resource(uri)).contents
        assert isinstance(read, structs.TextResourceContents)
        assert read.text in text
    prompt = await client.get_prompt("greeting", {"name": "Ada"})
    assert _text_of(prompt.messages[0].content) == "Say hello to Ada."


async def text(client: typedmcp.Client) -> None:
    assert _text_of(await client.call_tool("text")) == "plain text"


async def picture(client: typedmcp.Client) -> None:
    (block,) = (await client.call_tool("picture")).content
    assert isinstance(block, structs.ImageContent)
    assert base64.b64decode(block.data) == PICTURE


async def structure(client: typedmcp.Client) -> None:
    assert await client.call_tool("add", {"a": 1, "b": 2}, result_type=Sum) == Sum(3)


async def errors(client: typedmcp.Client) -> None:
    assert (await client.call_tool("fail")).is_error
    with pytest.raises(typedmcp.ResourceNotFoundError) as caught:
        await client.read_resource("note://coffee")
    assert caught.value.data == {"uri": "note://coffee"}
    with pytest.raises(typedmcp.InvalidParamsError):
        await client.get_prompt("unknown")


async def progress(client: typedmcp.Client) -> None:
    seen: list[tuple[float, float | None]] = []
    result = await client.call_tool("count", on_progress=lambda params: seen.append((params.progress, params.total)))
    assert _text_of(result) == "3"
    assert seen == [(1, 3), (2, 3), (3, 3)]


async def cancellation(client: typedmcp.Client) -> None:
    begun = asyncio.Event()
    call = asyncio.ensure_future(client.call_tool("hang", on_progress=lambda _: begun.set()))
    await begun.wait()
    call.cancel()
    await asyncio.wait([call])
    assert await client.call_tool("cancellations", result_type=int) == 1


async def sampling(client: typedmcp.Client) -> None:
    assert _text_of(await client.call_tool("ask_model")) == "blue"


async def forms(client: typedmcp.Client) -> None:
    result = await client.call_tool("ask_person")
    _raise_unsaid(result)
    assert _text_of(result) == "Ada 36 True"


async def urls(client: typedmcp.Client) -> None:
    result = await client.call_tool("ask_url")
    _raise_unsaid(result)
    assert _text_of(result) == "accept"


async def roots(client: typedmcp.Client) -> None:
    assert await client.call_tool("ask_roots", result_type=list[str]) == [ROOT]


async def two_questions(client: typedmcp.Client) -> None:
    assert _text_of(await client.call_tool("ask_two")) == f"{ROOT} blue"


async def completion(client: typedmcp.Client) -> None:
    made = await client.complete(structs.PromptReference(name="greeting"), "name", "A")
    assert made.completion.values == ["Ada", "Alan"]


async def subscriptions(client: typedmcp.Client) -> None:
    seen: set[tuple[str, str | None]] = set()
    async with client.listen(tools=True, uris=["note://tea"]) as changes:
        await client.call_tool("touch")
        async with asyncio.timeout(60):
            while seen != {("tools", None), ("resource", "note://tea")}:
                change = await anext(changes)
                seen.add((change.kind, change.uri))


def _raise_unsaid(result: structs.CallToolResult) -> None:
    """Raise the error that a tool returned because its client cannot be asked."""
    if result.is_error:
        raise typedmcp.RemoteError(-32603, _text_of(result))


CASES: dict[str, Case] = {
    "list": lists,
    "read and get": contents,
    "text": text,
    "picture": picture,
    "structure": structure,
    "errors": errors,
    "progress": progress,
    "cancel": cancellation,
    "sampling": sampling,
    "elicitation (form)": forms,
    "elicitation (URL)": urls,
    "roots": roots,
    "two questions at once": two_questions,
    "completion": completion,
    "subscriptions": subscriptions,
}


def unsaid(name: str, client: str, server: str) -> str | None:
    """Return a part of the error for what one of two revisions cannot say, or None if both can."""
    first, second = structs_of(client), structs_of(server)
    if name == "elicitation (form)" and not (hasattr(first, "ElicitRequest") and hasattr(second, "ElicitRequest")):
        return "elicitation"
    if name == "elicitation (URL)" and not all(hasattr(each, "ElicitRequestURLParams") for each in (first, second)):
        return "elicitation.url"
    return None
