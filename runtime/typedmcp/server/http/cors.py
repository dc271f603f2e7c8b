"""Cross-origin resource sharing (CORS): pages in browsers read responses only with the server's permission.

https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from typedmcp.server.http.messages import AsgiMessage, Headers, RawHeaders, Send

__all__ = ["Cors", "with_headers"]

_EXPOSED: Final = (b"access-control-expose-headers", b"mcp-session-id, www-authenticate, dpop-nonce, retry-after")
_METHODS: Final = (b"access-control-allow-methods", b"GET, POST, DELETE")
_MAX_AGE: Final = (b"access-control-max-age", b"7200")
"""The seconds for which a browser may remember the answer to a preflight request; browsers have lower limits."""
_NAMES = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z, ]+")


class Cors:
    """The permission for pages of the configured origins, which are in lower case; "*" stands for all.

    Pages of `hosts`, which `AllowedHosts` accepts as well, have no permission: every local web server would be one.
    """

    def __init__(self, origins: Set[str]) -> None:
        self._origins = origins

    def response_headers(self, headers: Headers) -> RawHeaders:
        """Return the headers that let the page that made a request read the response; none for other requests."""
        origin = headers.get(b"origin")
        if origin is None or not self._origins:
            return ()
        if "*" in self._origins:
            return [(b"access-control-allow-origin", b"*"), _EXPOSED]
        if origin.decode("latin-1").lower() not in self._origins:
            return ()
        return [(b"access-control-allow-origin", origin), _EXPOSED, (b"vary", b"origin")]

    def preflight_headers(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Return further headers for the response to a preflight request of such a page; none for other requests."""
        if b"access-control-request-method" not in headers or not self.response_headers(headers):
            return []
        wanted = headers.get(b"access-control-request-headers", b"")
        # Tools name headers of their own (`Mcp-Param-…`), so all that the page wants to send are allowed.
        allowed = [(b"access-control-allow-headers", wanted)] if _NAMES.fullmatch(wanted) else []
        return [_METHODS, *allowed, _MAX_AGE]


def with_headers(send: Send, added: RawHeaders) -> Send:
    """Return a function that sends like `send`, and adds headers to the response, if there are any to add."""
    if not added:
        return send

    async def send_with_headers(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_with_headers
