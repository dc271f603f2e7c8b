"""The place where gateways were before they became a distribution of their own. Importing it says where they are."""

from __future__ import annotations

from typedmcp.errors import moved

__all__: list[str] = []

raise ImportError(moved("typedmcp.gateway", "gateway", "import typedmcp_gateway"))
