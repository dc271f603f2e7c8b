"""HTTP proxies: the ones that the environment names, and those that cannot be used."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.request import getproxies_environment, proxy_bypass

from typedmcp.errors import UsageError
from typedmcp.transports.hosts import is_loopback
from typedmcp.transports.http1 import HttpAddress, parse_url

__all__ = ["check_proxy", "select_proxy"]


def check_proxy(url: str) -> None:
    """Raise `UsageError` for the URL of a proxy that is not valid, or not supported."""
    scheme = _with_scheme(url).partition("://")[0]
    if scheme.lower().startswith("socks"):
        raise UsageError(f'proxies with {scheme} are not supported; give an HTTP proxy, or `proxy=""` for none')
    parse_url(_with_scheme(url))


def _with_scheme(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def _is_excluded(address: HttpAddress) -> bool:
    """Return whether `NO_PROXY` names the host, or a network (`10.0.0.0/8`) with its address."""
    for network in getproxies_environment().get("no", "").split(","):
        with suppress(ValueError):
            if "/" in network and ip_address(address.host) in ip_network(network.strip(), strict=False):
                return True
    return bool(proxy_bypass(address.authority))


def select_proxy(option: str | None, address: HttpAddress) -> str | None:
    """Return the proxy from the option or the environment. Loopback addresses use none, and "" disables it."""
    if option is not None:
        return _with_scheme(option) if option else None
    if is_loopback(address.host) or _is_excluded(address):
        return None
    proxies = getproxies_environment()
    if (proxy := proxies.get(address.scheme) or proxies.get("all")) is None:
        return None
    check_proxy(proxy)
    return _with_scheme(proxy)
