"""Call a tool with the installed runtime on every revision, over stdio or over HTTP.

Usage: `python call_tool.py stdio|http`. Without an argument, this file is a server over stdio; with a port, over HTTP.
"""

import asyncio
import socket
import subprocess
import sys

import mcpspec
import typedmcp

COMMAND = [sys.executable, "-W", "error", __file__]
server = typedmcp.Server("trial")


@server.tool
async def greet(name: str, times: int = 1) -> str:
    """Greet a person."""
    return " ".join([f"Hello, {name}!"] * times)


async def call(target: list[str] | str) -> None:
    for version in mcpspec.VERSIONS:
        async with typedmcp.connect(target, revisions=(version,)) as client:
            assert [tool.name async for tool in client.tools()] == ["greet"]
            assert (
                await client.call_tool("greet", {"name": "Ada", "times": 2}, result_type=str)
                == "Hello, Ada! Hello, Ada!"
            )


async def call_over_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(*COMMAND, str(port), stderr=subprocess.DEVNULL)
    try:
        await wait_for(port)
        await call(f"http://127.0.0.1:{port}/mcp")
    finally:
        process.terminate()
        await process.wait()


async def wait_for(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


if __name__ == "__main__":
    if sys.argv[1:] == ["stdio"]:
        asyncio.run(call(COMMAND))
    elif sys.argv[1:] == ["http"]:
        asyncio.run(call_over_http())
    elif sys.argv[1:]:
        server.run("http", port=int(sys.argv[1]))
    else:
        server.run()
