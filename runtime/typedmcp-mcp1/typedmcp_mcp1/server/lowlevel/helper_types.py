"""Small types, under the names of `mcp.server.lowlevel.helper_types`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ReadResourceContents"]


@dataclass
class ReadResourceContents:
    """The content of a resource: text or bytes, with its media type."""

    content: str | bytes
    mime_type: str | None = None
    meta: dict[str, Any] | None = None
