"""Policies for the browser: the Content Security Policy and the Permissions Policy of a page, from its metadata.

Nothing is looser than the metadata. Sources that are no origin, such as `*`, `https:` or one with a semicolon, are left
out and named.
https://modelcontextprotocol.io/extensions/apps/overview
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from typedmcp_extensions.apps.metadata import FEATURES_OF_PERMISSIONS, PageCsp, PagePermissions, Permission

__all__ = ["PagePolicy", "granted_features", "is_origin", "make_policy"]

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL}){{0,30}}|\*\.{_LABEL}(?:\.{_LABEL}){{1,30}}|\[[0-9A-Fa-f:.]{{2,45}}\])"
_ORIGIN: Final = re.compile(rf"(?:https?|wss?)://{_HOST}(?::[0-9]{{1,5}})?")
"""An origin, with `*.` for all subdomains of a domain that has a dot."""

_NONE: Final = "'none'"
_SELF: Final = "'self'"

_MAX_SOURCES: Final = 100
"""Origins in one list of a page. Further ones are left out."""


class PagePolicy(NamedTuple):
    """A Content Security Policy, and the sources that were left out of it."""

    csp: str
    """The value of the header `Content-Security-Policy`."""
    approved: PageCsp
    """The origins that the policy allows."""
    rejected: tuple[str, ...]
    """The sources that the page asked for and does not get."""


def is_origin(source: str) -> bool:
    """Return whether a source of a page is an origin: a scheme, a host, and perhaps a port."""
    return _ORIGIN.fullmatch(source) is not None


def make_policy(csp: PageCsp | None, allow: Collection[str] | None = None) -> PagePolicy:
    """Return the policy for a page. With `allow`, origins that are not in it are left out as well."""
    rejected: list[str] = []

    def approve(given: list[str] | None) -> list[str] | None:
        accepted: list[str] = []
        for source in dict.fromkeys(given or ()):
            origin = source.removesuffix("/")
            is_allowed = is_origin(origin) and (allow is None or origin in allow)
            (accepted if is_allowed and len(accepted) < _MAX_SOURCES else rejected).append(origin)
        return accepted or None

    asked = csp or PageCsp()
    approved = PageCsp(**{name: approve(getattr(asked, name)) for name in PageCsp.__struct_fields__})
    return PagePolicy("; ".join(_directives(approved)), approved, tuple(dict.fromkeys(rejected)))


def _directives(csp: PageCsp) -> Iterator[str]:
    """Yield the directives. `connect-src` and `form-action` are stricter than the specification demands."""
    lists = csp.connect_domains, csp.resource_domains, csp.frame_domains, csp.base_uri_domains
    connect, resources, frames, bases = (" ".join(each or ()) for each in lists)
    yield "default-src 'none'"
    yield f"script-src 'self' 'unsafe-inline' {resources}".rstrip()
    yield f"style-src 'self' 'unsafe-inline' {resources}".rstrip()
    yield f"img-src 'self' data: {resources}".rstrip()
    yield f"media-src 'self' data: {resources}".rstrip()
    if resources:
        yield f"font-src 'self' {resources}"
    yield f"connect-src {connect or _NONE}"
    yield f"frame-src {frames or _NONE}"
    yield "object-src 'none'"
    yield f"base-uri {bases or _SELF}"
    yield "form-action 'none'"


def granted_features(asked: PagePermissions | None, granted: Collection[Permission]) -> tuple[Permission, ...]:
    """Return the features of the browser that a page asks for and a host grants."""
    made: list[Permission] = []
    for attribute, feature in FEATURES_OF_PERMISSIONS.items():
        if getattr(asked, attribute, None) is not None and feature in granted:
            made.append(feature)
    return tuple(made)
