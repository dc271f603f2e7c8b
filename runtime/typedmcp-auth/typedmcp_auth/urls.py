"""URLs of metadata and endpoints: which ones are requested, and which ones are refused."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from typedmcp.building import is_loopback, visible
from typedmcp.errors import SignInError, UsageError

__all__ = [
    "check_url",
    "is_private_host",
    "is_same_issuer",
    "origin_of",
    "require_safe_server",
    "resource_urls",
    "server_urls",
]

_SHOWN: Final = 200
"""Characters of a URL of a peer in an error."""

_PORTS: Final = {"http": 80, "https": 443}

_NUMERIC_NAME: Final = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)\.?", re.IGNORECASE)
"""Names that systems read as an address, such as 2130706433 or 127.1. https://url.spec.whatwg.org/#ends-in-a-number-checker"""

_TRANSLATED: Final = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")))
"""Addresses of IPv6 that lead to others of IPv4: NAT64 and 6to4."""


def _split(url: str, name: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_valid = _is_valid_host(parts.hostname or "") and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid, parts = False, SplitResult("", "", "", "", "")
    plain = url.isascii() and url.isprintable() and not set(' "<>\\^`{|}') & set(url)
    if not is_valid or not plain or parts.scheme not in _PORTS or "@" in parts.netloc or "#" in url:
        raise SignInError(f"{name} is not a valid URL of a web server: {visible(url, _SHOWN)!r}")
    return parts


def _is_valid_host(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return bool(host) and _NUMERIC_NAME.fullmatch(host) is None
    return True


def check_url(url: str, name: str, server: str) -> str:
    """Return a URL that a server or its metadata names, or raise `SignInError`.

    It must use https. Loopback, private and link-local addresses are for servers that have such an address themselves:
    a server elsewhere must not choose what is requested within this machine or its network.
    """
    parts = _split(url, name)
    host = parts.hostname or ""
    if is_private_host(host) and not is_private_host(urlsplit(server).hostname or ""):
        raise SignInError(f"{name} is in a private network, and the server is not: {visible(url, _SHOWN)!r}")
    if parts.scheme != "https" and not is_loopback(host):
        raise SignInError(f"{name} must use https: {visible(url, _SHOWN)!r}")
    return url


def require_safe_server(url: str) -> None:
    """Raise `UsageError` for a server to which access tokens would go over plain HTTP."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise UsageError(f"auth: access tokens need https, except for loopback addresses; got {origin_of(url)}")


def is_private_host(host: str) -> bool:
    """Return whether a host is an address that is not public, or a name of this machine. Names are not resolved."""
    try:
        address = ip_address(host)
    except ValueError:
        return is_loopback(host)
    is_translated = isinstance(address, IPv6Address) and any(address in network for network in _TRANSLATED)
    return not address.is_global or is_translated


def is_same_issuer(one: str, other: str) -> bool:
    """Return whether two issuers are the same text, but for the slash after a host without a path.

    https://www.rfc-editor.org/rfc/rfc3986#section-6.2.3
    """
    return one == other or (one.count("/") <= 3 and one.removesuffix("/") == other.removesuffix("/"))


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, in lower case and without a default port."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def resource_urls(server: str) -> list[str]:
    """Return the well-known URLs of the metadata of a protected resource, in order."""
    origin, path = origin_of(server), urlsplit(server).path.rstrip("/")
    root = f"{origin}/.well-known/oauth-protected-resource"
    return [f"{root}{path}", root] if path else [root]


def server_urls(issuer: str) -> list[str]:
    """Return the well-known URLs of the metadata of an authorization server, in order."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*urls, f"{origin}{path}/.well-known/openid-configuration"] if path else urls
