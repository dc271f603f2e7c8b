"""A server whose spans go to a file as lines of JSON: `traced.py FILE [http]`. With `http` it prints its address."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import typedmcp
from typedmcp_otel import Telemetry

server = typedmcp.Server("traced")


@server.tool
async def work(ctx: typedmcp.Context) -> str:
    await ctx.progress(1, 2)
    await asyncio.sleep(0)
    return "done"


@server.tool
async def ask(ctx: typedmcp.Context) -> str:
    result = await ctx.elicit("Name?", str)
    return str(result.data)


async def serve_http(telemetry: Telemetry) -> None:
    config = uvicorn.Config(typedmcp.asgi(server, sse_path="/sse", telemetry=telemetry), log_level="warning")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        await uvicorn.Server(config).serve([listener])


def main() -> None:
    provider = TracerProvider()
    with open(sys.argv[1], "w", encoding="utf-8", buffering=1) as file:
        exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        telemetry = Telemetry(tracer_provider=provider)
        if sys.argv[2:] == ["http"]:
            asyncio.run(serve_http(telemetry))
        else:
            server.run(telemetry=telemetry)


if __name__ == "__main__":
    main()
