"""A host that is a web page: it shows the page of a tool in a sandboxed frame, and asks before the page acts.

    python examples/apps/host.py                              # prints an address to open in a browser
    python examples/apps/host.py SERVER.py TOOL '{"a": 1}'    # another tool with a page

Two origins on this machine: one for the host, one for the proxy around the page.
"""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import typedmcp
from typedmcp.dialect.structs import Tool
from typedmcp_extensions.apps import (
    PROXY_SANDBOX,
    AppsClient,
    ContainerDimensions,
    HostContext,
    PageAction,
    PageBridge,
    SizeParams,
    host_script,
    load_page,
    proxy_page,
)

HERE = Path(__file__).parent


class Host:
    """Shows the page of one tool to one browser."""

    def __init__(self, client: typedmcp.Client, tool: Tool, arguments: dict[str, Any], origin: str, proxy: str) -> None:
        self.client, self.tool, self.arguments = client, tool, arguments
        self.origin, self.proxy = origin, proxy
        self.bridge: PageBridge | None = None
        self.events: asyncio.Queue[str] = asyncio.Queue()
        self.questions: dict[int, asyncio.Future[bool]] = {}
        self.numbers = count(1)

    def application(self) -> Starlette:
        """Return the application of the host's origin."""
        return Starlette(
            routes=[
                Route("/", self.index),
                Route("/host.js", self.script),
                Route("/page", self.show, methods=["POST"]),
                Route("/messages", self.receive, methods=["POST"]),
                Route("/answers", self.answer, methods=["POST"]),
                Route("/events", self.listen),
            ]
        )

    def sandbox(self) -> Starlette:
        """Return the application of the proxy's origin."""

        async def show_proxy(_: Request) -> Response:
            page = await load_page(self.client, self.tool)
            html, headers = proxy_page(page, self.origin)
            return HTMLResponse(html, headers=dict(headers))

        return Starlette(routes=[Route("/proxy", show_proxy)])

    async def index(self, _: Request) -> Response:
        """Return the host's page."""
        return FileResponse(HERE / "host.html")

    async def script(self, _: Request) -> Response:
        """Return the script that shows pages of servers."""
        return Response(host_script(), media_type="text/javascript")

    async def listen(self, _: Request) -> Response:
        """Stream events to the host's page."""
        return StreamingResponse(self.stream(), media_type="text/event-stream")

    async def show(self, request: Request) -> Response:
        """Call the tool, and begin to show its page."""
        self.check(request)
        if self.bridge is not None:
            await self.bridge.close(seconds=0)
        self.events = asyncio.Queue()
        page = await load_page(self.client, self.tool)
        self.bridge = PageBridge(
            self.client,
            page,
            lambda message: self.events.put(f"data: {message.decode()}\n\n"),
            consent=self.ask,
            tool=self.tool,
            context=HostContext(theme="light", container_dimensions=ContainerDimensions(max_height=600)),
            on_size=self.resize,
        )
        result = await self.client.call_tool(self.tool.name, self.arguments)
        await self.bridge.send_tool_input(self.arguments)
        await self.bridge.send_tool_result(result)
        shown = {"url": self.proxy, "sandbox": PROXY_SANDBOX, "allow": page.allow, "message": page.sandbox_message}
        return JSONResponse({"text": typedmcp.text_of(result), **shown})

    async def receive(self, request: Request) -> Response:
        """Pass a message of the page to the bridge."""
        self.check(request)
        assert self.bridge is not None
        await self.bridge.receive(await request.body())
        return Response(status_code=204)

    async def ask(self, action: PageAction) -> bool:
        """Ask the user, in the page of the host."""
        number, name = next(self.numbers), action.method if action.tool is None else action.tool.name
        self.questions[number] = asyncio.get_running_loop().create_future()
        question = {"id": number, "text": f"The page wants to use {name}."}
        await self.events.put(f"event: question\ndata: {json.dumps(question)}\n\n")
        return await self.questions[number]

    async def answer(self, request: Request) -> Response:
        """Take the user's answer."""
        self.check(request)
        answer = await request.json()
        self.questions.pop(answer["id"]).set_result(answer["agrees"] is True)
        return Response(status_code=204)

    async def resize(self, size: SizeParams) -> None:
        """Make the frame as high as the page."""
        if size.height is not None:
            await self.events.put(f"event: size\ndata: {size.height}\n\n")

    async def stream(self) -> AsyncIterator[str]:
        """Yield what the host's page gets."""
        while True:
            yield await self.events.get()

    def check(self, request: Request) -> None:
        """Reject requests of other pages in the same browser."""
        if request.headers.get("origin") != self.origin:
            raise HTTPException(403, "a request of another origin")


async def main() -> None:
    server = sys.argv[1] if len(sys.argv) > 1 else str(HERE / "server.py")
    name = sys.argv[2] if len(sys.argv) > 2 else "forecast"
    arguments = json.loads(sys.argv[3] if len(sys.argv) > 3 else '{"city": "Bergen"}')
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    origin, proxy = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in sockets)
    async with typedmcp.connect([sys.executable, server], extensions=[AppsClient()]) as client:
        tool = next(tool for tool in await all_tools(client) if tool.name == name)
        host = Host(client, tool, arguments, origin, f"{proxy}/proxy")
        print(origin, flush=True)
        async with asyncio.TaskGroup() as tasks:
            for application, listener in zip((host.application(), host.sandbox()), sockets, strict=True):
                config = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=1)
                tasks.create_task(uvicorn.Server(config).serve(sockets=[listener]))


async def all_tools(client: typedmcp.Client) -> list[Tool]:
    return [tool async for tool in client.tools()]


if __name__ == "__main__":
    asyncio.run(main())
