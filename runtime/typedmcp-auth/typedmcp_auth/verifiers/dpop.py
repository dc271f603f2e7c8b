"""Proofs that a client has the key to which its access token is bound (DPoP), verified by PyJWT.

https://www.rfc-editor.org/rfc/rfc9449#section-4.3
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import jwt
from jwt import PyJWK
from msgspec import Struct

from typedmcp import StateSigner
from typedmcp.building import check_flag, check_seconds, decode_json, is_object
from typedmcp.errors import InvalidParamsError, UsageError
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp_auth.dpop import find_thumbprint, hash_token
from typedmcp_auth.verifiers.claims import canonical_url, check_issuer
from typedmcp_auth.verifiers.jwt import ASYMMETRIC
from typedmcp_auth.verifiers.keys import load_key

__all__ = ["DpopVerifier"]

UseOnce: TypeAlias = Callable[[str, float], Awaitable[bool]]
"""Records the use of a name for some seconds, and returns False if it was used already."""

_PROOF: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)
"""One JWT, and not two that a proxy has joined. Libraries differ in what else they skip."""
_MAX_PROOF: Final = 8192
"""Characters of one proof that is examined."""
_MAX_RSA_BITS: Final = 4096
"""Bits of an RSA key of a client. Longer ones cost more time than a proof should."""
_CACHED_KEYS: Final = 256
"""Keys of clients that stay loaded."""
_ENTRY_BYTES: Final = 128
"""Bytes that the id of a proof takes in memory."""
_NONCE_BINDING: Final = b"dpop nonce"
_NONCE_SECONDS: Final = 300.0
"""Seconds for which a nonce is accepted, if nothing else is said."""


class _InvalidProofError(Exception):
    """A proof that is not valid for its request. `code` is the error of the challenge.

    https://www.rfc-editor.org/rfc/rfc9449#section-7.1
    """

    def __init__(self, text: str, code: str = "invalid_dpop_proof") -> None:
        super().__init__(text)
        self.code: str = code


class _ProofClaims(Struct):
    """The claims of a proof for a request to this server.

    https://www.rfc-editor.org/rfc/rfc9449#section-4.2
    """

    jti: str
    htm: str
    htu: str
    iat: float
    ath: str
    nonce: str | None = None


class DpopVerifier:
    """Verifies the proofs of tokens that are bound to a key: `Auth(…, dpop=DpopVerifier(url))`.

    `url` is the URL of the MCP endpoint as clients know it, or a list of them, such as with those of HTTP with SSE;
    behind a proxy it is the public one. `required` rejects bearer tokens. `window` is the number of seconds by which
    the time of a proof and of this server may differ. `algorithms` are the ones to accept, by default all with public
    keys that PyJWT has.

    A proof is accepted once. Each process remembers the proofs of twice the `window`, as far as
    `limits.dpop_proof_bytes` allows; several processes remember them together with the method of a store,
    `use_once=typedmcp_redis.RedisStore(url).use_once`. With `nonces`, proofs also need a nonce of this server, which
    is valid for five minutes; a `StateSigner` with a `key` makes nonces that other processes accept, for as long as its
    `ttl`.

    Raises `UsageError` for options that make no sense.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        required: bool = False,
        nonces: bool | StateSigner = False,
        window: float = 300.0,
        algorithms: Sequence[str] = ASYMMETRIC,
        use_once: UseOnce | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        check_flag("required", required)
        check_seconds("window", window)
        self.required: bool = required
        """True if bearer tokens are rejected."""
        self.algorithms: tuple[str, ...] = _checked_algorithms(algorithms)
        """The algorithms of proofs that are accepted."""
        self._urls = frozenset(map(_checked_url, [url] if isinstance(url, str) else url))
        if not self._urls:
            raise UsageError("url must be the URL of the endpoint, or a list with at least one")
        if not 1 <= window <= 3600:
            raise UsageError(f"window must be between 1 and 3600 seconds, not {window:g}")
        self._window = float(window)
        self._signer = StateSigner(ttl=_NONCE_SECONDS) if nonces is True else nonces or None
        if self._signer is not None and not isinstance(self._signer, StateSigner):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"nonces must be True, False or a StateSigner, not {nonces!r}")
        self._use_once = use_once
        self._used = _UsedProofs(limits.dpop_proof_bytes, 2 * self._window)
        self._keys: OrderedDict[tuple[str, str], PyJWK] = OrderedDict()

    def new_nonce(self) -> str | None:
        """Return a nonce for the next proof of a client, or None without nonces."""
        return None if self._signer is None else self._signer.sign(None, _NONCE_BINDING, time.time())

    async def check(self, proof: str, token: str, method: str, thumbprint: str) -> tuple[str, str] | None:
        """Return None if a proof is valid for a request with this token and method, else an error and its description.

        `thumbprint` is that of the key to which the token is bound.
        """
        try:
            key, algorithm = self._read_key(proof, thumbprint)
            claims = _read_claims(proof, key, algorithm)
            self._check_claims(claims, token, method)
            self._check_nonce(claims)
        except _InvalidProofError as error:
            return error.code, str(error)
        used = blake2b(f"{thumbprint} {claims.jti}".encode(), digest_size=16).digest()
        is_first = self._used.add(used, time.time())
        if is_first and self._use_once is not None:
            is_first = await self._use_once(f"dpop {used.hex()}", 2 * self._window)
        return (
            None if is_first else ("invalid_dpop_proof", "the proof has been used before: each request needs its own")
        )

    def _read_key(self, proof: str, thumbprint: str) -> tuple[PyJWK, str]:
        """Return the key in the header of a proof, if it is the one that the token is bound to, and its algorithm."""
        try:
            is_jwt = len(proof) <= _MAX_PROOF and _PROOF.fullmatch(proof) is not None
            header: dict[str, Any] = jwt.get_unverified_header(proof) if is_jwt else {}
        except (jwt.PyJWTError, ValueError, RecursionError):
            header = {}
        algorithm, jwk = header.get("alg"), header.get("jwk")
        if str(header.get("typ")).lower() != "dpop+jwt" or not is_object(jwk) or "crit" in header:
            raise _InvalidProofError("the header DPoP must be one JWT of the type dpop+jwt, with a jwk")
        if algorithm not in self.algorithms or not isinstance(algorithm, str):
            raise _InvalidProofError(f"the algorithm of the proof is not accepted; known: {' '.join(self.algorithms)}")
        if "d" in jwk:
            raise _InvalidProofError("the header of the proof has a private key: make another one, this one is known")
        if find_thumbprint(jwk) != thumbprint:
            raise _InvalidProofError("the token is bound to another key than the one of the proof", "invalid_token")
        key = self._keys.get((thumbprint, algorithm))
        if key is None:
            key = _load_public_key(jwk, algorithm)
            self._keys[thumbprint, algorithm] = key
            if len(self._keys) > _CACHED_KEYS:
                self._keys.popitem(last=False)
        return key, algorithm

    def _check_claims(self, claims: _ProofClaims, token: str, method: str) -> None:
        if not claims.jti:
            raise _InvalidProofError("the proof has an empty jti")
        if claims.htm != method:
            raise _InvalidProofError("the proof is for another method (htm)")
        if canonical_url(claims.htu.partition("#")[0].partition("?")[0]) not in self._urls:
            raise _InvalidProofError("the proof is for another URL (htu)")
        if abs(claims.iat - time.time()) > self._window:
            text = f"the proof is not of this time (iat): clocks may differ by {self._window:g} seconds"
            raise _InvalidProofError(text)
        if claims.ath != hash_token(token):
            raise _InvalidProofError("the proof is for another token (ath)")

    def _check_nonce(self, claims: _ProofClaims) -> None:
        if self._signer is None:
            return
        try:
            self._signer.verify(claims.nonce or "", _NONCE_BINDING, time.time())
        except InvalidParamsError:
            text = "the proof needs the nonce in the header DPoP-Nonce"
            raise _InvalidProofError(text, "use_dpop_nonce") from None


def _read_claims(proof: str, key: PyJWK, algorithm: str) -> _ProofClaims:
    """Return the claims of a proof whose signature is valid."""
    try:
        payload = jwt.PyJWS().decode(proof, key, algorithms=[algorithm])
    except (jwt.PyJWTError, ValueError, TypeError):
        raise _InvalidProofError("the signature of the proof is not valid") from None
    try:
        claims: _ProofClaims = decode_json(payload, _ProofClaims)
    except ValueError:
        raise _InvalidProofError("the proof needs jti, htm, htu, iat and ath") from None
    return claims


def _load_public_key(jwk: Mapping[str, Any], algorithm: str) -> PyJWK:
    key = load_key(jwk, algorithm)
    if key is None or getattr(key.key, "key_size", 0) > _MAX_RSA_BITS:
        raise _InvalidProofError("the key of the proof does not fit its algorithm")
    return key


def _checked_algorithms(algorithms: Sequence[str]) -> tuple[str, ...]:
    if isinstance(algorithms, str) or not algorithms:
        raise UsageError(f"algorithms must be a list with at least one name, such as ['ES256'], not {algorithms!r}")
    for name in algorithms:
        if name not in ASYMMETRIC:
            raise UsageError(f"algorithms: {name!r} is not accepted; known: {', '.join(ASYMMETRIC)}")
    return tuple(algorithms)


def _checked_url(url: str) -> str:
    check_issuer(url, "url")
    return canonical_url(url)


class _UsedProofs:
    """The ids of proofs of the last `seconds` at least, in two sets of which the older one is dropped in time.

    At the limit it is dropped earlier: then the times of proofs are what limits their use.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._capacity = max(1, limit // _ENTRY_BYTES // 2)
        self._seconds = seconds
        self._next_at = 0.0
        self._new: set[bytes] = set()
        self._old: set[bytes] = set()

    def add(self, key: bytes, now: float) -> bool:
        """Return False if an id is known, and keep it otherwise."""
        if now >= self._next_at or len(self._new) >= self._capacity:
            self._old = self._new if now < self._next_at + self._seconds else set()
            self._new = set()
            self._next_at = now + self._seconds
        if key in self._new or key in self._old:
            return False
        self._new.add(key)
        return True
