"""A scenario for the MCP toolset of Pydantic AI: it prints its observations as a JSON document.

    python pydantic_ai_client.py URL
    python pydantic_ai_client.py COMMAND [ARGUMENT …]

It runs in an environment of its own, with `mcp` 1.x or 2.x, against `servers/decorated.py`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import json
import os
import sys
import warnings
from typing import Any, cast

toolsets: Any = importlib.import_module("pydantic_ai.mcp")  # by name: type checkers run where it is not installed
models: Any = importlib.import_module("pydantic_ai.models.test")
types: Any = importlib.import_module("mcp").types
transports: Any = importlib.import_module("fastmcp.client.transports")

warnings.simplefilter("ignore")  # it deprecates what older revisions have

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""The environment of servers: the path is that of the package."""

ANSWER = "Paris, of course."


def plain(value: Any) -> Any:
    """Convert a value of the package to JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(member) for key, member in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("list[Any]", value)]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


async def failure(call: Any) -> str:
    try:
        return f"no error: {await call}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def observe(target: list[str]) -> dict[str, Any]:
    url = target[0] if target[0].startswith("http") else None
    command = transports.StdioTransport(command=target[0], args=target[1:], env=ENVIRONMENT)
    logged: list[Any] = []

    async def log(message: Any) -> None:
        logged.append([message.level, plain(message.data)])

    toolset = toolsets.MCPToolset(
        url or command,
        sampling_model=models.TestModel(custom_output_text=ANSWER),
        log_handler=log,
        client_info=types.Implementation(name="scenario", version="1"),
        init_timeout=60.0,  # by default five seconds, in which several processes may not start on a busy machine
    )
    async with toolset:
        tools = await toolset.list_tools()
        return {
            "server": plain(toolset.server_info.name),
            "capabilities": plain(toolset.capabilities),
            "tools": [[tool.name, tool.description, isinstance(tool, types.Tool)] for tool in tools],
            "add": plain(await toolset.direct_call_tool("add", {"a": 2, "b": 3})),
            "picture": plain(await toolset.direct_call_tool("picture", {})),
            "broken": await failure(toolset.direct_call_tool("broken", {})),
            "ask_model": await failure(toolset.direct_call_tool("ask_model", {"question": "The capital of France?"})),
            "chatty": plain(await toolset.direct_call_tool("chatty", {})),
            "logged": logged,
            "resources": [[str(each.uri), each.name, each.mime_type] for each in await toolset.list_resources()],
            "templates": [each.uri_template for each in await toolset.list_resource_templates()],
            "notes": plain(await toolset.read_resource("test://notes")),
            "item": plain(await toolset.read_resource("test://item/7")),
            "prompts": plain(await toolset.list_prompts()),
            "review": plain(await toolset.get_prompt("review", {"topic": "naming"})),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(observe(sys.argv[1:])), indent=1))
