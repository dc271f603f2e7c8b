"""HTTP for every revision: one endpoint since 2025-03-26, and HTTP with SSE for 2024-11-05.

Run `python sse_and_http.py serve` to serve both on port 8000, or on that of the variable PORT. Or run `python
sse_and_http.py`, which serves both on a free port and calls them in every revision. Needs the extra `http`.
"""

import asyncio
import os
import socket
import sys

import uvicorn

import typedmcp
from typedmcp import Context, Server, text_of
from typedmcp.dialect import structs

server = Server("greeter", version="1.0")


@server.tool
async def greet(ctx: Context) -> str:
    """Greet the client in the words of its own model."""
    await ctx.progress(1, total=2)  # arrives twice in 2026-07-28, where `sample` makes the client repeat the call
    greeting = text_of(await ctx.sample("Write a greeting."))
    session = "with" if "mcp-session-id" in ctx.headers else "without"
    return f"{greeting} You speak {ctx.revision}, {session} a session id."


def model(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
    """Stand in for a real model."""
    return structs.CreateMessageResult(role="assistant", model="canned", content=structs.TextContent(text="Hello!"))


async def call_in_every_revision(url: str) -> None:
    for revision, path in {
        "2024-11-05": "/sse",  # GET opens an event stream with all responses; its first event has the URL for POST
        "2025-03-26": "/mcp",  # POST returns the response; a header names the session
        "2025-06-18": "/mcp",  # another header names the revision
        "2025-11-25": "/mcp",
        "2026-07-28": "/mcp",  # no session; a result can ask the client for input
    }.items():
        async with typedmcp.connect(url + path, revisions=[revision], sample=model) as client:
            result = await client.call_tool("greet", on_progress=lambda step: print(f"  progress {step.progress:g}"))
            print(text_of(result))


async def main() -> None:
    app = typedmcp.asgi(server, sse_path="/sse")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        web = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        await call_in_every_revision(f"http://127.0.0.1:{listener.getsockname()[1]}")
        web.should_exit = True
        await serving


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run("http", port=int(os.environ.get("PORT", "8000")), sse_path="/sse")
    else:
        asyncio.run(main())
