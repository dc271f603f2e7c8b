"""A client for the official conformance suite, with a function for each scenario.

    MCP_CONFORMANCE_SCENARIO=tools_call python tests/conformance/client.py URL

`URL` is any text that `typedmcp.connect` accepts; a command, to try it over stdio, follows `--`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import typedmcp
from typedmcp.client import Target
from typedmcp.dialect import structs
from typedmcp.revisions.features import SUPPORTED

CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
"""The context that the suite passes to the client, beside the name of the scenario."""

Scenario: TypeAlias = Callable[[typedmcp.Client], Awaitable[object]]


async def initialize(client: typedmcp.Client) -> object:
    return await client.list_tools()


async def tools_call(client: typedmcp.Client) -> object:
    return await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def defaults(client: typedmcp.Client) -> object:
    return await client.call_tool("test_client_elicitation_defaults")


async def preservation(client: typedmcp.Client) -> object:
    """Return the schema of a tool unchanged."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    return await client.call_tool("json_schema_echo", {"schema": dict(tools["json_schema_2020_12_tool"].input_schema)})


async def request_metadata(client: typedmcp.Client) -> object:
    for tool in (await client.list_tools()).tools:
        await client.call_tool(tool.name, some_arguments(tool.input_schema))
    return None


async def call_each(client: typedmcp.Client) -> object:
    """Call all tools."""
    for tool in (await client.list_tools()).tools:
        await client.call_tool(tool.name, some_arguments(tool.input_schema))
    return None


def some_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each argument of a tool."""
    examples: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": []}
    properties: dict[str, Any] = schema.get("properties", {})
    return {
        name: some_arguments(inner) if inner.get("type") == "object" else examples.get(str(inner.get("type")), "text")
        for name, inner in properties.items()
    }


async def replay(client: typedmcp.Client) -> object:
    """List the tools, then call the one in the context."""
    await client.list_tools()
    for called in CONTEXT["toolCalls"]:
        await client.call_tool(called["name"], called.get("arguments"))
    return None


async def standard_headers(client: typedmcp.Client) -> object:
    """List everything, and use one item of each kind."""
    tools = (await client.list_tools()).tools
    await client.call_tool(tools[0].name, some_arguments(tools[0].input_schema))
    resources = (await client.list_resources()).resources
    await client.read_resource(resources[0].uri)
    prompts = (await client.list_prompts()).prompts
    return await client.get_prompt(prompts[0].name)


async def reconnection(client: typedmcp.Client) -> object:
    await client.list_tools()
    return await client.call_tool("test_reconnection")


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
    "http-standard-headers": standard_headers,
    "http-custom-headers": replay,
    "http-invalid-tool-headers": call_each,
    "sse-retry": reconnection,
}


def elicit(params: Any) -> dict[str, Any]:
    """Accept a form with its defaults, and confirm if it asks for a confirmation."""
    schema: dict[str, Any] = structs.to_builtins(params).get("requestedSchema", {})
    return {"confirmed": True} if "confirmed" in schema.get("properties", {}) else {}


def sample(_params: structs.CreateMessageRequestParams) -> structs.CreateMessageResult:
    """Answer as a model that always generates the same text."""
    said = structs.TextContent(text="What the model says.")
    return structs.CreateMessageResult(role="assistant", content=said, model="none")


async def main(target: Target, scenario: str) -> None:
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    options: dict[str, Any] = {"revisions": [revision]} if revision in SUPPORTED else {}
    about: dict[str, Any] = {"name": "conformance", "version": "1"}
    async with typedmcp.connect(target, elicit=elicit, sample=sample, roots=[], **about, **options) as client:
        await SCENARIOS[scenario](client)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(main(arguments[1:] if arguments[0] == "--" else arguments[0], os.environ["MCP_CONFORMANCE_SCENARIO"]))
