"""Calls with the parameters of another method, and unknown options."""

from __future__ import annotations

import typedmcp
from mcpspec.v2026_07_28 import methods, structs


async def wrong_parameters(client: typedmcp.Client, params: structs.GetPromptRequestParams) -> None:
    await client.send(methods.TOOLS_CALL, params)  # E
    await client.send(methods.TOOLS_CALL, 3)  # E
    await client.call_tool(3)  # E
    await client.call_tool("x", colour="red")  # E
    await client.call_tool("x", timeout="1")  # E


def wrong_parameters_blocking(client: typedmcp.sync.SyncClient, params: structs.GetPromptRequestParams) -> None:
    client.send(methods.TOOLS_CALL, params)  # E
    client.call_tool(3)  # E
    client.call_tool("x", colour="red")  # E
