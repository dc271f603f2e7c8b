"""The responses to a batch of messages (2025-03-26), which are sent together.

https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from typedmcp.errors import INTERNAL_ERROR
from typedmcp.observers import RequestInfo
from typedmcp.protocol.budgets import ByteBudget, Hold
from typedmcp.protocol.codec import encode_error
from typedmcp.protocol.framing import Frame
from typedmcp.server.channel import Channel, InnerChannel

__all__ = ["BatchChannel", "without_results"]

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


class BatchChannel(InnerChannel):
    """Collects the responses to a batch, and sends them as one.

    `parent` is the channel of the batch itself. The responses count in a budget until they are sent; where there is no
    room, a result is replaced by an error.
    """

    __slots__ = ("_expected", "_hold", "_is_discarded", "_responses")

    def __init__(self, parent: Channel, budget: ByteBudget) -> None:
        super().__init__(parent)
        self._hold = Hold(budget, self.client)
        self._hold.add(parent.header_bytes)
        self._is_discarded = False
        self._responses: list[bytes] = []
        self._expected = 1  # `close` takes it back once all messages have been dispatched
        parent.expect()

    def check_frame(self, frame: Frame) -> None:
        """Raise `RemoteError` if the headers contradict a message."""
        self.parent.check_frame(frame)

    def expect(self) -> None:
        """Expect one more response."""
        self._expected += 1

    def send_response(self, line: bytes, code: int | None = None) -> None:
        """Collect an expected response."""
        if code is None and self._hold.is_full:
            line = without_results(line)
        if not self._is_discarded:
            self._hold.add(len(line))
            self._responses.append(line)
        self.abandon()

    def send_fast(self, line: bytes) -> None:
        """Collect a response that was not expected."""
        self.expect()
        self.send_response(line)

    def refuse(self, line: bytes, code: int) -> None:
        """Collect an error for a message that had no effect."""
        self.expect()
        self.send_response(line, code)

    def refuse_busy(self) -> None:
        """Say that the client may try again."""
        self.parent.refuse_busy()

    def abandon(self) -> None:
        """Expect one response fewer. Send the batch when none is missing."""
        self._expected -= 1
        if self._expected:
            return
        if self._responses:
            self.parent.send_response(b"[" + b",".join(self._responses) + b"]")
        else:
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

    def send_message(self, ctx: RequestInfo | None, line: bytes) -> bool:
        """Send a message ahead of the batch."""
        return self.parent.send_message(ctx, line)

    @property
    def is_congested(self) -> bool:
        """True while the client does not read what is sent to it."""
        return self.parent.is_congested

    async def drain(self) -> None:
        """Wait until the client reads again."""
        await self.parent.drain()

    def call_when_drained(self, resume: Callable[[], None]) -> None:
        """Call a function as soon as the client reads again."""
        self.parent.call_when_drained(resume)

    def disconnect(self, retry: float) -> None:
        """Close the connection of the batch."""
        self.parent.disconnect(retry)
