"""The place where replays were before they became part of another distribution. Importing it says where they are."""

from __future__ import annotations

from typedmcp.errors import moved

__all__: list[str] = []

raise ImportError(moved("typedmcp.replay", "cli", "import typedmcp_cli"))
