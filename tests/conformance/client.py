"""A client that does what the official conformance suite asks for, by the name of the scenario.

    MCP_CONFORMANCE_SCENARIO=tools_call python tests/conformance/client.py URL

`URL` is anything that `typedmcp.connect` takes as text; a command, for trying it over stdio, goes behind `--`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import typedmcp
from typedmcp.client import Target
from typedmcp.dialect import structs

Scenario: TypeAlias = Callable[[typedmcp.Client], Awaitable[object]]


async def initialize(client: typedmcp.Client) -> object:
    return await client.list_tools()


async def tools_call(client: typedmcp.Client) -> object:
    return await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def defaults(client: typedmcp.Client) -> object:
    return await client.call_tool("test_client_elicitation_defaults")


async def preservation(client: typedmcp.Client) -> object:
    """Hand the schema of a tool back as it came."""
    (tool,) = (await client.list_tools()).tools
    return await client.call_tool(tool.name, {"schema": dict(tool.input_schema)})


async def request_metadata(client: typedmcp.Client) -> object:
    tools = (await client.list_tools()).tools
    return await client.call_tool(tools[0].name, {})


async def request_state(client: typedmcp.Client) -> object:
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")
    return None


SCENARIOS: dict[str, Scenario] = {
    "initialize": initialize,
    "tools_call": tools_call,
    "elicitation-sep1034-client-defaults": defaults,
    "json-schema-2020-12-preservation": preservation,
    "json-schema-ref-no-deref": initialize,
    "request-metadata": request_metadata,
    "sep-2322-client-request-state": request_state,
}


def elicit(params: Any) -> dict[str, Any]:
    """Accept: with the form's defaults, and yes where it asks for a confirmation."""
    schema: dict[str, Any] = structs.to_builtins(params).get("requestedSchema", {})
    return {"confirmed": True} if "confirmed" in schema.get("properties", {}) else {}


async def main(target: Target, scenario: str) -> None:
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    options: dict[str, Any] = {} if revision is None else {"revisions": [revision]}
    async with typedmcp.connect(target, name="conformance", version="1", elicit=elicit, **options) as client:
        await SCENARIOS[scenario](client)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(main(arguments[1:] if arguments[0] == "--" else arguments[0], os.environ["MCP_CONFORMANCE_SCENARIO"]))
