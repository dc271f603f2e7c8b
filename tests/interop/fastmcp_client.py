"""A client made with fastmcp, which uses a server twice: `fastmcp_client.py stdio COMMAND …` or `… http URL`.

fastmcp keeps the process of a server and initializes again, when a client is used a second time. Each use prints a line
of JSON. The script runs in environments with the major versions 2 to 4.
"""

import asyncio
import importlib
import json
import sys
from typing import Any


async def use(client: Any) -> dict[str, Any]:
    """Use everything that the server offers."""
    async with client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
        failed = await client.call_tool_mcp("broken", {})
        return {
            "tools": sorted(tool.name for tool in await client.list_tools()),
            "add": result.content[0].text,
            "failed": bool(getattr(failed, "isError", None) or getattr(failed, "is_error", None)),
            "notes": (await client.read_resource("test://notes"))[0].text,
            "item": (await client.read_resource("test://item/7"))[0].text,
            "review": (await client.get_prompt("review", {"topic": "code"})).messages[0].content.text,
        }


async def main(kind: str, target: str, *arguments: str) -> None:
    fastmcp: Any = importlib.import_module("fastmcp")
    transports: Any = importlib.import_module("fastmcp.client.transports")
    if kind == "stdio":
        client = fastmcp.Client(transports.StdioTransport(target, [*arguments]))
    else:
        client = fastmcp.Client(target)
    for _ in range(2):
        print(json.dumps(await use(client)), flush=True)
    if hasattr(client, "close"):
        await client.close()


asyncio.run(main(*sys.argv[1:]))
