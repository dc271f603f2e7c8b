"""A collector of spans: a server for OTLP over HTTP with protobuf, in the process of the test."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["CollectedSpan", "Collector", "collecting"]


class CollectedSpan(NamedTuple):
    """A span, and the service that exported it."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str


@dataclass
class Collector:
    """A running collector."""

    address: str
    spans: list[CollectedSpan] = field(default_factory=list[CollectedSpan])

    def chain(self, name: str) -> list[str]:
        """Return service and kind of the spans with a name, each the parent of the next.

        Raises `AssertionError` unless they are one chain.
        """
        spans = {span.span_id: span for span in self.spans if span.name == name}
        parents = {span.parent_id: span for span in spans.values()}
        assert len(parents) == len(spans), "two spans have the same parent"
        (first,) = (span for span in spans.values() if span.parent_id not in spans)
        found = [first]
        while (following := parents.get(found[-1].span_id)) is not None:
            found.append(following)
        assert len(found) == len(spans)
        return [f"{span.service} {span.kind}" for span in found]

    def add(self, request: Any) -> None:
        for resource in request.resource_spans:
            attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [
                    CollectedSpan(
                        attributes["service.name"],
                        span.name,
                        Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                    )
                    for span in scope.spans
                ]


@contextmanager
def collecting() -> Generator[Collector]:
    """Run a collector at a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            is_right = (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
            if is_right:
                collector.add(ExportTraceServiceRequest.FromString(body))
            response = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200 if is_right else 404)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
