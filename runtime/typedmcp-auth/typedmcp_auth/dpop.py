"""Keys that tokens are bound to, and proofs that a client has them (DPoP), by PyJWT and cryptography.

https://www.rfc-editor.org/rfc/rfc9449
"""

from __future__ import annotations

import hashlib
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from typedmcp.building import is_object
from typedmcp_auth.urls import origin_of

__all__ = ["ALGORITHMS", "BoundToken", "DpopKey", "choose_algorithm", "find_thumbprint", "hash_token"]

ALGORITHMS: Final = ("ES256", "EdDSA", "ES384")
"""The algorithms that proofs of clients are signed with, best first."""

_NONCE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,1024}")
"""Nonces of servers. https://www.rfc-editor.org/rfc/rfc9449#section-8.1"""

_THUMBPRINT_MEMBERS: Final = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
"""The members of a public key that identify it, in the order of RFC 7638."""


def _encode(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def hash_token(token: str) -> str:
    """Return the value of `ath`, which says which access token a proof belongs to."""
    return _encode(hashlib.sha256(token.encode()).digest())


def find_thumbprint(key: Mapping[str, Any]) -> str | None:
    """Return the thumbprint of a public key, or None if it has not the members of its type.

    https://www.rfc-editor.org/rfc/rfc7638#section-3
    """
    members = _THUMBPRINT_MEMBERS.get(str(key.get("kty")))
    if members is None or not all(isinstance(value := key.get(name), str) and value.isascii() for name in members):
        return None
    return _encode(hashlib.sha256(msgspec.json.encode({name: key[name] for name in members})).digest())


def choose_algorithm(*supported: Sequence[str] | None) -> str | None:
    """Return the best algorithm that all of these lists have, or None. A list that is empty or None has all."""
    return next((one for one in ALGORITHMS if all(not names or one in names for names in supported)), None)


class DpopKey:
    """A private key for proofs. `nonces` has the last nonce of each server, by its origin; keys may share it.

    Raises `ValueError` for a value that is no private key.
    """

    def __init__(self, jwk: Mapping[str, Any], nonces: dict[str, str]) -> None:
        import jwt  # with cryptography, which most clients do not need

        self._jwk = dict(jwk)
        self._algorithm = str(jwk.get("alg"))
        if self._algorithm not in ALGORITHMS or not isinstance(jwk.get("d"), str):
            raise ValueError("not a private key for proofs")
        self._public = {name: value for name, value in jwk.items() if name not in ("d", "alg")}
        try:
            self._key: Any = jwt.PyJWK(self._jwk, self._algorithm).key
        except (jwt.PyJWTError, TypeError, KeyError) as error:
            raise ValueError("not a private key for proofs") from error
        self._nonces = nonces
        self.thumbprint: str = find_thumbprint(self._public) or ""
        """Identifies the public key."""

    def __repr__(self) -> str:
        return f"DpopKey({self.thumbprint!r})"

    @classmethod
    def generate(cls, algorithm: str, nonces: dict[str, str]) -> DpopKey:
        """Return a new key."""
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
        from jwt.algorithms import ECAlgorithm, OKPAlgorithm

        if algorithm == "EdDSA":
            jwk = OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate(), as_dict=True)
        else:
            curve = ec.SECP256R1() if algorithm == "ES256" else ec.SECP384R1()
            jwk = ECAlgorithm.to_jwk(ec.generate_private_key(curve), as_dict=True)
        return cls({**jwk, "alg": algorithm}, nonces)

    @classmethod
    def load(cls, text: str, nonces: dict[str, str]) -> DpopKey:
        """Return a key that was stored. Raises `ValueError` if it is damaged."""
        value: Any = msgspec.json.decode(text)
        if not is_object(value):
            raise ValueError("not a private key for proofs")
        return cls(value, nonces)

    def dump(self) -> str:
        """Return the private key as text, to be stored with the token."""
        return msgspec.json.encode(self._jwk).decode()

    def nonce_of(self, url: str) -> str | None:
        """Return the last nonce of a server."""
        return self._nonces.get(origin_of(url))

    def keep_nonce(self, url: str, nonce: str | None) -> None:
        """Keep the nonce that a response of a server has, for the next proof. One that is not valid is ignored."""
        if nonce is not None and _NONCE.fullmatch(nonce):
            self._nonces[origin_of(url)] = nonce

    def prove(self, method: str, url: str, token: str | None = None) -> str:
        """Return the proof for one request, with the last nonce of the server."""
        import jwt

        parts = urlsplit(url)
        claims: dict[str, Any] = {
            "jti": token_urlsafe(16),
            "htm": method,
            "htu": f"{parts.scheme}://{parts.netloc}{parts.path or '/'}",
            "iat": int(time.time()),
        }
        if token is not None:
            claims["ath"] = hash_token(token)
        nonce = self.nonce_of(url)
        if nonce is not None:
            claims["nonce"] = nonce
        header = {"typ": "dpop+jwt", "jwk": self._public}
        return jwt.encode(claims, self._key, algorithm=self._algorithm, headers=header)


class BoundToken:
    """Signs the requests with an access token that is bound to a key. Implements `RequestSigner`."""

    def __init__(self, key: DpopKey, token: str) -> None:
        self._key = key
        self._token = token

    def sign(self, method: str, url: str) -> str:
        """Return the value of the header `DPoP` for one request."""
        return self._key.prove(method, url, self._token)

    def nonce_of(self, url: str) -> str | None:
        """Return the nonce that the next proof for a URL has."""
        return self._key.nonce_of(url)

    def keep_nonce(self, url: str, nonce: str | None) -> None:
        """Keep the nonce that a response has, for the next proof."""
        self._key.keep_nonce(url, nonce)
