"""Declare a tool to each API, and call it; connect to several servers."""

import asyncio
from typing import get_args

import typedmcp
from typedmcp_hosts import LlmApi, call_for, connect_all, tools_for

server = typedmcp.Server("trial")


@server.tool
async def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello, {name}!"


async def main() -> None:
    async with typedmcp.connect(server) as client:
        for api in get_args(LlmApi):
            assert len(await tools_for(client, api)) == 1
        part = {"type": "tool_use", "id": "1", "name": "greet", "input": {"name": "Ada"}}
        result = await call_for(client, "anthropic", part)
        assert result["content"] == [{"type": "text", "text": "Hello, Ada!"}], result
    async with connect_all({"one": server, "two": server}) as group:
        assert [tool.name for tool in await group.list_tools()] == ["one_greet", "two_greet"]


asyncio.run(main())
