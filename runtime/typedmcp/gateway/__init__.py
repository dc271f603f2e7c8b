"""Gateways: servers of any revision and transport, offered to clients of any other."""

from __future__ import annotations

from typedmcp.gateway.audit import AuditRecord
from typedmcp.gateway.gateway import Gateway
from typedmcp.gateway.names import NameRules
from typedmcp.gateway.options import GatewayOptions
from typedmcp.gateway.servers import ServerStatus

__all__ = ["AuditRecord", "Gateway", "GatewayOptions", "NameRules", "ServerStatus"]
