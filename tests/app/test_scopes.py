"""Tools, resources and prompts that need scopes: hidden without them, and 403 where they are used."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

import typedmcp
from tests.cases import each
from tests.server.http.asgi_driver import CompleteResponse, Served, in_loop, serving, verify
from tests.spoken import LEGACY, MODERN_REVISION
from typedmcp import Auth, UsageError
from typedmcp.dialect import structs
from typedmcp_extensions.tasks import ServerTasks

LISTS = {
    "tools/list": ("tools", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
OPEN = {
    "tools/list": ["look"],
    "resources/list": ["data://open"],
    "resources/templates/list": ["open://{id}"],
    "prompts/list": ["greet"],
}
SCOPED = {
    "tools/list": ["write", "drop"],
    "resources/list": ["data://secret"],
    "resources/templates/list": ["secret://{id}"],
    "prompts/list": ["plan"],
}
"""The items that need the scopes `files:write` and `admin`."""
USES: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "drop", "arguments": {}}),
    ("resources/read", {"uri": "data://secret"}),
    ("resources/read", {"uri": "secret://7"}),
    ("prompts/get", {"name": "plan", "arguments": {"kind": "a"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "kind", "value": ""}}),
]
"""Requests for items that need both scopes."""


def make_server(**options: Any) -> typedmcp.Server:
    server = typedmcp.Server("files", **options)
    both = ["files:write", "admin"]

    @server.tool
    async def look() -> str:
        return "looked"

    @server.tool(scopes=["files:write"])
    async def write() -> str:
        return "written"

    @server.tool(scopes=both)
    def drop() -> str:
        return "dropped"

    @server.resource("data://open")
    def read_open() -> str:
        return "open"

    @server.resource("data://secret", scopes=both)
    def read_secret() -> structs.ReadResourceResult:
        contents = structs.TextResourceContents(uri="data://secret", text="secret")
        return structs.ReadResourceResult(contents=[contents], ttl_ms=60_000, cache_scope="public")

    @server.resource("open://{id}")
    def read_item(id: str) -> str:
        return id

    @server.resource("secret://{id}", scopes=both)
    def read_secret_item(id: str) -> str:
        return id

    @server.prompt
    def greet() -> str:
        return "hello"

    @server.prompt(scopes=both)
    def plan(kind: Literal["a", "b"]) -> str:
        return kind

    return server


def make_auth(**options: Any) -> Auth:
    return Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"], **options)


async def ask(served: Served, revision: str, method: str, params: dict[str, Any] | None = None) -> CompleteResponse:
    if revision == MODERN_REVISION:
        return await served.ask(method, params).reply()
    return await (await served.session(revision)).ask(method, params).reply()


def names(reply: CompleteResponse, method: str) -> list[str]:
    member, key = LISTS[method]
    return [item[key] for item in reply.json["result"][member]]


@each("revision", [MODERN_REVISION, LEGACY[0]])
@each("method", LISTS)
@in_loop
async def test_lists_have_what_the_scopes_of_the_token_allow(method: str, revision: str) -> None:
    async with serving(make_server(), auth=make_auth()) as served:
        served.bearer = "ann"
        assert names(await ask(served, revision, method), method) == OPEN[method]
        served.bearer = "ann:files:write"
        partly = [name for name in SCOPED[method] if name == "write"]
        assert names(await ask(served, revision, method), method) == OPEN[method] + partly
        served.bearer = "ann:files:write,admin"
        assert names(await ask(served, revision, method), method) == OPEN[method] + SCOPED[method]


@each("revision", [MODERN_REVISION, LEGACY[0]])
@each("method, params", USES)
@in_loop
async def test_a_request_without_the_scopes_gets_403_with_all_that_are_needed(
    method: str, params: dict[str, Any], revision: str
) -> None:
    async with serving(make_server(), auth=make_auth(scopes=["mcp"])) as served:
        for token in ("ann:mcp", "ann:mcp,admin"):
            served.bearer = token
            reply = await ask(served, revision, method, params)
            assert (reply.status, reply.code) == (403, -31403)
            challenge = reply.headers["www-authenticate"]
            assert 'error="insufficient_scope"' in challenge
            assert 'scope="mcp files:write admin"' in challenge
        served.bearer = "ann:mcp,admin,files:write"
        reply = await ask(served, revision, method, params)
        assert reply.status == 200
        assert "result" in reply.answer


@in_loop
async def test_a_broader_scope_shows_what_needs_a_narrower_one() -> None:
    async with serving(make_server(), auth=make_auth(implies={"admin": ["files:write"]})) as served:
        served.bearer = "ann:admin"
        assert names(await served.ask("tools/list").reply(), "tools/list") == ["look", "write", "drop"]
        assert (await served.call("drop").reply()).json["result"]["content"][0]["text"] == "dropped"


@each("method", LISTS)
@in_loop
async def test_a_list_that_depends_on_scopes_is_not_for_shared_caches(method: str) -> None:
    server = make_server(public=True, ttl=60)
    async with serving(server, auth=make_auth()) as served:
        for token in ("ann", "ann:files:write,admin"):
            served.bearer = token
            result = (await served.ask(method).reply()).json["result"]
            assert (result["cacheScope"], result["ttlMs"]) == ("private", 60_000)
        server.remove_tool("write")
        server.remove_tool("drop")
        for uri in ("data://secret", "secret://{id}"):
            server.remove_resource(uri)
        server.remove_prompt("plan")
        result = (await served.ask(method).reply()).json["result"]
        assert result["cacheScope"] == "public"


@in_loop
async def test_the_contents_of_a_resource_with_scopes_are_not_for_shared_caches() -> None:
    async with serving(make_server(), auth=make_auth()) as served:
        served.bearer = "ann:files:write,admin"
        result = (await served.ask("resources/read", {"uri": "data://secret"}).reply()).json["result"]
        assert (result["cacheScope"], result["ttlMs"]) == ("private", 60_000)


@in_loop
async def test_a_subscription_is_granted_for_resources_whose_scopes_the_token_has() -> None:
    uris = ["data://open", "data://secret", "secret://7", "other://1"]
    async with serving(make_server(), auth=make_auth()) as served:
        for token, granted in (("ann", ["data://open", "other://1"]), ("ann:files:write,admin", uris)):
            served.bearer = token
            listening = served.listen(resourceSubscriptions=uris)
            sent = (await listening.next_message())["params"]["notifications"]
            assert sent["resourceSubscriptions"] == granted
            listening.disconnect()


@in_loop
async def test_a_legacy_subscription_without_the_scopes_gets_403() -> None:
    async with serving(make_server(), auth=make_auth()) as served:
        for token, status in (("ann", 403), ("ann:files:write,admin", 200)):
            served.bearer = token
            reply = await ask(served, LEGACY[0], "resources/subscribe", {"uri": "secret://7"})
            assert reply.status == status


@in_loop
async def test_the_scopes_of_mounted_servers_count() -> None:
    outer = typedmcp.Server("outer", public=True)
    outer.mount(make_server(), "in")
    async with serving(outer, auth=make_auth()) as served:
        served.bearer = "ann"
        reply = await served.ask("tools/list").reply()
        assert (names(reply, "tools/list"), reply.json["result"]["cacheScope"]) == (["in_look"], "private")
        assert (await served.call("in_drop").reply()).status == 403
        assert (await served.ask("resources/read", {"uri": "data://in/secret"}).reply()).status == 403
        assert (await served.ask("prompts/get", {"name": "in_plan", "arguments": {"kind": "a"}}).reply()).status == 403
        listening = served.listen(resourceSubscriptions=["data://in/secret", "data://in/open"])
        sent = (await listening.next_message())["params"]["notifications"]
        assert sent["resourceSubscriptions"] == ["data://in/open"]
        served.bearer = "ann:files:write,admin"
        assert (await served.call("in_drop").reply()).status == 200


@in_loop
async def test_a_tool_that_runs_as_a_task_gets_403_before_there_is_a_task() -> None:
    server = typedmcp.Server("s", extensions=[ServerTasks()])

    @server.tool(task="optional", scopes=["files:write"])
    async def convert() -> str:
        return "converted"

    meta: dict[str, Any] = {
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    }
    async with serving(server, auth=make_auth()) as served:
        for token, status in (("ann", 403), ("ann:files:write", 200)):
            served.bearer = token
            reply = await served.call("convert", meta=meta).reply()
            assert reply.status == status
        assert reply.json["result"]["resultType"] == "task"


@in_loop
async def test_middleware_sees_the_error_about_scopes() -> None:
    server = make_server()
    seen: list[Exception] = []

    @server.middleware
    async def note(ctx: typedmcp.Context, params: Any, call_next: Any) -> Any:
        try:
            return await call_next()
        except typedmcp.InsufficientScopeError as error:
            seen.append(error)
            raise

    async with serving(server, auth=make_auth()) as served:
        served.bearer = "ann"
        assert (await served.call("write").reply()).status == 403
        assert [str(error) for error in seen] == ["required scopes: files:write (-31403)"]


@in_loop
async def test_without_auth_everything_with_scopes_is_hidden_over_http() -> None:
    async with serving(make_server()) as served:
        assert names(await served.ask("tools/list").reply(), "tools/list") == ["look"]
        assert (await served.call("write").reply()).status == 403


def test_a_client_in_the_same_process_sees_and_uses_everything() -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server()) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["look", "write", "drop"]
            assert await client.call_tool("drop", result_type=str) == "dropped"

    asyncio.run(asyncio.wait_for(main(), 60))


@each(
    "scopes, says",
    [
        ("files:write admin", r"tool 'write': scopes must be a list, such as \['files:write', 'admin'\], not a string"),
        (["files:write admin"], "tool 'write': scopes: 'files:write admin' is not a scope"),
        ([""], "'' is not a scope"),
        (['a"b'], "is not a scope"),
        ([7], "7 is not a scope"),
        (["offline_access"], "offline_access is between clients and authorization servers"),
    ],
)
def test_wrong_scopes_are_rejected_where_they_are_given(scopes: Any, says: str) -> None:
    def write(id: str) -> str:
        return id

    server = typedmcp.Server()
    with pytest.raises(UsageError, match=says):
        server.add_tool(write, scopes=scopes)
    with pytest.raises(UsageError, match=says.replace("tool 'write'", "resource 'a://{id}'")):
        server.add_resource(write, "a://{id}", scopes=scopes)
    with pytest.raises(UsageError, match=says.replace("tool 'write'", "prompt 'write'")):
        server.add_prompt(write, scopes=scopes)
