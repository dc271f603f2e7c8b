"""HTTP proxies: the ones that the environment names, and those that cannot be used."""

from __future__ import annotations

from urllib.request import getproxies_environment, proxy_bypass

from typedmcp.errors import UsageError
from typedmcp.transports.hosts import is_loopback
from typedmcp.transports.http1 import HttpAddress, parse_url

__all__ = ["check_proxy", "select_proxy"]


def check_proxy(url: str) -> None:
    """Raise `UsageError` for the URL of a proxy that is not valid, or not supported."""
    scheme = url.partition("://")[0]
    if scheme.lower().startswith("socks"):
        raise UsageError(f'proxies with {scheme} are not supported; give an HTTP proxy, or `proxy=""` for none')
    parse_url(url)


def select_proxy(option: str | None, address: HttpAddress) -> str | None:
    """Return the proxy from the option or the environment. Loopback addresses use none, and "" disables it."""
    if option is not None:
        return option or None
    if is_loopback(address.host) or proxy_bypass(address.authority):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if proxy is not None:
        check_proxy(proxy)
    return proxy
