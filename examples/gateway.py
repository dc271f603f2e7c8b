"""A gateway between clients of any revision and a server of one revision.

If both sides speak the same revision, messages are forwarded unchanged, with unknown members. Otherwise they are
converted. Run `python gateway.py`; a host would start `python gateway.py gateway`.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import typedmcp
from typedmcp import Client, Context
from typedmcp.dialect import methods, structs

TOOLS = structs.ServerCapabilities(tools=structs.ServerCapabilitiesTools())
"""Capabilities must be declared for handlers that have only a `fallback`."""


class RemoteServer:
    """Stands in for a third-party server. Its results have members that are not part of the protocol."""

    def fallback(self, method: str, params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [{"name": "shout", "inputSchema": {"type": "object"}, "x-price": 0.05}]}
        if method == "tools/call":
            text = params["arguments"]["text"].upper()
            return {"content": [{"type": "text", "text": text}], "x-spent": 0.05}
        raise typedmcp.MethodNotFoundError(method)


class ConvertingHandler:
    """Forwards typed requests to the remote server. The runtime converts them between revisions."""

    def __init__(self, remote: Client) -> None:
        self.remote = remote

    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: Context) -> structs.ListToolsResult:
        return await self.remote.send(methods.TOOLS_LIST, params)

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        return await self.remote.send(methods.TOOLS_CALL, params, on_progress=forward_progress(ctx))


class Gateway:
    """Forwards requests as plain JSON to a client of the same revision. `ctx.raw` has the bytes of a message."""

    async def fallback(self, method: str, params: dict[str, Any], ctx: Context) -> Any:
        if ctx.id is None:
            return None  # a notification; cancellation is forwarded anyway, because it cancels `send` below
        remote: Client = ctx.lifespan[ctx.revision]
        return await remote.send(method, params, on_progress=forward_progress(ctx))


def forward_progress(ctx: Context) -> Callable[[structs.ProgressNotificationParams], object]:
    return lambda step: ctx.progress(step.progress, step.total or None, step.message or None)


@asynccontextmanager
async def connect_remote(_: Gateway) -> AsyncGenerator[dict[str, Client]]:
    """Connect a client for each revision: directly for the remote server's own, else through a converting handler."""
    async with AsyncExitStack() as stack:
        remote = await stack.enter_async_context(typedmcp.connect([sys.executable, __file__, "remote"]))
        clients = {remote.revision: remote}
        converting = typedmcp.ServerConfig(ConvertingHandler(remote), name="gateway")
        for revision in {*converting.revisions} - {remote.revision}:
            client = typedmcp.connect(converting, revisions=[revision])
            clients[revision] = await stack.enter_async_context(client)
        yield clients


async def main() -> None:
    for revision in ("2025-06-18", "2026-07-28"):
        async with typedmcp.connect([sys.executable, __file__, "gateway"], revisions=[revision]) as client:
            print("on", client.revision)
            print("  the tool:", (await client.send("tools/list"))["tools"][0])
            print("  its result:", await client.send("tools/call", {"name": "shout", "arguments": {"text": "hello"}}))


if __name__ == "__main__":
    if sys.argv[1:] == ["remote"]:
        typedmcp.serve(RemoteServer(), name="remote", revisions=["2025-06-18"], capabilities=TOOLS)
    elif sys.argv[1:] == ["gateway"]:
        typedmcp.serve(Gateway(), name="gateway", lifespan=connect_remote, capabilities=TOOLS)
    else:
        asyncio.run(main())
