"""A gateway: clients of any revision on one side, a server of one revision on the other.

Where both sides speak the same, messages go through as they are, with members that nobody here knows. Otherwise they
are translated. Run `python gateway.py`; a host would start `python gateway.py gateway`.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import mcpspec
import typedmcp
from typedmcp import Client, Context
from typedmcp.dialect import methods, structs

TOOLS = structs.ServerCapabilities(tools=structs.ServerCapabilitiesTools())
"""What servers say they have that have nothing but a `fallback`, from which nothing follows."""


class FarServer:
    """Stands for a server of somebody else's. Its answers have members that the protocol does not know."""

    def fallback(self, method: str, params: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [{"name": "shout", "inputSchema": {"type": "object"}, "x-price": 0.05}]}
        if method == "tools/call":
            text = params["arguments"]["text"].upper()
            return {"content": [{"type": "text", "text": text}], "x-spent": 0.05}
        raise typedmcp.MethodNotFound(method)


class Translator:
    """The far server as one of every revision: what is typed is translated by the runtime."""

    def __init__(self, far: Client) -> None:
        self.far = far

    async def list_tools(self, params: structs.PaginatedRequestParams, ctx: Context) -> structs.ListToolsResult:
        return await self.far.send(methods.TOOLS_LIST, params)

    async def call_tool(self, params: structs.CallToolRequestParams, ctx: Context) -> Any:
        return await self.far.send(methods.TOOLS_CALL, params, on_progress=forward(ctx))


class Gateway:
    """Hands requests on as plain JSON, to whom speaks the revision that they came in.

    The very bytes of a message are in `ctx.raw`, for those who want to sign or to log them.
    """

    async def fallback(self, method: str, params: dict[str, Any], ctx: Context) -> Any:
        if ctx.id is None:
            return None  # a notification; what is cancelled here is cancelled there without being told
        far: Client = ctx.lifespan[ctx.revision]
        return await far.send(method, params, on_progress=forward(ctx))


def forward(ctx: Context) -> Callable[[structs.ProgressNotificationParams], object]:
    """What hands progress on."""
    return lambda step: ctx.progress(step.progress, step.total or None, step.message or None)


@asynccontextmanager
async def far_side(_: Gateway) -> AsyncGenerator[dict[str, Client]]:
    """A client for every revision: of the far server for its own, and of its translator for the others."""
    async with AsyncExitStack() as stack:
        far = await stack.enter_async_context(typedmcp.connect([sys.executable, __file__, "far"]))
        clients = {far.revision: far}
        for revision in {*mcpspec.VERSIONS} - {far.revision}:
            translator = typedmcp.Service(Translator(far), name="gateway")
            client = typedmcp.connect(translator, revisions=[revision])
            clients[revision] = await stack.enter_async_context(client)
        yield clients


async def main() -> None:
    for revision in ("2025-06-18", "2026-07-28"):
        async with typedmcp.connect([sys.executable, __file__, "gateway"], revisions=[revision]) as client:
            print("on", client.revision)
            print("  the tool:", (await client.send("tools/list"))["tools"][0])
            print("  its answer:", await client.send("tools/call", {"name": "shout", "arguments": {"text": "hello"}}))


if __name__ == "__main__":
    if sys.argv[1:] == ["far"]:
        typedmcp.serve(FarServer(), name="far", revisions=["2025-06-18"], capabilities=TOOLS)
    elif sys.argv[1:] == ["gateway"]:
        typedmcp.serve(Gateway(), name="gateway", lifespan=far_side, capabilities=TOOLS)
    else:
        asyncio.run(main())
