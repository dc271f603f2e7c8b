"""Services: what a gateway of one's own needs, with public names alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec
import pytest

import typedmcp
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.serving import serving_http
from tests.spoken import SUPPORTED
from typedmcp import Context
from typedmcp.client import Target
from typedmcp.dialect import methods, structs
from typedmcp.services import AppLink, Caller, ExtensionListener, JsonResult, OpenMember, Service

RESULT = {"resultType": "complete", "content": [{"type": "text", "text": "tea", "colour": "green"}], "added": [1.50]}


class ToolForwarder(Service):
    """A tiny gateway: passes the tools of one server on."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.client = typedmcp.connect(target)

    @asynccontextmanager
    async def open(self, app: AppLink) -> AsyncGenerator[None]:
        async with self.client:
            self.instructions = self.client.server.instructions
            self.capabilities = structs.ServerCapabilities(tools=self.client.server.capabilities.tools)
            yield

    async def list_tools(self, params: Any, ctx: Context) -> Any:
        return await self._forward(params, ctx)

    async def call_tool(self, params: Any, ctx: Context) -> Any:
        return await self._forward(params, ctx)

    async def _forward(self, params: Any, ctx: Context) -> Any:
        if self.client.revision == ctx.revision:
            raw = await self.client.send_raw(ctx.method, ctx.raw_params(), log_level=ctx.log_level)
            return JsonResult(raw, ctx.revision)
        return await self.client.send(methods.METHODS[ctx.method], params, log_level=ctx.log_level)


class Answering:
    """Answers calls with a result that it has as JSON."""

    def __init__(self, data: Any, revision: str) -> None:
        self.result = JsonResult(data, revision)

    async def call_tool(self, params: Any, ctx: Context) -> Any:
        if params.name == "later":
            await asyncio.sleep(0.001)
        return self.result

    def fallback(self, method: str, params: Any, ctx: Context) -> Any:
        return self.result


class Describing(Service):
    """A service whose description changes with the calls of its tools, which notes what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Any] = []
        self.capabilities = structs.ServerCapabilities(
            tools=structs.ServerCapabilitiesTools(), resources=structs.ServerCapabilitiesResources(subscribe=True)
        )

    @asynccontextmanager
    async def open(self, app: AppLink) -> AsyncGenerator[None]:
        self.noted.append((app.limits.threads, app.workers))
        yield
        self.noted.append("closed")

    async def call_tool(self, params: Any, ctx: Context) -> structs.CallToolResult:
        self.instructions = params.name
        self.extensions = [typedmcp.ServerExtension(typedmcp.Extension("com.acme/shops"), {"named": params.name})]
        return structs.CallToolResult(content=[])

    def members(self, names: Sequence[str], ctx: Context) -> Mapping[str, OpenMember]:
        self.noted.append([*names])
        return dict.fromkeys(names, self._serve)

    def _serve(self, value: Any, listener: ExtensionListener) -> AbstractAsyncContextManager[Any]:
        @asynccontextmanager
        async def serving() -> AsyncGenerator[Any]:
            listener.notify("notifications/acme/opened", {"value": value})
            yield value

        return serving()

    async def on_unsubscribed(self, uri: str, ctx: Context) -> None:
        self.noted.append(uri)


def calculator() -> typedmcp.Server:
    """Return a server to forward to."""
    server = typedmcp.Server("calculator", instructions="Calculate.")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


@each("server_revision", [MODERN_REVISION, LEGACY[0]])
@each("revision", [*SUPPORTED])
def test_a_tiny_gateway_on_public_names_serves_clients_of_all_revisions(revision: str, server_revision: str) -> None:
    async def use(target: Any) -> None:
        async with typedmcp.connect(target, revisions=[revision]) as client:
            assert client.server.instructions == "Calculate."
            assert [tool.name async for tool in client.tools()] == ["add"]
            assert typedmcp.text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"

    async def main() -> None:
        inner = typedmcp.ServerConfig(calculator(), revisions=[server_revision])
        await use(ToolForwarder(inner))
        async with serving_http(typedmcp.asgi(ToolForwarder(inner))) as url:
            await use(f"{url}/mcp")

    run(main())


@each("name", ["now", "later"])
@each("is_encoded", [True, False])
@each("revision", [*SUPPORTED])
def test_a_result_in_json_is_sent_as_it_is(revision: str, is_encoded: bool, name: str) -> None:
    handler = Answering(msgspec.Raw(msgspec.json.encode(RESULT)) if is_encoded else RESULT, revision)

    async def main() -> None:
        config = typedmcp.ServerConfig(handler, name="shop")
        async with typedmcp.connect(config, revisions=[revision]) as client:
            for method in ("tools/call", "acme/call"):
                got = msgspec.json.decode(await client.send_raw(method, {"name": name, "arguments": {}}))
                meta = got.pop("_meta", {})
                assert got == RESULT
                has_name = revision == MODERN_REVISION and not is_encoded
                assert ("io.modelcontextprotocol/serverInfo" in meta) is has_name

    run(main())


@each("name", ["now", "later"])
@each("revision", [MODERN_REVISION, LEGACY[0]])
def test_an_encoded_result_may_have_line_breaks_and_null(revision: str, name: str) -> None:
    text = msgspec.json.format(msgspec.json.encode({**RESULT, "structuredContent": {"a": None}}), indent=2)
    handler = Answering(msgspec.Raw(text), revision)

    async def main() -> None:
        async with typedmcp.connect(typedmcp.ServerConfig(handler), revisions=[revision]) as client:
            for number in range(3):
                got = msgspec.json.decode(await client.send_raw("tools/call", {"name": name, "arguments": {}}))
                assert got["structuredContent"] == {"a": None}, number

    run(main())


@each("name", ["now", "later"])
def test_a_result_in_json_of_another_revision_is_an_error_of_the_handler(name: str) -> None:
    reports: list[typedmcp.Diagnostic] = []

    async def main() -> None:
        config = typedmcp.ServerConfig(Answering(RESULT, LEGACY[0]), on_diagnostic=reports.append)
        async with typedmcp.connect(config, revisions=[MODERN_REVISION]) as client:
            for method in ("tools/call", "acme/call"):
                with pytest.raises(typedmcp.RemoteError, match="internal error"):
                    await client.send_raw(method, {"name": name})

    run(main())
    assert all(f"a JsonResult of {LEGACY[0]} cannot answer" in str(each.error) for each in reports)
    assert len(reports) == 2


def test_a_service_is_asked_for_its_description_whenever_a_client_comes() -> None:
    service = Describing()

    async def main() -> None:
        config = typedmcp.ServerConfig(service)
        async with serving_http(typedmcp.asgi(config)) as url:
            for name in ("one", "two"):
                for revision in (MODERN_REVISION, LEGACY[0]):
                    async with typedmcp.connect(f"{url}/mcp", revisions=[revision]) as client:
                        await client.call_tool(name)
                    async with typedmcp.connect(f"{url}/mcp", revisions=[revision]) as client:
                        assert client.server.instructions == name
                        assert client.server.capabilities.extensions == {"com.acme/shops": {"named": name}}

    run(main())
    assert service.noted == [(typedmcp.Limits().threads, None), "closed"]


def test_options_of_the_configuration_come_before_those_of_a_service() -> None:
    service = Describing()
    service.instructions = "own"
    capabilities = structs.ServerCapabilities(tools=structs.ServerCapabilitiesTools())
    entered: list[object] = []

    @asynccontextmanager
    async def lifespan(server: object) -> AsyncGenerator[None]:
        entered.append(server)
        yield

    config = typedmcp.ServerConfig(
        service, instructions="given", capabilities=capabilities, name="named", lifespan=lifespan
    )

    async def main() -> None:
        async with typedmcp.connect(config) as client:
            assert client.server.instructions == "given"
            assert client.server.capabilities.resources is None
            assert client.server.info is not None
            assert client.server.info.name == "named"

    run(main())
    assert entered == [service]
    assert service.noted[0][1] is None
    with pytest.raises(typedmcp.UsageError, match="codec"):
        typedmcp.ServerConfig(service, codec="pydantic")


def test_a_service_serves_members_of_filters_that_nothing_else_knows() -> None:
    service, opened = Describing(), list[Any]()
    acme = typedmcp.ClientExtension(typedmcp.Extension("com.acme/shops"))
    acme.on_other = lambda method, params: opened.append((method, msgspec.json.decode(params)["value"]))

    async def main() -> None:
        async with typedmcp.connect(typedmcp.ServerConfig(service), extensions=[acme]) as client:
            async with client.listen(tools=True, members={"shops": [1, 2]}) as subscription:
                assert subscription.granted_members["shops"] == [1, 2]
            while not opened:
                await asyncio.sleep(0.01)

    run(main())
    assert ["shops"] in service.noted
    assert opened == [("notifications/acme/opened", [1, 2])]


def test_a_service_notes_the_end_of_a_legacy_subscription() -> None:
    service = Describing()

    async def main() -> None:
        async with typedmcp.connect(service, revisions=[LEGACY[0]]) as client:
            async with client.listen(uris=["note://tea"]):
                pass
            await client.ping()

    run(main())
    assert "note://tea" in service.noted


class Calling:
    """Notes its callers, the ends of their sessions, and what they wrote."""

    def __init__(self) -> None:
        self.callers: list[Caller] = []
        self.ended: list[str] = []
        self.params: list[dict[str, Any]] = []

    async def call_tool(self, params: Any, ctx: Context) -> structs.CallToolResult:
        self.callers.append(ctx.caller)
        self.params.append({name: msgspec.json.decode(value) for name, value in ctx.raw_params().items()})
        ctx.on_session_end(lambda: self.ended.append("undone"))()
        ctx.on_session_end(lambda: 1 / 0)
        ctx.on_session_end(lambda: self.ended.append(ctx.caller.key))
        return structs.CallToolResult(content=[])


async def call_three_times(target: Any, **options: Any) -> None:
    """Call twice with one client, and once with another."""
    for times in (2, 1):
        async with typedmcp.connect(target, **options) as client:
            for _ in range(times):
                await client.call_tool("t", {"x": 1})


@each("revision", [MODERN_REVISION, LEGACY[0]])
def test_the_caller_of_a_connection_is_the_connection(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    handler = Calling()
    run(call_three_times(handler, revisions=[revision]))
    first, again, other = handler.callers
    assert first == again != other
    assert (first.kind, first.is_alone) == ("connection", True)
    assert handler.ended == [first.key, first.key, other.key]
    assert "a function for the end of a session failed" in caplog.text
    assert handler.params[0] == {"name": "t", "arguments": {"x": 1}}


@each("revision, token, kind", [
    (LEGACY[0], None, "session"), (LEGACY[0], "a", "session"), (MODERN_REVISION, "a", "principal"),
    (MODERN_REVISION, None, "address"),
])  # fmt: skip
def test_the_caller_over_http_is_the_session_or_the_principal_or_the_address(
    revision: str, token: str | None, kind: str
) -> None:
    handler = Calling()

    async def main() -> None:
        auth = typedmcp.StaticTokens({"a": typedmcp.Principal("ada")})
        app = typedmcp.asgi(handler, auth=None if token is None else auth)
        async with serving_http(app) as url:
            options: Any = {} if token is None else {"auth": token}
            await call_three_times(f"{url}/mcp", revisions=[revision], **options)
            ends = len(handler.ended)
        assert (ends, len(handler.ended)) == ((3, 3) if kind == "session" else (0, 0))

    run(main())
    first, again, other = handler.callers
    assert first == again
    assert (first == other) is (kind != "session")
    assert (first.kind, first.is_alone) == (kind, kind != "address")
    assert (first.key == "ada") is (kind == "principal")


@each("revision", [MODERN_REVISION, LEGACY[0]])
def test_a_call_for_somebody_else_declares_their_capabilities(revision: str) -> None:
    seen: list[Any] = []

    class Seeing:
        async def call_tool(self, params: Any, ctx: Context) -> structs.CallToolResult:
            seen.append((ctx.client_capabilities.roots is not None, ctx.log_level, ctx.lowest_log_level))
            return structs.CallToolResult(content=[])

    async def main() -> None:
        async with typedmcp.connect(Seeing(), revisions=[revision], sample=lambda _: "x") as client:
            await client.call_tool("t")
            await client.call_tool("t", capabilities={"roots": {}}, log_level="warning")
            await client.send_raw("tools/call", {"name": "t"}, capabilities={"roots": {}}, log_level="warning")

    run(main())
    own = (False, None, None if revision == MODERN_REVISION else "info")
    theirs = (True, "warning", "warning") if revision == MODERN_REVISION else own
    assert seen == [own, theirs, theirs]


@each("revision", [MODERN_REVISION, LEGACY[0]])
def test_a_proxy_understands_what_it_cannot_pass_on(revision: str) -> None:
    reports: list[typedmcp.Diagnostic] = []
    listed = {"tools": [{"name": "good", "inputSchema": {"type": "object"}}, {"name": 7}]}
    handler = Answering({**listed, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}, revision)

    class Listing:
        async def list_tools(self, params: Any, ctx: Context) -> Any:
            return handler.result

    async def main() -> None:
        async with typedmcp.connect(Listing(), revisions=[revision], on_diagnostic=reports.append) as client:
            raw = await client.send_raw("tools/list")
            assert [tool.name for tool in client.decode("tools/list", raw).tools] == ["good"]
            with pytest.raises(typedmcp.ProtocolError):
                client.decode("tools/list", msgspec.Raw(b"[]"))

    run(main())
    assert ["result.tools[1]" in each.text for each in reports] == [True]
