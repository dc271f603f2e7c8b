"""Icons of servers: those with unsafe addresses are left out.

https://modelcontextprotocol.io/specification/2026-07-28/basic#icons
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from mcpspec.support.error_text import format_value
from mcpspec.support.objects import is_array
from typedmcp import dialect
from typedmcp.client.results.decoder import MAX_PROBLEMS
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind

__all__ = ["drop_unsafe_icons", "drop_unsafe_icons_of"]

D = dialect.structs

Report: TypeAlias = Callable[[Diagnostic], None]

_SAFE: Final = re.compile(r"(?:https://|data:image/)[^/\s]", re.IGNORECASE)
"""The beginning of the addresses of icons that cannot run code, read files or open other programs."""

_PLACES: Final[Mapping[str, tuple[str, str | None]]] = {
    "tools/list": ("tools", None),
    "prompts/list": ("prompts", None),
    "resources/list": ("resources", None),
    "resources/templates/list": ("resource_templates", None),
    "tools/call": ("content", None),
    "prompts/get": ("messages", "content"),
}
"""The members of results whose items have icons: themselves, or in a member of theirs."""

_WITHOUT_ICONS: Final = (D.TextContent, D.ImageContent, D.AudioContent, D.EmbeddedResource)
"""The types of most items of results, which have no icons."""


def drop_unsafe_icons(method: str, result: Any, report: Report) -> None:
    """Remove the icons with unsafe addresses from the result of a method, and report them."""
    if (place := _PLACES.get(method)) is None:
        return
    member, inner = place
    holders: Any = getattr(result, member, ())
    if inner is not None:
        holders = [getattr(item, inner) for item in holders]
    for holder in holders:
        if holder.__class__ not in _WITHOUT_ICONS and getattr(holder, "icons", None):
            drop_unsafe_icons_of([each for each in holders if getattr(each, "icons", None)], method, report)
            break


def drop_unsafe_icons_of(holders: Iterable[Any], method: str, report: Report) -> None:
    """Remove the icons with unsafe addresses from tools, or other objects that have icons, and report them."""
    dropped: list[tuple[str, str]] = []
    for holder in holders:
        if is_array(holder.icons):
            dropped += [(holder.name, icon.src) for icon in holder.icons if not _SAFE.match(icon.src)]
            holder.icons = [icon for icon in holder.icons if _SAFE.match(icon.src)]
    for name, src in dropped[:MAX_PROBLEMS]:
        text = f"an icon of {format_value(name)} is left out: {format_value(src)} is an unsafe address"
        report(Diagnostic(DiagnosticKind.INVALID_DATA, text, method, params=src))
    if len(dropped) > MAX_PROBLEMS:
        text = f"{len(dropped) - MAX_PROBLEMS} more icons are left out"
        report(Diagnostic(DiagnosticKind.INVALID_DATA, text, method))
