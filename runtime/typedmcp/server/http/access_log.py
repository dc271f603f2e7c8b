"""The access log: the logger `typedmcp.access`.

Each request has a line at level INFO. A request that is rejected before it reaches the handler has a line with the
reason at level WARNING. What comes from clients is escaped and shortened. Query strings, headers and arguments are left
out, since they may be secret.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from typedmcp.protocol.framing import Frame, classify
from typedmcp.protocol.text import visible
from typedmcp.server.http.messages import LARGE_BODY_BYTES, AsgiMessage, HTTPException, Receive, Scope, Send

__all__ = ["ACCESS_LOG", "AccessLogEntry", "log_rejection"]

ACCESS_LOG: Final = logging.getLogger("typedmcp.access")
ACCESS_LOG.addHandler(logging.NullHandler())  # Python prints warnings if no handler is configured

_SHOWN: Final = 200
"""Characters of a path or a method that are logged."""


class AccessLogEntry:
    """Observes one request for the access log: its messages pass through `receive` and `send`."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._begun = time.perf_counter()
        self._status = "-"
        self._method = next((value for name, value in scope["headers"] if name == b"mcp-method"), b"").decode("latin-1")

    async def receive(self) -> AsgiMessage:
        """Receive a message. A body that is complete and not large names the MCP method, if no header does."""
        message = await self._receive()
        if not self._method and message["type"] == "http.request" and not message.get("more_body"):
            self._method = _method_in(message.get("body", b""))
        return message

    async def send(self, message: AsgiMessage) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self._status = str(message["status"])
        await self._send(message)

    def write(self) -> None:
        """Write the line of the request, which has ended."""
        milliseconds = (time.perf_counter() - self._begun) * 1000
        method = visible(self._method, _SHOWN) or "-"
        ACCESS_LOG.info("%s %s %.1f ms %s", _describe(self._scope), self._status, milliseconds, method)


def log_rejection(scope: Scope, error: HTTPException) -> None:
    """Log a request that was rejected before it reached the handler, with the reason."""
    if ACCESS_LOG.isEnabledFor(logging.WARNING):
        ACCESS_LOG.warning("%s rejected with %d: %s", _describe(scope), error.status, visible(str(error)))


def _describe(scope: Scope) -> str:
    """Return the client's address, the HTTP method and the path of a request."""
    client = scope.get("client")
    address = str(client[0]) if client else "-"
    return " ".join(visible(text, _SHOWN) for text in (address, scope["method"], scope["path"]))


def _method_in(body: bytes) -> str:
    """Return the method of the message in a body; empty for other bodies."""
    if len(body) > LARGE_BODY_BYTES:
        return ""
    frame = classify(body)
    return frame.method or "response" if isinstance(frame, Frame) else ""
