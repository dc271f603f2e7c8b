"""`send` returns the result type of the method's record."""

from collections.abc import AsyncIterator
from typing import Any, assert_type

import typedmcp
from mcpspec.v2025_06_18 import methods as older_methods
from mcpspec.v2025_06_18 import structs as older
from typedmcp.dialect import methods, structs


async def typed(client: typedmcp.Client, params: structs.CallToolRequestParams) -> None:
    result = await client.send(methods.TOOLS_CALL, params, timeout=1)
    assert_type(result, structs.InputRequiredResult | structs.CallToolResult)
    assert_type(await client.send(methods.TOOLS_LIST), structs.ListToolsResult)
    plain = await client.send(methods.TOOLS_CALL, {"name": "x"})
    assert_type(plain, structs.InputRequiredResult | structs.CallToolResult)
    assert_type(await client.send(older_methods.TOOLS_CALL, {"name": "x"}), older.CallToolResult)
    assert_type(await client.send("x/y", {"a": 1}), Any)
    assert_type(await client.call_tool("x", {"a": 1}), structs.CallToolResult)
    assert_type(client.tools(), AsyncIterator[structs.Tool])


def blocking(client: typedmcp.sync.SyncClient) -> None:
    assert_type(client.send(methods.TOOLS_LIST), structs.ListToolsResult)
    assert_type(client.send(older_methods.TOOLS_CALL, {"name": "x"}), older.CallToolResult)
    assert_type(client.call_tool("x", timeout=1), structs.CallToolResult)
