"""Hosts of URLs."""

from __future__ import annotations

from ipaddress import ip_address

__all__ = ["is_loopback"]


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address, or a name that always leads to one."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        name = host.removesuffix(".")
        return name == "localhost" or name.endswith(".localhost")
