"""Clients of every revision use servers of every revision through a gateway, in one process."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import typedmcp
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.serving import serving_http
from tests.spoken import SUPPORTED
from tests.typedmcp_gateway.cases import CASES, connect_options, run_case, unsaid
from tests.typedmcp_gateway.everyday_server import make_server
from tests.typedmcp_gateway.test_http import is_running
from typedmcp.dialect import structs
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp_gateway import Gateway


@each("server", SUPPORTED)
@each("client", SUPPORTED)
def test_everything_passes_between_a_client_and_a_server_of_any_revisions(client: str, server: str) -> None:
    async def main() -> dict[str, str | None]:
        gateway = Gateway(typedmcp.ServerConfig(make_server(), revisions=[server]))
        async with typedmcp.connect(gateway, **connect_options(client)) as caller:
            assert caller.server.instructions == "Add numbers, and ask people."
            return {name: await run_case(case, caller) for name, case in CASES.items()}

    for name, result in run(main()).items():
        expected = unsaid(name, client, server)
        if expected is None:
            assert result is None, name
        else:
            assert result is not None, name
            assert expected in result


def speaking_server() -> typedmcp.Server:
    """Return a server whose tools say how they are called. It logs at the lowest level that everybody gets."""
    server = typedmcp.Server("speaking")

    @server.tool
    async def spoken(ctx: typedmcp.Context) -> str:
        await ctx.warning("spoken")
        return ctx.revision

    return server


PROCESS = """
import os, sys, typedmcp
server = typedmcp.Server("process")
@server.tool
async def spoken(ctx: typedmcp.Context) -> str:
    return ctx.revision
with open(sys.argv[1], "a") as started:
    started.write(f"{os.getpid()} ")
typedmcp.serve(server, "stdio")
"""


async def call_spoken(gateway: Any, revision: str, logs: list[Any]) -> str:
    """Return what the tool `spoken` says to a client of a revision."""

    def on_log(params: structs.LoggingMessageNotificationParams) -> None:
        logs.append(params.data)

    async with typedmcp.connect(gateway, revisions=[revision], on_log=on_log) as client:
        await client.list_tools()
        return await client.call_tool("spoken", result_type=str)


def test_a_client_speaks_its_own_revision_with_a_server_that_speaks_it_too() -> None:
    wrong: list[Any] = []

    async def try_gateway(name: str, gateway: Any) -> None:
        for revision in SUPPORTED:
            logs: list[Any] = []
            spoken = await call_spoken(gateway, revision, logs)
            if spoken != revision or logs != ["spoken"]:
                wrong.append((name, revision, spoken, logs))

    async def main() -> None:
        await try_gateway("in process", Gateway(speaking_server()))
        async with serving_http(typedmcp.asgi(speaking_server())) as url:
            await try_gateway("URL", Gateway(f"{url}/mcp"))
            async with serving_http(Gateway(f"{url}/mcp").asgi()) as gateway_url:
                await asyncio.gather(*(try_gateway("HTTP", f"{gateway_url}/mcp") for _ in range(3)))

    run(main())
    assert wrong == []


def test_one_process_is_left_for_a_client_that_speaks_an_older_revision(tmp_path: Path) -> None:
    started = tmp_path / "started"

    async def main() -> None:
        gateway = Gateway([sys.executable, "-c", PROCESS, str(started)])
        async with typedmcp.connect(gateway, revisions=[LEGACY[0]]) as client:
            assert {await client.call_tool("spoken", result_type=str) for _ in range(3)} == {LEGACY[0]}
            assert gateway.status[0].revision == MODERN_REVISION
            described, called = map(int, started.read_text().split())
            while is_running(described):
                await asyncio.sleep(0.01)
            assert is_running(called)

    run(main())


@each("client", LEGACY)
def test_the_revisions_of_the_connections_can_be_chosen(client: str) -> None:
    async def main() -> str:
        gateway = Gateway(speaking_server(), connect={"revisions": [MODERN_REVISION]})
        return await call_spoken(gateway, client, [])

    assert run(main()) == MODERN_REVISION


BOASTFUL = f"""
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    reply = {{"jsonrpc": "2.0", "id": asked.get("id")}}
    common = {{"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
    if asked["method"] == "server/discover":
        versions = {[MODERN_REVISION, *LEGACY]}
        reply["result"] = {{**common, "supportedVersions": versions, "capabilities": {{"tools": {{}}}}}}
    elif asked["method"] == "tools/call":
        spoken = asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
        reply["result"] = {{**common, "content": [{{"type": "text", "text": spoken}}]}}
    elif asked["method"] == "initialize" and sys.argv[1] == "answer":
        info = {{"name": "boastful", "version": "1"}}
        reply["result"] = {{"protocolVersion": "{MODERN_REVISION}", "capabilities": {{}}, "serverInfo": info}}
    else:
        reply["error"] = {{"code": -32601, "message": asked["method"]}}
    print(json.dumps(reply), flush=True)
"""


@each("refusal", ["error", "answer"])
def test_a_server_that_refuses_a_revision_which_it_names_is_used_on_its_newest(refusal: str) -> None:
    reports: list[Diagnostic] = []

    async def main() -> list[str]:
        target = Gateway([sys.executable, "-c", BOASTFUL, refusal])
        gateway = typedmcp.ServerConfig(target, on_diagnostic=reports.append)
        async with typedmcp.connect(gateway, revisions=[LEGACY[0]]) as client:
            return [await client.call_tool("spoken", result_type=str) for _ in range(2)]

    assert run(main()) == [MODERN_REVISION] * 2
    found = [report.text for report in reports if "refused" in report.text]
    assert found == [f"server 'server' names {LEGACY[0]} as supported and refused it"]
