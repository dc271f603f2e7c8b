"""A gateway over HTTP: principals, clients without sessions, credentials, health and reloading."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.serving import serving_http
from tests.typedmcp_gateway.everyday_server import make_server
from typedmcp.dialect import structs
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.services import Service
from typedmcp_gateway import Gateway, NameRules

REVISION = LEGACY[0]


def old_server() -> typedmcp.ServerConfig:
    """Return the everyday server on a revision with sessions."""
    return typedmcp.ServerConfig(make_server(), revisions=[REVISION])


@each("revision", [MODERN_REVISION, REVISION])
def test_clients_without_a_token_are_asked_their_own_questions_only(revision: str) -> None:
    async def main() -> None:
        async with serving_http(Gateway(old_server()).asgi()) as url:

            async def roots_of(name: str) -> list[str]:
                options: Any = {"revisions": [revision], "roots": [f"file:///{name}"]}
                async with typedmcp.connect(f"{url}/mcp", **options) as client:
                    calls = [client.call_tool("ask_roots", result_type=list[str]) for _ in range(3)]
                    return [uri for uris in await asyncio.gather(*calls) for uri in uris]

            names = ["ada", "alan", "grace"]
            for name, uris in zip(names, await asyncio.gather(*map(roots_of, names)), strict=True):
                assert uris == [f"file:///{name}"] * 3

    run(main())


PROCESS = f"""
import os, typedmcp
server = typedmcp.Server("process")
server.tool(name="pid")(lambda: os.getpid())
typedmcp.serve(typedmcp.ServerConfig(server, revisions=[{REVISION!r}]), "stdio")
"""


def test_the_process_of_a_session_ends_with_it() -> None:
    async def main() -> None:
        async with serving_http(Gateway([sys.executable, "-c", PROCESS]).asgi()) as url:
            pids = list[int]()
            for _ in range(3):
                async with typedmcp.connect(f"{url}/mcp", revisions=[REVISION]) as client:
                    pids += [await client.call_tool("pid", result_type=int) for _ in range(2)]
                    assert is_running(pids[-1])
            assert len({*pids}) == 3
            while any(is_running(pid) for pid in pids):
                await asyncio.sleep(0.01)

    run(main())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class SessionServer(typedmcp.Server):
    """A server that knows which sessions have subscribed and which have asked."""

    def __init__(self) -> None:
        super().__init__("sessions")
        self.subscribed: list[object] = []
        self.asking: list[object] = []
        self.resource("note://tea")(lambda: "hot")
        self.tool(self.is_subscribed)
        self.tool(self.is_asking)
        self.tool(self.ask)

    async def authorize_subscriptions(self, params: Any, ctx: typedmcp.Context) -> Any:
        self.subscribed.append(ctx.connection)
        return params.notifications

    async def is_subscribed(self, ctx: typedmcp.Context) -> bool:
        return ctx.connection in self.subscribed

    async def is_asking(self, ctx: typedmcp.Context) -> bool:
        return ctx.connection in self.asking

    async def ask(self, ctx: typedmcp.Context) -> list[str]:
        self.asking.append(ctx.connection)
        return [root.uri for root in await ctx.list_roots()]


def test_calls_and_subscriptions_of_a_client_without_a_token_use_one_session() -> None:
    async def main() -> None:
        gateway = Gateway(typedmcp.ServerConfig(SessionServer(), revisions=[REVISION]))
        async with (
            serving_http(gateway.asgi()) as url,
            typedmcp.connect(f"{url}/mcp", roots=["file:///ada"]) as first,
            typedmcp.connect(f"{url}/mcp", sample=lambda _: "blue") as second,
            first.listen(uris=["note://tea"]),
        ):
            assert await first.call_tool("is_subscribed", result_type=bool)
            assert not await second.call_tool("is_subscribed", result_type=bool)

    run(main())


def test_a_subscription_that_ends_leaves_an_open_call_alone_in_its_session() -> None:
    async def main() -> None:
        server = SessionServer()
        gateway = Gateway(typedmcp.ServerConfig(server, revisions=[REVISION]))
        async with (
            serving_http(gateway.asgi()) as url,
            typedmcp.connect(f"{url}/mcp", roots=["file:///ada"]) as first,
            typedmcp.connect(f"{url}/mcp", roots=["file:///alan"]) as second,
        ):
            await first.call_tool("ask", rounds=0)
            async with second.listen(uris=["note://tea"]):
                assert server.subscribed == server.asking
            for _ in range(10):  # the gateway ends the subscription meanwhile
                assert not await second.call_tool("is_asking", result_type=bool)
                await asyncio.sleep(0.02)
            assert await second.call_tool("ask", result_type=list[str]) == ["file:///alan"]

    run(main())


def test_log_messages_reach_the_client_that_called() -> None:
    async def main() -> None:
        async with serving_http(Gateway(old_server()).asgi()) as url:

            async def logs_of(level: Any) -> list[Any]:
                logs: list[Any] = []
                async with typedmcp.connect(
                    f"{url}/mcp", on_log=lambda params: logs.append(params.data), log_level=level
                ) as client:
                    await client.call_tool("count")
                return logs

            loud, quiet = await asyncio.gather(logs_of("info"), logs_of("error"))
            assert loud == ["counted 1", "counted 2", "counted 3"]
            assert quiet == []

    run(main())


def test_principals_have_their_own_credentials_and_view_and_tokens_end_at_the_gateway() -> None:
    seen: list[Any] = []
    server = typedmcp.Server("inner")

    @server.tool
    async def who(ctx: typedmcp.Context) -> str:
        seen.append(dict(ctx.headers))
        return str(ctx.principal and ctx.principal.subject)

    @server.tool
    def secret() -> str:
        return "secret"

    inner = typedmcp.asgi(
        server,
        auth=typedmcp.StaticTokens(
            {"inner-ada": typedmcp.Principal("ada@inner"), "inner-bob": typedmcp.Principal("bob@inner")}
        ),
    )
    outer = typedmcp.StaticTokens({"token-ada": typedmcp.Principal("ada"), "token-bob": typedmcp.Principal("bob")})

    async def main() -> None:
        async with serving_http(inner) as inner_url:
            gateway = Gateway(
                f"{inner_url}/mcp",
                credentials=lambda principal, _server: f"inner-{principal.subject if principal else 'ada'}",
                policy=lambda principal, _server, _kind, own: (
                    own != "secret" or (principal is not None and principal.subject == "ada")
                ),
            )
            async with serving_http(gateway.asgi(auth=outer)) as url:
                for name, tools in (("ada", {"who", "secret"}), ("bob", {"who"})):
                    async with typedmcp.connect(f"{url}/mcp", auth=f"token-{name}") as client:
                        assert {tool.name async for tool in client.tools()} == tools
                        assert typedmcp.text_of(await client.call_tool("who")) == f"{name}@inner"
                with pytest.raises(typedmcp.AuthorizationRequiredError):
                    await typedmcp.connect(f"{url}/mcp")

    run(main())
    assert seen
    assert not any("token-" in str(headers) for headers in seen)


def test_a_parked_call_cannot_be_continued_by_another_principal() -> None:
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("a"), "b": typedmcp.Principal("b")})

    async def main() -> None:
        async with (
            serving_http(Gateway(old_server()).asgi(auth=auth)) as url,
            typedmcp.connect(f"{url}/mcp", auth="a", roots=["file:///a"]) as first,
            typedmcp.connect(f"{url}/mcp", auth="b", roots=["file:///b"]) as second,
        ):
            asked: Any = await first.call_tool("ask_roots", rounds=0)
            params: dict[str, Any] = {"name": "ask_roots", "requestState": asked.request_state, "inputResponses": {}}
            with pytest.raises(typedmcp.InvalidParamsError, match="requestState"):
                await second.send("tools/call", params)

    run(main())


class Mail(Service):
    """A server with an inbox for each principal. Only its owner hears that it has changed."""

    def __init__(self) -> None:
        super().__init__()
        resources = structs.ServerCapabilitiesResources(subscribe=True)
        self.capabilities = structs.ServerCapabilities(resources=resources, tools=structs.ServerCapabilitiesTools())

    def topic_of(self, uri: str, ctx: typedmcp.Context) -> str:
        return f"{uri}\n{ctx.principal and ctx.principal.subject}"

    async def call_tool(self, params: Any, ctx: typedmcp.Context) -> structs.CallToolResult:
        self.changes.resource_updated(self.topic_of(params.name, ctx))
        return structs.CallToolResult(content=[])


PRINCIPALS = typedmcp.StaticTokens({name: typedmcp.Principal(name) for name in ("ada", "bob", "gateway")})


@each("upstream", [MODERN_REVISION, REVISION])
@each("client", [MODERN_REVISION, REVISION])
def test_a_change_in_the_account_of_one_principal_is_told_to_no_other(client: str, upstream: str) -> None:
    async def main() -> None:
        mail = typedmcp.asgi(Mail(), revisions=[upstream], auth=PRINCIPALS, grace=0.1)
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(serving_http(mail))
            gateway = Gateway(
                f"{url}/mcp", credentials=lambda principal, _: principal.subject if principal else "gateway"
            )
            app = gateway.asgi(auth=PRINCIPALS, grace=0.1)
            outer = await stack.enter_async_context(serving_http(app))
            ada, ada_again, bob = [
                await stack.enter_async_context(typedmcp.connect(f"{outer}/mcp", auth=name, revisions=[client]))
                for name in ("ada", "ada", "bob")
            ]
            uris = ["mail://inbox", "mail://sent"]
            of_ada, of_ada_again, of_bob = [
                await stack.enter_async_context(each.listen(uris=uris)) for each in (ada, ada_again, bob)
            ]
            await ada.call_tool("mail://inbox")
            assert [(await anext(of)).uri for of in (of_ada, of_ada_again)] == ["mail://inbox"] * 2
            await bob.call_tool("mail://sent")
            assert (await anext(of_bob)).uri == "mail://sent", "what is told to Ada is told to Bob"

    run(main())


def test_calls_take_the_short_way_through_the_server() -> None:
    async def main() -> None:
        app = Gateway(make_server()).asgi()
        known: list[bytes] = []
        serve = app.serve_known

        async def count(*arguments: Any) -> None:
            known.append(arguments[4])
            await serve(*arguments)

        vars(app)["serve_known"] = count
        async with serving_http(app) as url, typedmcp.connect(f"{url}/mcp") as client:
            for number in range(5):
                assert (await client.call_tool("add", {"a": 1, "b": number})).structured_content == {"sum": 1 + number}
        assert len(known) >= 3

    run(main())


def test_readiness_says_which_servers_can_be_reached() -> None:
    down = [sys.executable, "-c", "raise SystemExit(70)"]

    async def main() -> None:
        for servers, status, expected in (
            ({"up": old_server(), "down": down}, 200, {"up": "ok", "down": "down"}),
            ({"down": down}, 503, {"down": "down"}),
        ):
            async with serving_http(Gateway(servers=servers).asgi()) as url:
                assert (await get(url, "/health"))[0] == 200
                found, body = await get(url, "/ready")
                assert found == status
                for name, state in expected.items():
                    assert f'"{name}":"{state}"' in body

    run(main())


async def get(url: str, path: str) -> tuple[int, str]:
    """Return status and body of a GET request."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nhost: 10.0.0.1\r\nconnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]


def test_another_configuration_is_used_while_clients_stay_connected() -> None:
    first, second = old_server(), old_server()
    gateway = Gateway(servers={"a": first, "b": second})

    async def main() -> None:
        async with typedmcp.connect(gateway) as client, client.listen(tools=True) as changes:
            waiting = asyncio.ensure_future(client.call_tool("a_count"))
            await gateway.reload({"a": first, "c": second})
            assert (await anext(changes)).kind == "tools"
            assert typedmcp.text_of(await waiting) == "3"
            assert typedmcp.text_of(await client.call_tool("c_text")) == "plain text"
            with pytest.raises(typedmcp.InvalidParamsError, match="unknown tool: b_text"):
                await client.call_tool("b_text")
            with pytest.raises(typedmcp.UsageError, match="server 'd'"):
                await gateway.reload({"mcpServers": {"d": {"command": "d", "url": "http://localhost/mcp"}}})
            assert gateway.server_names == ["a", "c"]

    run(main())


def test_rules_in_the_configuration_are_checked() -> None:
    server = {"command": "x"}
    config: dict[str, Any] = {
        "mcpServers": {"x": server},
        "gateway": {"x": {"exclude": ["rm*"], "rename": {"ls": "l"}}},
    }
    assert Gateway(servers=config).rules == {"x": NameRules("", exclude=["rm*"], rename={"ls": "l"})}
    config["gateway"]["x"]["exlude"] = []
    with pytest.raises(typedmcp.UsageError, match=r"gateway: server 'x': .*exlude"):
        Gateway(servers=config)


def test_a_client_that_answers_nothing_leaves_room_for_the_questions_to_others() -> None:
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("a"), "b": typedmcp.Principal("b")})

    async def main() -> None:
        async with (
            serving_http(Gateway(old_server(), max_parked=8).asgi(auth=auth)) as url,
            typedmcp.connect(f"{url}/mcp", auth="a", roots=["file:///a"]) as first,
            typedmcp.connect(f"{url}/mcp", auth="b", roots=["file:///b"]) as second,
        ):
            asked: Any = [await first.call_tool("ask_roots", rounds=0) for _ in range(2)]
            with pytest.raises(typedmcp.RemoteError, match="client_share_percent"):
                await first.call_tool("ask_roots", rounds=0)
            assert await second.call_tool("ask_roots", result_type=list[str]) == ["file:///b"]
            (key,) = asked[0].input_requests
            answers = {key: {"roots": [{"uri": "file:///a"}]}}
            params = {"name": "ask_roots", "requestState": asked[0].request_state, "inputResponses": answers}
            assert (await first.send("tools/call", params))["structuredContent"] == {"result": ["file:///a"]}
            assert await first.call_tool("ask_roots", result_type=list[str]) == ["file:///a"]

    run(main())


def test_subscriptions_of_one_client_leave_room_for_the_calls_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp_gateway.watches._MAX_WATCHES", 8)
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("a"), "b": typedmcp.Principal("b")})
    reports: list[Diagnostic] = []

    async def main() -> None:
        gateway = Gateway(make_server())
        async with (
            serving_http(gateway.asgi(auth=auth, on_diagnostic=reports.append)) as url,
            typedmcp.connect(f"{url}/mcp", auth="a") as first,
            typedmcp.connect(f"{url}/mcp", auth="b") as second,
        ):
            uris = [f"city://{number}" for number in range(20)]
            async with first.listen(uris=uris) as subscription:
                assert sorted(subscription.not_granted) == sorted(uris[2:])
                async with second.listen(uris=uris[:1]) as other:
                    assert not other.not_granted
            async with first.listen(uris=uris[:2]) as again:
                assert not again.not_granted

    run(main())
    assert [report.text for report in reports if report.kind is DiagnosticKind.LIMIT_REACHED] == [
        "server 'server': no further subscription: the client has 2 resources (client_share_percent)"
    ]


def test_sessions_of_one_client_do_not_keep_all_connections_open() -> None:
    auth = typedmcp.StaticTokens({"a": typedmcp.Principal("a"), "b": typedmcp.Principal("b")})

    async def main() -> None:
        gateway = Gateway(old_server(), max_connections=4)
        async with serving_http(gateway.asgi(auth=auth)) as url, AsyncExitStack() as stack:
            for token in (*["a"] * 6, "b"):
                client = typedmcp.connect(f"{url}/mcp", auth=token, revisions=[REVISION])
                await (await stack.enter_async_context(client)).call_tool("add", {"a": 1, "b": 2})

    run(main())
