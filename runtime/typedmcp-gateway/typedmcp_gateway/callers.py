"""Callers: the clients of a gateway, as far as their requests say who they are.

A legacy session and a connection of lines belong to one client. Modern requests over HTTP say who sent them only by
their access token.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

from typedmcp import Context, Principal

__all__ = ["GATEWAY", "CallerKey", "ClientKey", "GatewayCaller", "find_caller"]

_MAX_NAME: Final = 200
"""Characters of a name or version of a client that are kept. A longer one is replaced by its hash."""


ClientKey: TypeAlias = Hashable
"""The client that limits count for, as `ctx.client_key` has it."""

CallerKey: TypeAlias = "tuple[str, ...]"
"""Identifies a client: the kind of the key, and what distinguishes clients of that kind, which the clients wrote."""


class GatewayCaller(NamedTuple):
    """The client that sent a request."""

    key: CallerKey
    is_alone: bool
    """True if no other client has the same key. False for clients over HTTP without a session and a token."""
    principal: Principal | None
    client: ClientKey = None
    """The client over HTTP that shares count for: a principal or an address. None for the client of a connection."""

    @property
    def turn(self) -> ClientKey:
        """The key under which it takes turns with others. A client over HTTP can have as many `key`s as it likes."""
        return self.key if self.client is None else self.client


GATEWAY: Final = GatewayCaller(("gateway",), False, None)
"""The gateway itself, as a caller. It opens the connection that callers share if the server is a modern one."""


def find_caller(ctx: Context) -> GatewayCaller:
    """Return the caller of a request."""
    key, kind, is_alone = ctx.caller
    principal = ctx.principal
    if kind == "connection":
        return GatewayCaller((kind, key), True, principal)
    name = "" if principal is None else principal.key
    if kind == "session":
        return GatewayCaller((kind, key, name), True, principal, ctx.client_key)
    info = ctx.client_info
    client = ("", "") if info is None else (_shorten(info.name), _shorten(info.version))
    return GatewayCaller(("client", *client, name), is_alone, principal, ctx.client_key)


def _shorten(text: str) -> str:
    """Return a text that a client sent with each of its requests, short enough to be kept."""
    return text if len(text) <= _MAX_NAME else sha256(text.encode(errors="replace")).hexdigest()
