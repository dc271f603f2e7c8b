"""Requests that are like others: what a POST was found to be before its body need not be found again.

Clients write the same headers in the same order, and few of them matter for those checks. The others may say what they
like, as long as it is not much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

__all__ = ["Usual"]

_STEADY = frozenset((b"host", b"origin", b"accept", b"content-type", b"mcp-protocol-version"))
"""The headers that must not change: those that the checks before the body read.

Credentials are not among them, since they are checked every time.
"""


class Usual:
    """What a request looked like that has passed them. `limit` is how many bytes of headers there may be."""

    __slots__ = (
        "_count", "_limit", "_path", "_pick", "_root", "_steady", "_varied", "is_modern", "length_at", "method_at",
        "name_at", "session_at",
    )  # fmt: skip

    def __init__(
        self, scope: Mapping[str, Any], given: Sequence[tuple[bytes, bytes]], limit: int, *, is_modern: bool
    ) -> None:
        names = [name for name, _ in given]
        self._path, self._root = scope["path"], scope.get("root_path", "")
        steady = [place for place, name in enumerate(names) if name in _STEADY]
        self._count = len(given)
        self._pick: Any = itemgetter(*steady) if steady else len
        self._steady = self._pick(given)
        self._varied = [(place, name) for place, name in enumerate(names) if name not in _STEADY]
        self._limit = limit - sum(map(len, names)) - sum(len(given[place][1]) for place in steady)
        """How many bytes the values may have that vary."""
        self.is_modern: bool = is_modern
        """Whether it is one of a revision without sessions."""
        self.length_at: int = names.index(b"content-length") if b"content-length" in names else -1
        """At which place the length of the body stands, if it does."""
        self.method_at: int = names.index(b"mcp-method") if is_modern and b"mcp-method" in names else -1
        """At which place the method stands, where that counts."""
        self.name_at: int = names.index(b"mcp-name") if b"mcp-name" in names else -1
        """At which place the name stands that it is about."""
        self.session_at: int = names.index(b"mcp-session-id") if not is_modern and b"mcp-session-id" in names else -1
        """At which place the session stands, where that counts."""

    def fits(self, scope: Mapping[str, Any], given: Sequence[tuple[bytes, bytes]]) -> bool:
        """Whether another POST is alike."""
        if len(given) != self._count or self._pick(given) != self._steady:
            return False
        left = self._limit
        for place, expected in self._varied:
            name, value = given[place]
            if name != expected:
                return False
            left -= len(value)
        return left >= 0 and scope["path"] == self._path and scope.get("root_path", "") == self._root
