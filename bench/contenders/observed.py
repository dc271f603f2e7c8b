"""Telemetry of contenders: `--telemetry=api`, `unsampled` or `sampled` on the command line."""

import sys


def telemetry_options():
    """Return the option `telemetry` that the command line asks for, or nothing."""
    kind = next((each.partition("=")[2] for each in sys.argv if each.startswith("--telemetry=")), None)
    if kind is None:
        return {}
    from typedmcp_otel import Telemetry

    if kind == "api":
        return {"telemetry": Telemetry()}
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

    meters = MeterProvider([InMemoryMetricReader()])
    tracers = TracerProvider(sampler=ALWAYS_ON if kind == "sampled" else ALWAYS_OFF)
    return {"telemetry": Telemetry(tracer_provider=tracers, meter_provider=meters)}
