"""Methods, notifications, settings and filters of extensions in a server, on every revision."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import typedmcp
from tests import acme
from tests.cases import each
from tests.server.scripted import LEGACY, MODERN_REVISION, SUPPORTED, Client, Json, run, served
from typedmcp import Context, DiagnosticKind, ServerExtension
from typedmcp.dialect import methods, models, structs
from typedmcp.server.extension_setup import serve_methods
from typedmcp.server.extensions import ExtensionListener

DECLARED: Json = {"extensions": {acme.IDENTIFIER: {"limit": 3}}}


class Search:
    """The extension of one server, with what it has seen."""

    def __init__(self, **options: Any) -> None:
        self.seen = 0
        self.extension = ServerExtension(acme.ACME, {"maxHits": 10}, **options)
        self.listeners: list[ExtensionListener] = []
        self.extension.handler(acme.SEARCH)(self.search)
        self.extension.handler(acme.SEEN)(self.note)
        self.extension.filter("acmeFolders", list[str])(self.watch)

    async def search(self, params: acme.SearchParams, ctx: Context) -> acme.SearchResult:
        settings = acme.ACME.settings_of(ctx.client_capabilities)
        hit = f"{params.query} {settings} {ctx.state_of(self.extension)}"
        await ctx.notify(acme.INDEXED, acme.IndexedParams(folder="all", documents=1))
        return acme.SearchResult(hits=[acme.Hit(title=hit)])

    def note(self, params: acme.SeenParams, ctx: Context) -> None:
        self.seen += params.count

    @asynccontextmanager
    async def watch(self, folders: list[str], listener: ExtensionListener) -> AsyncGenerator[list[str]]:
        granted = [folder for folder in folders if folder != "secret"]
        self.listeners.append(listener)
        for documents in (1, 2):
            listener.notify(acme.INDEXED, acme.IndexedParams(folder="a", documents=documents), key="a")
        try:
            yield granted
        finally:
            self.listeners.remove(listener)


class Tools:
    """A handler by hand."""

    def list_tools(self, params: Any, ctx: Context) -> structs.ListToolsResult:
        return structs.ListToolsResult(tools=[])


class ToolsOnModels:
    """A handler by hand, on Pydantic models."""

    def list_tools(self, params: Any, ctx: Context) -> models.ListToolsResult:
        return models.ListToolsResult(tools=[], ttl_ms=0, cache_scope="private")


HANDLERS: dict[str, Callable[[Search], tuple[object, Json]]] = {
    "a Server": lambda search: (typedmcp.Server("x", extensions=[search.extension]), {}),
    "a handler": lambda search: (Tools(), {"extensions": [search.extension]}),
    "a handler on models": lambda search: (ToolsOnModels(), {"extensions": [search.extension], "codec": "pydantic"}),
}


@each("revision", SUPPORTED)
@each("name", HANDLERS)
def test_a_client_that_declares_an_extension_calls_its_methods(name: str, revision: str) -> None:
    search = Search()
    handler, options = HANDLERS[name](search)

    async def main() -> None:
        async with served(handler, **options) as client:
            await client.open(revision, **DECLARED)
            described = client.opened or await client.result("server/discover")
            assert described["capabilities"]["extensions"] == {acme.IDENTIFIER: {"maxHits": 10}}
            id = client.start("acme/search", {"query": "tea"})
            notification = await client.receive()
            assert notification["method"] == "notifications/acme/indexed"
            assert notification["params"] == {"folder": "all", "documents": 1}
            result = (await client.answer_to(id))["result"]
            assert result["hits"] == [{"title": "tea {'limit': 3} None"}]
            client.send({"method": "notifications/acme/seen", "params": {"count": 2}})
            if client.is_modern:
                params = {"count": 2, "_meta": client.meta()}
                client.send({"method": "notifications/acme/seen", "params": params})
            await client.settled()
            assert search.seen == 2

    run(main)


@each("revision", SUPPORTED)
@each("name", HANDLERS)
def test_a_client_that_has_not_declared_an_extension_is_refused(name: str, revision: str) -> None:
    search = Search()
    handler, options = HANDLERS[name](search)

    async def main() -> None:
        async with served(handler, **options) as client:
            await client.open(revision, extensions={"com.acme/other": {}})
            error = await client.error("acme/search", {"query": "tea"})
            if client.is_modern:
                assert error["code"] == -32021
                assert error["data"] == {"requiredCapabilities": {"extensions": {acme.IDENTIFIER: {}}}}
            else:
                assert (error["code"], error["message"]) == (-32601, "method not found: acme/search")
            client.send({"method": "notifications/acme/seen", "params": {"count": 2}})
            await client.settled()
            assert search.seen == 0
            (report,) = client.of_kind(DiagnosticKind.TOLERATED)
            assert "the client has not declared com.acme/search" in report.text

    run(main)


@each("revision", SUPPORTED)
def test_a_server_without_the_extension_does_not_know_its_methods(revision: str) -> None:
    async def main() -> None:
        async with served(typedmcp.Server("x")) as client:
            await client.open(revision, **DECLARED)
            described = client.opened or await client.result("server/discover")
            assert "extensions" not in described["capabilities"]
            assert (await client.error("acme/search", {"query": "tea"}))["code"] == -32601

    run(main)


def test_an_extension_that_cannot_be_used_on_a_revision_is_unknown_there() -> None:
    extension = ServerExtension(typedmcp.Extension(acme.IDENTIFIER, acme.PACKAGE, revisions=[MODERN_REVISION]))
    extension.handler(acme.SEARCH)(Search().search)

    async def main() -> None:
        async with served(typedmcp.Server("x", extensions=[extension])) as client:
            await client.open(LEGACY[-1], **DECLARED)
            assert "extensions" not in client.opened["capabilities"]
            assert (await client.error("acme/search", {"query": "tea"}))["code"] == -32601

    run(main)


@each("revision", [MODERN_REVISION, LEGACY[-1]])
def test_wrong_parameters_of_an_extension_name_their_place(revision: str) -> None:
    async def main() -> None:
        async with served(typedmcp.Server("x", extensions=[Search().extension])) as client:
            await client.open(revision, **DECLARED)
            error = await client.error("acme/search", {"query": 1})
            assert error["code"] == -32602
            assert "query" in error["message"]

    run(main)


def test_requests_of_an_extension_pass_through_the_middleware() -> None:
    async def main() -> None:
        seen: list[tuple[str, object]] = []

        async def note(ctx: Context, params: Any, call_next: typedmcp.CallNext) -> Any:
            seen.append((ctx.method, params.query))
            if params.query == "secret":
                raise typedmcp.InvalidParamsError("no")
            return await call_next()

        server = typedmcp.Server("x", extensions=[Search().extension], middleware=[note])
        async with served(server) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            assert (await client.result("acme/search", {"query": "tea"}))["hits"]
            assert (await client.error("acme/search", {"query": "secret"}))["message"] == "no"
            assert seen == [("acme/search", "tea"), ("acme/search", "secret")]

    run(main)


def test_a_plain_handler_that_blocks_runs_in_a_thread() -> None:
    import threading

    extension = ServerExtension(acme.ACME)
    threads: list[bool] = []

    @extension.handler(acme.SEARCH)
    @typedmcp.in_thread
    def search(params: acme.SearchParams, ctx: Context) -> acme.SearchResult:
        threads.append(threading.current_thread() is threading.main_thread())
        return acme.SearchResult(hits=[])

    async def main() -> None:
        async with served(typedmcp.Server("x", extensions=[extension])) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            assert (await client.result("acme/search", {"query": "tea"}))["hits"] == []
            assert threads == [False]

    run(main)


def test_a_lifespan_of_an_extension_begins_after_that_of_the_server() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def of_extension(config: typedmcp.ServerConfig) -> AsyncGenerator[str]:
        events.append(f"extension of {config.info.name} begins")
        yield "its state"
        events.append("extension ends")

    @asynccontextmanager
    async def of_server(server: object) -> AsyncGenerator[str]:
        events.append("server begins")
        yield "state"
        events.append("server ends")

    async def main() -> None:
        search = Search(lifespan=of_extension)
        async with served(typedmcp.Server("x", extensions=[search.extension], lifespan=of_server)) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            (hit,) = (await client.result("acme/search", {"query": "tea"}))["hits"]
            assert hit["title"].endswith("its state")

    run(main)
    assert events == ["server begins", "extension of under test begins", "extension ends", "server ends"]


# Filters of subscriptions


async def listen(client: Client, **notifications: Any) -> tuple[int, Json]:
    id = client.start("subscriptions/listen", {"notifications": notifications})
    return id, await client.receive()


def test_a_filter_of_an_extension_is_granted_in_part_and_gets_notifications() -> None:
    search = Search()

    async def main() -> None:
        server = typedmcp.Server("x", extensions=[search.extension])
        async with served(server) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            id, acknowledged = await listen(client, acmeFolders=["a", "secret"], toolsListChanged=True)
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"]["notifications"]["acmeFolders"] == ["a"]
            meta = {"io.modelcontextprotocol/subscriptionId": id}
            first = await client.receive()  # of two with the same key, which came before the acknowledgement
            assert first["params"] == {"folder": "a", "documents": 2, "_meta": meta}
            (listener,) = search.listeners
            listener.notify(acme.INDEXED, acme.IndexedParams(folder="a", documents=3))
            assert (await client.receive())["params"] == {"folder": "a", "documents": 3, "_meta": meta}
            client.send({"method": "notifications/cancelled", "params": {"requestId": id}})
            await client.settled()
            assert search.listeners == []

    run(main)


def test_a_filter_of_an_extension_needs_its_declaration() -> None:
    search = Search()

    async def main() -> None:
        async with served(typedmcp.Server("x", extensions=[search.extension])) as client:
            await client.open(MODERN_REVISION)
            _, answer = await listen(client, acmeFolders=["a"])
            assert answer["error"]["code"] == -32021
            await client.open(MODERN_REVISION, **DECLARED)
            _, answer = await listen(client, acmeFolders=[1])
            assert answer["error"]["code"] == -32602
            assert "params.notifications.acmeFolders[0]" in answer["error"]["message"]
            assert search.listeners == []

    run(main)


def test_a_filter_that_fails_leaves_no_listener() -> None:
    extension = ServerExtension(acme.ACME)

    @extension.filter("acmeFolders", list[str])
    @asynccontextmanager
    async def watch(folders: list[str], listener: ExtensionListener) -> AsyncGenerator[list[str]]:
        if folders:
            raise typedmcp.InvalidParamsError("no such folder")
        yield folders

    async def main() -> None:
        async with served(typedmcp.Server("x", extensions=[extension])) as client:
            await client.open(MODERN_REVISION, **DECLARED)
            _, answer = await listen(client, acmeFolders=["a"])
            assert answer["error"]["message"] == "no such folder"

    run(main)


# Faults of authors


def test_faults_in_extensions_are_named() -> None:
    search = ServerExtension(acme.ACME)
    search.handler(acme.SEARCH)(Search().search)
    search.filter("x", str)(Search().watch)  # type: ignore[arg-type]
    faults: dict[str, Callable[[], object]] = {
        "'search' cannot identify an extension": lambda: typedmcp.Extension("search"),
        "names: 'acme/x' is no method": lambda: typedmcp.Extension("a.b/c", acme.PACKAGE, names={"acme/x": "y"}),
        "acme/search has no parameter 'y'": lambda: typedmcp.Extension(
            "a.b/c", acme.PACKAGE, names={"acme/search": "y"}
        ),
        "results: 'acme/x' is no request": lambda: typedmcp.Extension("a.b/c", results={"acme/x": acme.SearchResult}),
        "unknown revision '1'": lambda: typedmcp.Extension("a.b/c", revisions=["1"]),
        "settings must be an object": lambda: ServerExtension(acme.ACME, [1]),  # type: ignore[arg-type]
        "settings must be JSON": lambda: ServerExtension(acme.ACME, {"a": object()}),
        "lifespan must be a function": lambda: ServerExtension(acme.ACME, lifespan=1),  # type: ignore[arg-type]
        "acme/search has a handler already": lambda: search.handler(acme.SEARCH)(Search().search),
        "the filter 'x' has a function already": lambda: search.filter("x", str)(Search().watch),  # type: ignore[arg-type]
        "notifications/acme/indexed is sent by the server": lambda: search.handler(acme.INDEXED),
        "tools/list is no record of its methods": lambda: search.handler(methods.TOOLS_LIST),
        "extensions must be ServerExtension objects": lambda: typedmcp.Server("x", extensions=["com.acme/search"]),  # type: ignore[list-item]
        "both have com.acme/search": lambda: typedmcp.Server("x", extensions=[acme.ACME, acme.ACME]),
        "a Server has its own": lambda: typedmcp.ServerConfig(typedmcp.Server("x"), extensions=[acme.ACME]),
        "leave that option out": lambda: serve_methods([search], "msgspec", acme.PACKAGE, None),
    }
    for text, make in faults.items():
        with pytest.raises(typedmcp.UsageError, match=text.replace("(", r"\(")):
            make()


def test_settings_that_do_not_fit_name_their_place() -> None:
    capabilities = structs.ClientCapabilities(extensions={acme.IDENTIFIER: {"limit": "3"}})
    with pytest.raises(typedmcp.DecodeError, match=r"capabilities\.extensions\['com\.acme/search'\]"):
        acme.ACME.settings_of(capabilities, dict[str, int])
    assert acme.ACME.settings_of(structs.ClientCapabilities()) is None
