"""Notifications of a server: the kinds of changes, and the severities of log messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from mcpspec.features import LOG_LEVELS
from typedmcp import dialect
from typedmcp.dialect import methods

__all__ = ["CHANGES", "LEVELS", "Change", "LogLevel"]

Change: TypeAlias = Literal["tools", "prompts", "resources", "resource"]
"""A list that changed, or "resource" for the content of one resource."""

CHANGES: Final[Mapping[str, Change]] = {
    methods.NOTIFICATIONS_TOOLS_LIST_CHANGED.name: "tools",
    methods.NOTIFICATIONS_PROMPTS_LIST_CHANGED.name: "prompts",
    methods.NOTIFICATIONS_RESOURCES_LIST_CHANGED.name: "resources",
    methods.NOTIFICATIONS_RESOURCES_UPDATED.name: "resource",
}
"""The kind of change that each notification announces."""


LogLevel: TypeAlias = dialect.structs.LoggingLevel

LEVELS: Final[Mapping[str, int]] = {level: rank for rank, level in enumerate(LOG_LEVELS)}
"""The rank of each level. A higher rank is more severe."""
