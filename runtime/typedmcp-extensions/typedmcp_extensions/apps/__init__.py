"""MCP Apps: tools with a page, which a host shows in a sandboxed frame. For servers and for hosts.

The extension `io.modelcontextprotocol/ui` (SEP-1865). A name is imported when it is first used, so that a server does
not load what hosts need.
https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.building import lazy_names

if TYPE_CHECKING:
    from typedmcp_extensions.apps.bridge import BridgeOptions, PageAction, PageBridge
    from typedmcp_extensions.apps.host import FRAME_SANDBOX, PROXY_SANDBOX, AppsClient, HostedPage, load_page
    from typedmcp_extensions.apps.messages import ContainerDimensions, HostContext, ModelContextParams, SizeParams
    from typedmcp_extensions.apps.metadata import (
        APPS,
        PAGE_MIME_TYPE,
        Audience,
        PageCsp,
        PageMeta,
        PagePermissions,
        ToolPage,
        is_for_model,
        is_for_page,
        page_uri,
        supports_pages,
    )
    from typedmcp_extensions.apps.proxy import ProxyPage, host_script, proxy_page
    from typedmcp_extensions.apps.server import AppPage, AppsServer
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        ".bridge": ["BridgeOptions", "PageAction", "PageBridge"],
        ".host": ["FRAME_SANDBOX", "PROXY_SANDBOX", "AppsClient", "HostedPage", "load_page"],
        ".messages": ["ContainerDimensions", "HostContext", "ModelContextParams", "SizeParams"],
        ".metadata": [
            "APPS", "PAGE_MIME_TYPE", "Audience", "PageCsp", "PageMeta", "PagePermissions", "ToolPage", "is_for_model",
            "is_for_page", "page_uri", "supports_pages",
        ],
        ".proxy": ["ProxyPage", "host_script", "proxy_page"],
        ".server": ["AppPage", "AppsServer"],
    })  # fmt: skip

__all__ = [
    "APPS", "FRAME_SANDBOX", "PAGE_MIME_TYPE", "PROXY_SANDBOX", "AppPage", "AppsClient", "AppsServer", "Audience",
    "BridgeOptions", "ContainerDimensions", "HostContext", "HostedPage", "ModelContextParams", "PageAction",
    "PageBridge", "PageCsp", "PageMeta", "PagePermissions", "ProxyPage", "SizeParams", "ToolPage", "host_script",
    "is_for_model", "is_for_page", "load_page", "page_uri", "proxy_page", "supports_pages",
]  # fmt: skip
