"""What a server has said may be kept, and for how long.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching

A cache belongs to one connection, hence to one authorization: what is `private` may be kept here like what is
`public`. It keeps the bytes of results, so that whoever gets one decodes an object of their own. It has no clock:
`now` is any count of seconds that never goes back, such as `loop.time()`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_object

__all__ = ["CACHEABLE", "LONGEST", "Key", "ResponseCache", "key"]

CACHEABLE: Final = frozenset(
    {
        "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read",
    }
)  # fmt: skip
"""Methods whose results say how long they may be kept."""

LONGEST: Final = 24 * 60 * 60.0
"""How many seconds a result is kept at most, whatever the server says."""

Key: TypeAlias = tuple[str, bytes]
"""A method, and its parameters in one spelling."""

_CHANGED: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""The lists that a notification makes stale, on all of their pages."""

_READ: Final = "resources/read"
_ROUNDS: Final = ("inputResponses", "requestState")


def key(method: str, params: Any = UNSET) -> Key | None:
    """The key of a request; None for one whose result must not be kept.

    That is any other method, and a request that carries input: its result depends on more than the key says.
    `_meta` says how a request is made, not what it asks for, and is no part of the key.
    """
    if method not in CACHEABLE:
        return None
    plain: Any = dict[str, Any]() if params is UNSET else msgspec.to_builtins(params)
    if not is_object(plain) or any(name in plain for name in _ROUNDS):
        return None
    asked = {name: value for name, value in plain.items() if name != "_meta"}
    return method, msgspec.json.encode(asked, order="deterministic")


@dataclass(frozen=True, slots=True)
class _Entry:
    result: bytes
    until: float
    size: int


class ResponseCache:
    """Results by the request that they answer, as long as they are fresh; the least recently used go first.

    At most so many `entries` and bytes (`size`) are kept, and none longer than `longest` seconds.
    """

    def __init__(self, entries: int = 256, size: int = 8 << 20, longest: float = LONGEST) -> None:
        self.changes: int = 0
        """How often something was forgotten: what to note when a request is sent, for `put`."""
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._room = size
        self._most = entries
        self._largest = size
        self._longest = longest

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._largest - self._room

    def get(self, key: Key, now: float) -> bytes | None:
        """The bytes of a result that is fresh."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.until:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.result

    def put(self, key: Key, result: bytes, ttl_ms: float, now: float, changes: int | None = None) -> None:
        """Keep the bytes of a complete result that came `now`, in the place of what was kept for the request.

        `changes` is what the attribute said when the request was sent: if something was forgotten since, the result
        may be older than the notification that said so, and is not kept.
        """
        if key in self._entries:
            self._drop(key)
        size = len(result) + len(key[1])
        if not ttl_ms > 0 or size > self._largest or changes not in (None, self.changes):
            return
        until = now + min(ttl_ms, self._longest * 1000) / 1000
        self._entries[key] = _Entry(bytes(result), until, size)
        self._room -= size
        while self._room < 0 or len(self._entries) > self._most:
            self._drop(next(iter(self._entries)))

    def forget(self, method: str) -> None:
        """Drop all results of a method, or of those that a notification such as `…/list_changed` makes stale.

        Also for a cursor that the server does not know any more: every page of the list goes.
        """
        self.changes += 1
        stale = _CHANGED.get(method, (method,))
        for key in [key for key in self._entries if key[0] in stale]:
            self._drop(key)

    def forget_resource(self, uri: str) -> None:
        """Drop what was read of a resource that was updated, and of those that it is a part of."""
        self.changes += 1
        for key in [key for key in self._entries if key[0] == _READ and _holds(_uri(key), uri)]:
            self._drop(key)

    def clear(self) -> None:
        """Drop everything, as when the authorization changes."""
        self.changes += 1
        self._entries.clear()
        self._room = self._largest

    def _drop(self, key: Key) -> None:
        self._room += self._entries.pop(key).size


def _uri(key: Key) -> str:
    """The URI in the parameters of a read."""
    uri = msgspec.json.decode(key[1]).get("uri")
    return uri if isinstance(uri, str) else ""


def _holds(uri: str, part: str) -> bool:
    """Whether a resource is the other one, or a folder above it."""
    return part == uri or part.startswith(uri if uri.endswith("/") else f"{uri}/")
