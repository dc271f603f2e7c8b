"""The metadata of Apps in `_meta.ui`: of a tool, which page shows it; of a page, what the page may do.

The types are those of `mcpspec.ext.apps`, under shorter names.
https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from mcpspec.ext.apps import structs
from typedmcp import types
from typedmcp.building import from_builtins, is_array, is_object
from typedmcp.errors import DecodeError
from typedmcp.extensions import DeclaredExtensions, Extension

__all__ = [
    "APPS", "FEATURES_OF_PERMISSIONS", "PAGE_MIME_TYPE", "PAGE_SCHEME", "Audience", "PageCsp", "PageMeta",
    "PagePermissions", "Permission", "ToolPage", "is_for_model", "is_for_page",
    "is_page_type", "page_uri", "supports_pages", "tool_page",
]  # fmt: skip

APPS: Final = Extension("io.modelcontextprotocol/ui")
"""The extension, as both sides declare it. It has no methods between client and server."""

PAGE_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The media type of a page."""

PAGE_SCHEME: Final = "ui://"
"""The beginning of the URI of a page."""

Audience: TypeAlias = structs.McpUiToolVisibility
"""Whom a tool is for: the model, or the pages of the same server."""

Permission: TypeAlias = Literal["camera", "microphone", "geolocation", "clipboard-write"]
"""A feature of the browser that a page asks for, by its name in the Permissions Policy."""


PageCsp: TypeAlias = structs.McpUiResourceCsp
"""The origins that a page needs. Everything that is not named is blocked."""

PagePermissions: TypeAlias = structs.McpUiResourcePermissions
"""The features of the browser that a page asks for. Each is an empty object, or absent."""

FEATURES_OF_PERMISSIONS: Final[Mapping[str, Permission]] = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboard_write": "clipboard-write",
}
"""The names of features in the Permissions Policy, by the attribute of `PagePermissions`."""


PageMeta: TypeAlias = structs.McpUiResourceMeta
"""The member `_meta.ui` of a page."""

ToolPage: TypeAlias = structs.McpUiToolMeta
"""The member `_meta.ui` of a tool: the page that shows its results, and whom it is for."""


def supports_pages(capabilities: DeclaredExtensions) -> bool:
    """Return whether a client has declared that it shows pages: `ctx.client_capabilities` in a server."""
    try:
        settings = APPS.settings_of(capabilities, structs.McpUiClientCapabilities)
    except DecodeError:
        return False
    return settings is not None and any(is_page_type(each) for each in settings.mime_types or ())


def is_page_type(mime_type: str | None) -> bool:
    """Return whether a media type is that of pages, however it is spaced and quoted."""
    return (mime_type or "").replace(" ", "").replace('"', "").lower() == PAGE_MIME_TYPE


_NO_PAGE: Final = ToolPage(visibility=[])


def tool_page(tool: types.Tool) -> ToolPage:
    """Return the member `_meta.ui` of a tool. One that is not valid is for nobody, so that it opens nothing."""
    meta = tool.meta or {}
    ui: Any = meta.get("ui")
    try:
        made = ToolPage() if ui is None else from_builtins(_known(ui), ToolPage)
    except DecodeError:
        return _NO_PAGE
    flat: Any = meta.get("ui/resourceUri")  # the form before the extension was final
    if made.resource_uri is None and isinstance(flat, str):
        made.resource_uri = flat
    return made


def _known(ui: Any) -> Any:
    """Return the metadata of a tool without audiences that this version does not know."""
    if not is_object(ui) or not is_array(visibility := ui.get("visibility")):
        return ui
    known = get_args(Audience)
    return {**ui, "visibility": [each for each in visibility if each in known or not isinstance(each, str)]}


def page_uri(tool: types.Tool) -> str | None:
    """Return the URI of the page of a tool, or None for a tool without a page."""
    uri = tool_page(tool).resource_uri
    return uri if uri is not None and uri.startswith(PAGE_SCHEME) else None


def is_for_model(tool: types.Tool) -> bool:
    """Return whether a host may give the tool to its model."""
    return _is_for("model", tool)


def is_for_page(tool: types.Tool) -> bool:
    """Return whether pages of the same server may call the tool."""
    return _is_for("app", tool)


def _is_for(audience: Audience, tool: types.Tool) -> bool:
    visibility = tool_page(tool).visibility
    return visibility is None or audience in visibility
