"""LangChain's adapter for MCP on the types of `mcpspec.compat`: tools of a server as tools of LangChain.

It needs `pip install langchain-mcp-adapters 'mcpspec[pydantic]'`. `python langchain_adapter.py` starts one_file.py as
the server; other servers are given by their command: `python langchain_adapter.py COMMAND [ARGUMENT …]`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcpspec.compat import CallToolResult, TextContent, sdk

sdk.install()  # before the first import of mcp: the adapter and the SDK get our classes, without a change of either

from langchain_mcp_adapters.client import MultiServerMCPClient  # noqa: E402
from langchain_mcp_adapters.interceptors import MCPToolCallRequest, MCPToolCallResult  # noqa: E402

SERVER = [sys.executable, str(Path(__file__).parent / "one_file.py"), "serve"]

Handler = Callable[[MCPToolCallRequest], Awaitable[MCPToolCallResult]]


async def explain_errors(request: MCPToolCallRequest, handler: Handler) -> MCPToolCallResult:
    """Tell the model which tool has failed."""
    result = await handler(request)
    if isinstance(result, CallToolResult) and result.is_error:
        note = TextContent(text=f"{request.name} failed with {request.args}.")
        return result.model_copy(update={"content": [*result.content, note], "is_error": False})
    return result


async def main(command: list[str]) -> None:
    server = {"transport": "stdio", "command": command[0], "args": command[1:]}
    client = MultiServerMCPClient({"calculator": server}, tool_interceptors=[explain_errors])
    tools = {tool.name: tool for tool in await client.get_tools()}
    for tool in tools.values():
        print("tool:", tool.name, list(tool.args))
    for name, arguments in [("add", {"a": 2, "b": 3}), ("divide", {"a": 1, "b": 0})]:
        print(f"{name}:", *[block["text"] for block in await tools[name].ainvoke(arguments)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or SERVER))
