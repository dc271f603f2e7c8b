"""Telemetry for a whole process, also as `opentelemetry-instrument` sets it up."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from typedmcp.observers import set_default_instrumentation
from typedmcp_otel.telemetry import Telemetry

__all__ = ["TypedmcpInstrumentor", "instrument", "uninstrument"]


def instrument(telemetry: Telemetry | None = None) -> Telemetry:
    """Observe all servers and clients that are made from now on and have no option `telemetry`. Return the telemetry.

    A server is made when it begins to be served, by `run`, `serve`, `asgi` or `connect`.
    """
    telemetry = Telemetry() if telemetry is None else telemetry
    set_default_instrumentation(telemetry)
    return telemetry


def uninstrument() -> None:
    """Undo `instrument` for servers and clients that are made from now on."""
    set_default_instrumentation(None)


class TypedmcpInstrumentor:
    """The entry point `opentelemetry_instrumentor`, with which `opentelemetry-instrument` finds this package.

    It has the methods of `BaseInstrumentor` that are called, and needs no package for it.
    """

    def instrument(self, **options: Any) -> None:
        """Call `instrument`, with the providers among the options. Other options are ignored."""
        providers = options.get("tracer_provider"), options.get("meter_provider")
        instrument(Telemetry(tracer_provider=providers[0], meter_provider=providers[1]))

    def uninstrument(self, **_options: Any) -> None:
        """Call `uninstrument`."""
        uninstrument()

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the packages that are instrumented, besides this one."""
        return ()
