"""Pages of the configured origins may read responses, and other pages may not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.server.http.asgi_driver import CompleteResponse, Served, in_loop, message, serving, verify
from typedmcp import Auth

PAGE = "https://app.example.com"
PREFLIGHT = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,mcp-method,mcp-param-region",
}


def allowed(reply: CompleteResponse) -> str | None:
    """Return the origin that may read a response."""
    return reply.headers.get("access-control-allow-origin")


async def preflight(served: Served, headers: dict[str, str], path: str = "/mcp") -> CompleteResponse:
    bare = [(b"host", b"localhost"), *((name.encode(), value.encode()) for name, value in headers.items())]
    return await served.request("OPTIONS", bare, path=path, bare=True)


@each("origins", [[PAGE], [f"{PAGE.upper()}/"], ["https://other.example", PAGE], iter([PAGE])])
@in_loop
async def test_a_preflight_request_of_an_allowed_page_is_answered(origins: Any) -> None:
    async with serving(origins=origins) as served:
        reply = await preflight(served, PREFLIGHT)
        assert (reply.status, reply.body, allowed(reply)) == (204, b"", PAGE)
        assert reply.headers["access-control-allow-methods"] == "GET, POST, DELETE"
        assert reply.headers["access-control-allow-headers"] == PREFLIGHT["access-control-request-headers"]
        assert reply.headers["vary"] == "origin"
        assert int(reply.headers["access-control-max-age"]) > 0
        assert "access-control-allow-credentials" not in reply.headers


@in_loop
async def test_a_preflight_request_needs_no_credentials() -> None:
    auth = Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(origins=[PAGE], auth=auth, sse_path="/sse") as served:
        for path in ("/mcp", "/sse", "/messages", "/.well-known/oauth-protected-resource"):
            assert (await preflight(served, PREFLIGHT, path)).status == 204


@each(
    "options, headers, status",
    [
        ({}, PREFLIGHT, 403),
        ({"origins": ["https://other.example"]}, PREFLIGHT, 403),
        ({}, {**PREFLIGHT, "origin": "http://localhost:5173"}, 405),
        ({"origins": [PAGE]}, {**PREFLIGHT, "origin": "http://localhost:5173"}, 405),
        ({"origins": [PAGE]}, {"origin": PAGE}, 405),
        ({"origins": [PAGE]}, {name: value for name, value in PREFLIGHT.items() if name != "origin"}, 405),
    ],
    ids=["no origins", "another one", "a page of the hosts", "the same beside an origin", "no preflight", "no page"],
)
@in_loop
async def test_other_preflight_requests_are_rejected(options: Any, headers: dict[str, str], status: int) -> None:
    async with serving(**options) as served:
        reply = await preflight(served, headers)
        assert reply.status == status
        assert "access-control-allow-methods" not in reply.headers


@each("wanted", ["", "x: y", "ü", "a\x00"])
@in_loop
async def test_only_names_of_headers_are_repeated(wanted: str) -> None:
    async with serving(origins=[PAGE]) as served:
        bare = [(b"host", b"localhost"), (b"origin", PAGE.encode()), (b"access-control-request-method", b"POST")]
        bare.append((b"access-control-request-headers", wanted.encode()))
        reply = await served.request("OPTIONS", bare, bare=True)
        assert reply.status == 204
        assert "access-control-allow-headers" not in reply.headers


@each("origins, permission", [([PAGE], PAGE), (["*"], "*")])
@in_loop
async def test_an_allowed_page_can_read_every_response(origins: list[str], permission: str) -> None:
    async with serving(origins=origins, sse_path="/sse") as served:
        page: dict[str, str | None] = {"origin": PAGE}
        for _ in range(2):
            reply = await served.call("echo", headers=page).reply()
            assert (reply.status, allowed(reply)) == (200, permission)
        progress = {"progressToken": 1}
        reply = await served.ask("tools/call", {"name": "report"}, meta=progress, headers=page).reply()
        assert (reply.is_stream, allowed(reply)) == (True, permission)
        for reply in (
            await served.ask("tools/list", headers={**page, "mcp-method": "x"}).reply(),
            await served.post(b"{", {"origin": PAGE}),
            await served.request("PUT", {"origin": PAGE}),
            await served.request("GET", {"origin": PAGE}, path="/nowhere"),
            await served.post(b"{}", {"origin": PAGE}, path="/messages"),
        ):
            assert (reply.status >= 400, allowed(reply)) == (True, permission)
            assert ("vary" in reply.headers) is (permission != "*")


@in_loop
async def test_a_page_can_read_what_clients_need_of_a_response() -> None:
    auth = Auth(verify, resource="https://mcp.test/mcp", issuers=["https://issuer.test"])
    async with serving(origins=[PAGE], auth=auth) as served:
        reply = await served.call("echo", headers={"origin": PAGE}).reply()
        assert (reply.status, allowed(reply)) == (401, PAGE)
        exposed = reply.headers["access-control-expose-headers"]
        assert exposed.split(", ") == ["mcp-session-id", "www-authenticate", "dpop-nonce", "retry-after"]
        reply = await served.request("GET", {"origin": PAGE}, path="/.well-known/oauth-protected-resource")
        assert (reply.status, allowed(reply)) == (200, PAGE)


@in_loop
async def test_a_session_can_be_used_by_a_page() -> None:
    async with serving(origins=[PAGE]) as served:
        session = await served.session()
        session.headers["origin"] = PAGE
        for _ in range(2):
            assert allowed(await session.call("echo").reply()) == PAGE
        stream = await session.listening()
        assert (b"access-control-allow-origin", PAGE.encode()) in stream.sent[0]["headers"]
        assert allowed(await session.delete()) == PAGE


@in_loop
async def test_other_clients_get_no_permissions() -> None:
    async with serving(origins=[PAGE]) as served:
        for headers in ({}, {"origin": "http://localhost:3000"}, {"origin": "https://evil.example"}):
            for _ in range(2):
                reply = await served.ask("tools/list", headers=dict(headers)).reply()
                assert allowed(reply) is None
        assert (
            allowed(await served.post(message(id=1, method="tools/list"), {"origin": "https://evil.example"})) is None
        )


@in_loop
async def test_a_route_of_a_framework_passes_on_preflight_requests() -> None:
    routing = pytest.importorskip("starlette.routing")
    async with serving(origins=[PAGE]) as served:
        router = routing.Router(routes=[routing.Route("/mcp", served.app)])
        app, served.app = served.app, router
        try:
            reply = await preflight(served, PREFLIGHT)
        finally:
            served.app = app
        assert (reply.status, allowed(reply)) == (204, PAGE)
