"""A web application of FastAPI's with a server of tools in it. Both work on the same data.

Run `uvicorn fastapi_app:app --timeout-graceful-shutdown 5` to serve it, or `python fastapi_app.py` to have it serve
itself at a free port and call it both ways. Needs FastAPI and the extra `http`.
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
    """Put something on the list."""
    todo.append(task)
    return f"{len(todo)} things to do"


mcp = typedmcp.asgi(server)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    """What else the application needs is opened here; where that is nothing, `lifespan=mcp.lifespan` is enough."""
    async with mcp.lifespan():
        yield


app = FastAPI(lifespan=lifespan)
app.router.routes.append(Route("/mcp", mcp))


@app.get("/todo")
def show_todo() -> list[str]:
    return todo


async def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        web = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(web.serve(sockets=[listening]))
        async with typedmcp.connect(f"{url}/mcp") as client:
            print(text_of(await client.call_tool("add", {"task": "feed the cat"})))
        print((await asyncio.to_thread(read, f"{url}/todo")).decode())
        web.should_exit = True
        await serving


def read(url: str) -> bytes:
    with urlopen(url) as page:  # noqa: S310  # a URL of our own
        return bytes(page.read())


if __name__ == "__main__":
    asyncio.run(main())
