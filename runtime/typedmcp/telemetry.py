"""The place where telemetry was before it became a distribution of its own. Importing it says where it is."""

from __future__ import annotations

from typedmcp.errors import moved

__all__: list[str] = []

raise ImportError(moved("typedmcp.telemetry", "otel", "import typedmcp_otel"))
