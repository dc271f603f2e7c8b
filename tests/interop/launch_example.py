"""Run an example as a program, or the server that it makes: `python launch_example.py FILE [TRANSPORT PORT]`.

The examples of the official SDK are started by its command `server NAME TRANSPORT`, which does the same.
"""

from __future__ import annotations

import asyncio
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


async def serve(server: Any) -> None:
    """Serve a low-level server over standard input and output."""
    library = type(server).__module__.partition(".")[0]
    async with import_module(f"{library}.server.stdio").stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main(file: str, transport: str = "", port: str = "8000") -> None:
    sys.argv = [file]
    sys.path.insert(0, str(Path(file).parent))
    if not transport:
        runpy.run_path(file, run_name="__main__")
        return
    found = runpy.run_path(file, run_name="example")
    if transport == "asgi":
        import uvicorn

        uvicorn.run(found["app"], host="127.0.0.1", port=int(port), log_level="warning")
        return
    servers = [each for each in found.values() if type(each).__name__ in ("FastMCP", "Server")]
    server: Any = next((each for each in servers if each is found.get("mcp")), servers[0])
    if hasattr(server, "create_initialization_options"):
        asyncio.run(serve(server))
    elif transport == "stdio":
        server.run()
    elif hasattr(server, "settings"):
        server.settings.port = int(port)
        server.run(transport=transport)
    else:
        server.run(transport="http", port=int(port))


main(*sys.argv[1:])
