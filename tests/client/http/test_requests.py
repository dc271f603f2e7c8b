"""The requests of the client over HTTP on a modern revision: everything is a POST with headers that agree."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.client.http.scripted_http import MODERN, Request, Script, Wire, connected, result
from tests.server.scripted import VERSION, run
from typedmcp.client import ChangeEvent


def ask_once(request: Request, wire: Wire) -> None:
    """Ask for the roots before the result."""
    if "inputResponses" in request.json["params"]:
        wire.result(request, result("asked"))
    else:
        wire.result(request, {"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list"}}})


async def listen(request: Request, wire: Wire) -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": request.json["id"]}
    wire.events()
    for method in ("subscriptions/acknowledged", "tools/list_changed"):
        params: Any = {"_meta": meta, **({"notifications": {"toolsListChanged": True}} if "sub" in method else {})}
        wire.event({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params})
    await wire.closed()


def test_everything_is_a_post_of_a_request_whose_headers_agree() -> None:
    async def main() -> None:
        script = Script(tools__call=ask_once, subscriptions__listen=listen)
        async with connected(script, auth="the-token", roots=["file:///a"], revisions=[MODERN]) as client:
            await client.call_tool("x")
            async with client.listen(tools=True) as changes:
                assert await asyncio.wait_for(anext(changes), 60) == ChangeEvent("tools")
        assert len(script.of("tools/call")) == 2
        for request in script.requests:
            assert request.method == "POST"
            assert request.json["method"] == request.headers["mcp-method"]
            assert not {"result", "error"} & {*request.json}
            assert request.json["params"]["_meta"][VERSION] == request.headers["mcp-protocol-version"] == MODERN
            assert request.headers["authorization"] == "Bearer the-token"
            assert "the-token" not in request.target

    run(main)
