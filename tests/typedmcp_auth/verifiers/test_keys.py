"""Keys that are fetched: rotation, caching, and documents that are wrong, huge or slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import each
from tests.client.http.scripted_http import Request, Wire, serving
from tests.server.http.asgi_driver import in_loop
from tests.typedmcp_auth.verifiers.issuer import OTHER_RSA_KEY, RESOURCE, RSA_KEY, Issuer, issuing, jwk_of, verified
from typedmcp import Limits
from typedmcp_auth import JwtVerifier
from typedmcp_auth.verifiers import documents, keys

OAUTH, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"


def verifier_of(issuer: Issuer, **options: Any) -> JwtVerifier:
    return JwtVerifier(issuer.url, audience=RESOURCE, **options)


def pass_time(verifier: JwtVerifier, seconds: float) -> None:
    """Move the clock of a verifier's keys forwards."""
    source: Any = verifier._keys  # pyright: ignore[reportPrivateUsage]
    before = source._clock
    source._clock = lambda: before() + seconds


@in_loop
async def test_keys_are_found_through_the_metadata_of_the_issuer() -> None:
    async with issuing() as issuer:
        verifier = verifier_of(issuer)
        for _ in range(3):
            assert await verified(verifier, issuer.token(jti=str(time.time()))) is not None
        assert issuer.paths() == [OAUTH, "/jwks"]


@in_loop
async def test_metadata_of_openid_connect_are_found_as_well() -> None:
    def handle(request: Request, wire: Wire) -> bool:
        if request.target == OPENID:
            wire.json({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"})
        elif request.target != "/jwks":
            wire.reply(404)
        else:
            return False
        return True

    async with issuing(handle=handle) as issuer:
        assert await verified(verifier_of(issuer), issuer.token()) is not None


@in_loop
async def test_the_url_of_the_keys_may_be_given() -> None:
    async with issuing() as issuer:
        verifier = verifier_of(issuer, jwks=f"{issuer.url}/jwks")
        assert await verified(verifier, issuer.token()) is not None
        assert issuer.paths() == ["/jwks"]


@in_loop
async def test_one_request_serves_all_calls_that_wait() -> None:
    async with issuing(gate=asyncio.Event()) as issuer:
        assert issuer.gate is not None
        verifier = verifier_of(issuer, jwks=f"{issuer.url}/jwks")
        calls = [asyncio.create_task(verified(verifier, issuer.token(jti=str(n)))) for n in range(20)]
        while not issuer.requests:
            await asyncio.sleep(0.001)
        calls[0].cancel()  # the others still get their keys
        issuer.gate.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert all(found[1:])
        assert issuer.paths() == ["/jwks"]


@in_loop
async def test_a_new_key_is_fetched_when_it_is_used() -> None:
    async with issuing() as issuer:
        verifier = verifier_of(issuer, jwks=f"{issuer.url}/jwks")
        assert await verified(verifier, issuer.token()) is not None
        issuer.keys = [jwk_of(OTHER_RSA_KEY, "2")]
        token = issuer.token(key=OTHER_RSA_KEY, headers={"kid": "2"})
        assert await verified(verifier, token) is None  # too soon after the last request
        pass_time(verifier, 11)
        assert await verified(verifier, token) is not None
        assert await verified(verifier, issuer.token(jti="x")) is None  # the old key is withdrawn
        assert issuer.paths() == ["/jwks"] * 2


@in_loop
async def test_unknown_keys_do_not_flood_the_authorization_server() -> None:
    async with issuing() as issuer:
        verifier = verifier_of(issuer, jwks=f"{issuer.url}/jwks")
        tokens = [issuer.token(key=OTHER_RSA_KEY, headers={"kid": f"k{number}"}) for number in range(200)]
        for start in range(0, 200, 50):
            found = await asyncio.gather(*[verified(verifier, token) for token in tokens[start : start + 50]])
            assert not any(found)
        assert issuer.paths() == ["/jwks"]
        pass_time(verifier, 11)
        assert not any([await verified(verifier, token) for token in tokens])
        assert issuer.paths() == ["/jwks"] * 2


@in_loop
async def test_old_keys_are_fetched_again_while_calls_go_on() -> None:
    async with issuing() as issuer:
        verifier = verifier_of(issuer, jwks=f"{issuer.url}/jwks")
        assert await verified(verifier, issuer.token()) is not None
        pass_time(verifier, 700)
        issuer.gate = asyncio.Event()
        assert await verified(verifier, issuer.token(jti="1")) is not None  # without waiting
        issuer.gate.set()
        while len(issuer.requests) < 2:
            await asyncio.sleep(0.001)


@in_loop
async def test_keys_outlive_a_failure_of_the_authorization_server_for_some_time() -> None:
    def fail(_request: Request, wire: Wire) -> bool:
        wire.reply(500)
        return True

    async with issuing() as issuer:
        verifier = verifier_of(issuer, jwks=f"{issuer.url}/jwks")
        assert await verified(verifier, issuer.token()) is not None
        issuer.handle = fail
        pass_time(verifier, 700)
        assert await verified(verifier, issuer.token(jti="1")) is not None
        pass_time(verifier, 3000)
        with pytest.raises(ConnectionError, match=r"/jwks answered 500"):
            await verified(verifier, issuer.token(jti="2"))


@in_loop
async def test_a_failure_is_not_repeated_for_each_token() -> None:
    def fail(_request: Request, wire: Wire) -> bool:
        wire.reply(503)
        return True

    async with issuing(handle=fail) as issuer:
        verifier = verifier_of(issuer)
        for number in range(5):
            with pytest.raises(ConnectionError, match=r"cannot be fetched: .* answered 503"):
                await verified(verifier, issuer.token(jti=str(number)))
        assert issuer.paths() == [OAUTH, OPENID]
        issuer.handle = lambda _request, _wire: False
        pass_time(verifier, 11)
        assert await verified(verifier, issuer.token()) is not None


UNUSABLE: dict[str, Callable[[Wire], object]] = {
    "a page": lambda wire: wire.reply(200, b"<html>", content_type="text/html"),
    "other JSON": lambda wire: wire.json({"swagger": "2.0"}),
    "another issuer": lambda wire: wire.json({"issuer": "https://other.test", "jwks_uri": "https://other.test/jwks"}),
    "a failure": lambda wire: wire.reply(502),
    "a redirect": lambda wire: wire.reply(302, location="/sign-in"),
}


@each("answer", UNUSABLE.values(), ids=UNUSABLE)
@in_loop
async def test_a_place_without_usable_metadata_leads_to_the_next_one(answer: Callable[[Wire], object]) -> None:
    def handle(request: Request, wire: Wire) -> bool:
        if request.target == OAUTH:
            answer(wire)
        elif request.target == OPENID:
            wire.json({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"})
        return request.target in (OAUTH, OPENID)

    async with issuing(handle=handle) as issuer:
        assert await verified(verifier_of(issuer), issuer.token()) is not None


@in_loop
async def test_a_redirect_to_other_keys_is_not_followed() -> None:
    async with issuing(keys=[jwk_of(OTHER_RSA_KEY)]) as evil, issuing() as issuer:

        def redirect(request: Request, wire: Wire) -> bool:
            wire.reply(302, location=f"{evil.url}{request.target}")
            return True

        issuer.handle = redirect
        for url in (None, f"{issuer.url}/jwks"):
            with pytest.raises(ConnectionError, match="redirects, with status 302, which is not followed"):
                await verified(verifier_of(issuer, jwks=url), issuer.token(key=OTHER_RSA_KEY))
        assert evil.requests == []


@in_loop
async def test_a_redirect_within_the_origin_is_not_followed_either() -> None:
    def redirect(_request: Request, wire: Wire) -> bool:
        wire.reply(307, location="/elsewhere")
        return True

    async with issuing(handle=redirect) as issuer:
        with pytest.raises(ConnectionError, match="not followed"):
            await verified(verifier_of(issuer), issuer.token())


@each("declared", [True, False])
@in_loop
async def test_a_huge_document_is_not_read(declared: bool) -> None:
    def flood(_request: Request, wire: Wire) -> bool:
        if declared:
            wire.head(200, content_length=1 << 40)
        else:
            wire.head(200, transfer_encoding="chunked")
        for _ in range(8):
            wire.raw(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        return True

    async with issuing(handle=flood) as issuer:
        verifier = verifier_of(issuer, limits=Limits(oauth_document_bytes=1 << 16))
        with pytest.raises(ConnectionError, match="more"):
            await verified(verifier, issuer.token())


@in_loop
async def test_a_slow_document_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_TIMEOUT", 0.2)

    class Slow:
        async def answer(self, _request: Request, wire: Wire) -> None:
            wire.head(200, content_length=1000)
            while True:
                wire.raw(b" ")
                await wire.writer.drain()
                await asyncio.sleep(0.02)

    async with serving(Slow()) as url:
        verifier = JwtVerifier(url.removesuffix("/mcp"), audience=RESOURCE)
        with pytest.raises(ConnectionError, match=r"no response within 0\.2 s"):
            await verified(verifier, Issuer(url.removesuffix("/mcp")).token())


METADATA: list[tuple[dict[str, Any], str]] = [
    ({"issuer": "https://evil.test"}, "the issuer is 'https://evil.test', expected 'http://127"),
    ({"jwks_uri": None}, "have no jwks_uri"),
    ({"jwks_uri": "http://evil.test/jwks"}, "must use https"),
    ({"jwks_uri": "file:///etc/passwd"}, "not a valid URL"),
    ({"jwks_uri": 7}, "jwks_uri"),
]


@each("metadata, expected", METADATA, ids=repr)
@in_loop
async def test_metadata_that_lie_are_rejected(metadata: dict[str, Any], expected: str) -> None:
    async with issuing(metadata=metadata) as issuer:
        with pytest.raises(ConnectionError, match=expected):
            await verified(verifier_of(issuer), issuer.token())


def test_the_keys_of_a_public_issuer_are_not_fetched_from_a_private_network() -> None:
    public = documents.Documents("https://auth.example.com", Limits(), None)
    for url in ("https://10.0.0.1/jwks", "http://127.0.0.1/jwks", "https://169.254.169.254/latest"):
        with pytest.raises(Exception, match="is in a private network, and the server is not"):
            public.check_named(url, "jwks_uri")


@each("body", [b"", b"[]", b"{}", b'{"keys": 1}', b"[" * 100_000, b"\xff"])
@in_loop
async def test_a_document_that_is_no_key_set_is_an_error(body: bytes) -> None:
    def answer(_request: Request, wire: Wire) -> bool:
        wire.reply(200, body)
        return True

    async with issuing(handle=answer) as issuer:
        with pytest.raises(ConnectionError, match="cannot be fetched"):
            await verified(verifier_of(issuer, jwks=f"{issuer.url}/jwks"), issuer.token())


@in_loop
async def test_only_the_first_keys_of_a_large_set_are_used() -> None:
    many = [jwk_of(OTHER_RSA_KEY, str(number)) for number in range(2, 100)]
    async with issuing(keys=[*many, jwk_of(RSA_KEY)]) as issuer:
        assert await verified(verifier_of(issuer), issuer.token()) is None
    async with issuing(keys=[jwk_of(RSA_KEY), *many]) as issuer:
        assert await verified(verifier_of(issuer), issuer.token()) is not None
    assert len(many) > keys._MAX_KEYS  # pyright: ignore[reportPrivateUsage]


def test_keys_are_fetched_anew_in_another_event_loop() -> None:
    async def main() -> None:
        async with issuing() as issuer:
            verifier = verifier_of(issuer)
            calling = asyncio.create_task(verified(verifier, issuer.token()))
            issuer.gate = asyncio.Event()
            while not issuer.requests:
                await asyncio.sleep(0.001)
            left.append(verifier)
            calling.cancel()

    left: list[JwtVerifier] = []
    asyncio.run(asyncio.wait_for(main(), 60))

    async def again() -> None:
        pass_time(left[0], 11)
        with pytest.raises(ConnectionError):  # the issuer has ended
            await verified(left[0], Issuer(left[0].issuer).token())

    asyncio.run(asyncio.wait_for(again(), 60))
