"""Servers over HTTP with SSE, the transport of 2024-11-05, under the names of `mcp.client.sse`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from typedmcp_mcp1.client.auth.provider import to_credentials
from typedmcp_mcp1.client.targets import HttpTarget

__all__ = ["sse_client"]


@asynccontextmanager
async def sse_client(
    url: str,
    headers: dict[str, Any] | None = None,
    timeout: float = 5,
    sse_read_timeout: float = 300,
    httpx_client_factory: Any = None,
    auth: Any = None,
    on_session_created: Callable[[str], None] | None = None,
) -> AsyncGenerator[tuple[HttpTarget, HttpTarget]]:
    """Yield what stands for the streams of a server, for a `ClientSession`.

    The times, the factory and the callback have no effect: a call has the time that the session gives it.
    """
    target = HttpTarget(url, headers=headers, sse=True, auth=to_credentials(auth, url))
    yield target, target
