"""An authorization server that signs tokens, on loopback, and whose documents a test can change."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.client.http.scripted_http import Request, Wire, serving
from typedmcp import Principal
from typedmcp.transports.concurrency import is_awaitable

RESOURCE = "https://mcp.test/mcp"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def base64url(data: bytes) -> str:
    """Encode bytes as tokens have them."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def jwk_of(key: PrivateKeyTypes, kid: str | None = "1", **members: Any) -> dict[str, Any]:
    """Return the public key of a key pair as a JWK."""
    algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    made: dict[str, Any] = algorithm.to_jwk(key.public_key(), as_dict=True)
    return {**made, **({} if kid is None else {"kid": kid}), **members}


JWKS = {"keys": [jwk_of(RSA_KEY)]}
ISSUER = "https://auth.test"


def claims(**changes: Any) -> dict[str, Any]:
    """Return valid claims; a change to None removes one."""
    now = int(time.time())
    made = {"iss": ISSUER, "sub": "ada", "aud": RESOURCE, "exp": now + 600, "iat": now, "scope": "read write"}
    return {name: value for name, value in {**made, "client_id": "app", **changes}.items() if value is not None}


def signed(
    *, key: Any = RSA_KEY, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **changes: Any
) -> str:
    """Return a signed token with valid claims, apart from the changes."""
    return jwt.encode(claims(**changes), key, algorithm, headers={"kid": "1", "typ": "at+jwt", **(headers or {})})


async def verified(verifier: Any, token: str) -> Principal | None:
    """Return what a verifier says about a token."""
    found = verifier(token)
    principal: Principal | None = await found if is_awaitable(found) else found
    return principal


@dataclass
class Issuer:
    """An authorization server. `handle` answers a request in another way, and returns whether it did."""

    url: str = ""
    keys: list[dict[str, Any]] = field(default_factory=lambda: [*JWKS["keys"]])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    active: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    """The answers to introspection, by token."""
    handle: Callable[[Request, Wire], bool] = lambda _request, _wire: False
    requests: list[Request] = field(default_factory=list[Request])
    gate: asyncio.Event | None = None
    """Answers wait for it, if there is one."""

    def paths(self) -> list[str]:
        return [request.target for request in self.requests]

    async def answer(self, request: Request, wire: Wire) -> None:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        if self.handle(request, wire):
            return
        if request.target == "/.well-known/oauth-authorization-server":
            known = {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "introspection_endpoint": f"{self.url}/introspect",
            }
            wire.json({**known, **self.metadata})
        elif request.target == "/jwks":
            wire.json({"keys": self.keys})
        elif request.target == "/introspect":
            form = dict(parse_qsl(request.body.decode()))
            wire.json(self.active.get(form["token"], {"active": False}))
        else:
            wire.reply(404)

    def token(self, **changes: Any) -> str:
        """Return a token of this issuer."""
        given: dict[str, Any] = {"iss": self.url, **changes}
        return signed(**given)


@asynccontextmanager
async def issuing(**members: Any) -> AsyncGenerator[Issuer]:
    """Run an authorization server."""
    issuer = Issuer(**members)
    async with serving(issuer) as url:
        issuer.url = url.removesuffix("/mcp")
        yield issuer


def raw_token(header: dict[str, Any], payload: dict[str, Any], signature: bytes = b"") -> str:
    """Return a token with any header and any signature."""
    parts = [json.dumps(header).encode(), json.dumps(payload).encode(), signature]
    return ".".join(map(base64url, parts))
