"""Capabilities of legacy servers: the client uses only those that a server has declared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
import typedmcp_hosts
from tests import spoken
from tests.cases import each
from tests.client.test_misbehaviour import COMPLETE, played
from tests.conformance import server
from tests.server.scripted import MODERN_REVISION, Json, run
from typedmcp import sync
from typedmcp.client import connect
from typedmcp.dialect import methods, structs
from typedmcp.revisions.features import methods_of

REF = structs.PromptReference(name="p")
CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "tools/list": ("tools", lambda client: client.list_tools()),
    "tools/call": ("tools", lambda client: client.call_tool("x")),
    "prompts/list": ("prompts", lambda client: client.list_prompts()),
    "prompts/get": ("prompts", lambda client: client.get_prompt("x")),
    "resources/list": ("resources", lambda client: client.list_resources()),
    "resources/templates/list": ("resources", lambda client: client.list_resource_templates()),
    "resources/read": ("resources", lambda client: client.read_resource("a:b")),
    "completion/complete": ("completions", lambda client: client.complete(REF, "a", "b")),
    "logging/setLevel": ("logging", lambda client: client.set_log_level("error")),
    "resources/subscribe": ("resources.subscribe", lambda client: client.listen(uris=["a:b"]).__aenter__()),
}
DECLARED: dict[str, Json] = {
    "resources.subscribe": {"resources": {}, "tools": {}, "prompts": {}, "completions": {}, "logging": {}},
}
SECOND: Json = {"resources": {"subscribe": True}, "tools": {}, "prompts": {}, "completions": {}, "logging": {}}


def without(capability: str) -> Json:
    """Return all capabilities but one."""
    return DECLARED.get(capability, {name: value for name, value in SECOND.items() if name != capability})


def test_every_request_that_needs_a_capability_is_a_case() -> None:
    exempt = {"initialize", "ping", "server/discover", "subscriptions/listen", "resources/unsubscribe"}
    spoken_methods = {name for each in spoken.LEGACY for name in methods_of(each).CLIENT_REQUESTS}
    assert {name for name in spoken_methods if not name.startswith("tasks/")} - exempt == {*CALLS}


@each("revision", [*spoken.LEGACY, MODERN_REVISION])
@each("method", CALLS)
def test_a_call_without_its_capability_is_not_sent(method: str, revision: str) -> None:
    capability, call = CALLS[method]
    if method not in methods_of(revision).CLIENT_REQUESTS:
        return
    known = capability != "completions" or revision != "2024-11-05"

    async def main() -> None:
        async with played(revision, {"capabilities": without(capability)}) as (client, script):
            if known:
                with pytest.raises(typedmcp.UsageError, match=f"{method}: .* the capability {capability};"):
                    await call(client)
                assert await script.settled() == []
            else:
                calling = asyncio.create_task(call(client))
                assert (await script.receive())["method"] == method
                calling.cancel()
                await asyncio.wait([calling])

    run(main)


@each("revision", ["2025-11-25", MODERN_REVISION])
def test_it_is_sent_with_the_option(revision: str) -> None:
    async def main() -> None:
        async with played(revision, {"capabilities": {}}, check_capabilities=False) as (client, script):
            calling = asyncio.create_task(client.call_tool("x"))
            script.send(id=(await script.receive())["id"], result=COMPLETE)
            await calling

    run(main)


def test_method_records_are_checked_and_other_methods_are_not() -> None:
    async def main() -> None:
        async with played("2025-11-25", {"capabilities": {}}) as (client, script):
            with pytest.raises(typedmcp.UsageError, match="tools/list: the server has not declared"):
                await client.send(methods.TOOLS_LIST, {})
            calling = asyncio.create_task(client.send("x/y", {}))
            script.send(id=(await script.receive())["id"], result={"a": 1})
            assert await calling == {"a": 1}

    run(main)


ROOTS: list[tuple[Json, bool]] = [
    ({"roots": ["file:///a"]}, True),
    ({"capabilities": {"roots": {"listChanged": True}}}, True),
    ({"check_capabilities": False}, True),
    ({}, False),
    ({"capabilities": {"roots": {}}}, False),
]


@each("options, is_sent", ROOTS, ids=str)
def test_changes_of_roots_are_sent_by_clients_that_have_declared_them(options: Json, is_sent: bool) -> None:
    async def main() -> None:
        async with played("2025-11-25", **options) as (client, script):
            if is_sent:
                await client.notify_roots_changed()
                assert (await script.receive())["method"] == "notifications/roots/list_changed"
            else:
                with pytest.raises(typedmcp.UsageError, match="pass `roots` to `connect`"):
                    await client.notify_roots_changed()
                assert await script.settled() == []

    run(main)


class Tools:
    """A server with tools only."""

    def list_tools(self, _params: Any, _ctx: Any) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[])


def test_the_blocking_client_and_groups_share_the_check() -> None:
    with sync.connect(Tools(), revisions=["2025-11-25"]) as client:
        assert client.list_tools().tools == []
        with pytest.raises(typedmcp.UsageError, match="prompts/list: the server has not declared"):
            client.list_prompts()

    async def main() -> None:
        failures: list[tuple[str, Exception]] = []
        targets = {"a": Tools(), "b": server.Everything()}
        async with typedmcp_hosts.connect_all(
            targets, revisions=["2025-11-25"], on_failure=lambda name, error: failures.append((name, error))
        ) as group:
            assert {prompt.name.partition("_")[0] for prompt in await group.list_prompts()} == {"b"}
            with pytest.raises(typedmcp.UsageError, match="prompts/get: the server has not declared"):
                await group.get_prompt("a_x")
        assert failures == []

    run(main)


def test_a_client_connects_to_a_server_without_capabilities() -> None:
    async def main() -> None:
        async with connect(Tools(), revisions=["2025-11-25"]) as client:
            await client.ping()

    run(main)
