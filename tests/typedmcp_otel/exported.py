"""Telemetry whose spans and metrics tests can read, and the tree of its spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.trace import SpanContext

from typedmcp_otel import Telemetry

__all__ = ["Exported", "attributes", "span_id", "trace_id", "tree"]


class Exported:
    """Telemetry with exporters in memory."""

    def __init__(self, sampler: Sampler = ALWAYS_ON, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider = MeterProvider([self._reader])
        self.telemetry = Telemetry(tracer_provider=self.provider, meter_provider=self.meter_provider, **options)

    def spans(self, *names: str) -> list[ReadableSpan]:
        """Return the spans that have ended in the order of their starts, perhaps only those with these names."""
        spans = sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        return [span for span in spans if not names or span.name in names]

    def points(self, metric: str) -> list[tuple[Mapping[str, Any], Any]]:
        """Return the attributes and the value of each data point of a metric."""
        data = self._reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), point)
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
            for point in each.data.data_points
        ]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


def span_id(span: ReadableSpan) -> int:
    """Return the id of a span."""
    return _context_of(span).span_id


def trace_id(span: ReadableSpan) -> int:
    """Return the id of the trace of a span."""
    return _context_of(span).trace_id


def _context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def tree(spans: Sequence[ReadableSpan]) -> list[str]:
    """Return a line for each span, indented below its parent, without spans whose parents are not among them."""
    depths: dict[int, int] = {}
    lines: list[str] = []
    for span in spans:
        depth = 0 if span.parent is None else depths.get(span.parent.span_id, -1) + 1
        depths[span_id(span)] = depth
        lines.append(f"{'  ' * depth}{span.name} {span.kind.name.lower()}")
    return lines
