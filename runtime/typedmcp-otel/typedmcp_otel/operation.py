"""One operation: a span, and a measurement of its duration."""

from __future__ import annotations

from asyncio import CancelledError
from time import perf_counter, time_ns
from typing import Any

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from typedmcp.errors import RemoteError, RequestTimeoutError
from typedmcp_otel.attributes import ERROR_TYPE, STATUS_CODE, TARGETS, bounded, bounded_code

__all__ = ["Operation", "fail_with"]


class Operation:
    """A request or a notification while it is sent or handled."""

    __slots__ = ("_began", "_duration", "_end", "_histogram", "_is_finished", "attributes", "context", "method", "span")

    def __init__(
        self, span: Span, context: Context, method: str, attributes: dict[str, Any], histogram: Histogram
    ) -> None:
        self.span: Span = span
        self.context: Context = set_span_in_context(span, context)
        """The context in which the operation runs: that of its span."""
        self.method: str = method
        self.attributes: dict[str, Any] = attributes
        """The attributes of the measurement; the span has more."""
        self._histogram = histogram
        self._is_finished = False
        self._began = perf_counter()
        self._duration: float | None = None
        self._end: int | None = None

    def name_target(self, name: str) -> None:
        """Add the name of the tool or prompt that the operation is about. It exists."""
        key = TARGETS[self.method]
        self.attributes[key] = name
        self.span.set_attribute(key, name)
        self.span.update_name(f"{self.method} {name}")

    def fail(self, kind: str, *, code: int | None = None, message: str = "") -> None:
        """Record that the operation has failed. `code` and `message` are those of an error response."""
        if self._is_finished:
            return
        self.attributes[ERROR_TYPE] = kind if code is None else bounded_code(code)
        self.span.set_attribute(ERROR_TYPE, kind)
        if code is not None:
            self.attributes[STATUS_CODE] = bounded_code(code)
            self.span.set_attribute(STATUS_CODE, str(code))
        self.span.set_status(Status(StatusCode.ERROR, bounded(message) if message else None))

    def stop(self) -> None:
        """Take the time: the operation has ended, but may yet turn out to have failed."""
        self._duration, self._end = perf_counter() - self._began, time_ns()

    def finish(self) -> None:
        """End the span, and measure the duration. Does nothing if that is done already."""
        if self._is_finished:
            return
        self._is_finished = True
        duration = perf_counter() - self._began if self._duration is None else self._duration
        self._histogram.record(duration, self.attributes, self.context)
        self.span.end(self._end)


def fail_with(operation: Operation, error: BaseException) -> None:
    """Record that an operation raised an exception."""
    if isinstance(error, RemoteError):
        operation.fail(str(error.code), code=error.code, message=error.message)
    elif isinstance(error, CancelledError):
        operation.fail("cancelled")
    elif isinstance(error, RequestTimeoutError):
        operation.fail("timeout")
    else:
        operation.fail(type(error).__qualname__)
