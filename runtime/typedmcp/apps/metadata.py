"""The metadata of Apps in `_meta.ui`: of a tool, which page shows it; of a page, what the page may do.

The official schema of the extension repeats the types of the protocol inline, with keywords that the compiler does not
express, so these few types are written by hand.
https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from mcpspec.support.structs import from_builtins
from typedmcp import dialect
from typedmcp.errors import DecodeError
from typedmcp.protocol.extensions import DeclaredExtensions, Extension

__all__ = [
    "APPS", "FEATURES_OF_PERMISSIONS", "PAGE_MIME_TYPE", "PAGE_SCHEME", "Audience", "PageCsp", "PageMeta",
    "PagePermissions", "PageSettings", "Permission", "ToolPage", "is_for_model", "is_for_page",
    "is_page_type", "page_uri", "supports_pages", "tool_page",
]  # fmt: skip

D = dialect.structs

APPS: Final = Extension("io.modelcontextprotocol/ui")
"""The extension, as both sides declare it. It has no methods between client and server."""

PAGE_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The media type of a page."""

PAGE_SCHEME: Final = "ui://"
"""The beginning of the URI of a page."""

Audience: TypeAlias = Literal["model", "app"]
"""Whom a tool is for: the model, or the pages of the same server."""

Permission: TypeAlias = Literal["camera", "microphone", "geolocation", "clipboard-write"]
"""A feature of the browser that a page asks for, by its name in the Permissions Policy."""


class PageCsp(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The origins that a page needs. Everything that is not named is blocked."""

    connect_domains: list[str] | None = None
    """Origins of requests, such as `https://api.example.com` or `wss://live.example.com`."""
    resource_domains: list[str] | None = None
    """Origins of scripts, styles, images, fonts and media; `https://*.example.com` are all subdomains."""
    frame_domains: list[str] | None = None
    """Origins of frames in the page."""
    base_uri_domains: list[str] | None = None
    """Origins that the page may name as its base."""


class PagePermissions(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The features of the browser that a page asks for. Each is an empty object, or absent."""

    camera: dict[str, Any] | None = None
    microphone: dict[str, Any] | None = None
    geolocation: dict[str, Any] | None = None
    clipboard_write: dict[str, Any] | None = None


FEATURES_OF_PERMISSIONS: Final[Mapping[str, Permission]] = {
    "camera": "camera",
    "microphone": "microphone",
    "geolocation": "geolocation",
    "clipboard_write": "clipboard-write",
}
"""The names of features in the Permissions Policy, by the attribute of `PagePermissions`."""


class PageMeta(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The member `_meta.ui` of a page."""

    csp: PageCsp | None = None
    permissions: PagePermissions | None = None
    domain: str | None = None
    """The origin that the host should show the page under. Its form is the host's choice."""
    prefers_border: bool | None = None
    """True for a border and a background around the page, False for none."""


class ToolPage(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The member `_meta.ui` of a tool."""

    resource_uri: str | None = None
    """The URI of the page that shows the tool's results."""
    visibility: list[str] | None = None
    """Whom the tool is for, `model` and `app`; both if it is absent."""


class PageSettings(msgspec.Struct, kw_only=True, rename="camel"):
    """The settings of a host that shows pages."""

    mime_types: list[str]


def supports_pages(capabilities: DeclaredExtensions) -> bool:
    """Return whether a client has declared that it shows pages: `ctx.client_capabilities` in a server."""
    try:
        settings = APPS.settings_of(capabilities, PageSettings)
    except DecodeError:
        return False
    return settings is not None and any(is_page_type(each) for each in settings.mime_types)


def is_page_type(mime_type: str | None) -> bool:
    """Return whether a media type is that of pages, however it is spaced and quoted."""
    return (mime_type or "").replace(" ", "").replace('"', "").lower() == PAGE_MIME_TYPE


_NO_PAGE: Final = ToolPage(visibility=[])


def tool_page(tool: D.Tool) -> ToolPage:
    """Return the member `_meta.ui` of a tool. One that is not valid is for nobody, so that it opens nothing."""
    meta = tool.meta or {}
    ui: Any = meta.get("ui")
    try:
        made = ToolPage() if ui is None else from_builtins(ui, ToolPage)
    except DecodeError:
        return _NO_PAGE
    flat: Any = meta.get("ui/resourceUri")  # the form before the extension was final
    if made.resource_uri is None and isinstance(flat, str):
        made.resource_uri = flat
    return made


def page_uri(tool: D.Tool) -> str | None:
    """Return the URI of the page of a tool, or None for a tool without a page."""
    uri = tool_page(tool).resource_uri
    return uri if uri is not None and uri.startswith(PAGE_SCHEME) else None


def is_for_model(tool: D.Tool) -> bool:
    """Return whether a host may give the tool to its model."""
    return _is_for("model", tool)


def is_for_page(tool: D.Tool) -> bool:
    """Return whether pages of the same server may call the tool."""
    return _is_for("app", tool)


def _is_for(audience: Audience, tool: D.Tool) -> bool:
    visibility = tool_page(tool).visibility
    return visibility is None or audience in visibility
