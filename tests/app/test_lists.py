"""Lists of a server: capabilities, order, caching, and independence of connections."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.server.scripted import MODERN_REVISION, SUPPORTED, Json, run, served
from typedmcp import Server


def same(x: str) -> str:
    return x


def suggest(ref: Any, argument: Any) -> list[str]:
    return []


def library(**options: Any) -> Server:
    """Return a server with several items of each kind."""
    server = Server(**options)
    for name in ("c", "a", "B", "b"):
        server.add_tool(lambda: "", name=name)
        server.add_prompt(lambda: "", name=name)
        server.add_resource(lambda: "", f"data://{name}")
        server.add_resource(same, f"data://{name}/{{x}}")
    return server


LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
CACHED: list[tuple[str, Json]] = [
    ("server/discover", {}),
    *((method, {}) for method in LISTS),
    ("resources/read", {"uri": "data://a"}),
]


ITEMS: dict[str, Callable[[Server], Any]] = {
    "tools": lambda server: server.add_tool(lambda: "", name="a"),
    "resources": lambda server: server.add_resource(lambda: "", "data://a"),
    "prompts": lambda server: server.add_prompt(lambda: "", name="a"),
    "completions": lambda server: server.completion(suggest),
}


@each("kind", ITEMS)
def test_a_server_declares_what_it_has(kind: str) -> None:
    async def main() -> None:
        server = Server()
        ITEMS[kind](server)
        async with served(server) as client:
            declared = (await client.result("server/discover"))["capabilities"]
            assert {*declared} & {*ITEMS} == {kind}
            assert "logging" in declared  # which a tool may send at any time

    run(main)


@each("method", LISTS)
def test_a_list_is_the_same_on_every_connection_and_after_every_request(method: str) -> None:
    async def main() -> None:
        server = library()
        lists: list[Any] = []
        for _ in range(2):
            async with served(server) as client:
                for _ in range(2):
                    lists.append((await client.result(method))[LISTS[method]])
                    await client.call("a")
        assert len(lists[0]) == 4
        assert lists == [lists[0]] * 4

    run(main)


CHANGES: dict[str, Callable[[Server], Any]] = {
    "tools": lambda server: server.add_tool(lambda: "", name="late"),
    "resources": lambda server: server.add_resource(lambda: "", "data://late"),
    "prompts": lambda server: server.add_prompt(lambda: "", name="late"),
}


@each("kind", CHANGES)
def test_a_changed_list_is_announced(kind: str) -> None:
    async def main() -> None:
        server = library()
        async with served(server) as client:
            wanted = {f"{each}ListChanged": True for each in CHANGES}
            client.start("subscriptions/listen", {"notifications": wanted})
            assert (await client.receive())["params"]["notifications"] == wanted
            CHANGES[kind](server)
            assert (await client.receive())["method"] == f"notifications/{kind}/list_changed"
            assert len((await client.result(f"{kind}/list"))[kind]) == 5

    run(main)


def test_changes_that_are_made_together_are_announced_once_each() -> None:
    async def main() -> None:
        server = library()
        async with served(server) as client:
            wanted = {"toolsListChanged": True, "resourceSubscriptions": ["data://a", "data://b"]}
            client.start("subscriptions/listen", {"notifications": wanted})
            await client.receive()
            for turn in range(2):
                for number in range(100):
                    server.add_tool(lambda: "", name=f"late{turn}.{number}")
                    server.resource_updated("data://b")
                    server.resource_updated("data://a")
                told = [await client.receive() for _ in range(3)]
                assert [(each["method"], each["params"].get("uri")) for each in told] == [
                    ("notifications/tools/list_changed", None),
                    ("notifications/resources/updated", "data://b"),
                    ("notifications/resources/updated", "data://a"),
                ]
                await client.settled()
                assert client.unread() == []

    run(main)


def test_the_case_of_names_matters() -> None:
    async def main() -> None:
        async with typedmcp.connect(library()) as client:
            await client.call_tool("B")
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool"):
                await client.call_tool("A")

    run(main)


@each("method, params", CACHED)
def test_a_result_that_can_be_cached_says_for_how_long_and_for_whom(method: str, params: Json) -> None:
    async def main() -> None:
        async with served(library(ttl=1.5)) as client:
            result = await client.result(method, params)
            assert type(result["ttlMs"]) is int
            assert result["ttlMs"] >= 0
            assert result["cacheScope"] in ("public", "private")

    run(main)


@each("method", LISTS)
@each("public", [True, False])
def test_all_pages_of_a_list_have_the_same_scope(method: str, public: bool) -> None:
    async def main() -> None:
        async with served(library(page=1, public=public)) as client:
            scopes: list[str] = []
            cursor: Json = {}
            while len(scopes) < 4:
                page = await client.result(method, cursor)
                scopes.append(page["cacheScope"])
                cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else {}
            assert scopes == ["public" if public else "private"] * 4

    run(main)


async def listed(server: object, revision: str, times: int = 1) -> list[Any]:
    """Return the results of `tools/list` that a client of a revision gets."""
    async with served(server) as client:
        await client.open(revision)
        return [await client.result("tools/list") for _ in range(times)]


@each("revision", SUPPORTED)
@each("id", [7, "seven"])
def test_a_later_list_is_that_of_a_new_server(revision: str, id: int | str) -> None:
    async def main() -> None:
        server = library()
        server.add_tool(same, name="described", description="Später: \u2028")
        (new,) = await listed(server, revision)
        async with served(server) as client:
            await client.open(revision)
            for _ in range(3):
                meta = {"_meta": client.meta()} if client.is_modern else {}
                client.send({"id": id, "method": "tools/list", "params": meta})
                message = await client.receive()
                assert (message["id"], message["result"]) == (id, new)

    run(main)


@each("revision", SUPPORTED)
def test_a_later_list_has_the_changes_since_the_last(revision: str) -> None:
    def number(x: Any = 1) -> str:
        return str(x)

    def truth(x: Any = True) -> str:  # True equals 1
        return str(x)

    async def main() -> None:
        server, inner = Server(), Server()
        server.mount(inner, prefix="inner")
        server.add_tool(number, name="same")
        async with served(server) as client:
            await client.open(revision)

            async def defaults() -> dict[str, Any]:
                found = [(await client.result("tools/list"))["tools"] for _ in range(3)]
                assert found == [found[0]] * 3
                return {tool["name"]: tool["inputSchema"]["properties"]["x"]["default"] for tool in found[0]}

            assert repr(await defaults()) == "{'same': 1}"
            server.remove_tool("same")
            server.add_tool(truth, name="same")
            assert repr(await defaults()) == "{'same': True}"
            inner.add_tool(number, name="late")
            assert await defaults() == {"same": True, "inner_late": 1}
            inner.remove_tool("late")
            assert await defaults() == {"same": True}

    run(main)


class Personal(Server):
    """Changes the items of a list for each request, in place."""

    requests = 0

    def list_tools(self, params: Any, ctx: Any) -> Any:
        made: Any = super().list_tools(params, ctx)
        self.requests += 1
        made.tools[0].description = f"request {self.requests}"
        return made


class Wrapped:
    """A handler that passes the lists of a server on, with changed items."""

    def __init__(self) -> None:
        self.server = library()
        self.requests = 0

    def list_tools(self, params: Any, ctx: Any) -> Any:
        made: Any = self.server.list_tools(params, ctx)
        self.requests += 1
        made.tools[0].description = f"request {self.requests}"
        return made


def with_middleware() -> Server:
    server, requests = library(), 0

    @server.middleware
    async def change(ctx: Any, params: Any, call_next: Any) -> Any:
        nonlocal requests
        made = await call_next()
        requests += 1
        made.tools[0].description = f"request {requests}"
        return made

    return server


def personal() -> Server:
    server = Personal()
    server.add_tool(lambda: "", name="a")
    return server


@each("revision", SUPPORTED)
@each("make", [personal, Wrapped, with_middleware])
def test_a_list_that_the_author_changes_is_not_kept(make: Callable[[], Any], revision: str) -> None:
    async def main() -> None:
        lists = await listed(make(), revision, times=3)
        assert [each["tools"][0]["description"] for each in lists] == ["request 1", "request 2", "request 3"]

    run(main)


@each("is_enabled", [True, False])
def test_garbage_is_collected_after_a_list_as_before(is_enabled: bool) -> None:
    async def main() -> None:
        server = library()
        was_enabled = gc.isenabled()
        try:
            (gc.enable if is_enabled else gc.disable)()
            await listed(server, MODERN_REVISION)
            assert gc.isenabled() is is_enabled
        finally:
            (gc.enable if was_enabled else gc.disable)()

    run(main)


def test_pages_of_a_list_are_not_mixed_up() -> None:
    async def main() -> None:
        server = library(page=3)
        async with served(server) as client:
            for _ in range(2):
                first = await client.result("tools/list")
                second = await client.result("tools/list", {"cursor": first["nextCursor"]})
                assert [[tool["name"] for tool in page["tools"]] for page in (first, second)] == [
                    ["c", "a", "B"],
                    ["b"],
                ]

    run(main)


def test_a_resource_is_listed_with_the_media_type_of_its_contents() -> None:
    def text() -> str:
        return "a"

    def data() -> bytes:
        return b"a"

    def table() -> dict[str, int]:
        return {"a": 1}

    def record() -> Any:
        return {"a": 1}

    record.__annotations__["return"] = "Unknown"

    async def main() -> None:
        server = typedmcp.Server("types")
        for function in (text, data, table, record):
            server.add_resource(function, f"it://{function.__name__}")
        server.add_resource(text, "it://own", name="own", mime_type="text/html")
        async with typedmcp.connect(server) as client:
            listed = {each.uri: each.mime_type for each in (await client.list_resources()).resources}
            assert listed.pop("it://record") is None
            for uri, kind in listed.items():
                (contents,) = (await client.read_resource(uri)).contents
                assert contents.mime_type == kind, uri

    run(main)
