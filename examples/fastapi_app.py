"""A FastAPI application with an MCP server in it. Both use the same data.

Serve it with `uvicorn fastapi_app:app --timeout-graceful-shutdown 5`. Or run `python fastapi_app.py`, which serves it
on a free port and calls both parts. Needs FastAPI and the extra `http`.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.request import urlopen

import uvicorn
from fastapi import FastAPI
from starlette.routing import Route

import typedmcp
from typedmcp import Server, text_of

todo = ["water the plants"]

server = Server("todo", version="1.0")


@server.tool
async def add(task: str) -> str:
    """Add a task to the list."""
    todo.append(task)
    return f"{len(todo)} tasks"


mcp = typedmcp.asgi(server)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    """Open the resources of the application here. Without any, use `lifespan=mcp.lifespan`."""
    async with mcp.lifespan():
        yield


app = FastAPI(lifespan=lifespan)
app.router.routes.append(Route("/mcp", mcp))


@app.get("/todo")
def show_todo() -> list[str]:
    return todo


async def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        web = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(web.serve(sockets=[listener]))
        async with typedmcp.connect(f"{url}/mcp") as client:
            print(text_of(await client.call_tool("add", {"task": "feed the cat"})))
        print((await asyncio.to_thread(read, f"{url}/todo")).decode())
        web.should_exit = True
        await serving


def read(url: str) -> bytes:
    with urlopen(url) as page:  # noqa: S310  # our own URL
        return bytes(page.read())


if __name__ == "__main__":
    asyncio.run(main())
