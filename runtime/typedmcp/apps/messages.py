"""The messages between a page and its host, in JSON-RPC: parameters, capabilities and the context of the host.

https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from typedmcp import dialect
from typedmcp.apps.metadata import PageCsp, PagePermissions

__all__ = [
    "APPS_VERSION", "DisplayMode", "DisplayModeParams", "HostContext", "InitializeParams", "LogParams", "MessageParams",
    "ModelContextParams", "OpenLinkParams", "PageCallParams", "PageCapabilities", "PageReadParams", "SandboxMeta",
    "SizeParams", "host_capabilities",
]  # fmt: skip

D = dialect.structs

APPS_VERSION: Final = "2026-01-26"
"""The version of the messages between pages and hosts."""

DisplayMode: TypeAlias = Literal["inline", "fullscreen", "pip"]
"""The way in which a page is shown: within the conversation, on the whole window, or above it."""

_MAX_PIXELS: Final = 1 << 20


class PageCapabilities(msgspec.Struct, kw_only=True, rename="camel"):
    """The capabilities of a page."""

    available_display_modes: list[str] | None = None
    """The ways in which the page can be shown; all if it is absent."""
    tools: dict[str, Any] | None = None
    experimental: dict[str, Any] | None = None


class InitializeParams(msgspec.Struct, kw_only=True, rename="camel"):
    """The parameters of `ui/initialize`."""

    app_info: D.Implementation
    app_capabilities: PageCapabilities
    protocol_version: str


class PageCallParams(msgspec.Struct, kw_only=True):
    """The parameters of `tools/call` from a page."""

    name: str
    arguments: dict[str, Any] = {}


class PageReadParams(msgspec.Struct, kw_only=True):
    """The parameters of `resources/read` from a page."""

    uri: str


class OpenLinkParams(msgspec.Struct, kw_only=True):
    """The parameters of `ui/open-link`."""

    url: str


class MessageParams(msgspec.Struct, kw_only=True):
    """The parameters of `ui/message`."""

    role: Literal["user"]
    content: list[D.ContentBlock]


class ModelContextParams(msgspec.Struct, kw_only=True, rename="camel"):
    """The parameters of `ui/update-model-context`: they replace those before."""

    content: list[D.ContentBlock] | None = None
    structured_content: dict[str, Any] | None = None


class DisplayModeParams(msgspec.Struct, kw_only=True):
    """The parameters of `ui/request-display-mode`."""

    mode: DisplayMode


_Pixels: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=_MAX_PIXELS)]


class SizeParams(msgspec.Struct, kw_only=True):
    """The parameters of `ui/notifications/size-changed`, in pixels."""

    width: _Pixels | None = None
    height: _Pixels | None = None


class LogParams(msgspec.Struct, kw_only=True):
    """The parameters of `notifications/message` from a page."""

    level: D.LoggingLevel
    data: Any
    logger: str | None = None


class HostContext(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The surroundings of a page, as the host describes them. Absent members are unknown, or the host's own affair."""

    tool_info: dict[str, Any] | None = None
    """The tool that the page belongs to, as `{"tool": …}`. The bridge fills it in."""
    theme: Literal["light", "dark"] | None = None
    styles: dict[str, Any] | None = None
    """CSS variables as `{"variables": {"--color-text-primary": …}}`, and fonts as `{"css": {"fonts": …}}`."""
    display_mode: DisplayMode | None = None
    available_display_modes: list[DisplayMode] | None = None
    container_dimensions: dict[str, float] | None = None
    """`width` or `maxWidth`, and `height` or `maxHeight`, in pixels."""
    locale: str | None = None
    """The language, such as `en-US` (BCP 47)."""
    time_zone: str | None = None
    """The time zone, such as `Europe/Oslo` (IANA)."""
    user_agent: str | None = None
    """The name of the host."""
    platform: Literal["web", "desktop", "mobile"] | None = None
    device_capabilities: dict[str, bool] | None = None
    """`touch` and `hover`."""
    safe_area_insets: dict[str, float] | None = None
    """`top`, `right`, `bottom` and `left`, in pixels."""


class SandboxMeta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The origins and features that the host has approved for a page."""

    csp: PageCsp | None = None
    permissions: PagePermissions | None = None


_BLOCKS: Final[dict[str, dict[str, Any]]] = {"text": {}, "image": {}, "audio": {}, "resource": {}, "resourceLink": {}}
"""The blocks of content that a host takes from a page."""


def host_capabilities(
    sandbox: SandboxMeta, *, has_links: bool, has_messages: bool, has_context: bool, has_log: bool
) -> dict[str, Any]:
    """Return the capabilities of a host. It always passes calls of tools and reads of resources on, with consent."""
    made: dict[str, Any] = {
        "serverTools": {"listChanged": True},
        "serverResources": {},
        "sandbox": msgspec.to_builtins(sandbox),
    }
    if has_links:
        made["openLinks"] = {}
    if has_messages:
        made["message"] = _BLOCKS
    if has_context:
        made["updateModelContext"] = {**_BLOCKS, "structuredContent": {}}
    if has_log:
        made["logging"] = {}
    return made
