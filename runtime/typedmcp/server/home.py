"""The place where a session is served: a connection of lines, a session over HTTP, or all requests without one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from typedmcp.observers import Network
from typedmcp.protocol.framing import Frame, RequestId
from typedmcp.protocol.text import log_failure
from typedmcp.server.channel import Channel

__all__ = ["EndCallbacks", "SessionHome"]


class SessionHome:
    """The place where a session is served. This one keeps nothing of its clients."""

    __slots__ = ()

    loop: asyncio.AbstractEventLoop
    """The event loop in which the session is served."""
    is_local: bool = False
    """False for clients over HTTP."""
    is_shared: bool = False
    """True if the requests are of several clients, so that their ids may be equal, and none of them can be asked."""
    is_stored: bool = False
    """True if the session may outlive its connections."""

    @property
    def network(self) -> Network | None:
        """The carrier of the messages. None if the transport does not say it."""
        return "http"

    @property
    def session_id(self) -> str | None:
        """A text that identifies the connection or session. None for clients without a session."""
        return None

    def listen(self) -> Callable[[], None]:
        """Publish changes to the subscriptions, until the returned function is called."""
        return lambda: None

    def on_open(self) -> None:
        """Take note of the end of the handshake."""

    def request_id(self, number: int) -> RequestId:
        """Return the JSON-RPC id of a request to the client."""
        return number

    def handle_response(self, frame: Frame) -> bool:  # noqa: ARG002
        """Handle the client's response to a request of this server. Return False if nothing was asked."""
        return False

    def cancel_elsewhere(self, id: RequestId) -> bool:  # noqa: ARG002
        """Cancel a request on other workers. Return False if none can have it."""
        return False

    def save_level(self, level: str) -> None:
        """Store the log level."""

    async def add_subscription(self, channel: Channel, uri: str) -> None:
        """Subscribe the client to a resource. Raises `RemoteError` at a limit."""

    async def remove_subscription(self, channel: Channel, uri: str) -> None:
        """End a subscription of the client."""


class EndCallbacks:
    """The functions for the end of one connection or session."""

    def __init__(self) -> None:
        self._functions: dict[object, Callable[[], object]] = {}

    def add(self, function: Callable[[], object]) -> Callable[[], None]:
        """Add a function. Return one that removes it."""
        key = object()
        self._functions[key] = function

        def remove() -> None:
            self._functions.pop(key, None)

        return remove

    def call(self) -> None:
        """Call each function once. Errors that they raise are logged."""
        while self._functions:
            _, function = self._functions.popitem()
            try:
                function()
            except Exception as error:
                log_failure(logging.ERROR, "a function for the end of a session failed", error)
