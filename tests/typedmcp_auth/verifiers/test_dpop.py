"""Servers that take tokens which are bound to a key (DPoP): what is a valid proof, and what is not."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import OKPAlgorithm

from tests.cases import each
from tests.server.http.asgi_driver import CompleteResponse, Served, in_loop, message, serving
from tests.spoken import LEGACY
from tests.typedmcp_auth.verifiers.issuer import ISSUER, JWKS, RESOURCE, base64url, jwk_of, raw_token, signed
from typedmcp import Auth, Limits, MemoryStore, Principal, StateSigner, UsageError
from typedmcp_auth import DpopVerifier, JwtVerifier
from typedmcp_auth.dpop import find_thumbprint, hash_token
from typedmcp_auth.verifiers.dpop import _UsedProofs  # pyright: ignore[reportPrivateUsage]

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC = jwk_of(KEY, None)
METADATA = "https://mcp.test/.well-known/oauth-protected-resource/mcp"


def thumbprint_of(jwk: Mapping[str, Any]) -> str:
    found = find_thumbprint(jwk)
    assert found is not None
    return found


def token_for(jwk: Mapping[str, Any] = PUBLIC, **changes: Any) -> str:
    """Return a token that is bound to a key."""
    given: dict[str, Any] = {"cnf": {"jkt": thumbprint_of(jwk)}, **changes}
    return signed(**given)


# Made when this module is imported, which is long before its tests run in a run of all tests, so it lasts a day.
TOKEN = token_for(exp=int(time.time()) + 24 * 3600)


def prove(
    *,
    key: Any = KEY,
    jwk: Any = None,
    algorithm: str = "ES256",
    header: Mapping[str, Any] | None = None,
    **changes: Any,
) -> str:
    """Return a valid proof, apart from the changes; a change to None removes a claim."""
    claims = {"jti": uuid4().hex, "htm": "POST", "htu": RESOURCE, "iat": int(time.time()), "ath": hash_token(TOKEN)}
    claims = {name: value for name, value in {**claims, **changes}.items() if value is not None}
    headers = {"typ": "dpop+jwt", "jwk": PUBLIC if jwk is None else jwk, **(header or {})}
    return jwt.encode(claims, key, algorithm, headers={n: v for n, v in headers.items() if v is not None})


def make_auth(**options: Any) -> Auth:
    verifier = JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS)
    return Auth(verifier, resource=RESOURCE, dpop=DpopVerifier(RESOURCE, **options))


async def call(served: Served, proof: str | None, token: str = TOKEN, scheme: str = "DPoP") -> CompleteResponse:
    headers = {"authorization": f"{scheme} {token}", "dpop": proof}
    return await served.call("who", headers=headers).reply()


def challenges(reply: CompleteResponse) -> dict[str, dict[str, str]]:
    """Return the parameters of each challenge by its scheme."""
    parts = re.split(r"(?:^|, )(?=Bearer|DPoP)", reply.headers["www-authenticate"])[1:]
    return {part.split(" ")[0]: dict(re.findall(r'(\w+)="([^"]*)"', part)) for part in parts}


@in_loop
async def test_a_token_with_a_valid_proof_is_accepted() -> None:
    async with serving(auth=make_auth()) as served:
        for _ in range(3):
            reply = await call(served, prove())
            assert reply.status == 200
            assert "ada" in reply.json["result"]["content"][0]["text"]


@in_loop
async def test_the_scheme_is_compared_without_case() -> None:
    async with serving(auth=make_auth()) as served:
        assert (await call(served, prove(), scheme="dpop")).status == 200


def okp_key() -> tuple[Any, dict[str, Any]]:
    key = ed25519.Ed25519PrivateKey.generate()
    jwk: dict[str, Any] = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return key, jwk


def rsa_key(bits: int = 2048) -> tuple[Any, dict[str, Any]]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return key, jwk_of(key, None)


def ec_key() -> tuple[Any, dict[str, Any]]:
    key = ec.generate_private_key(ec.SECP384R1())
    return key, jwk_of(key, None)


@each("algorithm, make", [("ES384", ec_key), ("EdDSA", okp_key), ("RS256", rsa_key), ("PS256", rsa_key)])
@in_loop
async def test_proofs_of_other_algorithms_are_accepted(algorithm: str, make: Any) -> None:
    key, jwk = make()
    token = token_for(jwk)
    proof = prove(key=key, jwk=jwk, algorithm=algorithm, ath=hash_token(token))
    async with serving(auth=make_auth()) as served:
        assert (await call(served, proof, token)).status == 200


WRONG: dict[str, tuple[Any, str]] = {
    "none": (lambda: None, "must be one JWT"),
    "empty": (lambda: "", "must be one JWT"),
    "no JWT": (lambda: "a.b.c", "must be one JWT"),
    "two": (lambda: f"{prove()}, {prove()}", "must be one JWT"),
    "huge": (lambda: prove(jti="x" * 9000), "must be one JWT"),
    "another type": (lambda: prove(header={"typ": "JWT"}), "must be one JWT"),
    "without a key": (lambda: prove(header={"jwk": None}), "must be one JWT"),
    "a key that is no object": (lambda: prove(header={"jwk": "key"}), "must be one JWT"),
    "a critical extension": (lambda: prove(header={"crit": ["x"], "x": 1}), "must be one JWT"),
    "the algorithm none": (
        lambda: raw_token({"typ": "dpop+jwt", "alg": "none", "jwk": PUBLIC}, {}),
        "algorithm of the proof",
    ),
    "a symmetric algorithm": (
        lambda: prove(key="x" * 32, algorithm="HS256"),
        "algorithm of the proof",
    ),
    "a private key in the header": (lambda: prove(jwk={**PUBLIC, "d": "secret"}), "has a private key"),
    "a key of another kind": (lambda: prove(key=OTHER_KEY, jwk={"kty": "oct", "k": "a"}), "bound to another key"),
    "another key": (lambda: prove(key=OTHER_KEY, jwk=jwk_of(OTHER_KEY, None)), "bound to another key"),
    "a key that is no text": (lambda: prove(jwk={**PUBLIC, "x": "\ud800"}), "bound to another key"),
    "a signature of another key": (lambda: prove(key=OTHER_KEY), "signature"),
    "a changed signature": (lambda: prove()[:-4] + "AAAA", "signature"),
    "another method": (lambda: prove(htm="GET"), "(htm)"),
    "a method in lower case": (lambda: prove(htm="post"), "(htm)"),
    "another path": (lambda: prove(htu="https://mcp.test/other"), "(htu)"),
    "another host": (lambda: prove(htu="https://evil.test/mcp"), "(htu)"),
    "another scheme": (lambda: prove(htu="http://mcp.test/mcp"), "(htu)"),
    "another port": (lambda: prove(htu="https://mcp.test:8443/mcp"), "(htu)"),
    "a user in the URL": (lambda: prove(htu="https://mcp.test@evil.test/mcp"), "(htu)"),
    "no URL": (lambda: prove(htu="https://[::1"), "(htu)"),
    "too old": (lambda: prove(iat=int(time.time()) - 310), "(iat)"),
    "of the future": (lambda: prove(iat=int(time.time()) + 310), "(iat)"),
    "a time without an end": (lambda: prove(iat=1e308), "(iat)"),
    "another token": (lambda: prove(ath=hash_token("other")), "(ath)"),
    "no jti": (lambda: prove(jti=None), "needs jti, htm, htu, iat and ath"),
    "an empty jti": (lambda: prove(jti=""), "empty jti"),
    "a jti that is no text": (lambda: prove(jti=7), "needs jti"),
    "no method": (lambda: prove(htm=None), "needs jti"),
    "no URL at all": (lambda: prove(htu=None), "needs jti"),
    "no time": (lambda: prove(iat=None), "needs jti"),
    "a time in a string": (lambda: prove(iat=str(int(time.time()))), "needs jti"),
    "no hash of the token": (lambda: prove(ath=None), "needs jti"),
}


@each("name", WRONG)
@in_loop
async def test_a_wrong_proof_is_rejected(name: str) -> None:
    make, says = WRONG[name]
    proof = make()
    async with serving(auth=make_auth()) as served:
        reply = await call(served, proof)
        assert reply.status == 401
        found = challenges(reply)
        assert set(found) == {"DPoP"}
        assert says in found["DPoP"]["error_description"]
        is_other_key = says == "bound to another key"
        assert found["DPoP"]["error"] == ("invalid_token" if is_other_key else "invalid_dpop_proof")
        assert found["DPoP"]["resource_metadata"] == METADATA
        assert "ES256" in found["DPoP"]["algs"].split()
        assert (await call(served, prove())).status == 200


@in_loop
async def test_two_proofs_in_two_headers_are_rejected() -> None:
    async with serving(auth=make_auth()) as served:
        reply = await served.call("who", headers={"authorization": f"DPoP {TOKEN}", "dpop": prove()}).reply()
        assert reply.status == 200
        sent = [(b"authorization", f"DPoP {TOKEN}".encode()), (b"dpop", prove().encode()), (b"dpop", prove().encode())]
        assert (await served.post(b"{}", sent)).status == 400


@each("bits", [1024, 8192])
@in_loop
async def test_an_rsa_key_that_is_too_short_or_too_long_is_rejected(bits: int) -> None:
    jwk = {"kty": "RSA", "n": modulus_of(bits), "e": "AQAB"}
    token = token_for(jwk)
    key, _ = rsa_key()
    async with serving(auth=make_auth()) as served:
        reply = await call(served, prove(key=key, jwk=jwk, algorithm="RS256", ath=hash_token(token)), token)
        assert (reply.status, challenges(reply)["DPoP"]["error"]) == (401, "invalid_dpop_proof")


def modulus_of(bits: int) -> str:
    """Return an odd number of so many bits, as a key has it."""
    return base64url(((1 << bits) - 1).to_bytes(bits // 8, "big"))


# Replay


@in_loop
async def test_a_proof_is_accepted_once() -> None:
    async with serving(auth=make_auth()) as served:
        proof = prove()
        assert (await call(served, proof)).status == 200
        for _ in range(2):
            reply = await call(served, proof)
            assert reply.status == 401
            assert "used before" in challenges(reply)["DPoP"]["error_description"]


@in_loop
async def test_the_same_id_of_another_key_is_another_proof() -> None:
    token = token_for(jwk_of(OTHER_KEY, None))
    async with serving(auth=make_auth()) as served:
        assert (await call(served, prove(jti="1"))).status == 200
        other = prove(key=OTHER_KEY, jwk=jwk_of(OTHER_KEY, None), jti="1", ath=hash_token(token))
        assert (await call(served, other, token)).status == 200


@in_loop
async def test_processes_with_one_store_accept_a_proof_once() -> None:
    store = MemoryStore()
    proof = prove()
    statuses: list[int | None] = []
    for _ in range(2):
        async with serving(auth=make_auth(use_once=store.use_once)) as served:
            statuses.append((await call(served, proof)).status)
    assert statuses == [200, 401]


def test_used_proofs_are_remembered_for_their_time_and_within_their_limit() -> None:
    used = _UsedProofs(128 * 20, 600)
    assert used.add(b"a", 1000)
    assert not used.add(b"a", 1599)
    assert not used.add(b"a", 1600)
    assert used.add(b"b", 1700)
    assert used.add(b"a", 2300)
    assert not used.add(b"b", 2290)
    assert used.add(b"b", 9000)
    for number in range(1000):
        assert used.add(f"{number}".encode(), 9000)
        assert not used.add(f"{number}".encode(), 9000)
        assert len(used._new) + len(used._old) <= 20  # pyright: ignore[reportPrivateUsage]


# Nonces


@in_loop
async def test_a_proof_needs_the_nonce_of_the_server() -> None:
    async with serving(auth=make_auth(nonces=True)) as served:
        for wrong in (None, "", "guessed", "AAAA"):
            reply = await call(served, prove(nonce=wrong))
            assert (reply.status, challenges(reply)["DPoP"]["error"]) == (401, "use_dpop_nonce")
        nonce = reply.headers["dpop-nonce"]
        for _ in range(2):
            assert (await call(served, prove(nonce=nonce))).status == 200


@in_loop
async def test_a_nonce_ends_and_is_valid_for_processes_with_the_same_key() -> None:
    key = b"of all processes"
    nonce = DpopVerifier(RESOURCE, nonces=StateSigner(key)).new_nonce()
    ended = DpopVerifier(RESOURCE, nonces=StateSigner(key, ttl=1e-9)).new_nonce()
    async with serving(auth=make_auth(nonces=StateSigner(key))) as served:
        assert (await call(served, prove(nonce=nonce))).status == 200
        assert (await call(served, prove(nonce=ended))).status == 401
        other = DpopVerifier(RESOURCE, nonces=True).new_nonce()
        assert (await call(served, prove(nonce=other))).status == 401


# Tokens


@each("cnf", [{}, {"jkt": 1}, {"jkt": "a", "x5t#S256": "b"}, {"x5t#S256": "b"}, "a", []])
@in_loop
async def test_a_token_that_is_bound_in_another_way_is_rejected(cnf: Any) -> None:
    token = signed(cnf=cnf)
    async with serving(auth=make_auth()) as served:
        for scheme in ("DPoP", "Bearer"):
            reply = await call(served, prove(ath=hash_token(token)), token, scheme)
            assert (reply.status, challenges(reply)["DPoP"]["error"]) == (401, "invalid_token")


@in_loop
async def test_a_bound_token_is_no_bearer_token() -> None:
    async with serving(auth=make_auth()) as served:
        for proof in (None, prove()):
            reply = await call(served, proof, TOKEN, "Bearer")
            assert reply.status == 401
            assert challenges(reply)["Bearer"]["error_description"] == "the token is bound to a key"


@in_loop
async def test_a_bearer_token_needs_no_proof_and_is_not_taken_with_one() -> None:
    token = signed()
    async with serving(auth=make_auth()) as served:
        assert (await call(served, None, token, "Bearer")).status == 200
        reply = await call(served, prove(ath=hash_token(token)), token)
        assert reply.status == 401
        assert challenges(reply)["DPoP"]["error_description"] == "the token is not bound to a key"


@in_loop
async def test_bearer_tokens_can_be_rejected() -> None:
    async with serving(auth=make_auth(required=True)) as served:
        reply = await call(served, None, signed(), "Bearer")
        assert reply.status == 401
        assert set(challenges(reply)) == {"DPoP"}
        assert (await call(served, prove())).status == 200
        metadata = (await served.request("GET", path="/.well-known/oauth-protected-resource/mcp")).json
        assert metadata["dpop_bound_access_tokens_required"] is True


@in_loop
async def test_without_dpop_bound_tokens_are_rejected() -> None:
    auth = Auth(JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS), resource=RESOURCE)
    async with serving(auth=auth) as served:
        reply = await call(served, prove())
        assert (reply.status, set(challenges(reply))) == (401, {"Bearer"})


@in_loop
async def test_challenges_and_metadata_name_both_kinds_of_tokens() -> None:
    verifier = JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS)
    dpop = DpopVerifier(RESOURCE, algorithms=["ES256", "EdDSA"])
    auth = Auth(verifier, resource=RESOURCE, dpop=dpop, scopes=["files"])
    async with serving(auth=auth) as served:
        found = challenges(await served.call("who").reply())
        assert found == {
            "Bearer": {"scope": "files", "resource_metadata": METADATA},
            "DPoP": {"scope": "files", "resource_metadata": METADATA, "algs": "ES256 EdDSA"},
        }
        token = token_for(scope="other")
        reply = await call(served, prove(ath=hash_token(token)), token)
        assert reply.status == 403
        assert challenges(reply)["DPoP"]["error"] == "insufficient_scope"
        metadata = (await served.request("GET", path="/.well-known/oauth-protected-resource/mcp")).json
        assert metadata["dpop_signing_alg_values_supported"] == ["ES256", "EdDSA"]
        assert metadata["dpop_bound_access_tokens_required"] is False


@in_loop
async def test_a_session_needs_a_proof_for_each_method() -> None:
    async with serving(auth=make_auth()) as served:
        served.bearer = "replaced"
        headers = {"authorization": f"DPoP {TOKEN}"}
        client = {"name": "a", "version": "1"}
        params = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": client}
        body = message(id=1, method="initialize", params=params)
        reply = await served.post(body, {**headers, "dpop": prove()})
        assert reply.status == 200
        session = {**headers, "mcp-session-id": reply.headers["mcp-session-id"], "mcp-protocol-version": LEGACY[0]}
        assert (await served.request("DELETE", {**session, "dpop": prove()})).status == 401
        assert (await served.request("DELETE", {**session, "dpop": prove(htm="DELETE")})).status in (200, 204)


@in_loop
async def test_a_function_that_verifies_tokens_may_return_the_key() -> None:
    def verify(token: str) -> Principal:
        return Principal("ada", claims={"cnf": {"jkt": thumbprint_of(PUBLIC)}})

    auth = Auth(verify, dpop=DpopVerifier(["https://mcp.test/mcp", "https://mcp.test/sse"]))
    async with serving(auth=auth) as served:
        assert (await call(served, prove(ath=hash_token("opaque")), "opaque")).status == 200
        assert (
            await call(served, prove(ath=hash_token("opaque"), htu="https://MCP.test:443/sse?x=1"), "opaque")
        ).status == 200
        assert (await call(served, None, "opaque", "Bearer")).status == 401


@in_loop
async def test_pages_may_read_the_nonce_and_send_proofs() -> None:
    async with serving(auth=make_auth(nonces=True), origins=["https://app.test"]) as served:
        headers = {"origin": "https://app.test", "access-control-request-method": "POST"}
        asked = {**headers, "access-control-request-headers": "authorization, dpop"}
        reply = await served.request("OPTIONS", asked)
        assert reply.headers["access-control-allow-headers"] == "authorization, dpop"
        reply = await served.call("who", headers={**headers, "authorization": f"DPoP {TOKEN}", "dpop": prove()}).reply()
        assert reply.status == 401
        assert "dpop-nonce" in reply.headers["access-control-expose-headers"]


@each(
    "options, says",
    [
        ({"url": "mcp.test/mcp"}, "url must be the URL of the endpoint"),
        ({"url": []}, "url must be the URL"),
        ({"window": 0}, "window must be between 1 and 3600 seconds, not 0"),
        ({"window": "5"}, "window must be a number"),
        ({"algorithms": "ES256"}, "algorithms must be a list"),
        ({"algorithms": ["none"]}, "'none' is not accepted"),
        ({"algorithms": ["HS256"]}, "'HS256' is not accepted"),
        ({"required": "yes"}, "required must be True or False"),
        ({"nonces": "yes"}, "nonces must be True, False or a StateSigner"),
    ],
)
def test_wrong_options_are_rejected(options: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"url": RESOURCE, **options}
    with pytest.raises(UsageError, match=says):
        DpopVerifier(**given)


def test_an_option_that_is_no_verifier_is_rejected() -> None:
    wrong: Any = True
    with pytest.raises(UsageError, match="dpop must be a DpopVerifier, not True"):
        Auth(lambda _: None, dpop=wrong)


@in_loop
async def test_the_limit_of_remembered_proofs_is_that_of_the_limits() -> None:
    auth = make_auth(limits=Limits(dpop_proof_bytes=1))
    async with serving(auth=auth) as served:
        first = prove()
        assert (await call(served, first)).status == 200
        assert (await call(served, first)).status == 401
        assert (await call(served, prove())).status == 200
        assert (await call(served, prove())).status == 200
        assert (await call(served, first)).status == 200  # forgotten, and still of this time
