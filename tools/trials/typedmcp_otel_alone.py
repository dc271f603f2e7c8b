"""Observe a server and a client, without an SDK of OpenTelemetry."""

import asyncio
from importlib.metadata import entry_points

import typedmcp
import typedmcp_otel

server = typedmcp.Server("trial")


@server.tool
async def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello, {name}!"


async def main() -> None:
    async with typedmcp.connect(server) as client:
        assert await client.call_tool("greet", {"name": "Ada"}, result_type=str) == "Hello, Ada!"


(found,) = (each for each in entry_points(group="opentelemetry_instrumentor") if each.name == "typedmcp")
assert found.load() is typedmcp_otel.TypedmcpInstrumentor
typedmcp_otel.instrument()
asyncio.run(main())
