"""The principals of tokens that have been verified, so that a token costs a verification only once."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from hashlib import blake2b
from typing import Final, NamedTuple

from typedmcp import Principal

__all__ = ["VerifiedTokens"]

_ENTRY_BYTES: Final = 1024
"""Bytes that an entry counts in addition to its token: its principal and its place in the dictionary."""


class _Entry(NamedTuple):
    principal: Principal | None
    """None for a token that is known to be invalid."""
    end: float
    """The time at which the token has to be verified again."""
    size: int


class VerifiedTokens:
    """A cache of principals by the keyed hashes of their tokens, which themselves are not kept.

    At most `limit` bytes are kept; the entries that have not been used for longest go first.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._size = 0
        self._key = secrets.token_bytes(32)

    def hash(self, token: str) -> bytes:
        """Return the key of a token. Clients cannot predict it, nor how long it takes to find."""
        return blake2b(token.encode(), key=self._key, digest_size=32).digest()

    def get(self, key: bytes) -> _Entry | None:
        """Return the entry of a token, or None if the token has to be verified."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.end <= time.time():
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return entry

    def put(self, key: bytes, principal: Principal | None, end: float, size: int) -> None:
        """Keep the principal of a token until a time. `size` is the number of bytes of what it was made of."""
        if key in self._entries:
            self._remove(key)
        entry = _Entry(principal, end, size + _ENTRY_BYTES)
        self._entries[key] = entry
        self._size += entry.size
        while self._size > self._limit:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: bytes) -> None:
        self._size -= self._entries.pop(key).size
