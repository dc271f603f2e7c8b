"""Callers: the clients of a gateway, as far as their requests say who they are.

A legacy session and a connection of lines belong to one client. Modern requests over HTTP say who sent them only by
their access token.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import sha256
from typing import Final, TypeAlias

from typedmcp import Context, Principal
from typedmcp.dialect import structs

__all__ = ["GATEWAY", "CallerKey", "ClientKey", "GatewayCaller", "find_caller"]

_MAX_NAME: Final = 200
"""Characters of a name or version of a client that are kept. A longer one is replaced by its hash."""


ClientKey: TypeAlias = Hashable
"""The client that limits count for, as `ctx.client_key` has it."""

CallerKey: TypeAlias = "tuple[str, ...]"
"""Identifies a client: the kind of the key, and what distinguishes clients of that kind, which the clients wrote."""


class GatewayCaller:
    """The client that sent a request. Without a `key`, one is made of the name that the client gives itself."""

    __slots__ = ("_info", "_key", "client", "is_alone", "principal")

    def __init__(
        self,
        key: CallerKey | None,
        is_alone: bool,
        principal: Principal | None,
        client: ClientKey = None,
        info: structs.Implementation | None = None,
    ) -> None:
        self._key = key
        self._info = info
        self.is_alone: bool = is_alone
        """True if no other client has the same key. False for clients over HTTP without a session and a token."""
        self.principal: Principal | None = principal
        self.client: ClientKey = client
        """The client over HTTP that shares count for: a principal or an address. None for that of a connection."""

    @property
    def key(self) -> CallerKey:
        """Distinguishes the client from others. Most calls share a connection, and need none."""
        if self._key is None:
            info, principal = self._info, self.principal
            named = ("", "") if info is None else (_shorten(info.name), _shorten(info.version))
            self._key = ("client", *named, "" if principal is None else principal.key)
        return self._key

    @property
    def has_session(self) -> bool:
        """True if the client has a session or a connection, whose end is its own."""
        return self._key is not None

    @property
    def turn(self) -> ClientKey:
        """The key under which it takes turns with others. A client over HTTP can have as many `key`s as it likes."""
        return self.key if self.client is None else self.client


GATEWAY: Final = GatewayCaller(("gateway",), False, None)
"""The gateway itself, as a caller. It opens the connection that callers share if the server is a modern one."""


def find_caller(ctx: Context) -> GatewayCaller:
    """Return the caller of a request."""
    principal = ctx.principal
    if ctx.session_id is None:
        return GatewayCaller(None, principal is not None, principal, ctx.client_key, ctx.client_info)
    key, kind, is_alone = ctx.caller
    if kind == "connection":
        return GatewayCaller((kind, key), is_alone, principal)
    return GatewayCaller((kind, key, "" if principal is None else principal.key), is_alone, principal, ctx.client_key)


def _shorten(text: str) -> str:
    """Return a text that a client sent with each of its requests, short enough to be kept."""
    return text if len(text) <= _MAX_NAME else sha256(text.encode(errors="replace")).hexdigest()
