"""Observers of servers and clients, such as telemetry. Without one, no code for them runs.

An `Instrumentation` makes an observer for each connection of a server and each session of a client, which take it as
the option `telemetry`; `typedmcp_otel.Telemetry` is one. Observers see messages and do not hold them up: they may take
the time, wrap what happens in a context of their own, and add members to the `_meta` of messages that are sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Raw

from typedmcp.errors import RemoteError, UsageError

__all__ = [
    "ClientObserver", "ConnectionInfo", "Instrumentation", "MessageInfo", "MetaMembers", "Network", "RequestInfo",
    "ServerConnectionInfo", "ServerObserver", "check_telemetry", "default_instrumentation",
    "set_default_instrumentation",
]  # fmt: skip

T = TypeVar("T")

Network: TypeAlias = Literal["pipe", "unix", "tcp", "http", "memory"]
"""The carrier of a connection. `memory` is for both ends in one process."""

MetaMembers: TypeAlias = Mapping[str, str]
"""Members for the `_meta` of a message, in place of those of the same names. They may be empty."""


class MessageInfo(NamedTuple):
    """A message that was received, and has no `RequestInfo`."""

    method: str
    id: str | int | None
    """The id of a request; None for a notification."""
    meta: Mapping[str, Any] | None
    """The `_meta`, if it is an object."""
    is_known: bool
    """True if the protocol has the method. The name of another one is the peer's invention."""


class RequestInfo(Protocol):
    """A message that a server handles: the part of its `Context` that is of use to observers.

    `vars(request)` is a dict in which an observer may keep something until the message is handled. A key should begin
    with the name of its distribution.
    """

    @property
    def method(self) -> str: ...
    @property
    def id(self) -> str | int | None: ...
    @property
    def meta(self) -> Any: ...
    @property
    def params(self) -> Any: ...
    @property
    def revision(self) -> str: ...


class ConnectionInfo(Protocol):
    """The connection or session that an observer is for. An observer is made before the connection opens."""

    @property
    def id(self) -> str | None:
        """The id of the session over HTTP, once there is one; otherwise None."""
        ...

    @property
    def network(self) -> Network | None:
        """The carrier of the connection. None if the transport does not say it."""
        ...

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and the port of the server's URL; None for a server, and without a URL."""
        ...

    @property
    def revision(self) -> str | None:
        """The revision that was negotiated. None before that, and for servers without a handshake."""
        ...


class ServerConnectionInfo(ConnectionInfo, Protocol):
    """A connection or session of a server, or all stateless clients of an application over HTTP."""

    @property
    def is_local(self) -> bool:
        """True for a connection of lines, False for HTTP, where a message runs in the context of its HTTP request."""
        ...

    @property
    def server(self) -> object:
        """An object that all connections of one server share. It can be the key of a `WeakKeyDictionary`."""
        ...

    def has_tool(self, name: str) -> bool | None:
        """Return whether the server has a tool of this name, or None if that is not known without a call."""
        ...

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the event loop after what runs now, such as the encoding of a response.

        Any thread may call it.
        """
        ...


class ServerObserver(Protocol):
    """Observes the messages of one connection or session of a server."""

    def wrap(self, function: Callable[..., Any], *, is_known: bool) -> Callable[..., Any]:
        """Return a function that calls a handler and observes it.

        The last two arguments are the parameters and a `RequestInfo`; the result may be awaitable. `is_known` is False
        for the handler of methods that the protocol does not have.
        """
        ...

    def on_handshake(self, message: MessageInfo, revision: str) -> None:
        """Observe a message of the handshake that has been handled."""
        ...

    def on_rejected(self, message: MessageInfo, error: RemoteError) -> None:
        """Observe a message that was rejected before its parameters were read."""
        ...

    def on_error(self, request: RequestInfo, code: int, text: str, *, is_known: bool) -> None:
        """Observe the error response to a request, whose handler was perhaps not called."""
        ...

    def on_send(self, request: RequestInfo | None, method: str, id: str | int | None) -> MetaMembers:
        """Observe a request or notification to the client, and return what to add to its `_meta`.

        `request` is the one that it is sent for; a notification has no `id`.
        """
        ...

    async def on_ask(self, request: RequestInfo, method: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return `await ask()`, which sends a request to the client and returns its result."""
        ...

    def on_end(self) -> None:
        """Observe the end of the connection or session."""
        ...


class ClientObserver(Protocol):
    """Observes one session of a client."""

    async def on_call(
        self, method: str, id: str | int, params: Any, send: Callable[[MetaMembers], Awaitable[Raw]]
    ) -> Raw:
        """Return `await send(members)`, which sends a request and returns the bytes of its result."""
        ...

    def on_notify(self, method: str, send: Callable[[MetaMembers], None]) -> None:
        """Call `send(members)`, which sends a notification."""
        ...

    def on_receive(self, message: MessageInfo, call: str | int | None, handle: Callable[[], None]) -> None:
        """Call `handle()`, which handles a notification, or begins to answer a request, of the server.

        `call` is the id of the client's request that it reports progress of.
        """
        ...

    def on_end(self) -> None:
        """Observe the end of the session."""
        ...


class Instrumentation(Protocol):
    """Makes observers. An option `telemetry` is one."""

    def observe_server(self, connection: ServerConnectionInfo) -> ServerObserver:
        """Return the observer of a connection or session of a server."""
        ...

    def observe_session(self, connection: ConnectionInfo) -> ClientObserver:
        """Return the observer of a client's session."""
        ...

    async def observe_answer(self, message: MessageInfo, revision: str | None, answer: Callable[[], Awaitable[T]]) -> T:
        """Return `await answer()`, which answers an input request of a server.

        `to_remote_error` of `typedmcp.errors` returns what the server gets for an exception of it.
        """
        ...


_default: Instrumentation | None = None


def default_instrumentation() -> Instrumentation | None:
    """Return the instrumentation of servers and clients that have no option `telemetry`; None for none."""
    return _default


def set_default_instrumentation(instrumentation: Instrumentation | None) -> None:
    """Set the instrumentation of servers and clients that are made later."""
    global _default
    _default = instrumentation


def check_telemetry(value: object) -> None:
    """Raise `UsageError` for an option `telemetry` that is none."""
    if value is not None and (isinstance(value, type) or not hasattr(value, "observe_server")):
        raise UsageError(
            f"telemetry must be an Instrumentation, such as typedmcp_otel.Telemetry(), not {value!r}; "
            "pip install 'typedmcp[otel]' brings it, in a checkout ./runtime/typedmcp-otel"
        )
