"""HTTP for clients of every revision: one endpoint for all since 2025-03-26, and two for those of 2024-11-05.

Run `python sse_and_http.py serve` to serve both at port 8000 (or that of the variable PORT), or `python
sse_and_http.py` to have it serve itself at a free port, and to walk through the revisions. Needs the extra `http`.
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
    """Greet the client, in words of its own model."""
    await ctx.progress(1, total=2)  # the newest revision sees it twice: the call is made again with the words
    words = text_of(await ctx.sample("Greet somebody."))
    session = "in a session" if "mcp-session-id" in ctx.headers else "without a session id"
    return f"{words} I hear you on {ctx.revision}, {session}."


def model(params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
    """Stands for a real model."""
    return structs.CreateMessageResult(role="assistant", model="canned", content=structs.TextContent(text="Hello!"))


async def walk(url: str) -> None:
    for revision, path in {
        "2024-11-05": "/sse",  # GET it: a stream of events, which first says where to post; answers come in it
        "2025-03-26": "/mcp",  # POST to it: answers come in the response; the session is named in a header
        "2025-06-18": "/mcp",  # the same, with the revision in a header, too
        "2025-11-25": "/mcp",
        "2026-07-28": "/mcp",  # no session: every request stands for itself, and questions are answers to it
    }.items():
        async with typedmcp.connect(url + path, revisions=[revision], sample=model) as client:
            result = await client.call_tool("greet", on_progress=lambda step: print(f"  progress {step.progress:g}"))
            print(text_of(result))


async def main() -> None:
    app = typedmcp.asgi(server, sse_path="/sse")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        web = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(web.serve(sockets=[listening]))
        await walk(f"http://127.0.0.1:{listening.getsockname()[1]}")
        web.should_exit = True
        await serving


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run("http", port=int(os.environ.get("PORT", "8000")), sse_path="/sse")
    else:
        asyncio.run(main())
