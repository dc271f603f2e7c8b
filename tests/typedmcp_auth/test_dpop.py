"""Clients whose tokens are bound to a key (DPoP, RFC 9449)."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import typedmcp
import typedmcp_auth as auth
from tests.cases import each
from tests.client.http.scripted_http import OLDER, Request, Wire
from tests.server.scripted import run
from tests.typedmcp_auth.bound_servers import bound
from tests.typedmcp_auth.scripted import protected, sign_in
from tests.typedmcp_auth.test_sign_in import OPTIONS, call
from typedmcp_auth.dpop import DpopKey, choose_algorithm, find_thumbprint


def grant_of(folder: Path) -> Any:
    found = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
    return next(value for value in found if "access_token" in value)


def test_each_request_has_a_proof_of_its_own_with_one_key() -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                await asyncio.gather(*[client.call_tool("echo") for _ in range(10)])
            assert len(script.proofs) >= 11
            assert len({proof.claims["jti"] for proof in script.proofs}) == len(script.proofs)
            assert {proof.thumbprint for proof in (*script.proofs, *server.proofs)} == {server.keys["access-2"]}
            asked = parse_qs(urlsplit(server.requests[2].target).query)
            assert asked["dpop_jkt"] == [server.keys["access-2"]]

    run(main)


def test_requests_of_a_session_have_proofs_for_their_methods() -> None:
    async def main() -> None:
        async with bound() as (url, script, _):
            script.revision = OLDER
            async with typedmcp.connect(url, auth=sign_in(), revisions=[OLDER], **OPTIONS) as client:
                await client.call_tool("echo")
            assert {"POST", "DELETE"} <= {proof.claims["htm"] for proof in script.proofs}

    run(main)


def test_an_expired_token_is_renewed_with_the_same_key() -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                server.tokens.clear()
                await client.call_tool("echo")
            assert [form["grant_type"] for form in server.forms()] == ["authorization_code", "refresh_token"]
            assert len({proof.thumbprint for proof in script.proofs}) == 1

    run(main)


def test_a_restarted_client_has_the_key_in_its_storage(tmp_path: Path) -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            server.tokens.clear()
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            assert server.paths().count("/authorize") == 1
            assert len({proof.thumbprint for proof in script.proofs}) == 1
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
        assert json.loads(grant_of(tmp_path)["dpop_key"])["alg"] == "ES256"

    run(main)


@each("value", ["", "[]", '{"alg": "ES256"}', '{"alg": "HS256", "k": "a", "kty": "oct", "d": "a"}'])
def test_a_damaged_key_leads_to_another_sign_in(value: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with bound() as (url, _, server):
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            path = next(path for path in tmp_path.glob("*.json") if b"access_token" in path.read_bytes())
            path.write_text(json.dumps({**grant_of(tmp_path), "dpop_key": value}))
            await call(url, sign_in(storage=auth.FileStorage(tmp_path)))
            assert server.paths().count("/authorize") == 2

    run(main)


def test_the_private_key_is_in_no_text(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    async def main() -> None:
        async with bound() as (url, script, _):
            async with typedmcp.connect(url, auth=sign_in(storage=auth.FileStorage(tmp_path)), **OPTIONS) as client:
                script.error = "invalid_dpop_proof"
                with pytest.raises(typedmcp.AuthorizationRequiredError) as caught:
                    await client.call_tool("echo")
            stored = grant_of(tmp_path)["dpop_key"]
            secret = json.loads(stored)["d"]
            key = DpopKey.load(stored, {})
            for text in (repr(caught.value), str(caught.value), repr(key), caplog.text):
                assert secret not in text

    caplog.set_level(logging.DEBUG)
    run(main)


# Nonces


def test_the_nonces_of_both_servers_are_in_the_proofs() -> None:
    async def main() -> None:
        async with bound(nonces=["for-tokens"]) as (url, script, server):
            script.nonce = "for-requests"
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                for _ in range(3):
                    await client.call_tool("echo")
                assert (server.refused, script.refused) == (1, 1)
                server.nonces = ["other"]
                script.nonce = "another"
                server.tokens.clear()
                await client.call_tool("echo")
                assert (server.refused, script.refused) == (2, 2)
            assert server.proofs[-1].claims["nonce"] == "other"
            assert script.proofs[-1].claims["nonce"] == "another"
            assert server.paths().count("/authorize") == 1

    run(main)


def test_concurrent_requests_with_an_old_nonce_are_each_sent_once_more() -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                script.nonce = "new"
                await asyncio.gather(*[client.call_tool("echo") for _ in range(8)])
            assert script.refused <= 8
            assert server.paths().count("/authorize") == 1

    run(main)


def test_a_server_that_always_wants_another_nonce_gets_one_more_request() -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                script.nonce, script.changes_nonce = "a", True
                with pytest.raises(typedmcp.AuthorizationRequiredError, match="use_dpop_nonce"):
                    await client.call_tool("echo")
            assert script.refused == 2
            assert server.paths().count("/authorize") == 1

    run(main)


def test_an_authorization_server_that_always_wants_another_nonce_is_an_error() -> None:
    async def main() -> None:
        def refuse(request: Request, wire: Wire) -> bool:
            if urlsplit(request.target).path == "/token":
                server.refused += 1
                wire.json({"error": "use_dpop_nonce"}, 400, DPoP_Nonce=f"nonce-{server.refused}")
            return urlsplit(request.target).path == "/token"

        async with bound(handle=refuse) as (url, _, server):
            with pytest.raises(typedmcp.SignInError) as caught:
                await call(url, sign_in())
            assert (caught.value.code, server.refused) == ("use_dpop_nonce", 2)

    run(main)


@each("nonce", ['a"b', "a b", "\x7f", "x" * 1025, ""])
def test_a_nonce_that_is_not_valid_is_ignored(nonce: str) -> None:
    nonces: dict[str, str] = {}
    key = DpopKey.generate("ES256", nonces)
    key.keep_nonce("https://a.test/mcp", nonce)
    key.keep_nonce("https://a.test/mcp", None)
    assert nonces == {}


# Whether tokens are bound


@each(
    "challenge, resource, is_bound",
    [
        ("DPoP", {}, True),
        ('DPoP algs="ES256"', {}, True),
        ('Bearer, DPoP algs="ES256"', {}, True),
        ('Bearer error="invalid_token"', {"dpop_signing_alg_values_supported": ["ES256"]}, True),
        ("Bearer", {"dpop_bound_access_tokens_required": True}, True),
        ("Bearer", {}, False),
        ("Bearer", {"dpop_signing_alg_values_supported": ["RS256"]}, False),
        ('Bearer, DPoP algs="RS256"', {}, False),
    ],
)
def test_tokens_are_bound_if_both_servers_support_it(challenge: str, resource: dict[str, Any], is_bound: bool) -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            script.challenge, script.resource = challenge, resource
            await call(url, sign_in())
            assert bool(server.keys) is is_bound
            assert bool(script.proofs) is is_bound

    run(main)


@each("supported", [None, [], ["RS256", "none"]])
def test_a_server_that_takes_bound_tokens_only_needs_an_authorization_server_that_issues_them(supported: Any) -> None:
    async def main() -> None:
        async with bound(metadata={"dpop_signing_alg_values_supported": supported}) as (url, _, server):
            with pytest.raises(typedmcp.SignInError, match=r"DPoP.* takes no proofs with ES256, EdDSA, ES384"):
                await call(url, sign_in())
            assert "/authorize" not in server.paths()

    run(main)


def test_bound_tokens_can_be_demanded() -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            script.challenge = "Bearer"
            await call(url, sign_in(dpop=True))
            assert server.keys
            assert script.proofs
        async with protected() as (url, _, plain):
            with pytest.raises(typedmcp.SignInError, match="takes no proofs"):
                await call(url, sign_in(dpop=True))
            assert "/authorize" not in plain.paths()

    run(main)


def test_bound_tokens_can_be_refused() -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            with pytest.raises(typedmcp.SignInError, match="only takes tokens that are bound to a key, and dpop=False"):
                await call(url, sign_in(dpop=False))
            script.challenge = 'Bearer, DPoP algs="ES256"'
            await call(url, sign_in(dpop=False))
            assert not server.keys

    run(main)


@each("kind", ["bearer", "mac", "\x1b[31m"])
def test_a_token_that_is_not_bound_is_not_sent_to_a_server_that_takes_bound_ones_only(kind: str) -> None:
    async def main() -> None:
        async with bound(token={"token_type": kind}) as (url, script, _):
            with pytest.raises(typedmcp.SignInError, match=r"is not bound to the key|has the type") as caught:
                await call(url, sign_in())
            assert str(caught.value).isprintable()
            assert script.seen == [""]

    run(main)


def test_a_bound_token_without_a_key_is_an_error() -> None:
    async def main() -> None:
        async with protected(token={"token_type": "DPoP"}) as (url, _, _server):
            with pytest.raises(typedmcp.SignInError, match="has the type 'DPoP', expected Bearer"):
                await call(url, sign_in())

    run(main)


def test_a_server_that_begins_to_demand_bound_tokens_leads_to_another_sign_in() -> None:
    async def main() -> None:
        storage = auth.MemoryStorage()
        async with bound() as (url, script, server):
            script.challenge = "Bearer"
            await call(url, sign_in(storage=storage))
            script.challenge = "DPoP"
            server.tokens.clear()
            await call(url, sign_in(storage=storage))
            assert server.paths().count("/authorize") == 2
            assert "refresh_token" not in [form["grant_type"] for form in server.forms()]
            assert script.proofs

    run(main)


def test_a_rejected_proof_leads_to_no_other_sign_in() -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            async with typedmcp.connect(url, auth=sign_in(), **OPTIONS) as client:
                script.error = "invalid_dpop_proof"
                count = len(server.requests)
                with pytest.raises(typedmcp.AuthorizationRequiredError, match="invalid_dpop_proof"):
                    await client.call_tool("echo")
            assert len(server.requests) == count

    run(main)


@each(
    "supported, algorithm",
    [(["ES256", "EdDSA"], "ES256"), (["PS256", "EdDSA"], "EdDSA"), (["ES384"], "ES384")],
)
def test_the_best_algorithm_that_the_authorization_server_supports_is_used(
    supported: list[str], algorithm: str
) -> None:
    async def main() -> None:
        async with bound(metadata={"dpop_signing_alg_values_supported": supported}) as (url, script, server):
            script.challenge = "DPoP"
            await call(url, sign_in())
            assert {proof.algorithm for proof in (*server.proofs, *script.proofs)} == {algorithm}

    run(main)


OTHERS: list[Any] = [
    auth.ClientCredentials("service", "secret"),
    auth.JwtBearer("workload", "assertion"),
]


@each("option", OTHERS, ids=lambda option: type(option).__name__)
def test_tokens_of_other_flows_are_bound_too(option: Any) -> None:
    async def main() -> None:
        async with bound() as (url, script, server):
            async with typedmcp.connect(url, auth=option, **OPTIONS) as client:
                await client.call_tool("echo")
                server.tokens.clear()
                await client.call_tool("echo")
            assert len({proof.thumbprint for proof in (*script.proofs, *server.proofs)}) == 1
            assert len(server.proofs) == 2

    run(main)


def test_a_redirect_within_the_origin_gets_a_proof_for_its_own_url() -> None:
    async def main() -> None:
        async with bound() as (url, script, _):
            moved = url.removesuffix("/mcp") + "/other"

            def redirect(request: Request, wire: Wire) -> None:
                if request.target == "/mcp":
                    wire.reply(307, location="/other?key=1")
                else:
                    wire.result(request, {"resultType": "complete", "content": []})

            script.handlers["tools/call"] = redirect
            await call(url, sign_in())
            assert script.proofs[-1].claims["htu"] == moved

    run(main)


def test_an_option_that_is_no_flag_is_rejected() -> None:
    wrong: Any = "yes"
    with pytest.raises(typedmcp.UsageError, match="dpop must be True or False"):
        auth.OAuth(dpop=wrong)


# Keys


def test_the_thumbprint_is_that_of_the_example_in_rfc_7638() -> None:
    modulus = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs"
        "tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1"
        "n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
    )
    key = {"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29"}
    assert find_thumbprint(key) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


@each("key", [{}, {"kty": "oct", "k": "a"}, {"kty": "EC", "crv": "P-256", "x": 1, "y": "a"}])
def test_an_incomplete_key_has_no_thumbprint(key: dict[str, Any]) -> None:
    assert find_thumbprint(key) is None


def test_no_algorithm_is_chosen_that_one_of_the_servers_lacks() -> None:
    assert choose_algorithm(["ES384"], ["ES256"]) is None
    assert choose_algorithm(["ES384", "EdDSA"], []) == "EdDSA"
    assert choose_algorithm(None, ("ES384",)) == "ES384"
