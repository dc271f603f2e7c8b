"""A gateway exchanges the token of each caller for one of the server, and never passes the caller's token on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import typedmcp
import typedmcp_auth as auth
from tests.server.scripted import run
from tests.serving import serving_http
from tests.typedmcp_auth.scripted import AuthorizationServer, protected
from typedmcp_gateway import Gateway

KINDS = "urn:ietf:params:oauth:token-type"
CALLERS = typedmcp.StaticTokens({"token-of-ada": typedmcp.Principal("ada"), "token-of-bob": typedmcp.Principal("bob")})


def exchange(principal: typedmcp.Principal, server: str, token: Callable[[str], str]) -> auth.TokenExchange:
    return auth.TokenExchange("gateway", "secret", subject_token=token, audience=f"{server} for {principal.subject}")


async def call(url: str, token: str) -> Any:
    async with typedmcp.connect(f"{url}/mcp", auth=token, timeout=60) as client:
        return await client.call_tool("echo")


def exchanged(server: AuthorizationServer) -> list[tuple[str, str]]:
    """Return the tokens that were exchanged, with their audiences."""
    return [(form["subject_token"], form["audience"]) for form in server.forms()]


def test_each_caller_has_a_token_of_its_own_at_the_server() -> None:
    async def main() -> None:
        async with protected() as (target, script, server):
            gateway = Gateway(target, exchange=exchange)
            async with serving_http(gateway.asgi(auth=CALLERS)) as url:
                await call(url, "token-of-ada")
                await call(url, "token-of-bob")
                await call(url, "token-of-ada")
            assert exchanged(server) == [
                ("token-of-ada", "server for ada"),
                ("token-of-bob", "server for bob"),
            ]
            form = server.forms()[0]
            assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
            assert (form["subject_token_type"], form["requested_token_type"]) == (f"{KINDS}:access_token",) * 2
            assert form["resource"] == target
            assert {*script.seen} == {"", "access-1", "access-2"}

    run(main)


def test_the_newest_token_of_a_caller_is_exchanged_when_the_old_one_ends() -> None:
    tokens = typedmcp.StaticTokens({"old": typedmcp.Principal("ada"), "new": typedmcp.Principal("ada")})

    async def main() -> None:
        async with protected() as (target, script, server):
            async with serving_http(Gateway(target, exchange=exchange).asgi(auth=tokens)) as url:
                await call(url, "old")
                server.tokens.clear()
                await call(url, "new")
            assert [token for token, _ in exchanged(server)] == ["old", "new"]
            assert not {"old", "new"} & {*script.seen}

    run(main)


def test_a_token_that_comes_back_unchanged_is_not_sent_to_the_server() -> None:
    async def main() -> None:
        async with protected(token={"access_token": "token-of-ada"}) as (target, script, _):
            reports: list[str] = []
            gateway = Gateway(target, exchange=exchange)
            app = gateway.asgi(auth=CALLERS, on_diagnostic=lambda each: reports.append(each.text))
            async with serving_http(app) as url:
                with pytest.raises(typedmcp.RemoteError, match="does not accept the gateway's credentials"):
                    await call(url, "token-of-ada")
            assert {*script.seen} == {""}
            assert any("returned the token that was to be exchanged" in text for text in reports)
            assert not any("token-of-ada" in text for text in reports)

    run(main)


def test_another_kind_of_token_is_rejected() -> None:
    async def main() -> None:
        async with protected(token={"issued_token_type": f"{KINDS}:refresh_token"}) as (target, script, _):
            option = auth.TokenExchange("gateway", subject_token=lambda _issuer: "the token of a person")
            with pytest.raises(typedmcp.SignInError, match="issued another token than an access token"):
                async with typedmcp.connect(target, auth=option, timeout=60):
                    pass
            assert {*script.seen} == {""}

    run(main)


def test_callers_without_a_token_get_none_at_the_server() -> None:
    async def main() -> None:
        async with protected() as (target, script, server):
            async with typedmcp.connect(Gateway(target, exchange=exchange), timeout=60) as client:
                with pytest.raises(typedmcp.RemoteError, match="does not accept the gateway's credentials"):
                    await client.call_tool("echo")
            assert exchanged(server) == []
            assert {*script.seen} == {""}

    run(main)


def test_the_first_call_passes_to_a_server_that_knows_only_the_callers_of_the_gateway() -> None:
    """The gateway itself cannot list the tools, so it reads the list for the call, to check the headers of that."""

    async def main() -> None:
        async with protected() as (target, script, server):
            server.tokens["token-of-the-server"] = ""
            gateway = Gateway(target, credentials=lambda caller, _: "token-of-the-server" if caller else None)
            async with serving_http(gateway.asgi(auth=CALLERS)) as url:
                await call(url, "token-of-ada")
            assert {*script.seen} == {"", "token-of-the-server"}

    run(main)


def test_a_gateway_has_one_source_of_credentials() -> None:
    with pytest.raises(typedmcp.UsageError, match="either credentials= or exchange="):
        Gateway("https://example.com/mcp", exchange=exchange, credentials=lambda _principal, _server: None)
