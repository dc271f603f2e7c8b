"""Channels: where messages leave for a client. A connection of lines is one, so is one HTTP response, and a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from typedmcp.observers import RequestInfo
from typedmcp.protocol.budgets import ClientKey
from typedmcp.protocol.codec import MethodCodec
from typedmcp.protocol.framing import Frame
from typedmcp.server.principal import Principal

__all__ = ["Channel", "Outlet"]


class Outlet(Protocol):
    """Sends notifications, and the requests that legacy revisions send to the client."""

    @property
    def is_congested(self) -> bool:
        """True while the client does not read what is sent to it."""
        ...

    def send_message(self, ctx: RequestInfo | None, line: bytes) -> bool:
        """Send a message, as part of a request or on its own. Return False if it is dropped.

        Like all lines that are sent, it has no newline.
        """
        ...

    async def drain(self) -> None:
        """Wait until the client reads again."""
        ...

    def call_when_drained(self, resume: Callable[[], None]) -> None:
        """Call a function as soon as the client reads again."""
        ...


class Channel(Outlet, Protocol):
    """Sends what belongs to the messages that arrived together, and knows who sent them."""

    @property
    def principal(self) -> Principal | None:
        """The user or program that the client authenticated as, if it did."""
        ...

    @property
    def expires(self) -> float | None:
        """The time at which the client's credentials expire, in seconds since 1970; None if they do not."""
        ...

    @property
    def client(self) -> ClientKey:
        """The client that budgets count for; None if it is unknown."""
        ...

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request, with names in lower case; empty without one."""
        ...

    @property
    def header_bytes(self) -> int:
        """The bytes of the headers that count with a call."""
        ...

    @property
    def check_fast(self) -> Callable[[MethodCodec, Any], None] | None:
        """Raises `ValueError` for parameters that headers may contradict; `check_frame` checks precisely.

        None if there are no headers to compare.
        """
        ...

    def check_frame(self, frame: Frame) -> None:
        """Raise `RemoteError` if the headers contradict a message."""
        ...

    def expect(self) -> None:
        """Expect one more response."""
        ...

    def abandon(self) -> None:
        """Expect one response fewer."""
        ...

    def send_fast(self, line: bytes) -> None:
        """Send a response that was not expected, since its call did not wait."""
        ...

    def send_response(self, line: bytes, code: int | None = None) -> None:
        """Send an expected response; `code` is the code of an error."""
        ...

    def refuse(self, line: bytes, code: int) -> None:
        """Send an error for a message that had no effect, and was not expected to get a response."""
        ...

    def refuse_unanswerable(self, code: int, text: str) -> None:
        """Refuse a message that has no response in JSON-RPC; the transport may have one."""
        ...

    def refuse_busy(self) -> None:
        """Say that the client may try again, where the transport can say it. The error follows."""
        ...

    def disconnect(self, retry: float) -> None:
        """Close the connection, if the client can reconnect for its response after `retry` seconds."""
        ...
