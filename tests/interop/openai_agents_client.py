"""A scenario for the MCP servers of OpenAI's Agents SDK: it prints its observations as a JSON document.

    python openai_agents_client.py URL
    python openai_agents_client.py COMMAND [ARGUMENT …]

It runs in an environment of its own, against `servers/decorated.py`. Tools are called as an agent calls them, without a
model.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import warnings
from typing import Any

agents: Any = importlib.import_module("agents")  # by name: type checkers run where it is not installed
mcp: Any = importlib.import_module("agents.mcp")
tool_context: Any = importlib.import_module("agents.tool_context")

warnings.simplefilter("ignore")  # it deprecates what older revisions have

ARGUMENTS: dict[str, dict[str, Any]] = {"add": {"a": 2, "b": 3}}


def plain(value: Any) -> Any:
    """Convert a model of the SDK to JSON."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(value, "model_dump") else value


async def invoke(tool: Any) -> Any:
    """Call a tool as an agent does."""
    arguments = json.dumps(ARGUMENTS.get(tool.name, {}))
    context = tool_context.ToolContext(None, tool_name=tool.name, tool_call_id="1", tool_arguments=arguments)
    return plain(await tool.on_invoke_tool(context, arguments))


async def observe(target: list[str]) -> dict[str, Any]:
    if target[0].startswith("http"):
        opened = mcp.MCPServerStreamableHttp(params={"url": target[0]}, client_session_timeout_seconds=60)
    else:
        params = {"command": target[0], "args": target[1:], "env": {**os.environ}}
        opened = mcp.MCPServerStdio(params=params, client_session_timeout_seconds=60)
    async with opened as server:
        agent = agents.Agent("scenario", mcp_servers=[server])
        tools = await agent.get_mcp_tools(agents.RunContextWrapper(None))
        called = [tool for tool in tools if tool.name in ("add", "picture", "broken", "chatty")]
        return {
            "tools": {tool.name: [tool.description, tool.params_json_schema] for tool in tools},
            "calls": {tool.name: await invoke(tool) for tool in called},
            "prompts": [prompt.name for prompt in (await server.list_prompts()).prompts],
            "review": plain(await server.get_prompt("review", {"topic": "naming"}))["messages"],
            "resources": [str(resource.uri) for resource in (await server.list_resources()).resources],
            "item": plain(await server.read_resource("test://item/7"))["contents"],
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(observe(sys.argv[1:])), indent=1, default=str))
