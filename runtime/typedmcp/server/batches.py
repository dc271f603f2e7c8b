"""The responses to a batch of messages (2025-03-26), which are sent together.

https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from typedmcp.errors import INTERNAL_ERROR
from typedmcp.protocol.budgets import Hold
from typedmcp.protocol.codec import MethodCodec, encode_error
from typedmcp.server.context import Context, ResponseSink
from typedmcp.server.principal import Principal

__all__ = ["BatchResponse", "without_results"]

_NO_ROOM = "the responses that wait for this client hold as many bytes as their limit allows: the result is dropped"


class _SentMessage(msgspec.Struct):
    """The members of a message that tell a response from a request, and name its request."""

    id: str | int | None = None
    method: str | None = None


def without_results(line: bytes) -> bytes:
    """Return errors in place of the response, or the responses of a batch, for which there is no room.

    A request and a notification stay as they are.
    """
    if line.startswith(b"["):
        messages = msgspec.json.decode(line, type=list[_SentMessage])
        return b"[" + b",".join([_no_room(each) for each in messages]) + b"]"
    message = msgspec.json.decode(line, type=_SentMessage)
    return _no_room(message) if message.method is None else line


def _no_room(response: _SentMessage) -> bytes:
    return encode_error(response.id, INTERNAL_ERROR, _NO_ROOM)


class BatchResponse:
    """A `ResponseSink` that collects the responses to a batch, and sends them as one.

    `parent` is the sink of the batch itself, if it has one; `principal` and `headers` are those of the connection
    otherwise. `send` gets the parent and the whole response. `hold` counts the responses until they are sent; where
    there is no room, a result is replaced by an error.
    """

    __slots__ = ("_expected", "_headers", "_hold", "_is_discarded", "_responses", "_send", "parent", "principal")

    def __init__(
        self,
        send: Callable[[ResponseSink | None, bytes], None],
        parent: ResponseSink | None,
        principal: Principal | None,
        headers: Mapping[str, str],
        hold: Hold,
    ) -> None:
        self.parent: ResponseSink | None = parent
        self.principal: Principal | None = principal if parent is None else parent.principal
        self._headers = headers
        self._send = send
        self._hold = hold
        self._is_discarded = False
        self._responses: list[bytes] = []
        self._expected = 1  # `close` takes it back once all messages have been dispatched
        if parent is not None:
            parent.expect()

    @property
    def expires(self) -> float | None:
        """The time at which the credentials of the HTTP request expire that contained the batch."""
        return None if self.parent is None else self.parent.expires

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request that contained the batch."""
        return self._headers if self.parent is None else self.parent.request_headers

    def check_headers(self, method_codec: MethodCodec, params: Any) -> None:
        """Accept every message: the headers describe only the batch."""

    def expect(self) -> None:
        """Expect one more response."""
        self._expected += 1

    def send_response(self, line: bytes, code: int | None) -> None:
        """Collect an expected response."""
        if code is None and self._hold.is_full:
            line = without_results(line)
        if not self._is_discarded:
            self._hold.add(len(line))
            self._responses.append(line)
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
            self._send(self.parent, b"[" + b",".join(self._responses) + b"]")
        elif self.parent is not None:
            self.parent.abandon()
        self.discard()

    def discard(self) -> None:
        """Forget the responses, and send nothing: the client has left."""
        self._is_discarded = True
        self._responses.clear()
        self._hold.close()

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
