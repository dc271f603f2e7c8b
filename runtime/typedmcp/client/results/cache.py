"""Cached results, for as long as the server allows.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching

A cache belongs to one client, so it may hold `private` results as well as `public` ones. A `private` result belongs to
one access token: the client drops it when its credentials change. The cache keeps the bytes of results, so that each
caller decodes objects of its own. It has no clock: `now` is a number of seconds that never decreases, such as
`loop.time()`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from mcpspec.support.objects import is_object
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.revisions.results import CACHEABLE_METHODS, STALE_METHODS

__all__ = ["MAX_TTL", "CacheKey", "ResponseCache", "cache_key"]

MAX_TTL: Final = 24 * 60 * 60.0
"""The maximum number of seconds that a result is kept, even if the server allows more."""

_MAX_ENTRIES: Final = 256

CacheKey: TypeAlias = tuple[str, bytes]
"""A method, and its parameters in a canonical encoding."""

_READ: Final = "resources/read"
_INPUT_PARAMS: Final = ("inputResponses", "requestState")


def cache_key(method: str, params: Any = None) -> CacheKey | None:
    """Return the cache key of a request, or None if its result must not be cached.

    The result of a request with input depends on more than the key. `_meta` describes how a request is made,
    and is not part of the key.
    """
    if method not in CACHEABLE_METHODS:
        return None
    plain: Any = dict[str, Any]() if params is None else msgspec.to_builtins(params)
    if not is_object(plain) or any(name in plain for name in _INPUT_PARAMS):
        return None
    members = {name: value for name, value in plain.items() if name != "_meta"}
    return method, msgspec.json.encode(members, order="deterministic")


@dataclass(frozen=True, slots=True)
class _CachedResult:
    result: bytes
    expires: float
    size: int
    is_public: bool


class ResponseCache:
    """Results by their requests. The least recently used are dropped first.

    `entries` and `size` (in bytes) limit the whole cache.
    """

    def __init__(self, entries: int = _MAX_ENTRIES, size: int = DEFAULT_LIMITS.cache_bytes) -> None:
        self.generation: int = 0
        """The number of invalidations. Note it when a request is sent, for `put`."""
        self.size: int = 0
        """The bytes in use."""
        self._entries: OrderedDict[CacheKey, _CachedResult] = OrderedDict()
        self._max_bytes = size
        self._max_entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: CacheKey, now: float) -> bytes | None:
        """Return the bytes of a result that has not expired."""
        if (entry := self._entries.get(key)) is None:
            return None
        if now >= entry.expires:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.result

    def put(
        self,
        key: CacheKey,
        result: bytes,
        ttl_ms: float,
        now: float,
        generation: int | None = None,
        *,
        is_public: bool = False,
    ) -> None:
        """Store the bytes of a complete result that arrived `now`.

        `generation` is the one at the time of the request. If it has changed since, the result may be older than the
        notification that invalidated it, or belong to other credentials, and is not stored. `is_public` says whether
        it is the same for all credentials.
        """
        if key in self._entries:
            self._drop(key)
        size = len(result) + len(key[1])
        if not ttl_ms > 0 or size > self._max_bytes or generation not in (None, self.generation):
            return
        expires = now + min(ttl_ms, MAX_TTL * 1000) / 1000
        self._entries[key] = _CachedResult(bytes(result), expires, size, is_public)
        self.size += size
        while self.size > self._max_bytes or len(self._entries) > self._max_entries:
            self._drop(next(iter(self._entries)))

    def invalidate(self, method: str) -> None:
        """Drop the results of a method, or those that a notification such as `…/list_changed` makes stale.

        All pages of a list are dropped, including those of cursors that the server no longer knows.
        """
        self.generation += 1
        stale = STALE_METHODS.get(method, (method,))
        for key in [key for key in self._entries if key[0] in stale]:
            self._drop(key)

    def invalidate_resource(self, uri: str) -> None:
        """Drop the content of a resource that was updated, and of the resources that it is a part of."""
        self.generation += 1
        for key in [key for key in self._entries if key[0] == _READ and _contains(_uri(key), uri)]:
            self._drop(key)

    def clear_private(self) -> None:
        """Drop the results that belong to one access token."""
        self.generation += 1
        for key in [key for key, entry in self._entries.items() if not entry.is_public]:
            self._drop(key)

    def clear(self) -> None:
        """Drop all results."""
        self.generation += 1
        self._entries.clear()
        self.size = 0

    def _drop(self, key: CacheKey) -> None:
        self.size -= self._entries.pop(key).size


def _uri(key: CacheKey) -> str:
    """Return the URI in the parameters of `resources/read`."""
    uri = msgspec.json.decode(key[1]).get("uri")
    return uri if isinstance(uri, str) else ""


def _contains(uri: str, part: str) -> bool:
    """Return whether two URIs are equal, or the first is a folder above the second."""
    return part == uri or part.startswith(uri if uri.endswith("/") else f"{uri}/")
