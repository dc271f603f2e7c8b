"""A server made of decorated functions: with our library, or with the official one of either version.

    python decorated.py ours|official [http]

Over HTTP it prints its URL, and runs until it is terminated. `official` runs in an environment of its own.
"""

import asyncio
import base64
import importlib
import importlib.util
import socket
import sys
from collections.abc import Callable
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Decorate = Callable[..., Any]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def broken() -> str:
    """Fail."""
    raise ValueError("out of order")


def notes() -> str:
    """Read the notes."""
    return "Buy milk."


def item(id: str) -> str:
    """Read an item."""
    return f"item {id}"


def review(topic: str) -> str:
    """Ask for a review."""
    return f"Please review the {topic}."


def add_common(server: Any, tool: Decorate, resource: Decorate, prompt: Decorate) -> Any:
    """Add the functions that are the same in both libraries."""
    tool(add)
    tool(broken)
    resource("test://notes", name="notes", mime_type="text/plain")(notes)
    resource("test://item/{id}", name="item", mime_type="text/plain")(item)
    prompt(review)
    return server


def annotated(function: Callable[..., Any], **annotations: Any) -> Callable[..., Any]:
    """Give a function the types of a library that type checkers do not know here."""
    function.__annotations__.update(annotations)
    return function


def ours() -> Any:
    import typedmcp

    server = typedmcp.Server("decorated", version="1")

    def picture() -> typedmcp.Image:
        """Draw a picture."""
        return typedmcp.Image(data=base64.b64decode(PIXEL), format="png")

    async def ask_model(question: str, ctx: typedmcp.Context) -> str:
        """Ask the model of the client."""
        answer = await ctx.sample(question, max_tokens=100)
        return "".join(getattr(block, "text", "") for block in contents(answer.content))

    async def chatty(ctx: typedmcp.Context) -> str:
        """Log a message."""
        await ctx.info("working")
        return "done"

    for function in (picture, ask_model, chatty):
        server.tool(function)
    return add_common(server, server.tool, server.resource, server.prompt)


def official() -> Any:
    newer = importlib.util.find_spec("mcp_types") is not None
    library: Any = importlib.import_module("mcp.server.mcpserver" if newer else "mcp.server.fastmcp")
    types: Any = importlib.import_module("mcp.types")
    server = library.MCPServer("decorated") if newer else library.FastMCP("decorated")

    def picture() -> Any:
        """Draw a picture."""
        return library.Image(data=base64.b64decode(PIXEL), format="png")

    async def ask_model(question: str, ctx: Any) -> str:
        """Ask the model of the client."""
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=question))
        answer = await ctx.session.create_message([message], max_tokens=100)
        return "".join(block.text for block in contents(answer.content))

    async def chatty(ctx: Any) -> str:
        """Log a message."""
        await ctx.info("working")
        return "done"

    server.tool()(annotated(picture, **{"return": library.Image}))
    server.tool()(annotated(ask_model, ctx=library.Context))
    server.tool()(annotated(chatty, ctx=library.Context))
    return add_common(server, server.tool(), server.resource, server.prompt())


def contents(content: Any) -> list[Any]:
    """Return the blocks of a message, which may have one or several."""
    return content if isinstance(content, list) else [content]  # pyright: ignore[reportUnknownVariableType]


def serve_http(application: Any) -> None:
    uvicorn: Any = importlib.import_module("uvicorn")
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1)
    asyncio.run(uvicorn.Server(config).serve([listening]))


def main(library: str, transport: str = "stdio") -> None:
    server = ours() if library == "ours" else official()
    if transport == "stdio":
        server.run()
    elif library == "ours":
        serve_http(importlib.import_module("typedmcp").asgi(server, path="/mcp"))
    else:
        serve_http(server.streamable_http_app())


if __name__ == "__main__":
    main(*sys.argv[1:])
