"""Telemetry: what servers and clients take as an option."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from typedmcp.protocol.observers import ClientObserver, ServerObserver
from typedmcp.telemetry.instruments import Instruments

__all__ = ["Telemetry"]

T = TypeVar("T")


class Telemetry(Instruments):
    """Spans and metrics of servers and clients, which take it as the option `telemetry`.

    `tracer_provider`, `meter_provider` and `propagator` are by default those that the program has set with
    OpenTelemetry. The propagator may set `traceparent`, `tracestate` and `baggage`, which travel in `_meta`. With
    `content`, spans have arguments and results of tools, as JSON of at most 8,192 characters; these may be secret.
    With `notifications=False`, only requests have spans.

    Raises `UsageError` if the extra `otel` is not installed.

    ```python
    server.run(telemetry=Telemetry())
    ```
    """

    # Observers, which are imported when there is something to observe

    def observe_server(self, dispatcher: Any) -> ServerObserver:
        """Return the observer of a dispatcher."""
        from typedmcp.telemetry.server import DispatcherObserver

        return DispatcherObserver(self, dispatcher)

    def observe_session(self, session: Any) -> ClientObserver:
        """Return the observer of a client's session."""
        from typedmcp.telemetry.client import SessionObserver

        return SessionObserver(self, session)

    async def observe_answer(
        self, method: str, params: bytes | None, revision: str | None, answer: Callable[[], Awaitable[T]]
    ) -> T:
        """Observe a callback of a client that answers an input request."""
        from typedmcp.telemetry.client import observe_answer

        return await observe_answer(self, method, params, revision, answer)
