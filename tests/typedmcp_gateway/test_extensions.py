"""Extensions through a gateway that has no schema of them: what is declared, methods, results and notifications."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import typedmcp
from tests.acme import ACME, IDENTIFIER, INDEXED, SEARCH, SEEN, Hit, IndexedParams, SearchParams, SearchResult
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.serving import serving_http
from tests.spoken import SUPPORTED
from typedmcp import Context
from typedmcp.dialect import structs
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.server.extensions import ExtensionListener
from typedmcp_extensions.apps import AppPage, AppsClient, AppsServer, load_page, page_uri
from typedmcp_gateway import Gateway, NameRules

REVISION = LEGACY[0]
UI = "io.modelcontextprotocol/ui"


class Acme:
    """A server with the extension, on one revision or all."""

    def __init__(self, name: str = "acme", **options: Any) -> None:
        self.seen: list[int] = []
        self.declared: list[Any] = []
        search = typedmcp.ServerExtension(ACME, {"maxHits": 10, "name": name})

        @search.handler(SEARCH)
        async def find(params: SearchParams, ctx: Context) -> SearchResult:
            self.declared.append(ctx.client_capabilities.extensions)
            if params.query == "nothing":
                raise typedmcp.RemoteError(-32000, "no index", {"why": "empty"})
            await ctx.notify(INDEXED, IndexedParams(folder=params.query, documents=3))
            return SearchResult(hits=[Hit(title=f"{name}: {params.query}")])

        @search.handler(SEEN)
        def note(params: Any, _ctx: Context) -> None:
            self.seen.append(params.count)

        @search.filter("acmeFolders", list[str])
        @asynccontextmanager
        async def watch(folders: list[str], listener: ExtensionListener) -> AsyncGenerator[list[str]]:
            known = [folder for folder in folders if folder == name]
            for folder in known:
                listener.notify(INDEXED, IndexedParams(folder=folder, documents=os.getpid()), key=folder)
            yield known

        self.server = typedmcp.Server(name, extensions=[search])
        self.server.add_tool(self.plain)
        self.config = typedmcp.ServerConfig(self.server, **options)

    async def plain(self, ctx: Context) -> str:
        """Return the extensions that the client has declared."""
        return ",".join(sorted(ctx.client_capabilities.extensions or {}))


def client_extension(indexed: list[str]) -> typedmcp.ClientExtension:
    """Return the extension of a client, which notes the folders that were indexed."""
    made = typedmcp.ClientExtension(ACME, {"maxHits": 2})
    made.on(INDEXED)(lambda params: indexed.append(params.folder))
    return made


@each("server_revision", [MODERN_REVISION, REVISION])
@each("revision", [MODERN_REVISION, REVISION, LEGACY[-1]])
def test_an_extension_is_declared_on_both_sides_and_its_messages_pass(revision: str, server_revision: str) -> None:
    acme, indexed = Acme(revisions=[server_revision]), list[str]()

    async def main() -> None:
        gateway = Gateway(acme.config)
        async with typedmcp.connect(gateway, revisions=[revision], extensions=[client_extension(indexed)]) as client:
            assert ACME.settings_of(client.server.capabilities) == {"maxHits": 10, "name": "acme"}
            assert typedmcp.text_of(await client.call_tool("plain")) == IDENTIFIER
            assert [hit.title for hit in (await client.send(SEARCH, {"query": "tea"})).hits] == ["acme: tea"]
            with pytest.raises(typedmcp.RemoteError, match="no index") as caught:
                await client.send(SEARCH, {"query": "nothing"})
            assert (caught.value.code, caught.value.data) == (-32000, {"why": "empty"})
            await client.notify(SEEN, {"count": 7})
            while not acme.seen:
                await asyncio.sleep(0.01)

    run(main())
    assert acme.declared[0] == {IDENTIFIER: {"maxHits": 2}}
    assert indexed == ["tea"]
    assert acme.seen == [7]


@each("revision", [MODERN_REVISION, REVISION])
def test_a_client_without_the_extension_gets_the_error_of_the_server(revision: str) -> None:
    expected = {MODERN_REVISION: -32021, REVISION: -32601}

    async def main() -> None:
        gateway = Gateway(Acme(revisions=[revision]).config)
        async with typedmcp.connect(gateway, revisions=[revision]) as client:
            with pytest.raises(typedmcp.RemoteError) as caught:
                await client.send("acme/search", {"query": "tea"})
            assert caught.value.code == expected[revision]

    run(main())


@each("revision", SUPPORTED)
def test_a_method_is_unknown_if_no_server_has_declared_an_extension(revision: str) -> None:
    called: list[str] = []

    class Plain:
        def fallback(self, method: str, _params: Any, _ctx: Context) -> dict[str, Any]:
            called.append(method)
            return {}

    async def main() -> None:
        async with typedmcp.connect(Gateway(Plain()), revisions=[revision]) as client:
            with pytest.raises(typedmcp.MethodNotFoundError):
                await client.send("acme/search", {"query": "tea"})

    run(main())
    assert "acme/search" not in called


def test_results_of_an_extension_pass_as_they_are() -> None:
    sent = {"resultType": "acme/ticket", "number": 12345678901234567890, "deep": {"null": None}}

    class Tickets:
        def fallback(self, method: str, _params: Any, _ctx: Context) -> Any:
            return msgspec.Raw(msgspec.json.encode(sent)) if method == "tools/call" else {"resultType": "complete"}

    tools = structs.ServerCapabilities(tools=structs.ServerCapabilitiesTools(), extensions={IDENTIFIER: {}})
    config = typedmcp.ServerConfig(Tickets(), revisions=[MODERN_REVISION], capabilities=tools)

    async def main() -> None:
        async with typedmcp.connect(Gateway(config), extensions=[client_extension([])]) as client:
            assert await client.send("tools/call", {"name": "t"}) == sent
        async with typedmcp.connect(Gateway(config)) as client:
            with pytest.raises(typedmcp.RemoteError, match="sent an answer that is not valid"):
                await client.call_tool("t")

    run(main())


@each("client_over", ["http", "stdio"])
def test_a_server_over_http_gets_the_name_that_its_extension_demands(client_over: str) -> None:
    async def search(target: Any) -> None:
        async with typedmcp.connect(target, extensions=[client_extension([])]) as client:
            for query in ("tea", "täglich"):
                assert (await client.send(SEARCH, {"query": query})).hits[0].title == f"acme: {query}"

    async def main() -> None:
        async with serving_http(typedmcp.asgi(Acme().server)) as inner:
            gateway = Gateway(f"{inner}/mcp")
            if client_over == "stdio":
                await search(gateway)
                return
            async with serving_http(gateway.asgi()) as url:
                await search(f"{url}/mcp")

    run(main())


def test_notifications_of_an_extension_reach_the_client_that_called() -> None:
    async def main() -> None:
        config = typedmcp.ServerConfig(Gateway(Acme().config))

        async def search(name: str) -> list[str]:
            indexed: list[str] = []
            async with typedmcp.connect(config, extensions=[client_extension(indexed)]) as client:
                await asyncio.gather(*(client.send(SEARCH, {"query": name}) for _ in range(5)))
            return indexed

        for name, indexed in zip("abc", await asyncio.gather(*map(search, "abc")), strict=True):
            assert indexed == [name] * 5

    run(main())


def test_members_of_a_filter_pass_with_their_notifications() -> None:
    indexed: list[str] = []

    async def main() -> None:
        servers = {"a": Acme("a").config, "b": Acme("b").config, "plain": typedmcp.Server("plain")}
        gateway = Gateway(servers=servers)
        async with typedmcp.connect(gateway, extensions=[client_extension(indexed)]) as client:
            members = {"acmeFolders": ["a", "b", "c"], "unknown": 1}
            async with client.listen(tools=True, members=members) as subscription:
                assert subscription.granted_members == {"toolsListChanged": True, "acmeFolders": ["a", "b"]}
                while len(indexed) < 2:
                    await asyncio.sleep(0.01)

    run(main())
    assert sorted(indexed) == ["a", "b"]


@pytest.mark.long
def test_a_subscription_goes_on_after_its_server_was_replaced() -> None:
    processes: list[int] = []
    extension = typedmcp.ClientExtension(ACME)
    extension.on(INDEXED)(lambda params: processes.append(params.documents))
    command = [sys.executable, "-c", "from tests.typedmcp_gateway.test_extensions import Acme; Acme().server.run()"]

    async def main() -> None:
        async with (
            typedmcp.connect(Gateway(command), extensions=[extension]) as client,
            client.listen(members={"acmeFolders": ["acme"]}) as subscription,
        ):
            assert subscription.granted_members == {"acmeFolders": ["acme"]}
            for number in (1, 2):
                while len({*processes}) < number:
                    await asyncio.sleep(0.01)
                os.kill(processes[-1], signal.SIGKILL)

    run(main())


BY_NAME: dict[str, tuple[dict[str, Any], str]] = {
    "the prefix of a server": ({"query": "x", "name": "b_y"}, "b: x"),
    "no name": ({"query": "x"}, "the servers a, b have extensions, and neither params.name nor Mcp-Name says"),
    "the prefix of no server": ({"query": "x", "name": "c_y"}, "the servers a, b have extensions"),
}


@each("params, expected", BY_NAME.values(), ids=BY_NAME)
def test_the_name_in_a_request_decides_between_several_servers(params: dict[str, Any], expected: str) -> None:
    async def main() -> None:
        servers = {"a": Acme("a").config, "plain": typedmcp.Server("plain"), "b": Acme("b").config}
        async with typedmcp.connect(Gateway(servers=servers), extensions=[client_extension([])]) as client:
            assert ACME.settings_of(client.server.capabilities) == {"maxHits": 10}
            try:
                result = str((await client.send("acme/search", params))["hits"])
            except typedmcp.MethodNotFoundError as error:
                result = error.message
            assert expected in result

    run(main())


def test_the_only_server_with_an_extension_needs_no_name() -> None:
    async def main() -> None:
        servers = {"plain": typedmcp.Server("plain"), "a": Acme("a").config}
        async with typedmcp.connect(Gateway(servers=servers), extensions=[client_extension([])]) as client:
            assert (await client.send(SEARCH, {"query": "x"})).hits[0].title == "a: x"

    run(main())


def test_a_policy_decides_on_methods_of_extensions() -> None:
    asked: list[tuple[str, str]] = []

    def policy(_principal: Any, _server: str, kind: str, own: str) -> bool:
        asked.append((kind, own))
        return kind != "methods"

    async def main() -> None:
        gateway = Gateway(Acme().config, policy=policy)
        async with typedmcp.connect(gateway, extensions=[client_extension([])]) as client:
            with pytest.raises(typedmcp.MethodNotFoundError):
                await client.send(SEARCH, {"query": "x"})

    run(main())
    assert ("methods", "acme/search") in asked


def test_an_identifier_that_is_not_valid_is_reported_and_not_declared() -> None:
    reports: list[Diagnostic] = []

    async def main() -> None:
        odd = Acme().config
        odd.capabilities.extensions = {"no identifier": {}, IDENTIFIER: {"a": 1}}
        config = typedmcp.ServerConfig(Gateway(odd), on_diagnostic=reports.append)
        async with typedmcp.connect(config) as client:
            assert client.server.capabilities.extensions == {IDENTIFIER: {"a": 1}}

    run(main())
    assert any("'no identifier'" in report.text for report in reports)


@each("revision", [MODERN_REVISION, REVISION])
def test_pages_of_a_server_pass_with_their_metadata(revision: str) -> None:
    server = typedmcp.Server("weather", extensions=[AppsServer()])
    page = AppPage("ui://weather/rain", "<p>rain</p>", border=True)

    @page.tool(server)
    def rain(city: str) -> int:
        return len(city)

    async def main() -> None:
        servers = {"p": typedmcp.ServerConfig(server, revisions=[revision])}
        gateway = Gateway(servers=servers, rules={"p": NameRules("p.")})
        async with typedmcp.connect(gateway, revisions=[revision], extensions=[AppsClient()]) as client:
            assert UI in (client.server.capabilities.extensions or {})
            (tool,) = (await client.list_tools()).tools
            assert (tool.name, page_uri(tool)) == ("p.rain", "ui://weather/rain")
            loaded = await load_page(client, tool)
            assert ("<p>rain</p>" in loaded.document, loaded.meta.prefers_border) == (True, True)
            assert await client.call_tool("p.rain", {"city": "Oslo"}, result_type=int) == 4
        async with typedmcp.connect(gateway, revisions=[revision]) as client:  # which shows no pages
            (tool,) = (await client.list_tools()).tools
            assert page_uri(tool) is None

    run(main())
