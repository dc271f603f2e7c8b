"""The responses to a batch of messages (2025-03-26), which are sent together.

https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from typedmcp.protocol.codec import MethodCodec
from typedmcp.server.context import Context, ResponseSink

__all__ = ["BatchResponse"]


class BatchResponse:
    """A `ResponseSink` that collects the responses to a batch, and sends them as one.

    `parent` is the sink of the batch itself, if it has one. `send` gets the parent and the whole response.
    """

    __slots__ = ("_expected", "_responses", "_send", "parent", "principal")

    def __init__(
        self, send: Callable[[ResponseSink | None, bytes], None], parent: ResponseSink | None, principal: str | None
    ) -> None:
        self.parent: ResponseSink | None = parent
        self.principal: str | None = principal if parent is None else parent.principal
        self._send = send
        self._responses: list[bytes] = []
        self._expected = 1  # `close` takes it back once all messages have been dispatched
        if parent is not None:
            parent.expect()

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request that contained the batch."""
        return {} if self.parent is None else self.parent.request_headers

    def check_headers(self, method_codec: MethodCodec, params: Any) -> None:
        """Accept every message: the headers describe only the batch."""

    def expect(self) -> None:
        """Expect one more response."""
        self._expected += 1

    def send_response(self, line: bytes, code: int | None) -> None:  # noqa: ARG002  # errors count like results
        """Collect an expected response."""
        self._responses.append(line[:-1])
        self.abandon()

    def reject(self, line: bytes, code: int) -> None:
        """Collect an error for a message that had no effect."""
        self.expect()
        self.send_response(line, code)

    def abandon(self) -> None:
        """Expect one response fewer. Send the batch when none is missing."""
        self._expected -= 1
        if self._expected:
            return
        if self._responses:
            self._send(self.parent, b"[" + b",".join(self._responses) + b"]\n")
        elif self.parent is not None:
            self.parent.abandon()

    def close(self) -> None:
        """Send the batch as soon as all expected responses are there."""
        self.abandon()

    def send_message(self, ctx: Context, line: bytes) -> bool:
        """Send a message ahead of the batch."""
        return self.parent is not None and self.parent.send_message(ctx, line)

    def disconnect(self, retry: float) -> None:
        """Close the connection of the batch."""
        if self.parent is not None:
            self.parent.disconnect(retry)
