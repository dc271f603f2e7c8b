"""The API of OpenTelemetry, or the error that says how to install it."""

from __future__ import annotations

from typedmcp.errors import UsageError, missing_extra

try:
    from opentelemetry import context, metrics, propagate, trace
except ImportError as error:
    raise UsageError(missing_extra("telemetry", "otel")) from error

__all__ = ["context", "metrics", "propagate", "trace"]
