"""The messages between a page and its host, in JSON-RPC: parameters, capabilities and the context of the host.

The types are those of `mcpspec.ext.apps`, under shorter names.
https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from mcpspec.ext.apps import structs

__all__ = [
    "ContainerDimensions", "DisplayMode", "HostContext", "ModelContextParams", "PageCallParams", "PageReadParams",
    "SizeParams", "host_capabilities",
]  # fmt: skip

DisplayMode: TypeAlias = structs.McpUiDisplayMode
"""The way in which a page is shown: within the conversation, on the whole window, or above it."""

ModelContextParams: TypeAlias = structs.McpUiUpdateModelContextRequestParams
"""The parameters of `ui/update-model-context`: they replace those before."""

SizeParams: TypeAlias = structs.McpUiSizeChangedNotificationParams
"""The parameters of `ui/notifications/size-changed`, in pixels."""

HostContext: TypeAlias = structs.McpUiHostContext
"""The surroundings of a page, as the host describes them. Absent members are unknown, or the host's own affair."""

ContainerDimensions: TypeAlias = structs.McpUiHostContextContainerDimensions
"""The room for a page: `width` or `max_width`, and `height` or `max_height`, in pixels."""


class PageCallParams(msgspec.Struct, kw_only=True):
    """The parameters of `tools/call` from a page, which has no `_meta` to send."""

    name: str
    arguments: dict[str, Any] = {}


class PageReadParams(msgspec.Struct, kw_only=True):
    """The parameters of `resources/read` from a page, which has no `_meta` to send."""

    uri: str


def host_capabilities(
    sandbox: structs.McpUiHostCapabilitiesSandbox,
    *,
    has_links: bool,
    has_messages: bool,
    has_context: bool,
    has_log: bool,
) -> structs.McpUiHostCapabilities:
    """Return the capabilities of a host. It always passes calls of tools and reads of resources on, with consent."""
    return structs.McpUiHostCapabilities(
        server_tools=structs.McpUiHostCapabilitiesServerTools(list_changed=True),
        server_resources=structs.McpUiHostCapabilitiesServerResources(),
        sandbox=sandbox,
        open_links={} if has_links else None,
        message=_blocks() if has_messages else None,
        update_model_context=_blocks(structured_content={}) if has_context else None,
        logging={} if has_log else None,
    )


def _blocks(structured_content: dict[str, Any] | None = None) -> structs.McpUiSupportedContentBlockModalities:
    """Return the blocks of content that a host takes from a page."""
    return structs.McpUiSupportedContentBlockModalities(
        text={}, image={}, audio={}, resource={}, resource_link={}, structured_content=structured_content
    )
