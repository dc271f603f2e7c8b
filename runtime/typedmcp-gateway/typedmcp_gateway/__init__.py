"""Gateways: servers of any revision and transport, offered to clients of any other; and pools of clients."""

from __future__ import annotations

from typedmcp_gateway.audit import AuditRecord
from typedmcp_gateway.exchange import ExchangeOf
from typedmcp_gateway.gateway import Gateway
from typedmcp_gateway.names import NameRules
from typedmcp_gateway.options import CredentialsOf, GatewayOptions, Policy
from typedmcp_gateway.pool import ClientLease, ClientPool, PoolMember
from typedmcp_gateway.servers import ServerStatus

__all__ = [
    "AuditRecord", "ClientLease", "ClientPool", "CredentialsOf", "ExchangeOf", "Gateway", "GatewayOptions",
    "NameRules", "Policy", "PoolMember", "ServerStatus",
]  # fmt: skip
