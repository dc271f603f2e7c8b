"""The host's side of Apps: load the page of a tool, and what the browser has to be told about it.

https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from html import escape
from typing import Any, Final, Protocol, Unpack, cast

from typedmcp import CallOptions, types
from typedmcp.building import from_builtins, to_builtins, visible
from typedmcp.errors import DecodeError, ProtocolError, UsageError
from typedmcp.extensions import ClientExtension
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp_extensions.apps.metadata import (
    APPS,
    FEATURES_OF_PERMISSIONS,
    PAGE_MIME_TYPE,
    PAGE_SCHEME,
    PageCsp,
    PageMeta,
    PagePermissions,
    Permission,
    is_page_type,
    page_uri,
)
from typedmcp_extensions.apps.policy import PagePolicy, granted_features, make_policy

__all__ = ["FRAME_SANDBOX", "PROXY_SANDBOX", "AppsClient", "HostedPage", "load_page"]

FRAME_SANDBOX: Final = "allow-scripts"
"""The attribute `sandbox` of the frame with the page: scripts, in an origin of its own that no other page has."""

PROXY_SANDBOX: Final = "allow-scripts allow-same-origin"
"""The attribute `sandbox` of the frame around it, whose origin differs from that of the host."""

_DOCTYPE: Final = re.compile(r"[\t\n\f\r ]*<!doctype[^>]*>", re.IGNORECASE)
"""The beginning of a document, as an HTML parser reads it: the first `>` ends the doctype in all of its states."""


class AppsClient(ClientExtension):
    """Apps as a host supports them: `connect(target, extensions=[AppsClient()])`. Servers then offer their pages."""

    def __init__(self) -> None:
        super().__init__(APPS, {"mimeTypes": [PAGE_MIME_TYPE]})


class PageSource(Protocol):
    """The part of a client that pages are loaded with."""

    async def read_resource(self, uri: str, **options: Unpack[CallOptions]) -> types.ReadResourceResult:
        """Read a resource."""
        ...


@dataclass(frozen=True)
class HostedPage:
    """A page of a server, and what a host has to tell the browser about it. `load_page` makes it."""

    uri: str
    html: str
    """The HTML as the server sent it. Show `document`, or the HTML with `headers`; never the HTML alone."""
    meta: PageMeta
    """The metadata of the page: origins, features and looks that it asks for."""
    policy: PagePolicy
    """The Content Security Policy, and the sources that the page asked for and does not get. Log both."""
    features: tuple[Permission, ...] = ()
    """The features of the browser that the page asks for and the host grants."""

    @property
    def allow(self) -> str:
        """The attribute `allow` of the frames around the page."""
        return "; ".join(self.features)

    @property
    def permissions(self) -> PagePermissions | None:
        """The features that are granted, in the form of the page's metadata."""
        granted = {
            name: dict[str, Any]() for name, feature in FEATURES_OF_PERMISSIONS.items() if feature in self.features
        }
        return PagePermissions(**granted) if granted else None

    @property
    def sandbox_message(self) -> Mapping[str, Any]:
        """The notification `ui/notifications/sandbox-resource-ready` for the proxy in a web page, see `proxy_page`."""
        params: dict[str, Any] = {"html": self.document, "sandbox": FRAME_SANDBOX}
        if self.policy.approved != PageCsp():
            params["csp"] = to_builtins(self.policy.approved)
        if self.permissions is not None:
            params["permissions"] = to_builtins(self.permissions)
        return {"jsonrpc": "2.0", "method": "ui/notifications/sandbox-resource-ready", "params": params}

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a response with the HTML, for a host that serves it from an origin of its own."""
        csp = f"{self.policy.csp}; sandbox {FRAME_SANDBOX}"
        return {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": csp,
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }

    @cached_property
    def document(self) -> str:
        """The HTML with the policy at its beginning, for the attribute `srcdoc` of a frame.

        The policy comes before anything of the page but its doctype, so that it holds for all of the page.
        """
        found = _DOCTYPE.match(self.html)
        head, rest = ("<!doctype html>", self.html) if found is None else (found[0], self.html[found.end() :])
        return f'{head}<meta http-equiv="Content-Security-Policy" content="{escape(self.policy.csp)}">{rest}'

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the HTML, in hexadecimal, for lists of pages that were reviewed."""
        return sha256(self.html.encode()).hexdigest()


async def load_page(
    client: PageSource,
    tool: types.Tool | str,
    *,
    origins: Collection[str] | None = None,
    permissions: Collection[Permission] = (),
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[CallOptions],
) -> HostedPage:
    """Load the page of a tool, or the page with a URI.

    `origins` are the only ones that the host lets pages reach; by default those that the page declares. `permissions`
    are the features of the browser that the host grants to pages that ask for them; by default none. The options are
    those of a call.

    Raises `UsageError` for a tool without a page, and `ProtocolError` for contents that are no page, or too large
    (`page_bytes`).
    """
    uri = tool if isinstance(tool, str) else page_uri(tool)
    if uri is None:
        raise UsageError(f"the tool {cast(types.Tool, tool).name!r} has no page")
    if not uri.startswith(PAGE_SCHEME):
        raise UsageError(f"the URI of a page begins with {PAGE_SCHEME}, not {visible(uri, 200)!r}")
    result = await client.read_resource(uri, **options)
    contents = _find_contents(result, uri)
    html = _html_of(contents, uri, limits.page_bytes)
    meta = _meta_of(contents, uri)
    features = granted_features(meta.permissions, permissions)
    return HostedPage(uri, html, meta, make_policy(meta.csp, origins), features)


def _find_contents(
    result: types.ReadResourceResult, uri: str
) -> types.TextResourceContents | types.BlobResourceContents:
    """Return the contents with the page. Raises `ProtocolError` if there is none."""
    fitting = [each for each in result.contents if each.uri == uri] or [*result.contents]
    for each in fitting:
        if is_page_type(each.mime_type):
            return each
    kinds = ", ".join(visible(each.mime_type or "no media type", 80) for each in fitting[:3]) or "no contents"
    raise _invalid(uri, f"expected {PAGE_MIME_TYPE}, got {kinds}")


def _html_of(contents: types.TextResourceContents | types.BlobResourceContents, uri: str, limit: int) -> str:
    if isinstance(contents, types.TextResourceContents):
        size = len(contents.text)
        if size <= limit < 4 * size:
            size = len(contents.text.encode())
    else:
        size = len(contents.blob) * 3 // 4 - 2
    if size > limit:
        raise _invalid(uri, f"it has more than {limit} bytes (page_bytes)")
    if isinstance(contents, types.TextResourceContents):
        return contents.text
    try:
        return base64.b64decode(contents.blob, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise _invalid(uri, f"its blob is not base64 of UTF-8: {error}") from None


def _meta_of(contents: types.TextResourceContents | types.BlobResourceContents, uri: str) -> PageMeta:
    ui: Any = (contents.meta or {}).get("ui")
    try:
        return PageMeta() if ui is None else from_builtins(ui, PageMeta)
    except DecodeError as error:
        raise _invalid(uri, f"_meta.ui: {error}") from None


def _invalid(uri: str, reason: str) -> ProtocolError:
    return ProtocolError(f"the page {visible(uri, 200)}: {reason}")
