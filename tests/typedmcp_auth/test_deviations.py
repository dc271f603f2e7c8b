"""Authorization servers that read the standards their own way: what has one meaning is understood, and reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import typedmcp
import typedmcp_auth as auth
from tests.cases import each
from tests.client.http.scripted_http import Request, Wire
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import PRM, AuthorizationServer, protected, sign_in

RESOURCE_ROOT = "/.well-known/oauth-protected-resource"
OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"


async def call(url: str, option: Any, **options: Any) -> list[str]:
    """Call a tool, and return the texts of what was tolerated."""
    reports = list[typedmcp.Diagnostic]()
    async with typedmcp.connect(url, auth=option, timeout=10, on_diagnostic=reports.append, **options) as client:
        await client.call_tool("echo")
    return [report.text for report in reports if report.kind is typedmcp.DiagnosticKind.TOLERATED]


def asked(server: AuthorizationServer) -> list[dict[str, list[str]]]:
    """Return the parameters of each request for a person's sign-in."""
    targets = [urlsplit(request.target) for request in server.requests]
    return [parse_qs(target.query) for target in targets if target.path == "/authorize"]


REFUSALS: dict[str, tuple[int, Any]] = {
    "invalid_grant": (400, {"error": "invalid_grant"}),
    "GitHub": (200, {"error": "bad_refresh_token", "error_description": "The refresh token is incorrect"}),
    "invalid_request": (400, {"error": "invalid_request", "error_description": "refresh_token is invalid"}),
    "invalid_client": (401, {"error": "invalid_client"}),
    "unauthorized": (401, {"message": "Unauthorized"}),
    "forbidden": (403, b"Forbidden"),
    "gone": (404, b"gone"),
    "an error with the status of a fault": (500, {"error": "invalid_grant"}),
}
FAULTS: dict[str, tuple[int, Any]] = {
    "busy": (503, b"busy"),
    "a page": (500, b"<html>"),
    "too many": (429, {"error": "invalid_grant"}),
    "temporary": (400, {"error": "temporarily_unavailable"}),
    "a page with the status 200": (200, b"<html>"),
}


def refuse_refresh(status: int, body: Any) -> Callable[[Request, Wire], bool]:
    def handle(request: Request, wire: Wire) -> bool:
        is_refresh = b"grant_type=refresh_token" in request.body
        if is_refresh and isinstance(body, bytes):
            wire.reply(status, body)
        elif is_refresh:
            wire.json(body, status)
        return is_refresh

    return handle


async def restart_with_an_ended_token(status: int, body: Any) -> tuple[int, str | None]:
    """Start a client twice, and return how often the person signed in, and the error of the second start."""
    async with protected(handle=refuse_refresh(status, body)) as (url, _, server):
        storage = auth.MemoryStorage()
        await call(url, sign_in(storage=storage))
        server.tokens.clear()
        error = None
        try:
            await call(url, sign_in(storage=storage))
        except typedmcp.SignInError as raised:
            error = str(raised)
        return len(asked(server)), error


@each("name", REFUSALS)
def test_a_refused_refresh_token_leads_to_another_sign_in(name: str) -> None:
    assert run(lambda: restart_with_an_ended_token(*REFUSALS[name])) == (2, None)


@each("name", FAULTS)
def test_a_fault_of_the_authorization_server_keeps_the_refresh_token(name: str) -> None:
    signed_in, error = run(lambda: restart_with_an_ended_token(*FAULTS[name]))
    assert (signed_in, error is not None) == (1, True)


PAGE = (200, b"<!doctype html><title>My application</title>")
OTHER = (200, b'{"error": "not found"}')
BAD_GATEWAY = (502, b"bad gateway")
UNUSABLE = {
    "a page": PAGE,
    "other JSON": OTHER,
    "an array": (200, b"[]"),
    "bad gateway": BAD_GATEWAY,
    "none": (404, b""),
}


@each("name", UNUSABLE)
def test_the_next_place_is_tried_for_metadata_of_an_authorization_server(name: str) -> None:
    async def main() -> None:
        async with protected() as (url, _, server):

            def handle(request: Request, wire: Wire) -> bool:
                if request.target == OAUTH:
                    wire.reply(*UNUSABLE[name])
                elif request.target == OPENID:
                    wire.json(server.describe())
                return request.target in (OAUTH, OPENID)

            server.handle = handle
            await call(url, sign_in())

    run(main)


def test_an_error_lists_all_places_that_were_tried() -> None:
    def handle(request: Request, wire: Wire) -> bool:
        wire.reply(*(PAGE if request.target == OAUTH else BAD_GATEWAY))
        return True

    async def main() -> None:
        async with protected(handle=handle) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match=rf"{OAUTH}: .*; .*{OPENID} answered 502"):
                await call(url, sign_in())

    run(main)


@each("name", UNUSABLE)
def test_the_next_place_is_tried_for_metadata_of_a_server(name: str) -> None:
    async def main() -> None:
        async with protected() as (url, script, _):
            script.challenge = "Bearer"

            def describe(request: Request, wire: Wire) -> None:
                if request.target == PRM:
                    wire.reply(*UNUSABLE[name])
                else:
                    wire.json({"resource": url, "authorization_servers": [script.server.url]})

            script.describe_resource = describe
            await call(url, sign_in())

    run(main)


def test_a_server_with_a_page_at_every_path_is_its_own_authorization_server() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.challenge = "Bearer"
            base = url.removesuffix("/mcp")

            def describe(request: Request, wire: Wire) -> None:
                if request.target == OAUTH:
                    wire.json({**server.describe(), "issuer": base})
                else:
                    wire.reply(*PAGE)

            script.describe_resource = describe
            server.redirect = {"iss": base}
            await call(url, sign_in())

    run(main)


def test_a_server_whose_metadata_cannot_be_got_is_not_taken_for_its_own_authorization_server() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.challenge = "Bearer"
            script.describe_resource = lambda _, wire: wire.reply(502)
            with pytest.raises(typedmcp.SignInError, match=rf"{PRM} answered 502.*; .*{RESOURCE_ROOT} answered 502"):
                await call(url, sign_in())
            assert server.requests == []

    run(main)


@each("named, described", [("/", ""), ("", "/")], ids=["Google", "the reverse"])
@each("chosen", [None, "", "/"], ids=["no issuer", "without a slash", "with a slash"])
def test_the_issuer_of_a_host_may_end_with_a_slash_or_not(named: str, described: str, chosen: str | None) -> None:
    async def main(**options: Any) -> list[str]:
        async with protected() as (url, script, server):
            script.resource = {"authorization_servers": [server.url + named]}
            server.metadata = {"issuer": server.url + described}
            server.redirect = {"iss": server.url + described}
            issuer = {} if chosen is None else {"issuer": server.url + chosen}
            return await call(url, sign_in(**issuer), **options)

    differs = (named if chosen is None else chosen) != described
    assert any("the issuer is" in text for text in run(main)) == differs
    if differs:
        with pytest.raises(typedmcp.SignInError, match="the issuer is"):
            run(lambda: main(strict=True))


def test_the_path_of_an_issuer_keeps_its_slash() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.resource = {"authorization_servers": [f"{server.url}/tenant"]}
            server.metadata = {"issuer": f"{server.url}/tenant/"}
            server.handle = describe_oddly(server, {})
            with pytest.raises(typedmcp.SignInError, match="the issuer is"):
                await call(url, sign_in())

    run(main)


NULLS = dict.fromkeys(("scopes_supported", "jwks_uri", "response_modes_supported", "service_documentation"))
ODD: dict[str, tuple[dict[str, Any], str]] = {
    "nulls in metadata": ({"metadata": NULLS}, "scopes_supported"),
    "a null for a flag": ({"metadata": {"client_id_metadata_document_supported": None}}, "client_id_metadata"),
    "a text for a flag": ({"metadata": {"authorization_response_iss_parameter_supported": "true"}}, "iss_parameter"),
    "a text for a list": ({"metadata": {"code_challenge_methods_supported": "plain S256"}}, "code_challenge"),
    "a registration that never expires": (
        {"registered": {"client_secret_expires_at": "0"}},
        "client_secret_expires_at",
    ),
    "nulls in a registration": (
        {"registered": {"client_secret": None, "client_secret_expires_at": None}},
        "expires_at",
    ),
    "a number for a client": ({"registered": {"client_id": 4711}}, "client_id"),
    "nulls in a token": ({"token": {"scope": None, "id_token": None, "issued_token_type": None}}, ""),
    "a list of scopes": ({"token": {"scope": ["read", "write"]}}, "scope"),
    "a token without a type": ({"token": {"token_type": "absent"}}, "without a type"),
    "a null for the type": ({"token": {"token_type": None}}, "token_type"),
    "another status": ({"status": 201}, "the status 201"),
}


def describe_oddly(server: AuthorizationServer, odd: dict[str, Any]) -> Callable[[Request, Wire], bool]:
    """Return what answers with documents that have odd members, nulls included."""

    def handle(request: Request, wire: Wire) -> bool:
        path = urlsplit(request.target).path
        if path.startswith(OAUTH):
            wire.json({**server.describe(), **odd.get("metadata", {})})
        elif path == "/register":
            wire.json({"client_id": "c", **odd.get("registered", {})}, 201)
        elif path == "/token":
            server.tokens["t"] = "read"
            token = {"access_token": "t", "token_type": "Bearer", **odd.get("token", {})}
            wire.json({name: value for name, value in token.items() if value != "absent"}, odd.get("status", 200))
        return path.startswith((OAUTH, "/register", "/token"))

    return handle


@each("name", ODD)
def test_members_that_mean_one_thing_are_understood_and_reported(name: str) -> None:
    odd, reported = ODD[name]

    async def main(**options: Any) -> list[str]:
        async with protected() as (url, _, server):
            server.handle = describe_oddly(server, odd)
            return await call(url, sign_in(), **options)

    texts = " ".join(run(main))
    assert (reported in texts) if reported else not texts
    if reported:
        with pytest.raises(typedmcp.SignInError, match=reported):
            run(lambda: main(strict=True))


def test_chosen_scopes_are_requested_in_place_of_those_of_the_metadata() -> None:
    async def main() -> None:
        async with protected(metadata={"scopes_supported": ["offline_access"]}) as (url, script, server):
            script.challenge = "Bearer"
            script.resource = {"scopes_supported": ["mcp", "admin"]}
            script.needs = {"write": "write"}
            async with typedmcp.connect(url, auth=sign_in(scopes=["mcp"]), timeout=10) as client:
                await client.call_tool("echo")
                await client.call_tool("write")
            assert [one["scope"] for one in asked(server)] == [["mcp"], ["mcp write"]]
            await call(url, sign_in())
            assert asked(server)[-1]["scope"] == ["mcp admin offline_access"]

    run(main)


@each("sent", [True, False])
def test_the_parameter_resource_can_be_left_out(sent: bool) -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            server.handle = describe_oddly(server, {"token": {"refresh_token": "r"}})
            storage = auth.MemoryStorage()
            for _ in range(2):
                await call(url, sign_in(storage=storage, send_resource=sent))
                server.tokens.clear()
            assert [form["grant_type"] for form in server.forms()] == ["authorization_code", "refresh_token"]
            assert (
                {"resource" in one for one in asked(server)} == {"resource" in one for one in server.forms()} == {sent}
            )
            await call(url, auth.ClientCredentials("c", "secret", send_resource=sent))
            assert ("resource" in server.forms()[-1]) == sent

    run(main)


def test_an_option_that_is_no_flag_is_refused() -> None:
    with pytest.raises(typedmcp.UsageError, match="send_resource"):
        auth.OAuth(send_resource="no")  # type: ignore[arg-type]
