"""The client of an HTTP request, as budgets count: its principal, or the address that it comes from."""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address

from typedmcp.server.http.messages import Scope
from typedmcp.server.principal import Principal

__all__ = ["REQUEST_SCOPE", "client_at", "client_of", "client_of_principal"]

REQUEST_SCOPE: ContextVar[Scope] = ContextVar("REQUEST_SCOPE")
"""The scope of the request that a task serves. The hot path does not set it, which would cost 3 % of a request."""


def client_of(principal: str | None) -> str | None:
    """Return the client of the current request: its principal, by key, or its address. None if neither is known."""
    if principal is not None:
        return f"principal {principal}"
    address = REQUEST_SCOPE.get({}).get("client")
    return client_at(address[0]) if address else None


def client_of_principal(principal: Principal | None) -> str | None:
    """Return the client of the current request, which may have credentials."""
    return client_of(None if principal is None else principal.key)


@lru_cache(1024)
def client_at(address: str) -> str:
    """Return the client at an address, which is a network of 64 bits for IPv6: one client can have all of it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:  # a socket's path, or a name that a proxy has made
        return f"address {address}"
    if isinstance(parsed, IPv6Address):
        return f"address {parsed.ipv4_mapped or IPv6Network((parsed.packed[:8] + bytes(8), 64))}"
    return f"address {address}"
