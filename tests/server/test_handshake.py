"""A second `initialize` on one connection: a new session takes the place of the first."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import typedmcp
from tests.cases import each
from tests.server.scripted import LEGACY, Client, Json, run, served
from typedmcp import DiagnosticKind
from typedmcp.dialect import structs

Context: TypeAlias = typedmcp.Context
each_legacy = each("revision", LEGACY)


class Service:
    """Tools that ask, log or wait, and resources to subscribe to."""

    def __init__(self) -> None:
        self.cancelled = 0

    def list_resources(self, params: Any, ctx: Context) -> structs.ListResourcesResult:
        return structs.ListResourcesResult(resources=[])

    def read_resource(self, params: Any, ctx: Context) -> structs.ReadResourceResult:
        return structs.ReadResourceResult(contents=[])

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> structs.CallToolResult:
        said: Any = await getattr(self, params.name)(ctx)
        return structs.CallToolResult(content=[structs.TextContent(text=str(said))])

    async def log(self, ctx: Context) -> str:
        await ctx.log("info", "logged")
        return str(sorted(structs.to_builtins(ctx.client_capabilities)))

    async def ask(self, ctx: Context) -> Any:
        try:
            return await ctx.list_roots()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


CAPABILITIES = structs.ServerCapabilities(
    tools=structs.ServerCapabilitiesTools(),
    resources=structs.ServerCapabilitiesResources(subscribe=True),
    logging={},
)


async def begin(client: Client, revision: str, **capabilities: Any) -> Json:
    """Open a session, again if there is one. Return the result of `initialize`."""
    await client.open(revision, **capabilities)
    return client.opened


@each_legacy
def test_a_second_initialize_begins_a_new_session(revision: str) -> None:
    async def main() -> None:
        handler, changes = Service(), typedmcp.Changes()
        async with served(handler, changes=changes, capabilities=CAPABILITIES) as client:
            await begin(client, LEGACY[0], roots={})
            await client.result("logging/setLevel", {"level": "error"})
            await client.result("resources/subscribe", {"uri": "test://a"})
            client.start("tools/call", {"name": "ask"})
            question = await client.receive()
            assert question["method"] == "roots/list"

            assert (await begin(client, revision, sampling={}))["protocolVersion"] == revision
            changes.resource_updated("test://a")
            id = client.start("tools/call", {"name": "log"})
            assert (await client.receive())["method"] == "notifications/message"
            assert (await client.answer_to(id))["result"]["content"][0]["text"] == "['sampling']"
            client.send({"id": question["id"], "result": {"roots": []}})
            await client.settled()
            assert client.unread() == []
            assert handler.cancelled == 1
            assert len(client.of_kind(DiagnosticKind.TOLERATED)) == 1
            assert len(client.of_kind(DiagnosticKind.LATE_MESSAGE)) == 1

    run(main)


def test_the_new_session_can_use_the_ids_of_the_old_one() -> None:
    async def main() -> None:
        async with served(Service()) as client:
            await begin(client, LEGACY[0], roots={})
            id = client.start("tools/call", {"name": "ask"})
            await client.receive()
            await begin(client, LEGACY[0])
            client.send({"id": id, "method": "ping"})
            assert (await client.answer_to(id))["result"] == {}

    run(main)


def test_the_responses_to_a_batch_of_the_old_session_are_not_sent() -> None:
    async def main() -> None:
        async with served(Service()) as client:
            await begin(client, "2025-03-26", roots={})
            calls = [{"jsonrpc": "2.0", "id": f"old {name}", "method": "tools/call", "params": {"name": name}}
                     for name in ("log", "ask")]  # fmt: skip
            client.send(calls)
            assert [(await client.receive())["method"] for _ in range(2)] == ["notifications/message", "roots/list"]
            await begin(client, "2025-03-26")
            await client.settled()
            assert client.unread() == []

    run(main)


def test_an_invalid_second_initialize_leaves_the_session_as_it_is() -> None:
    async def main() -> None:
        async with served(Service()) as client:
            await begin(client, LEGACY[0], roots={})
            assert (await client.error("initialize", {"protocolVersion": LEGACY[0]}))["code"] == -32602
            result = await client.result("tools/call", {"name": "log"})
            assert result["content"][0]["text"] == "['roots']"

    run(main)


def test_with_strict_the_session_goes_on() -> None:
    async def main() -> None:
        async with served(Service(), strict=True) as client:
            await begin(client, LEGACY[0], roots={})
            info = {"name": "c", "version": "1"}
            params = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": info}
            error = await client.error("initialize", params)
            assert error == {"code": -32600, "message": "initialize: this session is initialized already"}
            result = await client.result("tools/call", {"name": "log"})
            assert result["content"][0]["text"] == "['roots']"

    run(main)
