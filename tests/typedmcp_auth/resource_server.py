"""An MCP server whose tools need scopes: `resource_server.py ISSUER [PORT [dpop]]` prints its address once it listens.

With `dpop` it takes only tokens that are bound to a key, with its nonces. It asks the authorization server about each
token (RFC 7662), so that a token is rejected as soon as it is revoked.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from base64 import b64encode
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import uvicorn

import typedmcp
from typedmcp_auth import DpopVerifier

CREDENTIALS = b64encode(b"resource-server:of-the-resource-server").decode()


class Introspection:
    """Verifies tokens by introspection."""

    def __init__(self, issuer: str, resource: str) -> None:
        self._url = f"{issuer}/token/introspection"
        self._resource = resource

    async def __call__(self, token: str) -> typedmcp.Principal | None:
        found = await asyncio.to_thread(self._ask, token)
        if not found["active"] or found["aud"] != self._resource:
            return None
        subject = found.get("sub", found["client_id"])
        return typedmcp.Principal(subject, frozenset(found.get("scope", "").split()), found["exp"], claims=found)

    def _ask(self, token: str) -> dict[str, Any]:
        headers = {"Authorization": f"Basic {CREDENTIALS}"}
        with urlopen(Request(self._url, urlencode({"token": token}).encode(), headers), timeout=10) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found


def make_server() -> typedmcp.Server:
    server = typedmcp.Server("protected", version="1")

    @server.tool
    def read(ctx: typedmcp.Context) -> str:
        """Return the name of the person."""
        assert ctx.principal is not None
        return ctx.principal.subject

    @server.tool
    def write(ctx: typedmcp.Context) -> str:
        """Need another scope."""
        ctx.require_scopes("write")
        return "written"

    @server.tool
    def admin(ctx: typedmcp.Context) -> str:
        """Need a third scope."""
        ctx.require_scopes("admin")
        return "administered"

    return server


def main(issuer: str, port: str = "0", kind: str = "bearer") -> None:
    with socket.create_server(("127.0.0.1", int(port))) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        verify = Introspection(issuer, f"{address}/mcp")
        dpop = DpopVerifier(f"{address}/mcp", required=True, nonces=True) if kind == "dpop" else None
        auth = typedmcp.Auth(verify, resource=f"{address}/mcp", issuers=[issuer], scopes=["read"], dpop=dpop)
        app: Any = typedmcp.asgi(make_server(), auth=auth)
        print(address, flush=True)
        config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
