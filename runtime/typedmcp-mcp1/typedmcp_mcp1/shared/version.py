"""The revisions of the protocol that mcp 1.x speaks: those with a handshake."""

from __future__ import annotations

from typedmcp.revisions.features import LEGACY
from typedmcp_mcp1.types import LATEST_PROTOCOL_VERSION

__all__ = ["LATEST_PROTOCOL_VERSION", "SUPPORTED_PROTOCOL_VERSIONS"]

SUPPORTED_PROTOCOL_VERSIONS: list[str] = [*reversed(LEGACY)]
"""All of them, oldest first."""
