"""Servers over HTTP, under the names of `mcp.client.streamable_http`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from typedmcp_mcp1.client.auth.provider import to_credentials
from typedmcp_mcp1.client.targets import HttpTarget

__all__ = ["streamable_http_client", "streamablehttp_client"]

_OF_HTTPX = {"accept", "accept-encoding", "connection", "host", "user-agent", "content-length", "content-type"}
"""Headers that an httpx client has by itself."""


def _no_session_id() -> str | None:
    """Return None: the id of a session is a secret of the client beneath."""
    return None


@asynccontextmanager
async def streamable_http_client(
    url: str, *, http_client: Any = None, terminate_on_close: bool = True
) -> AsyncGenerator[tuple[HttpTarget, HttpTarget, Callable[[], str | None]]]:
    """Yield what stands for the streams of a server, for a `ClientSession`, and a function that returns None.

    Headers and sign-in of `http_client`, a client of httpx, are used for all requests. The rest of it is not.
    """
    given: Mapping[str, str] = {} if http_client is None else http_client.headers
    headers = {name: value for name, value in given.items() if name.lower() not in _OF_HTTPX}
    auth = getattr(http_client, "auth", None)
    target = HttpTarget(url, headers=headers or None, auth=to_credentials(auth, url))
    yield target, target, _no_session_id


@asynccontextmanager
async def streamablehttp_client(
    url: str,
    headers: dict[str, str] | None = None,
    timeout: Any = 30,
    sse_read_timeout: Any = 300,
    terminate_on_close: bool = True,
    httpx_client_factory: Any = None,
    auth: Any = None,
) -> AsyncGenerator[tuple[HttpTarget, HttpTarget, Callable[[], str | None]]]:
    """Yield what stands for the streams of a server, for a `ClientSession`, and a function that returns None.

    The times and the factory have no effect: a call has the time that the session gives it.
    """
    target = HttpTarget(url, headers=headers, auth=to_credentials(auth, url))
    yield target, target, _no_session_id
