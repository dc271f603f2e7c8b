"""Durations of operations and sessions, with the recommended buckets and few attributes."""

from __future__ import annotations

import asyncio
import secrets
import socket

import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import generate_latest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import serving
from tests.spoken import MODERN_REVISION
from tests.typedmcp_otel.exported import Exported
from typedmcp.dialect import structs
from typedmcp.transports import network_of
from typedmcp.transports.streams import StreamTransport
from typedmcp_gateway import Gateway
from typedmcp_otel import Telemetry

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

server = typedmcp.Server("measured")


@server.tool
async def work() -> str:
    return "done"


@server.tool
async def fail() -> str:
    raise typedmcp.ToolError("a reason")


def config(telemetry: Telemetry) -> typedmcp.ServerConfig:
    return typedmcp.ServerConfig(server, telemetry=telemetry)


@each("revision", ["2025-11-25", MODERN_REVISION])
def test_operations_and_sessions_are_measured_on_both_sides(revision: str) -> None:
    exported = Exported()

    async def main() -> None:
        telemetry = exported.telemetry
        async with typedmcp.connect(config(telemetry), telemetry=telemetry, revisions=[revision]) as client:
            for name in ("work", "work", "fail"):
                await client.call_tool(name)

    asyncio.run(main())
    for side in ("client", "server"):
        points = exported.points(f"mcp.{side}.operation.duration")
        calls = [(kind, point) for kind, point in points if kind["mcp.method.name"] == "tools/call"]
        common = {
            "mcp.method.name": "tools/call",
            "mcp.protocol.version": revision,
            "gen_ai.operation.name": "execute_tool",
        }
        assert [(kind, point.count) for kind, point in calls] == [
            ({**common, "gen_ai.tool.name": "work"}, 2),
            ({**common, "gen_ai.tool.name": "fail", "error.type": "tool_error"}, 1),
        ]
        assert calls[0][1].explicit_bounds == BUCKETS
        ((kind, point),) = exported.points(f"mcp.{side}.session.duration")
        assert (kind, point.count, point.explicit_bounds) == ({"mcp.protocol.version": revision}, 1, BUCKETS)


def test_a_session_over_http_is_measured_at_its_end() -> None:
    exported = Exported()

    async def main() -> None:
        async with serving(server, telemetry=exported.telemetry) as served:
            session = await served.session()
            assert exported.points("mcp.server.session.duration") == []
            assert (await session.delete()).status == 204

    asyncio.run(main())
    ((kind, point),) = exported.points("mcp.server.session.duration")
    assert point.count == 1
    assert kind == {
        "mcp.protocol.version": "2025-11-25",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }


@each("family", [socket.AF_UNIX, socket.AF_INET])
def test_sockets_have_their_kind(family: int) -> None:
    async def main() -> str | None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            near, far = socket.socketpair() if family == socket.AF_UNIX else connected(listener)
            with near, far:
                transport = StreamTransport(near.fileno(), near.fileno())
                try:
                    return network_of(transport)
                finally:
                    await transport.close()

    expected = "unix" if family == socket.AF_UNIX else "tcp"
    assert asyncio.run(main()) == expected


def connected(listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    near = socket.create_connection(listener.getsockname())
    return near, listener.accept()[0]


def test_names_that_peers_make_up_add_no_series() -> None:
    exported = Exported()

    async def main() -> None:
        async with typedmcp.connect(config(exported.telemetry)) as client:
            for _ in range(20):
                for call in (client.call_tool(secrets.token_hex()), client.send(f"made/up/{secrets.token_hex()}")):
                    with pytest.raises(typedmcp.RemoteError):
                        await call

    asyncio.run(main())
    kinds = [(kind["mcp.method.name"], kind.get("gen_ai.tool.name")) for kind, _ in exported.points(
        "mcp.server.operation.duration")]  # fmt: skip
    assert sorted(kinds, key=str) == [("_OTHER", None), ("server/discover", None), ("tools/call", None)]


def test_codes_that_a_server_makes_up_add_no_series() -> None:
    exported = Exported()

    class Inventor:
        code = 0

        def call_tool(self, _params: object, _ctx: typedmcp.Context) -> structs.CallToolResult:
            self.code += 1
            raise typedmcp.RemoteError(self.code if self.code > 1 else -32000, "made up")

    handler = typedmcp.ServerConfig(Inventor(), telemetry=exported.telemetry)

    async def main() -> None:
        async with typedmcp.connect(handler, telemetry=exported.telemetry, check_capabilities=False) as client:
            for _ in range(20):
                with pytest.raises(typedmcp.RemoteError):
                    await client.call_tool("t")

    asyncio.run(main())
    for side in ("client", "server"):
        kinds = [kind for kind, _ in exported.points(f"mcp.{side}.operation.duration") if "error.type" in kind]
        assert [kind["error.type"] for kind in kinds] == ["-32000", "_OTHER"]
        assert [kind["rpc.response.status_code"] for kind in kinds] == ["-32000", "_OTHER"]


def test_names_that_clients_of_a_gateway_make_up_add_series_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp_otel.attributes._MAX_NAMES", 5)
    exported = Exported()

    async def main() -> None:
        for _ in range(3):  # each has another client of the server
            gateway = Gateway(server, connect={"telemetry": exported.telemetry})
            async with typedmcp.connect(gateway) as client:
                for _ in range(4):
                    with pytest.raises(typedmcp.RemoteError):
                        await client.call_tool(secrets.token_hex())

    asyncio.run(main())
    points = exported.points("mcp.client.operation.duration")
    assert len({kind["gen_ai.tool.name"] for kind, _ in points if "gen_ai.tool.name" in kind}) == 5


def test_prometheus_reads_them_from_its_own_exporter() -> None:
    provider = MeterProvider([PrometheusMetricReader()])
    telemetry = Telemetry(meter_provider=provider)

    async def main() -> None:
        async with typedmcp.connect(config(telemetry)) as client:
            await client.call_tool("work")

    asyncio.run(main())
    lines = generate_latest().decode().splitlines()
    provider.shutdown()
    counts = [line for line in lines if line.startswith("mcp_server_operation_duration_seconds_count")]
    assert any('gen_ai_tool_name="work"' in line and line.endswith(" 1.0") for line in counts)
    assert any('le="0.01"' in line for line in lines)
