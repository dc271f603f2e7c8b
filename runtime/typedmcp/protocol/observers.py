"""Observers of servers and clients, such as telemetry. Without one, no code for them runs.

`typedmcp.telemetry.Telemetry` is an `Instrumentation`. Servers and clients take one as the option `telemetry`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from typedmcp.errors import RemoteError, UsageError
from typedmcp.protocol.framing import Frame
from typedmcp.protocol.pending import Call

__all__ = [
    "ClientObserver", "Exchange", "Instrumentation", "Notify", "ServerObserver", "check_telemetry",
    "default_instrumentation", "set_default_instrumentation",
]  # fmt: skip

T = TypeVar("T")

Exchange: TypeAlias = Callable[[Call, Any], Coroutine[Any, Any, msgspec.Raw]]
"""Sends a request of a client, and returns the bytes of its result."""

Notify: TypeAlias = Callable[[str, Any], None]
"""Sends a notification of a client."""


class ServerObserver(Protocol):
    """Observes the messages of one dispatcher."""

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls the handler `function` and observes it. Its last argument is the context."""
        ...

    def on_handshake(self, frame: Frame, revision: str) -> None:
        """Observe a message of the handshake that has been handled."""
        ...

    def on_rejected(self, frame: Frame, error: RemoteError) -> None:
        """Observe a message that was rejected before it had a context."""
        ...

    def on_error(self, ctx: Any, code: int, message: str) -> None:
        """Observe the error response to a request."""
        ...

    def on_send(self, ctx: Any, message: msgspec.Struct) -> msgspec.Struct:
        """Observe a request or notification to the client, and return what to send instead."""
        ...

    async def ask(self, call: Callable[[Any, Any], Awaitable[T]], ctx: Any, request: Any) -> T:
        """Observe `call(ctx, request)`, which sends a request to the client and returns its result."""
        ...

    def on_end(self) -> None:
        """Observe the end of a connection, or of a session over HTTP."""
        ...


class ClientObserver(Protocol):
    """Observes one session of a client, or the input requests of a server."""

    def around_exchange(self, exchange: Exchange) -> Exchange:
        """Return a function that calls `exchange` and observes it."""
        ...

    def around_notify(self, notify: Notify) -> Notify:
        """Return a function that calls `notify` and observes it."""
        ...

    def around_listener(self, listener: Any) -> Any:
        """Return a `SessionListener` that passes messages of the server to `listener` and observes them."""
        ...


class Instrumentation(Protocol):
    """Makes observers. An option `telemetry` is one."""

    def observe_server(self, dispatcher: Any) -> ServerObserver:
        """Return the observer of a `Dispatcher`, which need not be complete yet."""
        ...

    def observe_session(self, session: Any) -> ClientObserver:
        """Return the observer of a `ClientSession`."""
        ...

    async def observe_answer(
        self, method: str, params: bytes | None, revision: str | None, answer: Callable[[], Awaitable[T]]
    ) -> T:
        """Observe `answer()`, which answers an input request. A legacy server has sent it, with `params`."""
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
    if value is not None and not hasattr(value, "observe_server"):
        raise UsageError(f"telemetry must be a typedmcp.telemetry.Telemetry, such as Telemetry(), not {value!r}")
