"""Access tokens that are signed (JWT), verified by PyJWT.

https://www.rfc-editor.org/rfc/rfc9068#section-4
https://www.rfc-editor.org/rfc/rfc8725
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

import jwt
from jwt import PyJWK

from typedmcp import Principal
from typedmcp.building import check_seconds, is_awaitable
from typedmcp.errors import UsageError
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp_auth.verifiers.cache import VerifiedTokens
from typedmcp_auth.verifiers.claims import Audience, check_issuer, is_time, to_principal
from typedmcp_auth.verifiers.documents import Documents, check_option_url
from typedmcp_auth.verifiers.keys import FixedKeys, KeySource, RemoteKeys

__all__ = ["ASYMMETRIC", "JwtVerifier"]

ASYMMETRIC: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The algorithms with public keys."""
_SYMMETRIC: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The algorithms with a secret, and the bytes that it must have at least (RFC 7518, section 3.2)."""
_TYPES: Final = ("at+jwt", "jwt", None)
_MAX_CACHED: Final = 300.0
"""Seconds after which a token is verified again, since its key may have been withdrawn."""


class JwtVerifier:
    """Verifies access tokens that are signed by an authorization server: `Auth(JwtVerifier(…))`.

    `issuer` is the URL of the authorization server, compared exactly with the claim `iss`. `audience` is the URL of the
    MCP endpoint, or a list of names under which the authorization server knows it; the claim `aud` must have one.

    The keys are found through the metadata of the issuer, or `jwks` is their URL, or the key set itself as a mapping.
    `secret` takes the place of keys, for algorithms with a shared secret (HS256, HS384, HS512). `algorithms` are the
    ones to accept: by default all with public keys that PyJWT has, or HS256 with `secret`. `types` are the values of
    the header `typ` to accept; by default `at+jwt` (RFC 9068), and `JWT` or none, which many authorization servers
    write. `leeway` is the number of seconds by which clocks may differ. `subject_claim` is the claim that identifies
    the user or program; a token without it is not valid. `tls` is the context for requests.

    Raises `UsageError` for options that make no sense.
    """

    def __init__(
        self,
        issuer: str,
        *,
        audience: str | Sequence[str],
        jwks: str | Mapping[str, Any] | None = None,
        secret: str | bytes | None = None,
        algorithms: Sequence[str] | None = None,
        types: Sequence[str | None] = _TYPES,
        leeway: float = 30.0,
        subject_claim: str = "sub",
        tls: ssl.SSLContext | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        check_issuer(issuer)
        check_seconds("leeway", leeway)
        self.issuer: str = issuer
        """The authorization server whose tokens are accepted."""
        self._audience = Audience(audience)
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._algorithms = _checked_algorithms(algorithms, self._secret)
        self._types = frozenset(None if each is None else _media_type(each) for each in types)
        self._leeway = leeway
        self._subject_claim = subject_claim
        self._limits = limits
        self._cache = VerifiedTokens(limits.verified_token_bytes)
        if secret is not None and jwks is not None:
            raise UsageError("jwks and secret contradict each other: a public key must never serve as a secret")
        self._keys = None if secret is not None else _key_source(issuer, jwks, limits, tls)

    def __repr__(self) -> str:
        """Leave out the secret."""
        return f"JwtVerifier({self.issuer!r})"

    def __call__(self, token: str) -> Principal | Awaitable[Principal | None] | None:
        """Return the principal of a token, or None if the token is not valid for this server.

        The awaitable raises `ConnectionError` if the keys cannot be fetched.
        """
        if len(token) > self._limits.access_token_bytes:
            return None
        hashed = self._cache.hash(token)
        entry = self._cache.get(hashed)
        return self._verify(token, hashed) if entry is None else entry.principal

    def _verify(self, token: str, hashed: bytes) -> Principal | Awaitable[Principal | None] | None:
        header = _read_header(token)
        if header is None or not self._accepts(header):
            return None
        if self._keys is None:
            return self._check(token, hashed, header, [self._secret])
        kid: Any = header.get("kid")
        found = self._keys.find(kid if isinstance(kid, str) else None, header["alg"])
        if is_awaitable(found):
            return self._check_later(token, hashed, header, found)
        return self._check(token, hashed, header, found)

    async def _check_later(
        self, token: str, hashed: bytes, header: Mapping[str, Any], finding: Awaitable[Sequence[PyJWK]]
    ) -> Principal | None:
        return self._check(token, hashed, header, await finding)

    def _accepts(self, header: Mapping[str, Any]) -> bool:
        """Return whether algorithm and type are accepted. A critical extension is not, since none is known."""
        kind: Any = header.get("typ")
        is_known_type = (None if kind is None else _media_type(str(kind))) in self._types
        algorithm: Any = header.get("alg")
        return isinstance(algorithm, str) and algorithm in self._algorithms and is_known_type and "crit" not in header

    def _check(self, token: str, hashed: bytes, header: Mapping[str, Any], keys: Sequence[Any]) -> Principal | None:
        claims = next((found for key in keys if (found := self._read_claims(token, header["alg"], key))), None)
        if claims is None or claims.get("iss") != self.issuer or not self._audience.includes(claims.get("aud")):
            return None
        if not is_time(claims["exp"]):
            return None
        now, expires = time.time(), float(claims["exp"]) + self._leeway
        principal = to_principal(claims, self.issuer, self._subject_claim, expires)
        if principal is not None:
            self._cache.put(hashed, principal, min(expires, now + _MAX_CACHED), len(token))
        return principal

    def _read_claims(self, token: str, algorithm: str, key: Any) -> dict[str, Any] | None:
        """Return the claims if the signature and the times are valid. Audience and issuer are checked elsewhere."""
        options: Any = {"require": ["exp"], "verify_aud": False, "verify_iss": False, "verify_sub": False}
        try:
            return jwt.decode(token, key, algorithms=[algorithm], options=options, leeway=self._leeway)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            return None


def _checked_algorithms(algorithms: Sequence[str] | None, secret: bytes | None) -> frozenset[str]:
    """Return the algorithms to accept: all with a secret, or all with public keys."""
    known: Sequence[str] = ASYMMETRIC if secret is None else [*_SYMMETRIC]
    chosen = (ASYMMETRIC if secret is None else ("HS256",)) if algorithms is None else algorithms
    if isinstance(chosen, str) or not chosen:
        raise UsageError(f"algorithms must be a list with at least one name, such as ['RS256'], not {algorithms!r}")
    for name in chosen:
        if name in _SYMMETRIC and secret is None:
            raise UsageError(f"algorithms: {name} needs `secret`; with public keys, everybody could sign tokens")
        if name not in known:
            raise UsageError(f"algorithms: {name!r} is not accepted; known: {', '.join(known)}")
        if secret is not None and len(secret) < _SYMMETRIC[name]:
            raise UsageError(f"secret must have at least {_SYMMETRIC[name]} bytes for {name}")
    return frozenset(chosen)


def _key_source(
    issuer: str, jwks: str | Mapping[str, Any] | None, limits: Limits, tls: ssl.SSLContext | None
) -> KeySource:
    if isinstance(jwks, Mapping):
        return FixedKeys(jwks)
    check_option_url(issuer if jwks is None else jwks, "issuer" if jwks is None else "jwks")
    return RemoteKeys(Documents(issuer, limits, tls), jwks)


def _media_type(name: str) -> str:
    """Return a type in lower case, without the prefix that RFC 7515 lets authorization servers leave out."""
    return name.lower().removeprefix("application/")


def _read_header(token: str) -> dict[str, Any] | None:
    """Return the header of a token, which nobody has vouched for yet: it only chooses among the keys."""
    try:
        return jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        return None
