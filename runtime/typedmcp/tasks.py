"""The former place of Tasks, now in a distribution of its own. Importing it says where they are."""

from __future__ import annotations

from typedmcp.errors import moved

__all__: list[str] = []

raise ImportError(moved("typedmcp.tasks", "extensions", "import typedmcp_extensions.tasks"))
