"""The attributes of connections: pipe, socket or HTTP, and the address of the server."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from typedmcp.telemetry.attributes import HTTP, PIPE, SERVER_ADDRESS, SERVER_PORT

__all__ = ["session_attributes", "transport_attributes"]

_PORTS = {"https": 443, "http": 80}


def transport_attributes(transport: Any) -> dict[str, Any]:
    """Return the attributes of a `Transport`: none within a process, or for one that is not known."""
    inner = getattr(transport, "_transport", None)  # of one whose messages are recorded
    if inner is not None:
        return transport_attributes(inner)
    names = {kind.__name__ for kind in type(transport).__mro__}
    if names & {"ChildTransport", "FileTransport"}:
        return PIPE
    if names & {"LegacySseTransport"}:
        return HTTP
    return _descriptor_attributes(transport._source) if "StreamTransport" in names else {}


def _descriptor_attributes(descriptor: int) -> dict[str, Any]:
    with suppress(OSError):
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return PIPE
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            return {"network.transport": "unix" if connection.family == socket.AF_UNIX else "tcp"}
    return {}


def session_attributes(session: Any) -> dict[str, Any]:
    """Return the attributes of a client's session."""
    endpoint = getattr(session, "endpoint", None)
    if endpoint is None:
        transport = session.transport
        own = transport_attributes(transport)
        endpoint = getattr(transport, "_endpoint", None)  # of HTTP with SSE
        return own if endpoint is None else {**own, **_address(endpoint.url)}
    return {**HTTP, **_address(endpoint.url)}


def _address(url: str) -> dict[str, Any]:
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.hostname is not None:
            return {SERVER_ADDRESS: parts.hostname, SERVER_PORT: parts.port or _PORTS.get(parts.scheme, 0)}
    return {}
