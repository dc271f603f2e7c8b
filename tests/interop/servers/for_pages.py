"""Our server, and a page of another origin that uses it. Prints both addresses once they accept connections."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import uvicorn

import typedmcp
from tests.interop.servers.decorated import ours
from tests.interop.test_older_peers import PAGE


async def main() -> None:
    for_page, for_server = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    page, server = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (for_page, for_server))
    text = PAGE.replace("TARGET", json.dumps(f"{server}/mcp")).encode()

    async def show(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
            await send({"type": "http.response.body", "body": text})

    app = typedmcp.asgi(ours(), path="/mcp", origins=[page])
    print(page, flush=True)
    options: dict[str, Any] = {"log_level": "error", "timeout_graceful_shutdown": 1}
    pages = uvicorn.Server(uvicorn.Config(show, lifespan="off", **options)).serve([for_page])
    await asyncio.gather(pages, uvicorn.Server(uvicorn.Config(app, **options)).serve([for_server]))


if __name__ == "__main__":
    asyncio.run(main())
