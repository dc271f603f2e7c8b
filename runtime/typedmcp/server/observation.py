"""The observer of a session, which sees messages and the connection, and never the session itself."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec

from typedmcp.errors import RemoteError
from typedmcp.observers import Network, ServerObserver
from typedmcp.protocol.codec import Notification
from typedmcp.protocol.framing import Frame
from typedmcp.protocol.observation import add_to_meta, describe_frame
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context
from typedmcp.server.engine import Engine
from typedmcp.server.handshake import Handshake
from typedmcp.server.home import SessionHome

__all__ = ["ObservedConnection", "ServerObservation"]

_FALLBACK = "fallback"


class ServerObservation:
    """Passes what a session does to its observer."""

    def __init__(self, config: ServerConfig, observer: ServerObserver) -> None:
        self._config = config
        self._observer = observer

    def wrap(self, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """Return handlers by name that are observed."""
        wrap = self._observer.wrap
        return {name: wrap(function, is_known=name != _FALLBACK) for name, function in functions.items()}

    def on_handshake(self, frame: Frame, revision: str) -> None:
        """Observe a message of the handshake that has been handled."""
        self._observer.on_handshake(describe_frame(frame, is_known=True), revision)

    def on_rejected(self, frame: Frame, error: RemoteError) -> None:
        """Observe a message that was rejected before it had a context."""
        is_known = self._config.has_method(frame, self._config.revisions)
        self._observer.on_rejected(describe_frame(frame, is_known=is_known), error)

    def on_error(self, ctx: Context, code: int, text: str) -> None:
        """Observe the error response to a request."""
        self._observer.on_error(ctx, code, text, is_known=ctx.method_codec.handler_name != _FALLBACK)

    def on_send(self, ctx: Context | None, message: msgspec.Struct) -> msgspec.Struct:
        """Observe a request or notification to the client, and return it with what the observer adds."""
        if not isinstance(message, Notification):
            return message
        members = self._observer.on_send(ctx, message.method, message.id)
        return Notification(message.jsonrpc, message.method, add_to_meta(message.params, members), message.id)

    def on_ask(
        self, ask: Callable[[Context, Any], Awaitable[Any]], ctx: Context, request: Any
    ) -> Coroutine[Any, Any, Any]:
        """Observe `ask(ctx, request)`, which sends a request to the client and returns its result."""
        return self._observer.on_ask(ctx, request.method, partial(ask, ctx, request))

    def on_end(self) -> None:
        """Observe the end of a connection, or of a session over HTTP."""
        self._observer.on_end()


class ObservedConnection:
    """The connection or session, as a `ServerConnectionInfo`."""

    address = None

    def __init__(self, engine: Engine, home: SessionHome, handshake: Handshake | None) -> None:
        self._home, self._handshake, self._thread_id = home, handshake, engine.thread_id
        self.server: ServerConfig = engine.config
        self.is_local: bool = home.is_local

    @property
    def id(self) -> str | None:
        return self._home.session_id if self._home.is_stored else None

    @property
    def network(self) -> Network | None:
        return self._home.network

    @property
    def revision(self) -> str | None:
        handshake = self._handshake
        return None if handshake is None or handshake.metadata is None else handshake.metadata.revision

    def has_tool(self, name: str) -> bool | None:
        find = self.server.input_schema_of
        schema = None if find is None else find(name)
        return None if schema is None else bool(schema)

    def call_soon(self, function: Callable[[], object]) -> None:
        loop, is_here = self._home.loop, threading.get_ident() == self._thread_id
        (loop.call_soon if is_here else loop.call_soon_threadsafe)(function)
