"""Authorization servers and MCP servers that are unusual, broken or unlucky: what a client makes of them."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import typedmcp
import typedmcp.client.http.authorization
import typedmcp.client.http.endpoint
import typedmcp_auth as auth
import typedmcp_auth.session
from tests.cases import each
from tests.client.http.scripted_http import Request, Wire
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import AuthorizationServer, pass_time, protected, sign_in
from tests.typedmcp_auth.test_sign_in import OPTIONS, call
from typedmcp.auth import AuthRequest
from typedmcp_auth.discovery import discover_server

GRANTS = ["authorization_code", "refresh_token"]


def grants(server: AuthorizationServer) -> list[str]:
    return [form["grant_type"] for form in server.forms()]


LIFETIMES: list[Any] = [None, 0, -1, -3600, "0", "soon", "", "nan", "inf", 1e300, 1e-9]


@each("lifetime", LIFETIMES, ids=[str(value)[:9] for value in LIFETIMES])
def test_a_token_of_unknown_lifetime_is_used_until_the_server_rejects_it(lifetime: Any) -> None:
    async def main() -> None:
        async with protected(token={"expires_in": lifetime}) as (url, _, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                for _ in range(3):
                    await client.call_tool("echo")
                assert grants(server) == GRANTS[:1]
                server.tokens.clear()
                await client.call_tool("echo")
            assert grants(server) == GRANTS

    run(main)


@each("lifetime", [True, [], {"seconds": 1}], ids=str)
def test_a_lifetime_of_another_type_is_an_error(lifetime: Any) -> None:
    async def main() -> None:
        async with protected(token={"expires_in": lifetime}) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match="expires_in"):
                await call(url, sign_in())

    run(main)


def test_a_lifetime_in_a_string_counts() -> None:
    async def main() -> None:
        storage = auth.MemoryStorage()
        async with protected(token={"expires_in": "1000"}) as (url, _, _server):
            await call(url, sign_in(storage=storage))
            value = await storage.load(f"token {url}")
        assert value is not None
        assert b'"renew_at":' in value

    run(main)


def test_narrowed_scopes_lead_to_one_more_sign_in_and_then_to_the_error_of_the_server() -> None:
    async def main() -> None:
        async with protected(granted="read", token={"scope": "read"}) as (url, script, server):
            script.needs = {"write": "write"}
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                for _ in range(3):
                    with pytest.raises(typedmcp.AuthorizationRequiredError, match="insufficient_scope"):
                        await client.call_tool("write")
                await client.call_tool("echo")
            assert server.paths().count("/authorize") == 2

    run(main)


def test_a_server_that_rejects_every_token_does_not_make_a_loop() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):

            class NoTokens(dict[str, str]):
                def __contains__(self, _token: object) -> bool:
                    return False

            server.tokens = NoTokens()
            with pytest.raises(typedmcp.AuthorizationRequiredError):
                await call(url, sign_in())
            assert server.paths().count("/authorize") == 1
            assert len(script.seen) <= 3

    run(main)


def test_concurrent_calls_that_need_different_scopes_all_succeed() -> None:
    async def main() -> None:
        names = [f"scope{number}" for number in range(6)]
        async with protected() as (url, script, server):
            script.needs = {name: name for name in names}
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await asyncio.gather(*[client.call_tool(name) for name in names])
            assert server.paths().count("/authorize") <= 7
            asked = [request.target for request in server.requests if request.target.startswith("/authorize")]
            assert set(parse_qs(urlsplit(asked[-1]).query)["scope"][0].split()) == {"read", *names}

    run(main)


def test_a_lost_response_to_a_refresh_leads_to_another_sign_in() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                server.tokens.clear()

                def lose(request: Request, wire: Wire) -> bool:
                    """Use up the refresh token, and answer nothing."""
                    if request.target != "/token":
                        return False
                    server.refresh_tokens.clear()
                    server.handle = lambda _request, _wire: False
                    wire.close()
                    return True

                server.handle = lose
                with pytest.raises(typedmcp.SignInError, match="/token"):
                    await client.call_tool("echo")
                await client.call_tool("echo")
            assert grants(server) == ["authorization_code", "refresh_token", "refresh_token", "authorization_code"]

    run(main)


def test_a_refresh_token_that_is_not_rotated_is_kept() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                first = next(iter(server.refresh_tokens))
                server.token["refresh_token"] = None
                for _ in range(2):
                    server.tokens.clear()
                    server.refresh_tokens.add(first)
                    await client.call_tool("echo")
            assert [form.get("refresh_token") for form in server.forms()] == [None, first, first]

    run(main)


class Clock:
    """The time of the client, which can jump."""

    def __init__(self) -> None:
        self.jump = 0.0

    def time(self) -> float:
        return time.time() + self.jump


@each("jump, expected", [(7200.0, GRANTS), (-7200.0, GRANTS[:1])], ids=["forward", "back"])
def test_a_clock_that_jumps_costs_at_most_a_renewal(
    jump: float, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (typedmcp_auth.session, typedmcp.client.http.authorization, typedmcp.client.http.endpoint):
        monkeypatch.setattr(module, "time", clock)

    async def main() -> None:
        async with protected() as (url, _, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                clock.jump = jump
                for _ in range(3):
                    await client.call_tool("echo")
                assert grants(server) == expected
                clock.jump = 0
                for _ in range(3):
                    await client.call_tool("echo")
            assert grants(server) == expected

    run(main)


def fail_at_token(request: Request, wire: Wire) -> bool:
    if request.target != "/token":
        return False
    wire.reply(503, b"later")
    return True


def test_an_early_renewal_that_fails_leaves_the_token_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with protected(token={"expires_in": 600}) as (url, _, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                server.handle = fail_at_token
                pass_time(monkeypatch, 600)
                for _ in range(3):
                    await client.call_tool("echo")
                assert grants(server) == GRANTS  # one attempt, and no others for some seconds
                server.handle = lambda _request, _wire: False
                server.tokens.clear()
                await client.call_tool("echo")
            assert grants(server) == [*GRANTS, "refresh_token"]

    run(main)


def test_a_client_that_signs_in_as_itself_gets_the_next_token_early(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with protected(token={"expires_in": 600, "refresh_token": None}) as (url, script, server):
            async with typedmcp.connect(url, auth=auth.ClientCredentials("me", "s"), **OPTIONS) as client:
                server.token["expires_in"] = 3600
                pass_time(monkeypatch, 600)
                await client.call_tool("echo")
            assert grants(server) == ["client_credentials"] * 2
            assert script.seen.count("") == 1

    run(main)


def answer_with_error(request: Request, wire: Wire) -> bool:
    if request.target != "/token":
        return False
    wire.json({"error": "bad_verification_code", "error_description": "The code is incorrect \x1b[2J or expired."})
    return True


def answer_with_page(request: Request, wire: Wire) -> bool:
    if request.target != "/token":
        return False
    wire.reply(200, b"<html>Maintenance</html>", content_type="text/html")
    return True


def test_an_error_with_the_status_200_is_an_error() -> None:
    async def main() -> None:
        async with protected(handle=answer_with_error) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match=r"bad_verification_code \(The code") as caught:
                await call(url, sign_in())
            assert caught.value.code == "bad_verification_code"
        async with protected(handle=answer_with_page) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match="/token: "):
                await call(url, sign_in())

    run(main)


ISSUERS = ["https://bücher.example", "https://\u0430pple.example", "https://a.example\u202e", "https://a.example/\n"]


@each("issuer", ISSUERS, ids=ascii)
def test_an_issuer_with_other_characters_than_a_url_has_is_rejected(issuer: str) -> None:
    async def main() -> None:
        async with protected() as (url, script, _server):
            script.resource["authorization_servers"] = [issuer]
            with pytest.raises(typedmcp.SignInError, match="the issuer is not a valid URL") as caught:
                await call(url, sign_in())
            assert str(caught.value).isprintable()

    run(main)


def test_an_issuer_in_punycode_is_requested_as_it_stands() -> None:
    steps = discover_server("https://xn--bcher-kva.example/t%C3%A9", "https://mcp.example.com")
    request = next(steps)
    assert isinstance(request, AuthRequest)
    assert request.url == "https://xn--bcher-kva.example/.well-known/oauth-authorization-server/t%C3%A9"


def test_an_authorization_endpoint_keeps_its_query() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            server.metadata["authorization_endpoint"] = f"{server.url}/authorize?tenant=a%20b"
            await call(url, sign_in())
            asked = next(request for request in server.requests if request.target.startswith("/authorize"))
            assert parse_qs(urlsplit(asked.target).query)["tenant"] == ["a b"]

    run(main)


def test_a_known_authorization_server_stays_while_the_metadata_name_it() -> None:
    async def main() -> None:
        async with protected() as (url, script, first), protected() as (_, _, second):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                script.resource["authorization_servers"] = [second.url, first.url]
                first.tokens.clear()
                await client.call_tool("echo")
            assert grants(first) == GRANTS
            assert second.requests == []

    run(main)


def test_several_challenges_in_several_headers_are_read_together() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.challenge = (
                'Basic realm="a, b"\r\nWWW-Authenticate: Bearer scope="special"\r\nWWW-Authenticate: Negotiate'
            )
            await call(url, sign_in())
            asked = next(request for request in server.requests if request.target.startswith("/authorize"))
            assert parse_qs(urlsplit(asked.target).query)["scope"] == ["special"]

    run(main)


@each("supported", [["private_key_jwt", "client_secret_post"], [], ["tls_client_auth"]], ids=str)
def test_a_secret_goes_by_a_method_that_the_server_supports(supported: list[str]) -> None:
    async def main() -> None:
        async with protected(metadata={"token_endpoint_auth_methods_supported": supported}) as (url, _, server):
            option = auth.ClientCredentials("me", "secret")
            if "client_secret_post" in supported:
                await call(url, option)
                assert server.forms()[0]["client_secret"] == "secret"  # noqa: S105  # of the test
            elif supported:
                with pytest.raises(typedmcp.SignInError, match="'tls_client_auth', which needs a key"):
                    await call(url, option)

    run(main)


def test_a_registration_for_fewer_scopes_is_replaced() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.needs = {"write": "write"}
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await client.call_tool("write")
            registered = [r.json["scope"] for r in server.requests if r.target == "/register"]
            assert registered == ["read", "read write"]

    run(main)


def test_flows_of_different_kinds_do_not_share_a_token() -> None:
    async def main() -> None:
        storage = auth.MemoryStorage()
        async with protected() as (url, _, server):
            await call(url, auth.ClientCredentials("me", "s", storage=storage))
            await call(url, sign_in(storage=storage))
            assert grants(server) == ["client_credentials", "authorization_code"]

    run(main)


def test_a_console_without_input_is_an_error() -> None:
    def ask(_prompt: str) -> str:
        raise EOFError

    async def main() -> None:
        async with protected() as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match="standard input has ended"):
                await call(url, auth.OAuth(sign_in=auth.ConsoleSignIn(show=lambda _: None, ask=ask)))
            crowd = "&".join(f"a{number}=1" for number in range(50))
            for pasted in ("", "nonsense", "http://127.0.0.1/?code=1&state=other", f"?{crowd}", "?state=\udcff"):
                option = auth.ConsoleSignIn(show=lambda _: None, ask=lambda _, pasted=pasted: pasted)  # type: ignore[misc]
                with pytest.raises(typedmcp.SignInError, match="does not belong to this sign-in"):
                    await call(url, auth.OAuth(sign_in=option))

    run(main)


@each("accepts_later", [True, False])
def test_a_refused_early_renewal_leaves_a_valid_token_in_use(
    accepts_later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some servers refuse a refresh token for as long as the access token is valid."""
    is_early = True

    def refuse(request: Request, wire: Wire) -> bool:
        is_refused = b"grant_type=refresh_token" in request.body and (is_early or not accepts_later)
        if is_refused:
            wire.json({"error": "invalid_request", "error_description": "too early"}, 400)
        return is_refused

    async def main() -> None:
        nonlocal is_early
        async with protected(token={"expires_in": 600}, handle=refuse) as (url, _, server):
            storage = auth.MemoryStorage()
            await call(url, sign_in(storage=storage))
            pass_time(monkeypatch, 570)
            for _ in range(2):
                await call(url, sign_in(storage=storage))
            assert grants(server) == GRANTS
            is_early = False
            server.tokens.clear()
            await call(url, sign_in(storage=storage))
            assert grants(server) == [*GRANTS, "refresh_token", *([] if accepts_later else GRANTS[:1])]

    run(main)
