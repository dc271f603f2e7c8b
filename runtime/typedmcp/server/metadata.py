"""The metadata of requests, which describes the client. It is decoded once for all requests with the same `_meta`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from typedmcp import dialect
from typedmcp.errors import RemoteError
from typedmcp.protocol.meta import CAPABILITIES, CLIENT_INFO, LOG_LEVEL, VERSION
from typedmcp.revisions.features import DIALECT, FEATURES, Features, structs_of

__all__ = ["MetadataCache", "RequestMetadata"]

D = dialect.structs
X = dialect.exact

_ENTRIES = 16
_ENTRY_BYTES = 512
"""A longer `_meta` of one client is not cached: decoded it is up to 20 times as long, and there may be many clients."""
_SHARED_ENTRIES = 256
_SHARED_ENTRY_BYTES = 4096
"""The same for a cache that all clients share."""

_OWN_NAMES: Final = (b'"traceparent"', b'"tracestate"', b'"baggage"', b'"progressToken"')
"""The members that differ between the requests of a client, as JSON."""
_OWN_MEMBER: Final = rb'\s*(?:%b)\s*:\s*(?:"[^"\\]*"|[0-9]{1,15})\s*' % b"|".join(_OWN_NAMES)
_FIRST_MEMBERS: Final = re.compile(rb"\{((?:%b,)+)(?=\s*\")" % _OWN_MEMBER)
_LAST_MEMBERS: Final = re.compile(rb"(?<=[\]}\"\w])((?:,%b)+)\}\Z" % _OWN_MEMBER)
"""These members where they begin or end a `_meta`."""
_ONLY_MEMBERS: Final = re.compile(rb"\{%b(?:,%b)*\}" % (_OWN_MEMBER, _OWN_MEMBER))
"""A `_meta` that has no others, as of most requests in a session."""


_LEGACY_LEVEL: Final = "info"
"""The level of log messages for a legacy client that has asked for none: the specification leaves it to the server."""


class RequestMetadata:
    """The client of a request: its revision, name, capabilities and log level.

    `members` is a valid `_meta` of the dialect. Each request gets a copy, which its handler may modify.
    """

    __slots__ = ("capabilities", "client_info", "features", "is_modern", "log_level", "members", "revision")

    def __init__(self, revision: str, members: Mapping[str, Any]) -> None:
        self.revision: str = revision
        self.features: Features = FEATURES[revision]
        self.is_modern: bool = self.features.is_modern
        self.members: dict[str, Any] = dict(members)
        info = members.get(CLIENT_INFO)
        self.capabilities: D.ClientCapabilities = D.from_builtins(members.get(CAPABILITIES, {}), D.ClientCapabilities)
        self.client_info: D.Implementation | None = None if info is None else D.from_builtins(info, D.Implementation)
        self.log_level: str | None = members.get(LOG_LEVEL)
        """The level of log messages that the client has asked for."""

    @property
    def lowest_level(self) -> str | None:
        """The lowest level of log messages that the client gets. None: it gets none."""
        return _LEGACY_LEVEL if self.log_level is None and not self.features.is_modern else self.log_level

    def with_members(self, members: dict[str, Any]) -> RequestMetadata:
        """Return the metadata of another request of the same client, with another `_meta`."""
        made = RequestMetadata.__new__(RequestMetadata)
        made.revision, made.features, made.is_modern = self.revision, self.features, self.is_modern
        made.members = members
        made.capabilities, made.client_info, made.log_level = self.capabilities, self.client_info, self.log_level
        return made

    @classmethod
    def anonymous(cls, revision: str) -> RequestMetadata:
        """Return the metadata of a client that has not described itself."""
        return cls(revision, {VERSION: revision, CAPABILITIES: {}})


class MetadataCache:
    """Decodes the `_meta` of requests, and keeps a bounded number of short ones.

    `check_version` raises for a `_meta` whose revision is not served. A cache is for one client until `share` is
    called.
    """

    def __init__(self, check_version: Callable[[str], None]) -> None:
        self._check_version = check_version
        self._entries, self._entry_bytes = _ENTRIES, _ENTRY_BYTES
        self.known: dict[bytes, RequestMetadata] = {}
        """The cached entries by the bytes of their `_meta`."""
        self.latest: Any = None
        """The entry that was added last, and its `_meta`, which is faster to compare than to look up."""
        self.latest_raw: Raw = Raw(b"")
        self.session: RequestMetadata | None = None
        """The metadata from the handshake; None without a session."""

    def share(self) -> None:
        """Keep as much as is right for a cache that all clients share."""
        self._entries, self._entry_bytes = _SHARED_ENTRIES, _SHARED_ENTRY_BYTES

    def open_session(self, metadata: RequestMetadata | None) -> None:
        """Merge the `_meta` of later requests into that of a session; None ends the session."""
        self.session = metadata
        self._forget()

    def set_log_level(self, level: str) -> None:
        """Change the log level of the session, if there is one."""
        if self.session is not None:
            self.session.log_level = level
            self._forget()

    def _forget(self) -> None:
        self.known.clear()
        self.latest_raw = Raw(b"")

    def get(self, raw: bytes) -> RequestMetadata:
        """Return the metadata in an encoded `_meta`. Raises `DecodeError` or `RemoteError` if it is invalid."""
        metadata = self.known.get(raw)
        if metadata is None:
            if (metadata := self._get_with_own_members(raw)) is not None:
                return metadata
            metadata = self._decode(raw)
            if len(raw) <= self._entry_bytes:
                if len(self.known) >= self._entries:
                    self.known.clear()
                self.known[raw] = self.latest = metadata
                self.latest_raw = Raw(raw)
        return metadata

    def _get_with_own_members(self, raw: bytes) -> RequestMetadata | None:
        """Return the cached metadata of the client, with the trace context and the progress token of a request.

        None for a request that has no such members, or that is too long or wrong.
        """
        if len(raw) > self._entry_bytes:
            return None
        found = None
        if _ONLY_MEMBERS.fullmatch(raw):
            common, own = b"{}", raw
        elif not (places := [place for name in _OWN_NAMES if (place := raw.find(name)) >= 0]):
            return None
        elif (found := _FIRST_MEMBERS.match(raw)) is not None:
            common, own = b"{" + raw[found.end() :], b"{%b}" % found[1][:-1]
        elif (found_last := _LAST_MEMBERS.match(raw, max(0, raw.rfind(b",", 0, min(places))))) is not None:
            common, own = raw[: found_last.start()] + b"}", b"{%b}" % found_last[1][1:]
        else:
            return None
        try:
            members: dict[str, Any] = msgspec.json.decode(own)
            metadata = self.get(common)
        except (ValueError, RemoteError):
            return None
        # Of several members with one name the last counts.
        pair = (metadata.members, members) if found is None else (members, metadata.members)
        return metadata.with_members({**pair[0], **pair[1]})

    def _decode(self, raw: bytes) -> RequestMetadata:
        session = self.session
        plain = D.decode(raw, dict[str, Any])
        if session is None or VERSION in plain:
            return self._decode_modern(raw, plain)
        merged = {**session.members, **plain}
        X.from_builtins(merged, X.RequestMetaObject)
        metadata = session.with_members(merged)
        if CAPABILITIES in plain:  # otherwise those of the session, which may be large, and are kept once
            metadata.capabilities = D.from_builtins(plain[CAPABILITIES], D.ClientCapabilities)
        if CLIENT_INFO in plain:
            metadata.client_info = D.from_builtins(plain[CLIENT_INFO], D.Implementation)
        return metadata

    def _decode_modern(self, raw: bytes, plain: dict[str, Any]) -> RequestMetadata:
        revision = plain.get(VERSION)
        if isinstance(revision, str) and revision != DIALECT:
            self._check_version(revision)
            X.decode(raw, structs_of(revision).RequestMetaObject)
        version = X.decode(raw, X.RequestMetaObject).protocol_version
        self._check_version(version)
        return RequestMetadata(version, plain)
