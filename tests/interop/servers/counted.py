"""Applications for servers of others, which write the method and the status of each response to a file."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import typedmcp
import typedmcp_redis
from tests.interop.servers.decorated import ours

Send = Callable[[Any], Awaitable[None]]


class Counted:
    """An application whose statuses are written down."""

    def __init__(self, app: Any, log: Path) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                with self._log.open("a", encoding="utf-8") as log:
                    log.write(f"{scope['method']} {message['status']}\n")
            await send(message)

        await self._app(scope, receive, counted if scope["type"] == "http" else send)


def counted() -> Counted:
    """Return the application for one worker, or for several that share the Redis server at `COUNTED_REDIS`."""
    options: dict[str, Any] = {}
    if url := os.environ.get("COUNTED_REDIS"):
        options = {
            "store": typedmcp_redis.RedisStore(url),
            "state_signer": typedmcp.StateSigner(b"a key of all workers"),
        }
    return Counted(typedmcp.asgi(ours(), path="/mcp", **options), Path(os.environ["COUNTED_LOG"]))
