"""Telemetry for a whole process, and none where it is off."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator
from importlib.metadata import entry_points

import pytest

import typedmcp
from tests.typedmcp_otel.exported import Exported
from typedmcp_otel import TypedmcpInstrumentor, instrument, uninstrument

server = typedmcp.Server("observed")


@server.tool
async def work() -> str:
    return "done"


@pytest.fixture(autouse=True)
def _undo() -> Generator[None]:
    yield
    uninstrument()


async def use(**options: None) -> None:
    async with typedmcp.connect(server, **options) as client:  # type: ignore[arg-type]
        await client.call_tool("work")


def test_servers_and_clients_that_are_made_later_are_observed() -> None:
    exported = Exported()
    asyncio.run(use())
    assert exported.spans() == []
    instrument(exported.telemetry)
    asyncio.run(use())
    assert len(exported.spans("tools/call work")) == 2
    asyncio.run(use(telemetry=None))
    assert len(exported.spans("tools/call work")) == 3, "the client is not observed, its server is"
    uninstrument()
    asyncio.run(use())
    assert len(exported.spans("tools/call work")) == 3


def test_the_entry_point_takes_the_providers_that_it_is_given() -> None:
    (found,) = [each for each in entry_points(group="opentelemetry_instrumentor") if each.name == "typedmcp"]
    instrumentor = found.load()()
    assert isinstance(instrumentor, TypedmcpInstrumentor)
    exported = Exported()
    instrumentor.instrument(
        tracer_provider=exported.provider, meter_provider=exported.meter_provider, skip_dep_check=True
    )
    asyncio.run(use())
    instrumentor.uninstrument()
    asyncio.run(use())
    assert len(exported.spans("tools/call work")) == 2


def test_an_option_that_is_no_telemetry_is_an_error() -> None:
    with pytest.raises(
        typedmcp.UsageError, match=r"telemetry must be an Instrumentation, such as typedmcp_otel\.Telemetry\(\)"
    ):
        typedmcp.connect(server, telemetry=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(typedmcp.UsageError, match="telemetry must be"):
        typedmcp.ServerConfig(server, telemetry=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


WITHOUT = """
import asyncio, sys, typedmcp
server = typedmcp.Server("plain")
server.add_tool(lambda: "x", name="x")
async def main():
    async with typedmcp.connect(server) as client:
        await client.call_tool("x")
asyncio.run(main())
print([name for name in sys.modules if name.startswith(("opentelemetry", "typedmcp_otel"))])
"""


def test_nothing_is_imported_without_telemetry() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
