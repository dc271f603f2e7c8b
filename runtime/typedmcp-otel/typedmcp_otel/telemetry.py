"""Telemetry: what servers and clients take as an option."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from typedmcp.observers import ClientObserver, ConnectionInfo, MessageInfo, ServerConnectionInfo, ServerObserver
from typedmcp_otel.instruments import Instruments

__all__ = ["Telemetry"]

T = TypeVar("T")


class Telemetry(Instruments):
    """Spans and metrics of servers and clients, which take it as the option `telemetry`.

    `tracer_provider`, `meter_provider` and `propagator` are by default those that the program has set with
    OpenTelemetry. The propagator may set `traceparent`, `tracestate` and `baggage`, which travel in `_meta`. With
    `content`, spans have arguments and results of tools, as JSON of at most 8,192 characters; these may be secret.
    With `notifications=False`, only requests have spans.

    ```python
    server.run(telemetry=Telemetry())
    ```
    """

    # Observers, which are imported when there is something to observe

    def observe_server(self, connection: ServerConnectionInfo) -> ServerObserver:
        """Return the observer of a connection of a server."""
        from typedmcp_otel.server import ServerTelemetry

        return ServerTelemetry(self, connection)

    def observe_session(self, connection: ConnectionInfo) -> ClientObserver:
        """Return the observer of a client's session."""
        from typedmcp_otel.client import SessionTelemetry

        return SessionTelemetry(self, connection)

    async def observe_answer(self, message: MessageInfo, revision: str | None, answer: Callable[[], Awaitable[T]]) -> T:
        """Observe a callback of a client that answers an input request."""
        from typedmcp_otel.client import observe_answer

        return await observe_answer(self, message, revision, answer)
