"""Access tokens that the authorization server looks up: what it may say, and what happens if it says nothing."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import Any
from urllib.parse import parse_qsl

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import typedmcp
from tests.cases import each
from tests.client.http.scripted_http import Request, Wire
from tests.server.http.asgi_driver import in_loop, serving
from tests.typedmcp_auth.verifiers.issuer import EC_KEY, RESOURCE, Issuer, issuing, verified
from typedmcp import Limits, Principal, UsageError
from typedmcp_auth import IntrospectionVerifier
from typedmcp_auth.verifiers import introspection


def verifier_of(issuer: Issuer, **options: Any) -> IntrospectionVerifier:
    given: dict[str, Any] = {"audience": RESOURCE, **options}
    return IntrospectionVerifier(issuer.url, "mcp", "hush", **given)


def active(**changes: Any) -> dict[str, Any]:
    made = {"active": True, "sub": "ada", "aud": RESOURCE, "scope": "read", "client_id": "app", **changes}
    return {name: value for name, value in made.items() if value is not None}


@in_loop
async def test_an_active_token_gives_its_principal_and_is_asked_for_once() -> None:
    expires = time.time() + 100
    answer = active(exp=expires)
    async with issuing(active={"t": answer}) as issuer:
        verifier = verifier_of(issuer)
        for _ in range(3):
            found = await verified(verifier, "t")
            assert found == Principal("ada", frozenset({"read"}), expires, issuer.url, "app", answer)
        assert issuer.paths() == ["/.well-known/oauth-authorization-server", "/introspect"]
        asked = issuer.requests[1]
        assert asked.method == "POST"
        assert dict(parse_qsl(asked.body.decode())) == {"token": "t", "token_type_hint": "access_token"}
        assert asked.headers["authorization"] == f"Basic {base64.b64encode(b'mcp:hush').decode()}"


@in_loop
async def test_the_endpoint_may_be_given_and_the_client_may_have_a_key() -> None:
    pem = EC_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    async with issuing(active={"t": active()}) as issuer:
        verifier = IntrospectionVerifier(
            issuer.url, "mcp", audience=RESOURCE, endpoint=f"{issuer.url}/introspect", private_key=pem
        )
        assert await verified(verifier, "t") is not None
        form = dict(parse_qsl(issuer.requests[0].body.decode()))
        sent = jwt.decode(form["client_assertion"], EC_KEY.public_key(), ["ES256"], audience=issuer.url)
        assert sent["sub"] == "mcp"
        assert issuer.paths() == ["/introspect"]


ANSWERS: list[tuple[str, Any, bool]] = [
    ("inactive", {"active": False}, False),
    ("active in words", active(active="true"), False),
    ("active as a number", active(active=1), False),
    ("no answer", {}, False),
    ("expired", active(exp=1_000_000_000), False),
    ("an expiry that is no number", active(exp="never"), False),
    ("an endless expiry", active(exp=1e300), False),
    ("not valid yet", active(nbf=4_000_000_000), False),
    ("another audience", active(aud="https://other.test"), False),
    ("no audience", active(aud=None), False),
    ("the audience in a list", active(aud=["x", RESOURCE]), True),
    ("another issuer", active(iss="https://evil.test"), False),
    ("no subject", active(sub=None), False),
    ("no expiry", active(), True),
]


@each("answer, is_valid", [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
@in_loop
async def test_only_what_the_answer_says_counts(answer: dict[str, Any], is_valid: bool) -> None:
    async with issuing(active={"t": answer}) as issuer:
        assert (await verified(verifier_of(issuer), "t") is not None) == is_valid


@in_loop
async def test_the_audience_may_be_left_to_the_authorization_server() -> None:
    async with issuing(active={"t": active(aud=None)}) as issuer:
        assert await verified(verifier_of(issuer, audience=None), "t") is not None


@in_loop
async def test_an_answer_is_used_for_a_bounded_time_and_not_beyond_the_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    async with issuing(active={"long": active(exp=now + 1000), "short": active(exp=now + 5)}) as issuer:
        verifier = verifier_of(issuer, endpoint=f"{issuer.url}/introspect")
        for later, valid, count in [(0, 2, 2), (4, 2, 2), (6, 1, 3), (59, 1, 3 + 1), (61, 1, 3 + 2)]:
            monkeypatch.setattr(time, "time", lambda later=later: now + later)
            found = [await verified(verifier, token) for token in ("long", "short")]
            assert (sum(one is not None for one in found), len(issuer.requests)) == (valid, count), later


@in_loop
async def test_a_revoked_token_is_not_valid_after_that_time() -> None:
    async with issuing(active={"t": active()}) as issuer:
        verifier = verifier_of(issuer, cache_seconds=0)
        assert await verified(verifier, "t") is not None
        issuer.active.clear()
        assert await verified(verifier, "t") is None


@in_loop
async def test_calls_with_the_same_token_share_a_request() -> None:
    async with issuing(active={"t": active()}, gate=asyncio.Event()) as issuer:
        assert issuer.gate is not None
        verifier = verifier_of(issuer, endpoint=f"{issuer.url}/introspect")
        calls = [asyncio.create_task(verified(verifier, "t")) for _ in range(20)]
        while not issuer.requests:
            await asyncio.sleep(0.001)
        calls[0].cancel()
        issuer.gate.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(one, Principal) for one in found[1:])
        assert len(issuer.requests) == 1


@in_loop
async def test_invented_tokens_do_not_flood_the_authorization_server() -> None:
    async with issuing(gate=asyncio.Event()) as issuer:
        assert issuer.gate is not None
        verifier = verifier_of(issuer, endpoint=f"{issuer.url}/introspect")
        calls = [asyncio.create_task(verified(verifier, f"t{number}")) for number in range(400)]
        while len(issuer.requests) < 16:
            await asyncio.sleep(0.001)
        issuer.gate.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        refused = [one for one in found if isinstance(one, ConnectionError)]
        assert len(refused) == 400 - 16 - 256
        assert "272 tokens wait for introspection (max_waiting)" in str(refused[0])
        assert len(issuer.requests) == 16 + 256


@in_loop
async def test_invented_tokens_of_one_address_leave_places_to_others() -> None:
    async with issuing(active={"t": active()}, gate=asyncio.Event()) as issuer:
        assert issuer.gate is not None
        verifier = verifier_of(issuer, endpoint=f"{issuer.url}/introspect")
        async with serving(auth=typedmcp.Auth(verifier)) as served:
            for address in ("10.0.0.3", "2001:db8::1", "2001:db8::2"):  # two addresses of one network
                served.address = address
                for number in range(200):
                    served.bearer = f"{address} {number}".replace(":", "-").replace(" ", "-")
                    served.ask("tools/list")
            served.address, served.bearer = "10.0.0.1", "t"
            asked = served.ask("tools/list")
            while len(issuer.requests) < 4 + 4 + 1:
                await asyncio.sleep(0.001)
            assert b"token=t&" in issuer.requests[-1].body, "the client waits for what others have invented"
            refused = [each for each in served.opened if each.is_done and each.status == 503]
            assert len(refused) == 3 * 200 - 2 * 68
            issuer.gate.set()
            assert (await asked.reply()).status == 200
            for each in served.opened:
                await each.done()
            assert len(issuer.requests) == 2 * 68 + 1


@in_loop
async def test_an_authorization_server_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introspection, "_TIMEOUT", 0.1)
    async with issuing(gate=asyncio.Event()) as issuer:
        with pytest.raises(ConnectionError, match=r"no answer within 0\.1 s"):
            await verified(verifier_of(issuer, endpoint=f"{issuer.url}/introspect"), "t")


@each(
    "status, body, expected",
    [
        (401, b"", "answered 401: check the client's credentials"),
        (500, b"", "answered 500"),
        (302, b"", "redirects, with status 302"),
        (200, b"", "other than a JSON object"),
        (200, b"[true]", "other than a JSON object"),
        (200, b"[" * 50_000, "other than a JSON object"),
        (200, b" " * 100_000, "more than the limit of 65536"),
    ],
    ids=["refused", "failed", "redirect", "empty", "a list", "deep", "huge"],
)
@in_loop
async def test_an_answer_that_is_none_is_an_error(status: int, body: bytes, expected: str) -> None:
    def handle(_request: Request, wire: Wire) -> bool:
        wire.reply(status, body, location="http://127.0.0.1:9/")
        return True

    async with issuing(handle=handle) as issuer:
        verifier = verifier_of(issuer, endpoint=f"{issuer.url}/introspect", limits=Limits(oauth_document_bytes=1 << 16))
        with pytest.raises(ConnectionError, match=expected) as caught:
            await verified(verifier, "t")
        assert "hush" not in str(caught.value)


@in_loop
async def test_a_discovery_that_fails_is_not_repeated_for_each_token() -> None:
    async with issuing(metadata={"introspection_endpoint": None}) as issuer:
        verifier = verifier_of(issuer)
        with pytest.raises(ConnectionError, match="have no introspection_endpoint"):
            await verified(verifier, "a")
        for token in ("b", "c"):
            with pytest.raises(ConnectionError, match="not repeated yet"):
                await verified(verifier, token)
        assert len(issuer.requests) == 1


@in_loop
async def test_a_huge_token_is_not_sent() -> None:
    async with issuing() as issuer:
        assert await verified(verifier_of(issuer), "a" * 20_000) is None
        assert issuer.requests == []


@each(
    "options, expected",
    [
        ({"client_secret": None}, "needs a client_secret or a private_key"),
        ({"private_key": "x"}, "needs a client_secret or a private_key"),
        ({"issuer": "http://auth.test"}, "issuer must use https"),
        ({"endpoint": "http://auth.test/introspect"}, "endpoint must use https"),
        ({"audience": ""}, "audience must be"),
        ({"cache_seconds": "1"}, "cache_seconds"),
        ({"max_requests": 0}, "max_requests must be at least 1, not 0"),
        ({"max_waiting": 1.5}, "max_waiting must be an integer"),
    ],
    ids=repr,
)
def test_options_that_make_no_sense_are_rejected(options: dict[str, Any], expected: str) -> None:
    given: dict[str, Any] = {"issuer": "https://auth.test", "client_secret": "hush", "audience": RESOURCE, **options}
    with pytest.raises(UsageError, match=expected):
        IntrospectionVerifier(given.pop("issuer"), "mcp", given.pop("client_secret"), **given)


def test_a_verifier_does_not_show_its_credentials() -> None:
    assert "hush" not in repr(IntrospectionVerifier("https://auth.test", "mcp", "hush", audience=None))
