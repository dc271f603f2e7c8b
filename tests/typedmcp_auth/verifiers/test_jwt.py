"""Signed access tokens: which ones are valid for this server, and which attacks fail."""

from __future__ import annotations

import hashlib
import hmac
import time
import warnings
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import RSAAlgorithm

from tests.cases import each
from tests.server.http.asgi_driver import in_loop
from tests.typedmcp_auth.verifiers.issuer import (
    EC_KEY,
    ISSUER,
    JWKS,
    OTHER_RSA_KEY,
    RESOURCE,
    RSA_KEY,
    base64url,
    claims,
    jwk_of,
    raw_token,
    signed,
    verified,
)
from typedmcp import Limits, Principal, UsageError
from typedmcp_auth import JwtVerifier

VERIFIER = JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS)


@in_loop
async def test_a_token_gives_its_principal() -> None:
    expires = int(time.time()) + 600
    for _ in range(2):  # the second time from the cache
        token = signed(exp=expires)
        found = await verified(VERIFIER, token)
        assert found is not None
        written = jwt.decode(token, options={"verify_signature": False})
        assert found == Principal("ada", frozenset({"read", "write"}), expires + 30.0, ISSUER, "app", written)


def test_a_verified_token_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    token = signed()
    first = VERIFIER(token)
    monkeypatch.setattr(jwt, "decode", None)
    assert VERIFIER(token) is first


def test_the_cache_forgets_a_token_when_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS, leeway=0)
    token = signed(exp=int(time.time()) + 100)
    assert verifier(token) is not None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 101)
    assert verifier._cache.get(verifier._cache.hash(token)) is None  # pyright: ignore[reportPrivateUsage]


def test_the_cache_keeps_a_bounded_number_of_bytes() -> None:
    verifier = JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS, limits=Limits(verified_token_bytes=4096))
    tokens = [signed(jti=str(number)) for number in range(4)]
    first = [verifier(token) for token in tokens]
    again = [verifier(token) for token in reversed(tokens)]
    assert sum(one is other for one, other in zip(reversed(first), again, strict=True)) == 2


CLAIMS: list[tuple[str, Callable[[int], dict[str, Any]], bool]] = [
    ("the audience in a list", lambda _: {"aud": ["other", RESOURCE]}, True),
    ("the audience in another form", lambda _: {"aud": "HTTPS://MCP.test:443/mcp/"}, True),
    ("another audience", lambda _: {"aud": "https://other.test/mcp"}, False),
    ("another path", lambda _: {"aud": "https://mcp.test/mcp2"}, False),
    ("a path in another case", lambda _: {"aud": "https://mcp.test/MCP"}, False),
    ("the origin alone", lambda _: {"aud": "https://mcp.test"}, False),
    ("an audience with a user", lambda _: {"aud": "https://a@mcp.test/mcp"}, False),
    ("no audience", lambda _: {"aud": None}, False),
    ("an audience that is no string", lambda _: {"aud": {"a": RESOURCE}}, False),
    ("a list with other things", lambda _: {"aud": [1, None]}, False),
    ("another issuer", lambda _: {"iss": "https://evil.test"}, False),
    ("an issuer with a slash", lambda _: {"iss": f"{ISSUER}/"}, False),
    ("no issuer", lambda _: {"iss": None}, False),
    ("no subject", lambda _: {"sub": None}, False),
    ("an empty subject", lambda _: {"sub": ""}, False),
    ("a subject that is no string", lambda _: {"sub": 7}, False),
    ("expired within the leeway", lambda now: {"exp": now - 10}, True),
    ("expired", lambda now: {"exp": now - 31}, False),
    ("no expiry", lambda _: {"exp": None}, False),
    ("an expiry that is no number", lambda _: {"exp": "tomorrow"}, False),
    ("an endless expiry", lambda _: {"exp": float("inf")}, False),
    ("an expiry beyond all numbers", lambda _: {"exp": 10**400}, False),
    ("not valid yet", lambda now: {"nbf": now + 100}, False),
    ("valid soon, within the leeway", lambda now: {"nbf": now + 10}, True),
    ("issued in the future", lambda now: {"iat": now + 1000}, False),
]


@each("changes, is_valid", [case[1:] for case in CLAIMS], ids=[case[0] for case in CLAIMS])
def test_claims_decide_whether_a_token_is_valid(changes: Callable[[int], dict[str, Any]], is_valid: bool) -> None:
    assert (VERIFIER(signed(**changes(int(time.time())))) is not None) == is_valid


SCOPES: list[tuple[dict[str, Any], set[str]]] = [
    ({"scope": "a b"}, {"a", "b"}),
    ({"scope": ["a", "b", 3]}, {"a", "b"}),
    ({"scope": None, "scp": ["a"]}, {"a"}),
    ({"scope": None, "scp": "a b"}, {"a", "b"}),
    ({"scope": None}, set()),
    ({"scope": 7}, set()),
]


@each("changes, scopes", SCOPES)
def test_scopes_are_read_as_authorization_servers_write_them(changes: dict[str, Any], scopes: set[str]) -> None:
    found = VERIFIER(signed(**changes))
    assert isinstance(found, Principal)
    assert found.scopes == scopes


@each(
    "changes, client",
    [({}, "app"), ({"client_id": None, "azp": "b"}, "b"), ({"client_id": None}, None), ({"client_id": 1}, None)],
    ids=repr,
)
def test_the_client_of_a_token_is_known(changes: dict[str, Any], client: str | None) -> None:
    found = VERIFIER(signed(**changes))
    assert isinstance(found, Principal)
    assert found.client_id == client


def test_another_claim_may_be_the_subject() -> None:
    verifier = JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS, subject_claim="client_id")
    found = verifier(signed(sub=None))
    assert isinstance(found, Principal)
    assert found.subject == "app"


@each("kind", ["at+jwt", "application/at+jwt", "AT+JWT", "JWT", None])
def test_usual_types_are_accepted(kind: str | None) -> None:
    assert VERIFIER(signed(headers={"typ": kind})) is not None


@each("kind", ["dpop+jwt", "logout+jwt", "", 7])
def test_tokens_of_other_types_are_not_valid(kind: Any) -> None:
    assert VERIFIER(raw_signed({"alg": "RS256", "kid": "1", "typ": kind})) is None


def test_types_can_be_restricted_to_that_of_access_tokens() -> None:
    verifier = JwtVerifier(ISSUER, audience=RESOURCE, jwks=JWKS, types=["at+jwt"])
    assert verifier(signed()) is not None
    assert verifier(signed(headers={"typ": "JWT"})) is None
    assert verifier(signed(headers={"typ": None})) is None


def raw_signed(header: dict[str, Any], **changes: Any) -> str:
    """Return a token with any header, signed with the right key."""
    unsigned = raw_token(header, claims(**changes)).rstrip(".")
    signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(unsigned.encode(), RSA_KEY)
    return f"{unsigned}.{base64url(signature)}"


def test_a_critical_extension_is_not_understood() -> None:
    assert VERIFIER(raw_signed({"alg": "RS256", "kid": "1"})) is not None
    assert VERIFIER(raw_signed({"alg": "RS256", "kid": "1", "crit": ["b64"], "b64": True})) is None


# Attacks

PUBLIC_PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def hmac_signed(secret: bytes, header: dict[str, Any]) -> str:
    unsigned = raw_token({"alg": "HS256", "typ": "at+jwt", **header}, claims()).rstrip(".")
    signature = hmac.new(secret, unsigned.encode(), hashlib.sha256).digest()
    return f"{unsigned}.{base64url(signature)}"


ATTACKS: dict[str, Callable[[], str]] = {
    "no algorithm": lambda: raw_token({"alg": "none", "kid": "1"}, claims()),
    "no algorithm, in another case": lambda: raw_token({"alg": "NoNe", "kid": "1"}, claims()),
    "no member alg": lambda: raw_token({"kid": "1"}, claims()),
    "an algorithm that is a list": lambda: raw_token({"alg": ["RS256"], "kid": "1"}, claims()),
    "the public key as a secret": lambda: hmac_signed(PUBLIC_PEM, {"kid": "1"}),
    "the modulus as a secret": lambda: hmac_signed(jwk_of(RSA_KEY)["n"].encode(), {"kid": "1"}),
    "an empty secret": lambda: hmac_signed(b"", {"kid": "1"}),
    "another key": lambda: signed(key=OTHER_RSA_KEY),
    "a key in the header": lambda: signed(key=OTHER_RSA_KEY, headers={"jwk": jwk_of(OTHER_RSA_KEY)}),
    "another key set in the header": lambda: signed(key=OTHER_RSA_KEY, headers={"jku": "http://127.0.0.1:9/jwks"}),
    "a certificate in the header": lambda: signed(key=OTHER_RSA_KEY, headers={"x5u": "http://127.0.0.1:9/c"}),
    "an unknown key": lambda: signed(key=OTHER_RSA_KEY, headers={"kid": "2"}),
    "the id of a file": lambda: signed(key=OTHER_RSA_KEY, headers={"kid": "../../dev/null"}),
    "another kind of key": lambda: signed(key=EC_KEY, algorithm="ES256"),
    "no signature": lambda: signed().rpartition(".")[0] + ".",
    "changed claims": lambda: _with_claims(signed(), claims(sub="root")),
    "an encrypted token": lambda: ".".join(["eyJhbGciOiJSU0EtT0FFUCJ9", "a", "b", "c", "d"]),
    "deep nesting": lambda: raw_token({"alg": "RS256", "kid": "1"}, {}).split(".")[0] + "." + _nested() + ".AA",
    "a huge number in the header": lambda: _with_header(b'{"alg":"RS256","kid":"1","a":' + b"9" * 5000 + b"}"),
    "something else": lambda: "a.b.c",
    "empty parts": lambda: "..",
    "other characters": lambda: "é" * 20,
}


def _with_claims(token: str, changed: dict[str, Any]) -> str:
    head, _, signature = token.split(".")
    return ".".join([head, raw_token({}, changed).split(".")[1], signature])


def _with_header(header: bytes) -> str:
    return ".".join([base64url(header), *signed().split(".")[1:]])


def _nested() -> str:
    return base64url(b"[" * 3000 + b"]" * 3000)


@each("attack", ATTACKS)
def test_a_forged_token_is_not_valid(attack: str) -> None:
    assert VERIFIER(ATTACKS[attack]()) is None


def test_a_huge_token_is_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwt, "get_unverified_header", None)
    assert VERIFIER("a" * (Limits().access_token_bytes + 1)) is None


# Keys


def find(keys: list[Any], token: str, **options: Any) -> Any:
    return JwtVerifier(ISSUER, audience=RESOURCE, jwks={"keys": keys}, **options)(token)


def test_keys_for_other_uses_and_secret_keys_are_left_out() -> None:
    token = signed()
    assert find([jwk_of(RSA_KEY, use="sig", key_ops=["verify"], alg="RS256")], token) is not None
    others: list[dict[str, Any]] = [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"alg": "PS256"},
        {"kty": "EC"},
        {"n": "AQ"},
        {"e": 3},
    ]
    for members in others:
        assert find([jwk_of(RSA_KEY, **members)], token) is None
    secret = {"kty": "oct", "k": base64url(b"s" * 32), "kid": "1"}
    assert find([secret], hmac_signed(b"s" * 32, {"kid": "1"})) is None
    assert find([7, None, "key"], token) is None


def test_a_short_rsa_key_is_left_out() -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of PyJWT warn of the key
        token = signed(key=short)
    assert find([jwk_of(short)], token) is None


def test_a_key_without_an_id_is_tried() -> None:
    assert find([jwk_of(RSA_KEY, None)], signed()) is not None
    assert find([jwk_of(OTHER_RSA_KEY, None), jwk_of(RSA_KEY, None)], raw_signed({"alg": "RS256"})) is not None


def test_a_token_without_a_key_id_is_checked_with_few_keys() -> None:
    others = [jwk_of(OTHER_RSA_KEY, str(number)) for number in range(4)]
    token = raw_signed({"alg": "RS256"})
    assert find([*others[:3], jwk_of(RSA_KEY, "x")], token) is not None
    assert find([*others, jwk_of(RSA_KEY, "x")], token) is None


@each("algorithm", ["ES256", "RS512", "PS256"])
def test_algorithms_are_accepted_by_name_only(algorithm: str) -> None:
    key: Any = EC_KEY if algorithm == "ES256" else RSA_KEY
    token = signed(key=key, algorithm=algorithm)
    assert find([jwk_of(key)], token) is not None
    assert find([jwk_of(key)], token, algorithms=["RS256"]) is None
    assert find([jwk_of(key)], token, algorithms=["RS256", algorithm]) is not None


def test_a_key_on_another_curve_does_not_fit_the_algorithm() -> None:
    assert find([jwk_of(ec.generate_private_key(ec.SECP384R1()))], signed(key=EC_KEY, algorithm="ES256")) is None


def test_a_shared_secret_takes_the_place_of_keys() -> None:
    verifier = JwtVerifier(ISSUER, audience=RESOURCE, secret="s" * 32)
    assert verifier(hmac_signed(b"s" * 32, {})) is not None
    assert verifier(hmac_signed(b"t" * 32, {})) is None
    assert verifier(signed()) is None
    assert "sss" not in repr(verifier)


@each(
    "options, expected",
    [
        ({"algorithms": ["none"]}, "'none' is not accepted; known: RS256"),
        ({"algorithms": ["HS256"]}, "HS256 needs `secret`"),
        ({"algorithms": "RS256"}, "must be a list"),
        ({"algorithms": []}, "at least one name"),
        ({"algorithms": ["RS256"], "secret": "s" * 32, "jwks": None}, "'RS256' is not accepted; known: HS256"),
        ({"secret": "s" * 31, "jwks": None}, "at least 32 bytes"),
        ({"secret": "s" * 32}, "jwks and secret contradict each other"),
        ({"audience": ""}, "audience must be the URL"),
        ({"audience": []}, "audience must be the URL"),
        ({"issuer": "auth.test"}, "issuer must be the URL"),
        ({"jwks": "http://auth.test/jwks"}, "jwks must use https"),
        ({"jwks": None, "issuer": "http://auth.test"}, "issuer must use https"),
        ({"jwks": {}}, "jwks must be a key set"),
        ({"leeway": "1"}, "leeway"),
    ],
    ids=repr,
)
def test_options_that_make_no_sense_are_rejected(options: dict[str, Any], expected: str) -> None:
    given: dict[str, Any] = {"issuer": ISSUER, "audience": RESOURCE, "jwks": JWKS, **options}
    with pytest.raises(UsageError, match=expected):
        JwtVerifier(given.pop("issuer"), **given)
