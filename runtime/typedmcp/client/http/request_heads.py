"""The headers of requests, which depend on the revision, and in legacy revisions on the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpspec.features import NAME_PARAMS
from typedmcp.client.http.endpoint import encode_headers
from typedmcp.client.requests.param_headers import ParamHeaders
from typedmcp.protocol.headers import SESSION, VERSION
from typedmcp.revisions.features import FEATURES

__all__ = ["POST", "RequestHeads"]

POST: Final = b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"

_MAX_HEADS: Final = 256
"""Encoded headers of modern requests that are kept, by method and name."""
_MAX_HEAD_NAME: Final = 128
"""Characters of a name whose headers are kept."""


class RequestHeads:
    """Encodes the headers of the requests of one session.

    `name_params` are the parameters that the header `Mcp-Name` repeats, by method.
    """

    def __init__(self, name_params: Mapping[str, str] = NAME_PARAMS) -> None:
        self.param_headers: ParamHeaders = ParamHeaders(name_params)
        self.revision: str | None = None
        """The negotiated revision."""
        self.proposed: str | None = None
        """The revision of `server/discover` while none is negotiated."""
        self.legacy: bytes = POST
        """The headers of requests in legacy revisions."""
        self._known: dict[tuple[str, str, str], bytes] = {}
        """The headers of modern requests by revision, method and name."""

    def begin_legacy_session(self, revision: str, id: str | None) -> None:
        """Send the revision, and the id of a session if there is one, with each request from now on."""
        self.legacy = POST + encode_headers({VERSION: revision, **({} if id is None else {SESSION: id})})

    def of(self, method: str, params: Any) -> bytes:
        """Return the headers of a request. Raises `UsageError` for an argument that cannot be a header."""
        if (revision := self.modern_revision(method)) is not None:
            name = self.param_headers.name_of(method, params)
            head = None if name is None else self._known.get((revision, method, name))
            if head is None:
                head = POST + encode_headers(self.param_headers.headers_for(revision, method, params))
                if name is not None:
                    self._remember_head((revision, method, name), head)
            return head
        return POST if method == "initialize" else self.legacy

    def _remember_head(self, key: tuple[str, str, str], head: bytes) -> None:
        """Keep the headers of calls that differ in no other parameter."""
        if len(key[2]) <= _MAX_HEAD_NAME:
            if len(self._known) >= _MAX_HEADS:
                self._known.clear()
            self._known[key] = head

    def modern_revision(self, method: str) -> str | None:
        """Return the revision of a request without a session, or None for a legacy request."""
        if self.revision is None:
            return self.proposed if method == "server/discover" else None
        return self.revision if FEATURES[self.revision].is_modern else None
