"""The attributes of connections: pipe, socket or HTTP, and the address of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typedmcp.observers import ConnectionInfo
from typedmcp_otel.attributes import SERVER_ADDRESS, SERVER_PORT

__all__ = ["network_attributes"]

_NETWORKS: Final[Mapping[str, dict[str, Any]]] = {
    "pipe": {"network.transport": "pipe"},
    "unix": {"network.transport": "unix"},
    "tcp": {"network.transport": "tcp"},
    "http": {"network.transport": "tcp", "network.protocol.name": "http"},
}


def network_attributes(connection: ConnectionInfo) -> dict[str, Any]:
    """Return the attributes of a connection: none within a process, or if it is not known what carries it."""
    found = _NETWORKS.get(connection.network or "", {})
    if connection.address is None:
        return found
    host, port = connection.address
    return {**found, SERVER_ADDRESS: host, SERVER_PORT: port}
