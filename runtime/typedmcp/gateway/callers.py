"""Callers: the clients of a gateway, as far as their requests say who they are.

A legacy session and a connection of lines belong to one client. Modern requests over HTTP say who sent them only by
their access token.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from typedmcp.protocol.budgets import ClientKey
from typedmcp.protocol.text import visible
from typedmcp.server.connection import ServerConnection
from typedmcp.server.context import Context
from typedmcp.server.principal import Principal

__all__ = ["CallerFinder", "GatewayCaller"]

_SESSION: Final = "mcp-session-id"


class GatewayCaller(NamedTuple):
    """The client that sent a request."""

    key: str
    """A text that identifies the client."""
    is_alone: bool
    """True if no other client has the same key. False for clients over HTTP without a session and a token."""
    principal: Principal | None
    client: ClientKey = None
    """The client over HTTP that shares count for: a principal or an address. None for the client of a connection."""


class CallerFinder:
    """Finds the callers of requests."""

    def __init__(self) -> None:
        self._connections: WeakKeyDictionary[object, str] = WeakKeyDictionary()
        self._count = 0

    def find(self, ctx: Context) -> GatewayCaller:
        """Return the caller of a request."""
        principal, connection = ctx.principal, ctx.connection
        if isinstance(connection, ServerConnection):
            key = self._connections.get(connection)
            if key is None:
                self._count += 1
                key = self._connections[connection] = f"connection {self._count}"
            return GatewayCaller(key, True, principal)
        name = "" if principal is None else principal.key
        session = None if ctx.is_modern else ctx.headers.get(_SESSION)
        if session is not None:
            return GatewayCaller(f"session {session} {name}", True, principal, ctx.client_key)
        info = ctx.client_info
        client = "" if info is None else visible(f"{info.name} {info.version}")[:200]
        return GatewayCaller(f"client {client} {name}", principal is not None, principal, ctx.client_key)
