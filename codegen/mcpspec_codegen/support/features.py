"""The type of the records in `mcpspec.features`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Features"]


class Features(NamedTuple):
    """The features of one protocol revision. Programs branch on these instead of comparing versions."""

    version: str
    """The revision, such as `2025-11-25`."""
    has_handshake: bool
    """The client opens a session with `initialize`. Without it, every request carries version and capabilities."""
    has_batches: bool
    """A frame may hold a JSON array of messages."""
    has_discovery: bool
    """The server answers `server/discover`."""
    has_listen: bool
    """The server sends changes as a response to `subscriptions/listen`, and not to a whole session."""
    has_tasks: bool
    """Requests can become tasks whose result `tasks/result` returns. Later revisions have an extension instead."""
    has_input_requests: bool
    """A server requests input in an `InputRequiredResult`, and not by a request to the client."""
    has_cache_hints: bool
    """Results declare how long, and for which users, they may be cached."""
    has_streamable_http: bool
    """The HTTP transport has one endpoint. Without it, the transport is HTTP with SSE, which has two."""
    has_version_header: bool
    """Requests over HTTP name their revision in the header `MCP-Protocol-Version`."""
    has_empty_events: bool
    """A stream of server-sent events may begin with an event without data, which makes the stream resumable."""
    error_codes: Mapping[str, int]
    """The error codes of the revision by their names, such as `INVALID_PARAMS`."""

    @property
    def is_modern(self) -> bool:
        """Return whether the revision works without a handshake.

        https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology
        """
        return not self.has_handshake
