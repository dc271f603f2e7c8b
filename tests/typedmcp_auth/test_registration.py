"""Where a client looks for metadata, and how it identifies itself: each way, in its order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import typedmcp
import typedmcp_auth as auth
from tests.cases import each
from tests.client.http.scripted_http import Request, Wire, serving
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import PRM, AuthorizationServer, ProtectedScript, protected, sign_in, visit
from tests.typedmcp_auth.test_sign_in import call

DOCUMENT = "https://app.example.com/client.json"


def asked_for(server: AuthorizationServer, name: str) -> str | None:
    """Return a parameter of the authorization request."""
    request = next(request for request in server.requests if request.target.startswith("/authorize"))
    return parse_qs(urlsplit(request.target).query).get(name, [None])[0]


def ask_client(_issuer: str) -> auth.ClientCredential:
    return auth.ClientCredential(client_id="typed in")


WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mine": ({"client_id": "mine"}, {}),
    DOCUMENT: ({}, {}),
    "client-": ({}, {"client_id_metadata_document_supported": False}),
    "typed in": ({}, {"client_id_metadata_document_supported": False, "registration_endpoint": None}),
}


@each("way", WAYS)
def test_a_client_identifies_itself_in_the_order_of_the_specification(way: str) -> None:
    options, metadata = WAYS[way]

    async def main() -> None:
        async with protected(metadata={"client_id_metadata_document_supported": True, **metadata}) as (url, _, server):
            await call(url, sign_in(client_metadata_url=DOCUMENT, ask_client=ask_client, **options))
            assert (asked_for(server, "client_id") or "").startswith(way)
            assert ("/register" in server.paths()) is (way == "client-")

    run(main)


@each("url", ["http://app.example.com/client.json", "https://app.example.com", "https://a.example/"])
def test_the_url_of_a_client_needs_https_and_a_path(url: str) -> None:
    with pytest.raises(typedmcp.UsageError, match="must use https and have a path"):
        auth.OAuth(client_metadata_url=url)


def test_the_url_of_a_client_is_its_id_at_every_authorization_server() -> None:
    async def main() -> None:
        storage = auth.MemoryStorage()
        metadata = {"client_id_metadata_document_supported": True}
        async with protected(metadata=metadata) as (url, script, first), protected(metadata=metadata) as (_, _, second):
            for server in (first, second):
                script.server = server
                await call(url, sign_in(client_metadata_url=DOCUMENT, storage=storage))
                assert asked_for(server, "client_id") == DOCUMENT

    run(main)


def refuse_registration(request: Request, wire: Wire) -> bool:
    if request.target != "/register":
        return False
    wire.json({"error": "invalid_redirect_uri", "error_description": "no loopback"}, 400)
    return True


def test_a_failed_registration_is_an_error_with_its_reason() -> None:
    async def main() -> None:
        async with protected(handle=refuse_registration) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match=r"invalid_redirect_uri \(no loopback\)") as caught:
                await call(url, sign_in())
            assert caught.value.code == "invalid_redirect_uri"

    run(main)


class ElsewhereSignIn:
    """A way to sign in whose redirects go to a web server, as in an application for the browser."""

    uri = "https://app.example.com/callback"

    @asynccontextmanager
    async def open_redirect(self, registered: str | None) -> AsyncGenerator[auth.Redirect]:
        yield self

    async def visit(self, url: str, accept: Callable[[str], bool]) -> None:
        state = parse_qs(urlsplit(url).query)["state"][0]
        assert accept(f"error=access_denied&state={state}&iss={self.issuer}")

    issuer = ""


def test_a_client_on_a_web_server_registers_as_one() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            way = ElsewhereSignIn()
            way.issuer = server.url
            with pytest.raises(typedmcp.SignInError, match="access_denied"):
                await call(url, auth.OAuth(sign_in=way))
            registered = next(request.json for request in server.requests if request.target == "/register")
            assert (registered["application_type"], registered["redirect_uris"]) == ("web", [way.uri])

    run(main)


# Metadata


class Tenants(AuthorizationServer):
    """An authorization server whose issuer has a path, and whose metadata stand at one of the well-known URLs."""

    well_known = ""
    tenant = ""

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "issuer": f"{self.url}{self.tenant}"}

    async def answer(self, request: Request, wire: Wire) -> None:
        if "/.well-known/" in request.target:
            self.requests.append(request)
            wire.json(self.describe()) if request.target == self.well_known else wire.reply(404)
        else:
            await super().answer(request, wire)


PLACES = {
    "": ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
    "/t1": [
        "/.well-known/oauth-authorization-server/t1",
        "/.well-known/openid-configuration/t1",
        "/t1/.well-known/openid-configuration",
    ],
}


@each("tenant, place", [(tenant, place) for tenant, places in PLACES.items() for place in places])
def test_metadata_of_an_authorization_server_are_found_at_each_well_known_url(tenant: str, place: str) -> None:
    async def main() -> None:
        async with protected() as (url, script, plain):
            server = Tenants(redirect={"iss": "{url}" + tenant})
            server.tenant, server.well_known, server.url = tenant, place, plain.url
            plain.handle = lambda request, wire: answer_as(server, request, wire)
            script.server = server
            script.resource["authorization_servers"] = [f"{server.url}{tenant}"]
            await call(url, sign_in())
            tried = [path for path in plain.paths() if "/.well-known/" in path]
            assert tried == PLACES[tenant][: PLACES[tenant].index(place) + 1]

    run(main)


def answer_as(server: Tenants, request: Request, wire: Wire) -> bool:
    """Answer in place of another server on the same port."""
    steps = server.answer(request, wire).__await__()
    for _ in steps:
        raise AssertionError("it waits for nothing")
    return True


@each("place", [PRM, "/.well-known/oauth-protected-resource"])
def test_metadata_of_a_resource_are_found_at_both_well_known_urls(place: str) -> None:
    async def main() -> None:
        async with protected() as (url, script, _):
            script.challenge = "Bearer"
            tried = describe_at(script, place)
            await call(url, sign_in())
            assert tried == [PRM, "/.well-known/oauth-protected-resource"][: 1 if place == PRM else 2]

    run(main)


def test_metadata_of_a_resource_are_found_where_the_challenge_says() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            elsewhere = "/.well-known/of-this-endpoint"
            script.challenge = 'Bearer resource_metadata="{url}' + elsewhere + '"'
            tried = describe_at(script, elsewhere)
            await call(url, sign_in())
            assert tried == [elsewhere]
            assert server.forms()[0]["resource"] == url

    run(main)


def describe_at(script: ProtectedScript, place: str) -> list[str]:
    """Serve the metadata of the resource at one path. Return the paths that are tried."""
    tried: list[str] = []

    def describe(request: Request, wire: Wire) -> None:
        tried.append(request.target)
        document = {"resource": f"{script.url}/mcp", "authorization_servers": [script.server.url]}
        wire.json(document) if request.target == place else wire.reply(404)

    script.describe_resource = describe
    return tried


def test_a_server_without_metadata_of_the_resource_is_its_own_authorization_server() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.challenge = "Bearer"
            server.metadata["issuer"] = url.removesuffix("/mcp")
            server.redirect["iss"] = url.removesuffix("/mcp")

            def describe(request: Request, wire: Wire) -> None:
                known = request.target == "/.well-known/oauth-authorization-server"
                wire.json(server.describe()) if known else wire.reply(404)

            script.describe_resource = describe
            await call(f"{url}/", sign_in())
            assert asked_for(server, "resource") == url  # without a slash at its end
            assert asked_for(server, "scope") is None

    run(main)


@each("resource", ["{url}/mcp", "{url}/mcp/", "{url}", "{url}/", "{upper}/mcp"])
def test_the_resource_is_the_server_or_above_it_in_either_case(resource: str) -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            base = url.removesuffix("/mcp")
            named = resource.format(url=base, upper=base.replace("http", "HTTP"))
            script.resource["resource"] = named
            await call(url, sign_in())
            assert asked_for(server, "resource") == server.forms()[0]["resource"] == named

    run(main)


class WithoutMetadata(ProtectedScript):
    """An MCP server that is its own authorization server, and has no metadata at all."""

    paths: tuple[str, ...] = ("/register", "/authorize", "/token")

    async def answer(self, request: Request, wire: Wire) -> None:
        path = urlsplit(request.target).path
        if path in self.paths:
            await self.server.answer(request, wire)
        elif path.startswith("/.well-known/") or path != "/mcp":
            wire.reply(404)
        else:
            await super().answer(request, wire)


async def sign_in_without_metadata(script: WithoutMetadata, **options: Any) -> AuthorizationServer:
    script.challenge = "Bearer"
    async with serving(script) as url:
        script.server.url = url.removesuffix("/mcp")
        async with typedmcp.connect(url, auth=sign_in(**options), timeout=10) as client:
            await client.call_tool("echo")
        assert script.server.forms()[0]["resource"] == url
    return script.server


def test_a_server_without_any_metadata_has_the_endpoints_of_2025_03_26() -> None:
    async def main() -> None:
        server = await sign_in_without_metadata(WithoutMetadata(AuthorizationServer()), assume_pkce=True)
        assert server.paths() == ["/register", "/authorize", "/token"]

    run(main)


def test_the_error_of_a_server_without_any_metadata_says_so() -> None:
    async def main() -> None:
        script = WithoutMetadata(AuthorizationServer())
        with pytest.raises(typedmcp.SignInError, match=r"has no metadata of an .* give assume_pkce=True"):
            await sign_in_without_metadata(script)
        assert script.server.requests == []
        script.paths = ()
        with pytest.raises(typedmcp.SignInError, match=r"has no metadata of an .*/register answered 404"):
            await sign_in_without_metadata(script, assume_pkce=True)

    run(main)


def test_the_case_of_the_host_of_a_resource_does_not_matter() -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            named = url.replace("http://127.0.0.1", "HTTP://LOCALHOST")
            script.resource["resource"] = named
            await call(url.replace("127.0.0.1", "localhost"), sign_in())
            assert server.forms()[0]["resource"] == named

    run(main)


@each(
    "challenge, supported, expected",
    [
        ('Bearer scope="of the challenge"', ["other"], "of the challenge"),
        ("Bearer", ["a", "b"], "a b"),
        ("Bearer", [], None),
        ("Bearer", None, None),
    ],
)
def test_scopes_come_from_the_challenge_else_from_the_metadata(
    challenge: str, supported: list[str] | None, expected: str | None
) -> None:
    async def main() -> None:
        async with protected() as (url, script, server):
            script.challenge = challenge
            script.resource["scopes_supported"] = supported
            await call(url, sign_in())
            assert asked_for(server, "scope") == expected

    run(main)


def test_a_sign_in_sends_what_oauth_demands() -> None:
    async def main() -> None:
        async with protected() as (url, _, server):
            await call(url, auth.OAuth(sign_in=auth.BrowserSignIn(visit, timeout=10)))
            assert asked_for(server, "response_type") == "code"
            assert asked_for(server, "code_challenge_method") == "S256"
            assert len(asked_for(server, "state") or "") >= 43
            assert len(server.forms()[0]["code_verifier"]) >= 43
            assert (asked_for(server, "redirect_uri") or "").startswith("http://127.0.0.1:")

    run(main)
