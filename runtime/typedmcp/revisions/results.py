"""Results that clients may cache.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcpspec.support.objects import spread_union
from typedmcp import dialect

__all__ = ["CACHEABLE_METHODS", "STALE_METHODS"]

_REQUESTS = dialect.methods.CLIENT_REQUESTS

CACHEABLE_METHODS: Final = frozenset(
    name for name, method in _REQUESTS.items() if any(hasattr(kind, "ttl_ms") for kind in spread_union(method.result))
)
"""The methods whose results say how long they may be cached."""

STALE_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(
        method
        for method in _REQUESTS
        if method.endswith("/list") and method.split("/")[0] == name.split("/")[1]  # the feature, such as `tools`
    )
    for name in dialect.methods.SERVER_NOTIFICATIONS
    if name.endswith("/list_changed")
}
"""The methods whose cached results a notification makes stale, by its name."""
