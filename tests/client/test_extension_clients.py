"""Clients with extensions: methods, notifications and filters, with servers of every revision and over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import typedmcp
from tests import acme
from tests.cases import each
from tests.server.scripted import LEGACY, MODERN_REVISION, SUPPORTED, Json, run
from typedmcp import ClientExtension, Context, DiagnosticKind, ServerExtension
from typedmcp.dialect import methods
from typedmcp.server.extensions import ExtensionListener
from typedmcp_http import UvicornServer


def make_server() -> typedmcp.Server:
    extension = ServerExtension(acme.ACME, {"maxHits": 10})

    @extension.handler(acme.SEARCH)
    async def search(params: acme.SearchParams, ctx: Context) -> acme.SearchResult:
        await ctx.notify(acme.INDEXED, acme.IndexedParams(folder="all", documents=1))
        return acme.SearchResult(hits=[acme.Hit(title=f"{params.query} {ctx.headers.get('mcp-name')}")])

    @extension.filter("acmeFolders", list[str])
    @asynccontextmanager
    async def watch(folders: list[str], listener: ExtensionListener) -> AsyncGenerator[list[str]]:
        listener.notify(acme.INDEXED, acme.IndexedParams(folder="a", documents=2))
        yield folders

    return typedmcp.Server("x", extensions=[extension])


class Indexed:
    """The notifications that a client has received."""

    def __init__(self) -> None:
        self.extension = ClientExtension(acme.ACME, {"limit": 3})
        self.received: asyncio.Queue[acme.IndexedParams] = asyncio.Queue()
        self.extension.on(acme.INDEXED)(self.received.put_nowait)

    async def next(self) -> acme.IndexedParams:
        async with asyncio.timeout(10):
            return await self.received.get()


@asynccontextmanager
async def over_http(server: typedmcp.Server, **options: Any) -> AsyncGenerator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        uvicorn = UvicornServer(typedmcp.asgi(server, **options), "127.0.0.1", port)
        serving = asyncio.create_task(uvicorn.serve([listener]))
        while not uvicorn.started:
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            uvicorn.should_exit = True
            await serving


@each("revision", SUPPORTED)
def test_a_client_calls_methods_and_gets_notifications_of_an_extension(revision: str) -> None:
    indexed = Indexed()

    async def main() -> None:
        async with typedmcp.connect(make_server(), revisions=[revision], extensions=[indexed.extension]) as client:
            assert acme.ACME.settings_of(client.server.capabilities) == {"maxHits": 10}
            result = await client.send(acme.SEARCH, {"query": "tea"})
            assert result.hits == [acme.Hit(title="tea None")]
            assert await indexed.next() == acme.IndexedParams(folder="all", documents=1)

    run(main)


@each("revision", [MODERN_REVISION, LEGACY[0]])
def test_the_header_with_the_name_repeats_a_parameter_of_an_extension(revision: str) -> None:
    indexed = Indexed()

    async def main() -> None:
        async with over_http(make_server()) as url:
            async with typedmcp.connect(url, revisions=[revision], extensions=[indexed.extension]) as client:
                result = await client.send(acme.SEARCH, {"query": "tea"})
                header = "tea" if revision == MODERN_REVISION else None
                assert result.hits == [acme.Hit(title=f"tea {header}")]
                assert (await indexed.next()).documents == 1
            async with typedmcp.connect(url, capabilities={"extensions": {acme.IDENTIFIER: {}}}) as client:
                with pytest.raises(typedmcp.HeaderMismatchError, match="Mcp-Name: required"):
                    await client.send(acme.SEARCH, {"query": "tea"})

    run(main)


@each("revision", SUPPORTED)
def test_a_client_does_not_call_methods_of_an_extension_that_the_server_lacks(revision: str) -> None:
    async def main() -> None:
        server = typedmcp.Server("x")
        options: Json = {"revisions": [revision], "extensions": [acme.ACME]}
        async with typedmcp.connect(server, **options) as client:
            with pytest.raises(typedmcp.UsageError, match=r"has not declared the extension com\.acme/search"):
                await client.send(acme.SEARCH, {"query": "tea"})
            with pytest.raises(typedmcp.UsageError, match=r"has not declared the extension com\.acme/search"):
                await client.notify(acme.SEEN, acme.SeenParams(count=1))
        async with typedmcp.connect(server, check_capabilities=False, **options) as client:
            with pytest.raises(typedmcp.RemoteError, match="method not found"):
                await client.send(acme.SEARCH, {"query": "tea"})

    run(main)


@each("revision", SUPPORTED)
def test_a_server_refuses_a_client_that_has_not_declared_the_extension(revision: str) -> None:
    async def main() -> None:
        async with typedmcp.connect(make_server(), revisions=[revision]) as client:
            expected = typedmcp.MissingCapabilityError if revision == MODERN_REVISION else typedmcp.MethodNotFoundError
            with pytest.raises(expected):
                await client.send(acme.SEARCH, {"query": "tea"})

    run(main)


def test_a_client_does_not_use_an_extension_on_a_revision_that_it_does_not_belong_to() -> None:
    extension = typedmcp.Extension(acme.IDENTIFIER, acme.PACKAGE, revisions=[MODERN_REVISION])

    async def main() -> None:
        options: Json = {"revisions": [LEGACY[0]], "extensions": [extension]}
        async with typedmcp.connect(make_server(), **options) as client:
            with pytest.raises(typedmcp.UsageError, match=f"the server speaks {LEGACY[0]}, on which com.acme/search"):
                await client.send(acme.SEARCH, {"query": "tea"})

    run(main)


def test_a_filter_of_an_extension_brings_notifications() -> None:
    indexed, reports = Indexed(), list[typedmcp.Diagnostic]()

    async def main() -> None:
        options: Json = {"extensions": [indexed.extension], "on_diagnostic": reports.append}
        members = {"acmeFolders": ["a"], "acmeOther": True}
        async with (
            typedmcp.connect(make_server(), **options) as client,
            client.listen(members=members) as subscription,
        ):
            assert subscription.granted_members["acmeFolders"] == ["a"]
            assert subscription.not_granted == ["acmeOther"]
            found = await indexed.next()
            assert (found.folder, found.documents) == ("a", 2)
        assert [report.kind for report in reports] == [DiagnosticKind.NOT_GRANTED]
        async with typedmcp.connect(make_server(), revisions=[LEGACY[0]]) as client:
            with pytest.raises((typedmcp.UsageError, typedmcp.ConnectionLostError), match="has no filters"):
                await client.listen(members={"acmeFolders": ["a"]}).__aenter__()

    run(main)


def test_a_notification_that_has_no_callback_is_reported() -> None:
    reports: list[typedmcp.Diagnostic] = []

    async def main() -> None:
        async with typedmcp.connect(make_server(), extensions=[acme.ACME], on_diagnostic=reports.append) as client:
            await client.send(acme.SEARCH, {"query": "tea"})
        assert [report.method for report in reports] == ["notifications/acme/indexed"]

    run(main)


def test_a_record_of_a_package_for_a_method_of_the_protocol_names_the_revision_of_the_server() -> None:
    class TheirResult(acme.SearchResult, kw_only=True):
        pass

    record: Any = methods.TOOLS_LIST
    other: Any = type(record)(
        name="tools/list", sender="client", kind="request", message=TheirResult, params=record.params,
        params_required=False, result=record.result, handler="list_tools",
    )  # fmt: skip

    async def main() -> None:
        async with typedmcp.connect(make_server(), revisions=[LEGACY[0]]) as client:
            with pytest.raises(
                typedmcp.UsageError, match=f"tools/list of tests extends .* the server speaks {LEGACY[0]}"
            ):
                await client.send(other)

    run(main)


def test_faults_in_extensions_of_clients_are_named() -> None:
    indexed = Indexed().extension
    faults: dict[str, Callable[[], object]] = {
        "notifications/acme/indexed has a callback already": lambda: indexed.on(acme.INDEXED)(print),
        "acme/search is sent by the client": lambda: indexed.on(acme.SEARCH),  # type: ignore[arg-type]
        "SearchResult is none of its results": lambda: indexed.completes(acme.SearchResult),
        "extensions must be ClientExtension objects": lambda: typedmcp.connect(["x"], extensions=["a"]),  # type: ignore[list-item]
        "both have com.acme/search": lambda: typedmcp.connect(["x"], extensions=[acme.ACME, indexed]),
    }
    for text, make in faults.items():
        with pytest.raises(typedmcp.UsageError, match=text):
            make()
