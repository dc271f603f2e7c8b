"""A client for the official conformance suite, with a function for each scenario.

    MCP_CONFORMANCE_SCENARIO=tools_call python tests/conformance/client.py URL

`URL` is any text that `typedmcp.connect` accepts; a command, to try it over stdio, follows `--`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import typedmcp
import typedmcp_auth as auth
from typedmcp.client import Target
from typedmcp.dialect import structs
from typedmcp.revisions.features import SUPPORTED

CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
"""The context that the suite passes to the client, beside the name of the scenario."""

METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The client id that the suite expects where an authorization server supports metadata documents."""

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


# Authorization


def visit(url: str) -> None:
    """Open a URL as a browser would, with its redirects. The servers of the suite let everybody in at once."""
    with urllib.request.urlopen(url, timeout=20) as page:  # noqa: S310  # of the suite
        page.read()


def sign_in(**options: Any) -> auth.OAuth:
    return auth.OAuth(sign_in=auth.BrowserSignIn(visit), client_name="conformance", **options)


def make_auth(scenario: str) -> Any:
    """Return the option `auth` for a scenario."""
    name = scenario.removeprefix("auth/")
    if name.startswith("client-credentials"):
        key = CONTEXT.get("private_key_pem")
        algorithm = CONTEXT.get("signing_algorithm", "ES256")
        return auth.ClientCredentials(
            CONTEXT["client_id"], CONTEXT.get("client_secret"), private_key=key, algorithm=algorithm
        )
    if name == "enterprise-managed-authorization":
        return auth.EnterpriseManaged(
            CONTEXT["client_id"],
            CONTEXT["client_secret"],
            id_token=CONTEXT["idp_id_token"],
            idp_token_endpoint=CONTEXT["idp_token_endpoint"],
            idp_client_id=CONTEXT["idp_client_id"],
        )
    if name == "wif-jwt-bearer":
        return auth.JwtBearer(CONTEXT["client_id"], CONTEXT["valid_jwt"])
    if name == "pre-registration":
        return sign_in(client_id=CONTEXT["client_id"], client_secret=CONTEXT["client_secret"])
    if name == "2025-03-26-oauth-endpoint-fallback":  # nothing shows that the server supports PKCE, which it does
        return sign_in(assume_pkce=True)
    return sign_in(client_metadata_url=METADATA_URL if name == "basic-cimd" else None)


REJECTED = {
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
}
"""Scenarios in which the client must not sign in."""


async def call_protected(client: typedmcp.Client) -> object:
    """List and call tools, so that the server can ask for more scopes, and its authorization server can change."""
    await client.list_tools()
    called = await client.call_tool("test-tool", {})
    await client.list_tools(fresh=True)
    return called


async def run_authorization(target: Target, scenario: str, options: dict[str, Any]) -> None:
    expected: tuple[type[typedmcp.Error], ...] = (typedmcp.SignInError,) if scenario in REJECTED else ()
    if scenario == "auth/scope-retry-limit":
        expected = (typedmcp.AuthorizationRequiredError,)
    try:
        async with typedmcp.connect(target, auth=make_auth(scenario), **options) as client:
            await call_protected(client)
    except expected as error:
        print(f"as expected: {error}", file=sys.stderr)
    else:
        assert not expected, "the client signed in"


async def main(target: Target, scenario: str) -> None:
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    options: dict[str, Any] = {"revisions": [revision]} if revision in SUPPORTED else {}
    about: dict[str, Any] = {"name": "conformance", "version": "1"}
    options["check_capabilities"] = False  # one of the suite's servers has tools, and does not declare them
    if scenario.startswith("auth/"):
        await run_authorization(target, scenario, {**about, **options})
        return
    async with typedmcp.connect(target, elicit=elicit, sample=sample, roots=[], **about, **options) as client:
        await SCENARIOS[scenario](client)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(main(arguments[1:] if arguments[0] == "--" else arguments[0], os.environ["MCP_CONFORMANCE_SCENARIO"]))
