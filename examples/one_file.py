"""A server and its client in one file. The client starts the file as a server over standard input and output.

Run `python one_file.py`. A host such as an editor would start `python one_file.py serve`.
"""

import asyncio
import sys

import typedmcp
from typedmcp import Server, ToolError, text_of

server = Server("calculator", version="1.0", instructions="Use these tools for arithmetic.")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def divide(a: float, b: float) -> float:
    """Divide one number by another."""
    if b == 0:
        raise ToolError("cannot divide by zero")
    return a / b


async def main() -> None:
    async with typedmcp.connect([sys.executable, __file__, "serve"]) as client:
        print("tools:", *[tool.name async for tool in client.tools()])
        print("revision:", client.revision)
        print("2 + 3 =", await client.call_tool("add", {"a": 2, "b": 3}, result_type=int))
        failed = await client.call_tool("divide", {"a": 1, "b": 0})
        print("1 / 0 fails:", failed.is_error, text_of(failed))
        wrong = await client.call_tool("add", {"a": "two", "b": 3})
        print("two + 3 fails:", wrong.is_error, text_of(wrong))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run()
    else:
        asyncio.run(main())
