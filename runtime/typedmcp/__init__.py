"""typedmcp: servers and clients of the Model Context Protocol, on the generated types in `mcpspec`.

Handlers are written in one revision of the protocol, the dialect (`typedmcp.dialect`); every revision is spoken.
"""

from __future__ import annotations

from typedmcp.changes import Changes
from typedmcp.context import Context
from typedmcp.dispatch import in_thread
from typedmcp.errors import (
    ConnectionLost,
    DecodeError,
    Error,
    InputUnavailable,
    InvalidParams,
    MethodNotFound,
    MissingCapability,
    ProtocolError,
    RemoteError,
    RequestTimeout,
    ResourceNotFound,
    UnsupportedVersion,
    UsageError,
)
from typedmcp.peer import Kind, Report
from typedmcp.service import Service
from typedmcp.serving import serve, serve_async
from typedmcp.state import Sealer
from typedmcp.transports import Transport
from typedmcp.transports.memory import memory_pair

__all__ = [
    "Changes",
    "ConnectionLost",
    "Context",
    "DecodeError",
    "Error",
    "InputUnavailable",
    "InvalidParams",
    "Kind",
    "MethodNotFound",
    "MissingCapability",
    "ProtocolError",
    "RemoteError",
    "Report",
    "RequestTimeout",
    "ResourceNotFound",
    "Sealer",
    "Service",
    "Transport",
    "UnsupportedVersion",
    "UsageError",
    "__version__",
    "in_thread",
    "memory_pair",
    "serve",
    "serve_async",
]

__version__ = "0.1.0"
