"""Telemetry: spans and metrics of requests through OpenTelemetry, with the extra `otel`.

`Telemetry()` is an option of servers and clients; `instrument()` sets it for all that are made later. Both use the
providers that the program has set, such as those of the OpenTelemetry SDK. Without it, nothing here is imported.
https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
"""

from __future__ import annotations

from typedmcp.telemetry.instrumentor import TypedmcpInstrumentor, instrument, uninstrument
from typedmcp.telemetry.telemetry import Telemetry

__all__ = ["Telemetry", "TypedmcpInstrumentor", "instrument", "uninstrument"]
