"""Requests that are like others: what a POST was found to be before its body need not be found again.

Clients write the same headers in the same order, and few of them matter for those checks. The others may say what they
like, as long as it is not much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

__all__ = ["Usual"]

_FIXED = frozenset((b"host", b"origin", b"accept", b"content-type", b"mcp-protocol-version"))
"""The headers that the checks before the body read; credentials are checked every time."""


_NAME, _VALUE = itemgetter(0), itemgetter(1)


class Usual:
    """What a request looked like that has passed them. `limit` is how many bytes of headers there may be."""

    __slots__ = (
        "_fixed", "_limit", "_names", "_path", "_pick", "_root", "is_modern", "length_at", "method_at", "name_at",
        "session_at",
    )  # fmt: skip

    def __init__(
        self, scope: Mapping[str, Any], given: Sequence[tuple[bytes, bytes]], limit: int, *, is_modern: bool
    ) -> None:
        names = self._names = [name for name, _ in given]
        self._path, self._root = scope["path"], scope.get("root_path", "")
        places = [place for place, name in enumerate(names) if name in _FIXED]
        self._pick: Any = itemgetter(*places) if places else len
        self._fixed = self._pick(given)
        self._limit = limit - sum(map(len, names))
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
        if scope["path"] != self._path or scope.get("root_path", "") != self._root:
            return False
        if [*map(_NAME, given)] != self._names or sum(map(len, map(_VALUE, given))) > self._limit:
            return False
        return bool(self._pick(given) == self._fixed)
