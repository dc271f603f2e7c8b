"""Telemetry of typedmcp: spans and metrics of requests through OpenTelemetry.

`Telemetry()` is an option of servers and clients; `instrument()` sets it for all that are made later. Both use the
providers that the program has set, such as those of the OpenTelemetry SDK.
https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
"""

from __future__ import annotations

from typedmcp_otel.instrumentor import TypedmcpInstrumentor, instrument, uninstrument
from typedmcp_otel.telemetry import Telemetry

__all__ = ["Telemetry", "TypedmcpInstrumentor", "instrument", "uninstrument"]
