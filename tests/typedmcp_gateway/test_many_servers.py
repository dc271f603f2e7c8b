"""Several servers behind one gateway: names, filters, policies, routes, and servers that are down."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.paths import ROOT
from tests.typedmcp_gateway.everyday_server import make_server, starting
from typedmcp.dialect import structs
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp_gateway import Gateway
from typedmcp_gateway.names import Kind, NameRules

DOWN = [sys.executable, "-c", "raise SystemExit(70)"]


def library(revision: str = MODERN_REVISION) -> typedmcp.ServerConfig:
    """Return another server, with pages, whose names overlap those of the everyday server."""
    server = typedmcp.Server("library", instructions="Finds books.", page=2)

    @server.tool
    def text() -> str:
        return "text of the library"

    def use() -> str:
        return "used"

    for name in ("find", "lend", "return_book"):
        server.add_tool(use, name=name)

    @server.resource("book://{title}")
    def book(title: str) -> str:
        if title == "none":
            raise typedmcp.ResourceNotFoundError(f"book://{title}")
        return title

    @server.prompt
    def greeting(name: str) -> str:
        return f"Greet the reader {name}."

    @server.completion(greeting, "name")
    def complete_name(value: str) -> list[str]:
        return [f"{value}!"]

    return typedmcp.ServerConfig(server, revisions=[revision])


def everyday(revision: str = LEGACY[0]) -> typedmcp.ServerConfig:
    """Return the everyday server on a revision."""
    return typedmcp.ServerConfig(make_server(), revisions=[revision])


@each("client_revision", [MODERN_REVISION, LEGACY[0], LEGACY[-1]])
def test_tools_prompts_and_resources_of_several_servers_are_used_through_one(client_revision: str) -> None:
    gateway = Gateway(servers={"day": everyday(), "lib": library()})

    async def main() -> None:
        async with typedmcp.connect(gateway, revisions=[client_revision]) as client:
            names = [tool.name async for tool in client.tools()]
            assert len(names) == len(set(names))
            assert {"day_add", "day_text", "lib_text", "lib_find", "lib_lend", "lib_return_book"} <= {*names}
            assert {prompt.name async for prompt in client.prompts()} == {"day_greeting", "lib_greeting"}
            assert {t.uri_template async for t in client.resource_templates()} == {"city://{name}", "book://{title}"}
            assert typedmcp.text_of(await client.call_tool("day_text")) == "plain text"
            assert typedmcp.text_of(await client.call_tool("lib_text")) == "text of the library"
            (prompt,) = (await client.get_prompt("lib_greeting", {"name": "Ada"})).messages
            assert typedmcp.text_of(prompt.content) == "Greet the reader Ada."
            made = await client.complete(structs.PromptReference(name="lib_greeting"), "name", "A")
            assert made.completion.values == ["A!"]
            for uri in ("book://tea", "city://Oslo", "note://tea"):
                (contents,) = (await client.read_resource(uri)).contents
                assert contents.uri == uri
            with pytest.raises(typedmcp.ResourceNotFoundError):
                await client.read_resource("book://none")
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool: text"):
                await client.call_tool("text")
            assert client.server.instructions == "Add numbers, and ask people.\n\nFinds books."

    run(main())


def test_a_server_that_is_down_takes_no_other_along() -> None:
    reports: list[Diagnostic] = []
    gateway = Gateway(servers={"down": DOWN, "day": everyday()})
    config = typedmcp.ServerConfig(gateway, on_diagnostic=reports.append)

    async def main() -> None:
        async with typedmcp.connect(config) as client:
            assert "day_add" in {tool.name async for tool in client.tools()}
            assert typedmcp.text_of(await client.call_tool("day_text")) == "plain text"
            with pytest.raises(typedmcp.RemoteError, match="the server 'down' cannot be reached"):
                await client.call_tool("down_text")
            (contents,) = (await client.read_resource("note://tea")).contents
            assert contents.uri == "note://tea"

    run(main())
    assert any("server 'down'" in report.text for report in reports)


def test_rules_set_prefixes_filters_and_other_names() -> None:
    rules = {
        "day": NameRules("d.", exclude=["ask_*", "touch"]),
        "lib": NameRules(include=["text", "find"], rename={"text": "page"}),
    }
    gateway = Gateway(servers={"day": everyday(), "lib": library()}, rules=rules)

    async def main() -> None:
        async with typedmcp.connect(gateway) as client:
            names = {tool.name async for tool in client.tools()}
            assert {"d.add", "page", "find"} <= names
            assert not {"lend", "text", "d.touch", "d.ask_model"} & names
            assert typedmcp.text_of(await client.call_tool("page")) == "text of the library"
            for name in ("lend", "text", "d.touch", "lib_find"):
                with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool"):
                    await client.call_tool(name)

    run(main())


def test_tools_that_a_configuration_switches_off_do_not_appear() -> None:
    command, *args = starting(MODERN_REVISION, "stdio")
    members = {"command": command, "args": args, "cwd": str(ROOT), "disabledTools": ["text"]}
    config = {"mcpServers": {"day": members}, "gateway": {"day": {"exclude": ["touch"]}}}

    async def main() -> None:
        async with typedmcp.connect(Gateway(servers=config)) as client:
            names = {tool.name async for tool in client.tools()}
            assert "add" in names
            assert not {"text", "touch"} & names
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool"):
                await client.call_tool("text")

    run(main())


def test_a_policy_decides_what_is_seen_and_used() -> None:
    asked: set[tuple[str, Kind, str]] = set()

    def policy(_principal: Any, server: str, kind: Kind, own: str) -> bool:
        asked.add((server, kind, own))
        return own in ("add", "greeting", "city://{name}", "city://Oslo")

    gateway = Gateway(servers={"day": everyday(), "lib": library()}, policy=policy)

    async def main() -> None:
        async with typedmcp.connect(gateway) as client:
            assert [tool.name async for tool in client.tools()] == ["day_add"]
            assert [template.uri_template async for template in client.resource_templates()] == ["city://{name}"]
            assert [resource.uri async for resource in client.resources()] == []
            assert await client.read_resource("city://Oslo")
            for uri in ("note://tea", "book://tea"):
                with pytest.raises(typedmcp.ResourceNotFoundError):
                    await client.read_resource(uri)
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool: day_text"):
                await client.call_tool("day_text")

    run(main())
    assert {("day", "tools", "text"), ("lib", "tools", "lend"), ("lib", "resources", "book://tea")} <= asked


@each("pages, expected", [(3, [3]), (64, [64]), (65, [64, 1]), (150, [64, 64, 22])])
def test_lists_of_servers_are_read_to_the_end_up_to_a_limit(pages: int, expected: list[int]) -> None:
    server = typedmcp.Server("long", page=1)
    for number in range(pages):
        server.add_tool(lambda: "", name=f"t{number}")
    several = Gateway(servers={"long": typedmcp.ServerConfig(server), "other": typedmcp.Server("other")})

    async def main() -> None:
        for gateway in (Gateway(servers={"long": typedmcp.ServerConfig(server)}), several):
            async with typedmcp.connect(gateway) as client:
                cursor, found = None, list[int]()
                while not found or cursor is not None:
                    page = await client.list_tools(cursor)
                    cursor = page.next_cursor
                    found.append(len(page.tools))
                assert found == expected

    run(main())


def test_a_cursor_of_something_else_is_rejected() -> None:
    gateway = Gateway(servers={"day": everyday(), "lib": library()})

    async def main() -> None:
        async with typedmcp.connect(gateway) as client:
            with pytest.raises(typedmcp.InvalidParamsError, match=r"params\.cursor: not one of this gateway"):
                await client.list_tools("x")

    run(main())


def test_the_questions_of_one_of_several_servers_are_answered() -> None:
    gateway = Gateway(servers={"old": everyday(), "new": everyday(MODERN_REVISION)})

    async def main() -> None:
        async with typedmcp.connect(gateway, roots=["file:///r"], sample=lambda _: "blue") as client:
            for name in ("old_ask_two", "new_ask_two"):
                assert typedmcp.text_of(await client.call_tool(name)) == "file:///r blue"

    run(main())


def test_a_configuration_leaves_out_disabled_servers_and_names_mistakes(tmp_path: Any) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"url": "https://a.example/mcp"}, "b": {"command": "b", "disabled": true}}}')
    assert Gateway(servers=str(file)).server_names == ["a"]
    with pytest.raises(typedmcp.UsageError, match="rules: unknown server 'c'; known: a, b"):
        Gateway(servers=str(file), rules={"c": NameRules()})
    with pytest.raises(typedmcp.UsageError, match="either a target or servers"):
        Gateway()


def shop(name: str, **options: Any) -> typedmcp.Server:
    server = typedmcp.Server(name, **options)

    @server.tool
    def sell() -> str:
        return "sold"

    @server.resource("price://tea")
    def price() -> structs.ReadResourceResult:
        contents = structs.TextResourceContents(uri="price://tea", text="3")
        return structs.ReadResourceResult(contents=[contents], ttl_ms=60_000, cache_scope="public")

    return server


@each("revisions", [[MODERN_REVISION], [LEGACY[0]]])
def test_caches_keep_a_list_of_several_servers_as_its_strictest_server_allows(revisions: list[str]) -> None:
    def made(**servers: Any) -> Gateway:
        return Gateway(servers=servers)

    first, other = shop("first", public=True, ttl=60.0), shop("other", public=True, ttl=30.0)
    old = typedmcp.ServerConfig(other, revisions=revisions)
    private = typedmcp.ServerConfig(shop("private", ttl=90.0), revisions=revisions)

    async def main() -> None:
        async with typedmcp.connect(made(first=first, private=private)) as client:
            assert (await client.list_tools()).cache_scope == "private"
        async with typedmcp.connect(made(first=first, down=DOWN)) as client:
            assert (await client.list_tools()).ttl_ms == 0
        async with typedmcp.connect(made(first=first, other=old)) as client:
            listed = await client.list_tools()
            known = revisions == [MODERN_REVISION]
            assert (listed.ttl_ms, listed.cache_scope) == ((30_000, "public") if known else (0, "private"))

    run(main())


def test_shared_caches_keep_nothing_that_a_policy_has_decided() -> None:
    def policy(_principal: Any, _server: str, _kind: Kind, _own: str) -> bool:
        return True

    gateway = Gateway(servers={"shop": shop("shop", public=True)}, policy=policy)

    async def main() -> None:
        async with typedmcp.connect(gateway) as client:
            assert (await client.list_tools()).cache_scope == "private"
            assert (await client.read_resource("price://tea")).cache_scope == "private"

    run(main())


def test_a_server_that_invents_names_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp_gateway.listing.MAX_LISTED", 3)
    count = 0

    class Inventor:
        def list_tools(self, _params: Any, _ctx: typedmcp.Context) -> structs.ListToolsResult:
            nonlocal count
            count += 1
            tools = [structs.Tool(name=f"t{count}", input_schema={"type": "object"})]
            return structs.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    gateway = Gateway(Inventor())

    async def main() -> None:
        async with typedmcp.connect(gateway) as client:
            for _ in range(10):
                await client.list_tools()
        (server,) = gateway._servers.values()  # pyright: ignore[reportPrivateUsage]
        assert count > 10
        assert len(server.listed["tools"]) == 3
        assert len(server.schemas) <= 4

    run(main())


def test_a_server_with_sessions_gets_no_connection_for_a_client_that_neither_calls_it_nor_lists() -> None:
    gateway = Gateway(servers={"day": everyday(), "lib": library(LEGACY[0])})

    def connected() -> int:
        return len(gateway._require_running().pool.members)  # pyright: ignore[reportPrivateUsage]

    async def main() -> None:
        async with typedmcp.connect(gateway, revisions=[LEGACY[-1]]) as client:
            for _ in range(2):
                await client.call_tool("day_add", {"a": 1, "b": 2})
                await asyncio.sleep(0)
                assert connected() == 1
            await client.list_tools()
            assert connected() == 2

    run(main())


def test_legacy_clients_share_the_connection_to_a_modern_server_until_they_want_log_messages() -> None:
    gateway = Gateway(library())

    def connected() -> int:
        return len(gateway._require_running().pool.members)  # pyright: ignore[reportPrivateUsage]

    async def main() -> None:
        async with (
            typedmcp.connect(gateway, revisions=[LEGACY[0]]) as first,
            typedmcp.connect(gateway, revisions=[LEGACY[-1]]) as second,
        ):
            for client in (first, second):
                assert typedmcp.text_of(await client.call_tool("find")) == "used"
            assert connected() == 1
            await second.set_log_level("info")
            await second.call_tool("find")
            assert connected() == 2

    run(main())
