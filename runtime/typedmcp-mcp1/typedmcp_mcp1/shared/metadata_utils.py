"""Names for people, under the names of `mcp.shared.metadata_utils`."""

from __future__ import annotations

from typing import Any

__all__ = ["get_display_name"]


def get_display_name(obj: Any) -> str:
    """Return the title of a tool, resource, prompt or implementation, or its name if it has none."""
    hints = getattr(obj, "annotations", None)
    name: str = getattr(obj, "title", None) or getattr(hints, "title", None) or obj.name
    return name
