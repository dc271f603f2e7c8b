"""Exceptions, under the names of `mcp.server.fastmcp.exceptions`."""

from __future__ import annotations

__all__ = ["FastMCPError", "InvalidSignature", "ResourceError", "ToolError", "ValidationError"]


class FastMCPError(Exception):
    """Base class of the errors of `FastMCP`."""


class ValidationError(FastMCPError):
    """Parameters or results do not fit."""


class ResourceError(FastMCPError):
    """A resource cannot be read."""


class ToolError(FastMCPError):
    """A tool failed."""


class InvalidSignatureError(FastMCPError):
    """A function cannot be a tool, a resource or a prompt."""


InvalidSignature = InvalidSignatureError
