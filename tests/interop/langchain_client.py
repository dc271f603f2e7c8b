"""A scenario for LangChain's adapter: it prints its observations as a JSON document.

    python langchain_client.py URL
    python langchain_client.py COMMAND [ARGUMENT …]

It runs in an environment of its own, with `mcp` 1.x, against `servers/decorated.py`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import sys
import warnings
from typing import Any

adapters: Any = importlib.import_module("langchain_mcp_adapters.client")  # type checkers run where it is not installed
callbacks: Any = importlib.import_module("langchain_mcp_adapters.callbacks")

warnings.simplefilter("ignore")  # it deprecates what older revisions have

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""The environment of servers: the path is that of the package."""

ARGUMENTS: dict[str, dict[str, Any]] = {"add": {"a": 2, "b": 3}, "ask_model": {"question": "The capital of France?"}}


def plain(value: Any) -> Any:
    """Convert a model of the package to JSON."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"id"})


async def outcome(tool: Any, call: dict[str, Any]) -> Any:
    """Return the message with the result, or the error: the adapter has no sampling."""
    try:
        return plain(await tool.ainvoke(call))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


async def observe(target: list[str]) -> dict[str, Any]:
    is_url = target[0].startswith("http")
    stdio = {"transport": "stdio", "command": target[0], "args": target[1:], "env": ENVIRONMENT}
    logged: list[Any] = []
    counted: list[Any] = []

    async def log(params: Any, _context: Any) -> None:
        logged.append([params.level, params.data])

    async def count(progress: float, total: float | None, message: str | None, _context: Any) -> None:
        counted.append([progress, total, message])

    client = adapters.MultiServerMCPClient(
        {"server": {"transport": "http", "url": target[0]} if is_url else stdio},
        callbacks=callbacks.Callbacks(on_logging_message=log, on_progress=count),
    )
    tools = await client.get_tools()
    calls = {tool.name: {"type": "tool_call", "id": "1", "args": ARGUMENTS.get(tool.name, {})} for tool in tools}
    return {
        "server": plain((await client.get_server_info(server_name="server"))["server"].serverInfo),
        "tools": [[tool.name, tool.description, tool.args, tool.metadata] for tool in tools],
        "results": {tool.name: await outcome(tool, {"name": tool.name, **calls[tool.name]}) for tool in tools},
        "logged": logged,
        "counted": counted,
        "resources": [
            [blob.as_string(), blob.mimetype, blob.metadata] for blob in await client.get_resources("server")
        ],
        "item": [blob.as_string() for blob in await client.get_resources("server", uris=["test://item/7"])],
        "review": [plain(message) for message in await client.get_prompt("server", "review", arguments={"topic": "x"})],
    }


if __name__ == "__main__":
    text = json.dumps(asyncio.run(observe(sys.argv[1:])), indent=1, default=str)
    print(re.sub(r'"lc_[-0-9a-f]+"', '"a random id"', text))
