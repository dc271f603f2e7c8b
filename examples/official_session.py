"""The official SDK, 1.x or 2.x, with the types of `mcpspec.compat` in place of its own.

It needs `pip install mcp 'mcpspec[pydantic]'`. `python official_session.py` starts one_file.py as the server; other
servers are given by their command: `python official_session.py COMMAND [ARGUMENT …]`.
"""

import asyncio
import sys
from pathlib import Path

from mcpspec.compat import CallToolResult, TextContent, sdk

sdk.install()  # before the first import of mcp, so that its modules get our classes

from mcp import ClientSession, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

SERVER = [sys.executable, str(Path(__file__).parent / "one_file.py"), "serve"]


def text_of(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


async def main(command: list[str]) -> None:
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        about = await session.initialize()
        print("server:", about.server_info.name, about.serverInfo.version)  # both spellings are attributes
        for tool in (await session.list_tools()).tools:
            print("tool:", tool.name, list(tool.input_schema["properties"]))
        result = await session.call_tool("divide", {"a": 1, "b": 4})
        print("1 / 4 =", text_of(result), type(result).__module__)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or SERVER))
