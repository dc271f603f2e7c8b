"""Processes whose spans go to a collector by OTLP over HTTP, at the address in `OTEL_EXPORTER_OTLP_ENDPOINT`.

exporting.py server [http]         serve a tool; over HTTP at a free port, whose address it prints
exporting.py gateway ARGUMENT …    run `typedmcp proxy` with these arguments
exporting.py client REVISION TARGET …    call the tool of a server, at a URL or by its command
"""

from __future__ import annotations

import asyncio
import socket
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import typedmcp
import typedmcp_otel


def serve(transport: str) -> None:
    server = typedmcp.Server("traced")

    @server.tool
    async def work(ctx: typedmcp.Context) -> str:
        await ctx.progress(1, 2)
        return "done"

    if transport == "stdio":
        server.run()
        return
    from typedmcp_http import UvicornServer

    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        UvicornServer(typedmcp.asgi(server), "127.0.0.1", 0).run(sockets=[listener])


async def call(revision: str, target: list[str]) -> None:
    found = target[0] if target[0].startswith("http") else target
    async with typedmcp.connect(found, revisions=[revision]) as client:
        with trace.get_tracer("app").start_as_current_span("app"):
            print(typedmcp.text_of(await client.call_tool("work", on_progress=lambda _: None)))


def main() -> None:
    collector, role, *arguments = sys.argv[1:]
    provider = TracerProvider(resource=Resource({"service.name": role}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{collector}/v1/traces")))
    trace.set_tracer_provider(provider)
    typedmcp_otel.instrument()
    if role == "server":
        serve(*(arguments or ["stdio"]))
    elif role == "gateway":
        from typedmcp_cli.start import main as run_command

        sys.argv = ["typedmcp", "proxy", *arguments]
        run_command()
    else:
        asyncio.run(call(arguments[0], arguments[1:]))


if __name__ == "__main__":
    main()
