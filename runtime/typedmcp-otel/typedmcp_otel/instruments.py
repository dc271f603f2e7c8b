"""The tracer, the instruments and the options that observers of servers and clients share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final
from weakref import WeakKeyDictionary

from opentelemetry import context, metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Meter, MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, SpanKind, Tracer, TracerProvider

from typedmcp_otel.attributes import METHOD, OPERATION, TARGETS, KnownNames
from typedmcp_otel.carrier import TraceReader
from typedmcp_otel.operation import Operation

__all__ = ["Instruments"]

_VERSION: Final = version("typedmcp")

_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""The boundaries that the conventions recommend for all durations of MCP, in seconds."""

_SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.39.0"
"""The version of the conventions that the names of attributes belong to."""


class Instruments:
    """The tracer, the instruments and the options. `Telemetry` describes the parameters."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
        content: bool = False,
        notifications: bool = True,
    ) -> None:
        self.tracer: Tracer = trace.get_tracer("typedmcp", _VERSION, tracer_provider, _SCHEMA_URL)
        meter = metrics.get_meter("typedmcp", _VERSION, meter_provider, _SCHEMA_URL)
        self._propagator = propagator
        self.content: bool = content
        """True if spans have arguments and results of tools."""
        self.notifications: bool = notifications
        """True if notifications have spans."""
        self.client_duration: Histogram = _histogram(
            meter, "mcp.client.operation.duration", "The duration of a request or notification as its sender sees it."
        )
        self.server_duration: Histogram = _histogram(
            meter, "mcp.server.operation.duration", "The duration of a request or notification as its receiver sees it."
        )
        self.client_session_duration: Histogram = _histogram(
            meter, "mcp.client.session.duration", "The duration of a session as the client sees it."
        )
        self.server_session_duration: Histogram = _histogram(
            meter, "mcp.server.session.duration", "The duration of a session as the server sees it."
        )
        self._traces = TraceReader()
        self._names: WeakKeyDictionary[object, KnownNames] = WeakKeyDictionary()

    @property
    def propagator(self) -> TextMapPropagator:
        """The propagator that reads and writes trace context."""
        return propagate.get_global_textmap() if self._propagator is None else self._propagator

    def extract(self, meta: object, around: Context) -> Context:
        """Return a context with the trace context of a `_meta`, as far as that is valid."""
        return self._traces.extract(meta, self.propagator, around)

    def names_of(self, owner: object) -> KnownNames:
        """Return the names of tools and prompts that are known to exist at a server, or for all clients."""
        names = self._names.get(owner)
        if names is None:
            names = self._names[owner] = KnownNames()
        return names

    def start(
        self,
        method: str,
        kind: SpanKind,
        histogram: Histogram,
        *,
        measured: Mapping[str, Any],
        target: str | None = None,
        details: Mapping[str, Any] | None = None,
        parent: Context | None = None,
        links: Sequence[Link] = (),
    ) -> Operation:
        """Start an operation. The measurement has the attributes `measured`, the span also `details`.

        `target` is the name of the tool or prompt that it is about, if that is known to exist.
        """
        attributes = {METHOD: method, **measured}
        if method == "tools/call":
            attributes[OPERATION] = "execute_tool"
        if target is not None:
            attributes[TARGETS[method]] = target
        parent = context.get_current() if parent is None else parent
        all_attributes = {**attributes, **details} if details else attributes
        span = self.tracer.start_span(
            method if target is None else f"{method} {target}", parent, kind, all_attributes, links
        )
        return Operation(span, parent, method, attributes, histogram)


def _histogram(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=_BUCKETS)
