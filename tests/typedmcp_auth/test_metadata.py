"""Challenges, URLs and assertions, without a network."""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import typedmcp
import typedmcp_auth as auth
from tests.cases import each
from tests.server.scripted import run
from tests.typedmcp_auth.scripted import protected
from typedmcp_auth.challenge import find_challenge
from typedmcp_auth.urls import check_url, resource_urls, server_urls

PERSON = "the token of a person"

CHALLENGES: dict[str, dict[str, str] | None] = {
    "Bearer": {},
    'bearer scope="a b"': {"scope": "a b"},
    'Bearer realm="x, y=\\"z\\"", error = invalid_token': {"realm": 'x, y="z"', "error": "invalid_token"},
    'Negotiate YWJj==, Bearer scope="a"': {"scope": "a"},
    'Basic realm="x", Bearer scope="a", DPoP algs="ES256"': {"scope": "a", "algs": "ES256"},
    'DPoP algs="ES256", error="e"': {"algs": "ES256", "error": "e"},
    'DPoP error="e", scope="b", Bearer scope="a"': {"scope": "a", "error": "e"},
    'Bearer scope="a", scope="b"': None,
    'Bearer scope="a': None,
    'Bearer scope="a" error="b"': None,
    'Basic realm="Bearer scope"': None,
    "": None,
    "Bearer " + "a=b," * 5000: None,
}


@each("header", CHALLENGES)
def test_a_challenge_is_parsed_strictly(header: str) -> None:
    found = find_challenge(header)
    assert (None if found is None else found.parameters) == CHALLENGES[header]


def test_metadata_are_looked_up_in_the_order_of_the_specification() -> None:
    well_known = "https://h.example:8443/.well-known"
    resource = f"{well_known}/oauth-protected-resource"
    assert resource_urls("https://H.example:8443/a/mcp") == [f"{resource}/a/mcp", resource]
    assert resource_urls("https://h.example:443/") == ["https://h.example/.well-known/oauth-protected-resource"]
    assert server_urls("https://h.example:8443/t") == [
        f"{well_known}/oauth-authorization-server/t",
        f"{well_known}/openid-configuration/t",
        "https://h.example:8443/t/.well-known/openid-configuration",
    ]
    assert server_urls("https://h.example:8443") == [
        f"{well_known}/oauth-authorization-server",
        f"{well_known}/openid-configuration",
    ]


@each(
    "url, server, is_accepted",
    [
        ("https://a.example/x", "https://b.example", True),
        ("http://127.0.0.1:9/x", "http://localhost:8", True),
        ("https://10.0.0.1/x", "https://192.168.0.1/mcp", True),
        ("http://a.example/x", "https://b.example", False),
        ("http://127.0.0.1/x", "https://b.example", False),
        ("https://localhost/x", "https://b.example", False),
        ("https://10.0.0.1/x", "https://b.example", False),
        ("https://[::1]/x", "https://b.example", False),
        ("https://169.254.169.254/latest", "https://b.example", False),
        ("https://user@a.example/x", "https://b.example", False),
        ("https://a.example/x#y", "https://b.example", False),
        ("https://a.example:x/", "https://b.example", False),
        ("https://a.example/ x", "https://b.example", False),
        ("javascript:alert(1)", "https://b.example", False),
    ],
)
def test_urls_of_a_server_are_checked(url: str, server: str, is_accepted: bool) -> None:
    if is_accepted:
        assert check_url(url, "the URL", server) == url
    else:
        with pytest.raises(typedmcp.SignInError, match=r"^the URL "):
            check_url(url, "the URL", server)


def test_a_client_signs_in_with_a_private_key() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    async def main() -> None:
        async with protected() as (url, _, server):
            async with typedmcp.connect(url, auth=auth.ClientCredentials("me", private_key=pem), timeout=10) as client:
                await client.call_tool("echo")
            assertion = server.forms()[0]["client_assertion"]
            claims = jwt.decode(assertion, key.public_key(), algorithms=["ES256"], audience=server.url)
            assert (claims["iss"], claims["sub"]) == ("me", "me")

    run(main)


def test_a_symmetric_algorithm_is_rejected() -> None:
    async def main() -> None:
        async with protected() as (url, _, _server):
            option = auth.ClientCredentials("me", private_key="key", algorithm="HS256")
            with pytest.raises(typedmcp.UsageError, match="does not use a private key"):
                async with typedmcp.connect(url, auth=option, timeout=10):
                    pass

    run(main)


def test_an_assertion_is_exchanged_once() -> None:
    audiences: list[str] = []

    def make(audience: str) -> str:
        audiences.append(audience)
        return "assertion"

    async def main() -> None:
        async with protected() as (url, _, server):
            async with typedmcp.connect(url, auth=auth.JwtBearer("me", make), timeout=10) as client:
                await client.call_tool("echo")
            form = server.forms()[0]
            assert (form["assertion"], form["client_id"], form["resource"]) == ("assertion", "me", url)
            assert audiences == [server.url]

    run(main)


def test_an_identity_provider_issues_a_grant_for_the_authorization_server() -> None:
    async def main() -> None:
        jag = "urn:ietf:params:oauth:token-type:id-jag"
        async with protected() as (url, _, server), protected(token={"issued_token_type": jag}) as (_, _, idp):
            option = auth.EnterpriseManaged(
                "me", "s", id_token=PERSON, idp_token_endpoint=f"{idp.url}/token", idp_client_id="idp"
            )
            async with typedmcp.connect(url, auth=option, timeout=10) as client:
                await client.call_tool("echo")
            exchanged, form = idp.forms()[0], server.forms()[0]
            assert (exchanged["audience"], exchanged["resource"]) == (server.url, url)
            assert (exchanged["subject_token"], exchanged["requested_token_type"]) == (PERSON, jag)
            assert form["assertion"] == "access-1"

    run(main)
