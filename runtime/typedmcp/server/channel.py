"""Channels: where messages leave for a client. A connection of lines is one, so is one HTTP response, and a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from typedmcp.observers import RequestInfo
from typedmcp.protocol.budgets import ClientKey
from typedmcp.protocol.codec import MethodCodec
from typedmcp.protocol.framing import Frame
from typedmcp.server.principal import Principal

__all__ = ["Channel", "InnerChannel", "Outlet"]


class Outlet:
    """Sends notifications, and the requests that legacy revisions send to the client. This one discards them."""

    __slots__ = ()

    @property
    def is_congested(self) -> bool:
        """True while the client does not read what is sent to it."""
        return False

    def send_message(self, ctx: RequestInfo | None, line: bytes) -> bool:  # noqa: ARG002
        """Send a message, as part of a request or on its own. Return False if it is dropped.

        Like all lines that are sent, it has no newline.
        """
        return False

    async def drain(self) -> None:
        """Wait until the client reads again."""

    def call_when_drained(self, resume: Callable[[], None]) -> None:
        """Call a function as soon as the client reads again."""


class Channel(Outlet):
    """Sends what belongs to the messages that arrived together, and knows who sent them. This one discards it."""

    __slots__ = ()

    principal: Principal | None
    """The user or program that the client authenticated as, if it did."""
    has_headers: bool = False
    """True if there are headers that may contradict messages."""

    @property
    def client(self) -> ClientKey:
        """The client that budgets count for; None if it is unknown."""
        return None

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, with names in lower case; empty without one."""
        return {}

    @property
    def header_bytes(self) -> int:
        """The bytes of the headers that count with a call."""
        return 0

    def check_fast(self, method_codec: MethodCodec, params: Any) -> None:
        """Raise `ValueError` if headers may contradict parameters; `check_frame` checks precisely."""

    def check_frame(self, frame: Frame) -> None:
        """Raise `RemoteError` if the headers contradict a message."""

    def expect(self) -> None:
        """Expect one more response. A line can be sent at any time, so few channels have to know."""

    def abandon(self) -> None:
        """Expect one response fewer."""

    def send_fast(self, line: bytes) -> None:
        """Send a response that was not expected, since its call did not wait."""

    def send_response(self, line: bytes, code: int | None = None) -> None:  # noqa: ARG002
        """Send an expected response; `code` is the code of an error."""
        self.send_fast(line)

    def refuse(self, line: bytes, code: int) -> None:  # noqa: ARG002
        """Send an error for a message that had no effect, and was not expected to get a response."""
        self.send_fast(line)

    def refuse_unanswerable(self, code: int, text: str) -> None:
        """Refuse a message that has no response in JSON-RPC; the transport may have one."""

    def refuse_busy(self) -> None:
        """Say that the client may try again, where the transport can say it. The error follows."""

    def disconnect(self, retry: float) -> None:
        """Close the connection, if the client can reconnect for its response after `retry` seconds."""


class InnerChannel(Channel):
    """The channel of what belongs to one message of a channel. It knows who sent that, and discards messages."""

    __slots__ = ("parent", "principal")

    def __init__(self, parent: Channel) -> None:
        self.parent: Channel = parent
        self.principal: Principal | None = parent.principal

    @property
    def client(self) -> ClientKey:
        """The client that budgets count for."""
        return self.parent.client

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request."""
        return self.parent.request_headers
