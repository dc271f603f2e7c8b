"""The API of OpenTelemetry, or the error that says how to install it."""

from __future__ import annotations

from typedmcp.errors import UsageError, missing_extra

try:
    from opentelemetry import context, metrics, propagate, trace
except ImportError as _error:
    raise UsageError(missing_extra("telemetry", "otel")) from _error

__all__ = ["context", "metrics", "propagate", "trace"]
