"""Sign-in through OAuth, and other ways to get access tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Protocol

from typedmcp.errors import UsageError

__all__ = ["OAuthClientProvider", "TokenStorage", "to_credentials"]


class TokenStorage(Protocol):
    """Keeps tokens and the registration of a client. `typedmcp_auth.FileStorage` does so here."""

    async def get_tokens(self) -> Any: ...
    async def set_tokens(self, tokens: Any) -> None: ...
    async def get_client_info(self) -> Any: ...
    async def set_client_info(self, client_info: Any) -> None: ...


class OAuthClientProvider:
    """Raises `UsageError`: `typedmcp_auth.OAuth` signs in here, with a browser, and keeps tokens by itself."""

    def __init__(
        self,
        server_url: str,
        client_metadata: Any,
        storage: TokenStorage,
        redirect_handler: Callable[[str], Awaitable[None]] | None = None,
        callback_handler: Callable[[], Awaitable[tuple[str, str | None]]] | None = None,
        **_options: Any,
    ) -> None:
        raise UsageError(
            "OAuthClientProvider: pass auth=typedmcp_auth.OAuth(storage=typedmcp_auth.FileStorage()) to the client in "
            "its place; it opens the browser and receives the redirect (pip install 'typedmcp[auth]')"
        )


def to_credentials(auth: Any, url: str) -> Any:
    """Return the option `auth` of `typedmcp.connect` for one of httpx: its headers are those of every request."""
    if auth is None or not hasattr(auth, "auth_flow"):
        return auth
    httpx: Any = import_module("httpx")  # the program has made something of it
    request = next(auth.auth_flow(httpx.Request("POST", url)))

    def headers(_rejected: object) -> dict[str, str]:
        return {"authorization": request.headers["authorization"]}

    return headers
