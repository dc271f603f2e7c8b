"""The metadata of requests, which describes the client. It is decoded once for all requests with the same `_meta`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from mcpspec.support.structs import to_builtins
from typedmcp import dialect
from typedmcp.protocol.meta import VERSION
from typedmcp.revisions.features import DIALECT, FEATURES, Features, structs_of

__all__ = ["MetadataCache", "RequestMetadata", "copy_meta"]

D = dialect.structs

_CACHE_ENTRIES = 256
_MAX_CACHED_BYTES = 4096
"""A longer `_meta` is not cached."""


class RequestMetadata:
    """The client of a request: its revision, name, capabilities and log level."""

    __slots__ = ("capabilities", "client_info", "features", "log_level", "members", "meta", "revision")

    def __init__(self, revision: str, meta: D.RequestMetaObject) -> None:
        self.revision: str = revision
        self.features: Features = FEATURES[revision]
        self.meta: D.RequestMetaObject = meta
        """The `_meta` of the request in the dialect."""
        self.members: dict[str, Any] = dict(meta)
        """The same as a plain dict, from which a copy is made faster."""
        self.capabilities: D.ClientCapabilities = meta.client_capabilities
        self.client_info: D.Implementation | None = None if meta.client_info is UNSET else meta.client_info
        self.log_level: str | None = None if meta.log_level is UNSET else meta.log_level


class MetadataCache:
    """Decodes the `_meta` of requests, and keeps a bounded number of short ones.

    `check_version` raises for a `_meta` whose revision is not served.
    """

    def __init__(self, check_version: Callable[[str], None]) -> None:
        self._check_version = check_version
        self.known: dict[bytes, RequestMetadata] = {}
        """The cached entries by the bytes of their `_meta`."""
        self.session: RequestMetadata | None = None
        """The metadata from the handshake; None without a session."""

    def open_session(self, metadata: RequestMetadata | None) -> None:
        """Merge the `_meta` of later requests into that of a session; None ends the session."""
        self.session = metadata
        self.known.clear()

    def set_log_level(self, level: str) -> None:
        """Change the log level of the session, if there is one."""
        if self.session is not None:
            self.session.log_level = level
            self.known.clear()

    def get(self, raw: bytes) -> RequestMetadata:
        """Return the metadata in an encoded `_meta`. Raises `DecodeError` or `RemoteError` if it is invalid."""
        metadata = self.known.get(raw)
        if metadata is None:
            metadata = self._decode(raw)
            if len(raw) <= _MAX_CACHED_BYTES:
                if len(self.known) >= _CACHE_ENTRIES:
                    self.known.clear()
                self.known[raw] = metadata
        return metadata

    def _decode(self, raw: bytes) -> RequestMetadata:
        session = self.session
        plain = D.decode(raw, dict[str, Any])
        if session is None or VERSION in plain:
            return self._decode_modern(raw, plain)
        merged = D.from_builtins({**to_builtins(session.meta), **plain}, D.RequestMetaObject)
        metadata = RequestMetadata(session.revision, merged)
        metadata.log_level = session.log_level
        return metadata

    def _decode_modern(self, raw: bytes, plain: dict[str, Any]) -> RequestMetadata:
        revision = plain.get(VERSION)
        if isinstance(revision, str) and revision != DIALECT:
            self._check_version(revision)
            D.decode(raw, structs_of(revision).RequestMetaObject)
        meta = D.decode(raw, D.RequestMetaObject)
        self._check_version(meta.protocol_version)
        return RequestMetadata(meta.protocol_version, meta)


def copy_meta(metadata: RequestMetadata) -> D.RequestMetaObject:
    """Return a copy of the `_meta` for one request, which its handler may modify."""
    meta = D.RequestMetaObject.__new__(D.RequestMetaObject)
    meta.update(metadata.members)
    return meta
