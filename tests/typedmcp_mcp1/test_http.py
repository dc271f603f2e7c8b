"""Programs for mcp 1.x over HTTP and as processes."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import pytest
import uvicorn

import typedmcp
from tests.cases import each
from tests.paths import ROOT
from tests.server.scripted import run
from typedmcp_mcp1 import ClientSession, ClientSessionGroup, McpError, StdioServerParameters, stdio_client
from typedmcp_mcp1.client.auth import OAuthClientProvider
from typedmcp_mcp1.client.session_group import StreamableHttpParameters
from typedmcp_mcp1.client.sse import sse_client
from typedmcp_mcp1.client.streamable_http import streamable_http_client, streamablehttp_client
from typedmcp_mcp1.server.auth.middleware.auth_context import get_access_token
from typedmcp_mcp1.server.auth.provider import AccessToken
from typedmcp_mcp1.server.fastmcp import Context, FastMCP
from typedmcp_mcp1.server.lowlevel import Server
from typedmcp_mcp1.server.sse import SseServerTransport
from typedmcp_mcp1.server.streamable_http_manager import StreamableHTTPSessionManager

types: Any = import_module("typedmcp_mcp1.types")
settings: Any = import_module("typedmcp_mcp1.server.auth.settings")


def make_server(**options: Any) -> FastMCP[Any]:
    mcp = FastMCP("web", **options)

    @mcp.tool()
    async def header(ctx: Context) -> str:
        await ctx.report_progress(1)
        request: Any = ctx.request_context.request
        return str(request.headers.get("x-name"))

    @mcp.tool()
    async def owner() -> str:
        token = get_access_token()
        return "nobody" if token is None else f"{token.client_id} {token.scopes}"

    @mcp.custom_route("/health", methods=["GET"])
    async def health(_request: Any) -> Any:
        from starlette.responses import PlainTextResponse

        return PlainTextResponse("well")

    return mcp


@asynccontextmanager
async def served(app: Any) -> AsyncGenerator[str]:
    """Serve an application at a free port, and yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


async def call(streams: Any, tool: str = "header") -> str:
    async with streams as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        result: Any = await session.call_tool(tool)
        return str(result.content[0].text)


HEADERS = {"x-name": "Ada"}


def by_http(url: str) -> Any:
    return streamablehttp_client(f"{url}/mcp", HEADERS)


def by_sse(url: str) -> Any:
    return sse_client(f"{url}/sse", HEADERS)


@each(
    "app, connect",
    [
        (FastMCP.streamable_http_app, by_http),
        (FastMCP.sse_app, by_sse),
    ],
    ids=["http", "sse"],
)
def test_functions_get_the_headers_of_a_request(app: Callable[[Any], Any], connect: Callable[[str], Any]) -> None:
    async def main() -> None:
        async with served(app(make_server())) as url:
            assert await call(connect(url)) == "Ada"
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(b"GET /health HTTP/1.0\r\n\r\n")
            assert (await reader.read()).endswith(b"well")
            writer.close()

    run(main)


def test_a_verifier_of_tokens_decides_who_is_served() -> None:
    class Verifier:
        async def verify_token(self, token: str) -> AccessToken | None:
            return AccessToken(token=token, client_id="app", scopes=["read"]) if token == "good" else None  # noqa: S105

    auth = settings.AuthSettings(
        issuer_url="https://issuer.example", resource_server_url="http://127.0.0.1/mcp", required_scopes=["read"]
    )
    mcp = make_server(token_verifier=Verifier(), auth=auth)

    async def main() -> None:
        async with served(mcp.streamable_http_app()) as url:
            good = streamablehttp_client(f"{url}/mcp", {"authorization": "Bearer good"})
            assert await call(good, "owner") == "app ['read']"
            with pytest.raises(McpError, match="401"):
                await call(streamablehttp_client(f"{url}/mcp"), "owner")

    run(main)


def test_a_low_level_server_is_mounted_below_any_path() -> None:
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    low = Server("low")

    @low.call_tool()
    async def call_tool(name: str, _arguments: dict[str, Any]) -> list[Any]:
        return [types.TextContent(text=f"called {name}")]

    manager = StreamableHTTPSessionManager(low)
    sse = SseServerTransport("/messages/")

    async def open_stream(request: Any) -> Any:
        async with sse.connect_sse(request.scope, request.receive, request._send) as streams:
            await low.run(*streams, low.create_initialization_options())
        return Response()

    app = Starlette(
        routes=[
            Mount("/deep/path", app=manager.handle_request),
            Route("/sse", endpoint=open_stream),
            Mount("/messages/", app=sse.handle_post_message),
        ],
        lifespan=lambda _app: manager.run(),
    )

    async def main() -> None:
        async with served(app) as url:
            assert await call(streamable_http_client(f"{url}/deep/path/"), "a") == "called a"
            assert await call(sse_client(f"{url}/sse"), "b") == "called b"

    run(main)


COMMAND = [sys.executable, str(ROOT / "tests" / "typedmcp_mcp1" / "quickstart.py")]


def test_a_group_has_the_tools_of_processes_and_of_urls() -> None:
    async def main() -> None:
        def name(tool: str, server: Any) -> str:
            return f"{server.name}.{tool}"

        app = make_server().streamable_http_app()
        async with served(app) as url, ClientSessionGroup(component_name_hook=name) as group:
            child = await group.connect_to_server(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:]))
            await group.connect_to_server(StreamableHttpParameters(url=f"{url}/mcp", headers=HEADERS))
            assert [*group.tools] == ["Demo.add", "web.header", "web.owner"]
            result: Any = await group.call_tool("Demo.add", {"a": 1, "b": 2})
            assert result.structuredContent == {"result": 3}
            result = await group.call_tool("web.header")
            assert result.content[0].text == "Ada"
            await group.disconnect_from_server(child)
            assert [*group.tools] == ["web.header", "web.owner"]

    run(main)


def test_standard_error_of_a_process_goes_to_the_file_that_was_given() -> None:
    async def main() -> None:
        errors = io.StringIO()
        code = (
            "import runpy, sys; print('warming up', file=sys.stderr); runpy.run_path(sys.argv[1], run_name='__main__')"
        )
        parameters = StdioServerParameters(command=sys.executable, args=["-c", code, COMMAND[1]])
        async with stdio_client(parameters, errlog=errors) as (read, write), ClientSession(read, write) as session:
            assert (await session.initialize()).server_info.name == "Demo"
        assert "warming up\n" in errors.getvalue()

    run(main)


@each(
    "module, name, said",
    [
        ("shared.auth", "OAuthToken", r"typedmcp_auth\.OAuth"),
        ("client.websocket", "websocket_client", r"typedmcp\.Transport"),
        ("server.websocket", "websocket_server", r"typedmcp\.Transport"),
        ("server.auth.routes", "create_auth_routes", "use any provider"),
        ("server.auth.provider", "OAuthAuthorizationServerProvider", "use any provider"),
        ("server.auth.settings", "ClientRegistrationOptions", "use any provider"),
    ],
)
def test_a_name_that_is_not_here_says_what_is(module: str, name: str, said: str) -> None:
    with pytest.raises(ImportError, match=f"{module} has no {name}: .*{said}"):
        exec(f"from typedmcp_mcp1.{module} import {name}")  # noqa: S102


def test_what_is_not_here_says_what_is() -> None:
    with pytest.raises(typedmcp.UsageError, match=r"typedmcp_auth\.OAuth"):
        OAuthClientProvider("https://x", None, None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(typedmcp.UsageError, match="typedmcp has no authorization server"):
        FastMCP("x", auth_server_provider=object())
    with pytest.raises(typedmcp.UsageError, match=r"typedmcp_extensions\.tasks"):
        _ = Server("x").experimental
    with pytest.raises(AttributeError, match="has no attribute 'is_version_at_least': it compare"):
        _ = types.is_version_at_least
