"""What a request says of its client: the same in most requests of a connection, and so worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from mcpspec._support.structs import to_builtins
from typedmcp import dialect
from typedmcp.edge.revisions import DIALECT, is_modern
from typedmcp.meta import VERSION

__all__ = ["Facts", "FactsCache", "own_meta"]

D = dialect.structs

_REMEMBERED = 256
_LONGEST = 4096


class Facts:
    """The client of a request: revision, name, capabilities, log level, and the `_meta` that says so."""

    __slots__ = ("capabilities", "client_info", "is_modern", "log_level", "meta", "revision")

    def __init__(self, revision: str, meta: D.RequestMetaObject) -> None:
        self.revision: str = revision
        self.is_modern: bool = is_modern(revision)
        self.meta: D.RequestMetaObject = meta
        self.capabilities: D.ClientCapabilities = meta.client_capabilities
        self.client_info: D.Implementation | None = None if meta.client_info is UNSET else meta.client_info
        self.log_level: str | None = None if meta.log_level is UNSET else meta.log_level


class FactsCache:
    """Facts by the bytes of the `_meta` that states them. Bounded, and only of short ones."""

    def __init__(self, check: Callable[[D.RequestMetaObject], None]) -> None:
        self._check = check
        self.known: dict[bytes, Facts] = {}
        self.session: Facts | None = None
        """What the handshake has agreed on; None on a modern wire."""

    def clear(self) -> None:
        """Forget all: the session's facts have changed."""
        self.known.clear()

    def of(self, raw: bytes) -> Facts:
        """The facts in a `_meta`. Raises `DecodeError` or `RemoteError` for a wrong one."""
        facts = self.known.get(raw)
        if facts is None:
            facts = self._read(raw)
            if len(raw) <= _LONGEST:
                if len(self.known) >= _REMEMBERED:
                    self.known.clear()
                self.known[raw] = facts
        return facts

    def _read(self, raw: bytes) -> Facts:
        session = self.session
        plain = D.decode(raw, dict[str, Any])
        if session is None or VERSION in plain:
            meta = D.decode(raw, D.RequestMetaObject)
            self._check(meta)
            return Facts(DIALECT, meta)
        merged = D.from_builtins({**to_builtins(session.meta), **plain}, D.RequestMetaObject)
        facts = Facts(session.revision, merged)
        facts.log_level = session.log_level
        return facts


def own_meta(facts: Facts) -> D.RequestMetaObject:
    """The `_meta` for one request, which its handler may change."""
    meta = D.RequestMetaObject.__new__(D.RequestMetaObject)
    meta.update(facts.meta)
    return meta
