"""The messages of a server on a modern revision: results, input requests, subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import in_loop, serving
from tests.server.scripted import Json, run, served
from tests.server.test_legacy_revisions import Everything
from typedmcp.dialect import structs

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


class Asking:
    """A handler that asks the client for input."""

    def __init__(self, ask: Callable[[typedmcp.Context], Awaitable[Any]]) -> None:
        self.ask = ask

    async def call_tool(self, params: Any, ctx: typedmcp.Context) -> Any:
        result = await self.ask(ctx)
        if isinstance(result, structs.InputRequiredResult):
            return result
        return structs.CallToolResult(content=[structs.TextContent(text=str(result))], result_type="complete")


# Results


@each(
    "method, params",
    [
        ("server/discover", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "log", "arguments": {}}),
        ("tools/call", {"name": "elicit", "arguments": {}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
    ],
)
def test_every_result_names_the_server(method: str, params: Json) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            client.capabilities = {"elicitation": {}}
            result = await client.result(method, params)
            assert result["_meta"][SERVER_INFO] == {"name": "under test", "version": "1"}

    run(main)


@each("value", [3, "x", None, [], {"a": 1}], ids=repr)
def test_reserved_keys_of_metadata_may_have_any_value(value: object) -> None:
    async def main() -> None:
        async with served(Everything()) as client:
            keys = ("io.modelcontextprotocol/other", "dev.mcp/x", "com.mcp.tools/x")
            result = await client.call("meta", meta={"traceparent": "t", **dict.fromkeys(keys, value)})
            assert result["content"][0]["text"] == "t"

    run(main)


# Input requests


def test_a_result_that_asks_for_input_always_has_a_state() -> None:
    async def ask(ctx: typedmcp.Context) -> Any:
        return structs.InputRequiredResult(result_type="input_required")

    async def main() -> None:
        async with served(Asking(ask)) as client:
            result = await client.call("x")
            assert result["resultType"] == "input_required"
            assert result["requestState"]

    run(main)


def test_an_elicitation_at_a_url_has_its_mode_its_text_and_the_url() -> None:
    async def main() -> None:
        async with served(Asking(lambda ctx: ctx.elicit_url("Sign in", "https://example.org/a?b"))) as client:
            client.capabilities = {"elicitation": {"url": {}}}
            ((_, request),) = (await client.call("x"))["inputRequests"].items()
            assert request["method"] == "elicitation/create"
            assert request["params"] == {"mode": "url", "message": "Sign in", "url": "https://example.org/a?b"}

    run(main)


def sample_with_tools(ctx: typedmcp.Context) -> Awaitable[Any]:
    message = structs.SamplingMessage(role="user", content=structs.TextContent(text="?"))
    tool = structs.Tool(name="t", input_schema={"type": "object"})
    return ctx.sample(structs.CreateMessageRequestParams(messages=[message], max_tokens=1, tools=[tool]))


def elicit_form(ctx: typedmcp.Context) -> Awaitable[Any]:
    return ctx.elicit("?", SCHEMA)


def elicit_url(ctx: typedmcp.Context) -> Awaitable[Any]:
    return ctx.elicit_url("?", "https://example.org/")


@each(
    "ask, declared, missing",
    [
        (elicit_url, {}, {"elicitation": {"url": {}}}),
        (elicit_url, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (elicit_url, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        (elicit_form, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (elicit_form, {"elicitation": {}}, None),
        (elicit_form, {"elicitation": {"form": {}}}, None),
        (sample_with_tools, {"sampling": {}}, {"sampling": {"tools": {}}}),
        (sample_with_tools, {"sampling": {"tools": {}}}, None),
    ],
)
def test_only_declared_parts_of_a_capability_are_used(
    ask: Callable[[typedmcp.Context], Awaitable[Any]], declared: Json, missing: Json | None
) -> None:
    async def main() -> None:
        async with served(Asking(ask)) as client:
            client.capabilities = declared
            answer = await client.request("tools/call", {"name": "x", "arguments": {}})
            if missing is None:
                assert answer["result"]["resultType"] == "input_required"
            else:
                assert answer["error"]["code"] == -32021
                assert answer["error"]["data"] == {"requiredCapabilities": missing}

    run(main)


# Subscriptions


def test_no_change_comes_before_the_acknowledgment() -> None:
    async def main() -> None:
        changes = typedmcp.Changes()

        async def change() -> None:
            while True:
                changes.tools_changed()
                await asyncio.sleep(0)

        async with served(Everything(), changes=changes) as client:
            changing = asyncio.create_task(change())
            id = client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            first = await client.receive()
            changing.cancel()
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert first["params"]["_meta"][SUBSCRIPTION] == id

    run(main)


@in_loop
async def test_log_messages_come_on_the_stream_of_their_request_alone() -> None:
    async with serving() as served:
        wanted = {"notifications": {"toolsListChanged": True}}
        listener = served.ask("subscriptions/listen", wanted, meta={LOG_LEVEL: "debug"})
        await listener.next_message()
        call = served.call("log", {"level": "info"}, id=2, meta={LOG_LEVEL: "info"})
        assert (await call.next_message())["method"] == "notifications/message"
        await call.rest()
        served.app.config.changes.tools_changed()
        assert (await listener.next_message())["method"] == "notifications/tools/list_changed"
