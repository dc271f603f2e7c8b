"""The files of a host that is a web page: the proxy between it and the page of a server, and its script.

A web page shows pages of servers in two frames: the outer one has the proxy, from an origin that differs from that of
the host; the inner one has the page, in an origin that no other page has.
https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from typedmcp.errors import UsageError
from typedmcp_extensions.apps.host import HostedPage
from typedmcp_extensions.apps.policy import is_origin

__all__ = ["ProxyPage", "host_script", "proxy_page"]


class ProxyPage(NamedTuple):
    """The response of the sandbox's origin: the proxy for one page."""

    html: str
    headers: Mapping[str, str]
    """The headers, with the policy of the page: the browser applies it to the frame within, too."""


def proxy_page(page: HostedPage, host_origin: str) -> ProxyPage:
    """Return the proxy for a page, to be served from another origin than that of the host.

    `host_origin` is the origin of the host's web page, which alone may show the proxy. The policy of the page is in the
    headers as well as in the page: a frame inherits it, and the page can navigate only to the frames that it declares.

    Raises `UsageError` for a host that is no origin.
    """
    if not is_origin(host_origin) or "*" in host_origin:
        raise UsageError(f"host_origin: expected an origin, such as https://host.example.com, not {host_origin!r}")
    headers = {
        **page.headers,
        "Content-Security-Policy": f"{page.policy.csp}; frame-ancestors {host_origin}",
        "Cache-Control": "no-store",
    }
    return ProxyPage(_read("sandbox.html").replace("host-origin", host_origin), headers)


def host_script() -> str:
    """Return `host.js`, a module with the function `showPage`, for the web page of a host."""
    return _read("host.js")


@cache
def _read(name: str) -> str:
    return (files("typedmcp_extensions.apps") / "static" / name).read_text(encoding="utf-8")
