"""The applications of `test_servers`, which its servers import. They import no test, so that each starts quickly."""

from __future__ import annotations

import asyncio
from typing import Any

import typedmcp
from tests.server.http.asgi_driver import ToolHandler


class ServedHandler(ToolHandler):
    async def release(self, ctx: Any) -> str:
        self.go.set()
        self.go = asyncio.Event()
        return "released"

    async def handler_endings(self, ctx: Any) -> str:
        return " ".join(self.ended)

    async def reached(self, ctx: Any) -> str:
        await self.entered.wait()
        self.entered.clear()
        return "reached"


def plain() -> Any:
    return typedmcp.asgi(ServedHandler(), sse_path="/sse", grace=1)


def serve(port: int) -> None:
    typedmcp.serve(ServedHandler(), "http", port=port, sse_path="/sse", grace=1)


def in_starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route

    app = plain()
    return Starlette(routes=[Route("/mcp", app), Mount("/below", app)], lifespan=app.lifespan)


def in_fastapi() -> Any:
    from fastapi import FastAPI
    from starlette.routing import Route

    app = plain()
    web = FastAPI(lifespan=app.lifespan)
    web.router.routes.append(Route("/mcp", app))
    web.mount("/below", app)
    return web
