"""The scripted servers with tokens that are bound to keys (DPoP). They verify proofs by themselves, with PyJWT."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt

from tests.client.http.scripted_http import Request, Wire, serving
from tests.typedmcp_auth.scripted import PRM, AuthorizationServer, ProtectedScript

__all__ = ["BoundAuthorizationServer", "BoundScript", "Proof", "bound", "read_proof"]


def _encode(digest: bytes) -> str:
    return urlsafe_b64encode(digest).decode().rstrip("=")


@dataclass
class Proof:
    """A proof whose signature is valid."""

    algorithm: str
    thumbprint: str
    claims: dict[str, Any]


def read_proof(text: str, url: str, method: str) -> Proof:
    """Verify a proof for a request. Fails the test if it is not one."""
    header = jwt.get_unverified_header(text)
    assert set(header) == {"typ", "alg", "jwk"}
    assert header["typ"] == "dpop+jwt"
    assert "d" not in header["jwk"]
    claims = jwt.decode(text, jwt.PyJWK(header["jwk"], header["alg"]), algorithms=[header["alg"]])
    assert (claims["htm"], claims["htu"]) == (method, url)
    assert abs(claims["iat"] - time.time()) < 60
    assert len(claims["jti"]) >= 16
    members = {name: header["jwk"][name] for name in ("crv", "kty", "x", "y") if name in header["jwk"]}
    canonical = json.dumps(members, separators=(",", ":"), sort_keys=True).encode()
    return Proof(header["alg"], _encode(hashlib.sha256(canonical).digest()), claims)


@dataclass
class BoundAuthorizationServer(AuthorizationServer):
    """Binds tokens to the key of the proof, if the request has one."""

    nonces: list[str] = field(default_factory=list[str])
    """The nonces that it demands, one after the other; none if empty."""
    keys: dict[str, str] = field(default_factory=dict[str, str])
    """The thumbprint of the key of each token."""
    proofs: list[Proof] = field(default_factory=list[Proof])
    refused: int = 0
    """The requests that were refused for their nonce."""

    def describe(self) -> dict[str, Any]:
        found = {"dpop_signing_alg_values_supported": ["RS256", "ES256"], **super().describe(), **self.metadata}
        return {name: value for name, value in found.items() if value is not None}

    def grant(self, form: dict[str, str], wire: Wire) -> None:
        text = self.requests[-1].headers.get("dpop")
        if text is None:
            super().grant(form, wire)
            return
        proof = read_proof(text, f"{self.url}/token", "POST")
        assert "ath" not in proof.claims
        self.proofs.append(proof)
        if self.nonces and proof.claims.get("nonce") != self.nonces[0]:
            self.refused += 1
            wire.json({"error": "use_dpop_nonce"}, 400, DPoP_Nonce=self.nonces[0])
            return
        if form["grant_type"] == "authorization_code":
            assert self.codes[form["code"]]["dpop_jkt"] == proof.thumbprint
        if form["grant_type"] == "refresh_token" and self.keys.get(form["refresh_token"]) != proof.thumbprint:
            wire.json({"error": "invalid_grant"}, 400)
            return
        super().grant(form, wire)
        self.keys[f"access-{self.count}"] = self.keys[f"refresh-{self.count}"] = proof.thumbprint

    def issue(self, scope: str, wire: Wire) -> None:
        if "dpop" in self.requests[-1].headers:
            self.token = {"token_type": "DPoP", **self.token}
        super().issue(scope, wire)


class BoundScript(ProtectedScript):
    """An MCP server that takes tokens with proofs, and bearer tokens unless they are bound."""

    def __init__(self, server: BoundAuthorizationServer) -> None:
        super().__init__(server)
        self.keys = server.keys
        self.challenge = 'DPoP algs="ES256 EdDSA", resource_metadata="{url}' + PRM + '", scope="read"'
        self.nonce: str | None = None
        self.changes_nonce = False
        self.proofs: list[Proof] = []
        self.refused = 0
        self.error: str | None = None
        """The error with which all proofs are rejected."""

    async def answer(self, request: Request, wire: Wire) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if request.target.startswith("/.well-known/") or not token:
            await super().answer(request, wire)
            return
        if scheme == "Bearer":
            assert token not in self.keys
            await super().answer(request, wire)
            return
        assert scheme == "DPoP"
        url = f"http://{request.headers['host']}{request.target.partition('?')[0]}"
        proof = read_proof(request.headers["dpop"], url, request.method)
        assert proof.claims["ath"] == _encode(hashlib.sha256(token.encode()).digest())
        self.proofs.append(proof)
        if self.error is not None:
            wire.reply(401, www_authenticate=f'DPoP error="{self.error}"')
            return
        if self.nonce is not None and proof.claims.get("nonce") != self.nonce:
            self.refused += 1
            wire.reply(401, b"nonce", www_authenticate='DPoP error="use_dpop_nonce"', DPoP_Nonce=self.nonce)
            self.nonce += "x" if self.changes_nonce else ""
            return
        if token in self.server.tokens:
            assert self.keys[token] == proof.thumbprint
        request.headers["authorization"] = f"Bearer {token}"
        await super().answer(request, wire)


@asynccontextmanager
async def bound(**options: Any) -> AsyncGenerator[tuple[str, BoundScript, BoundAuthorizationServer]]:
    """Run both servers, and give the URL of the MCP server."""
    server = BoundAuthorizationServer(**options)
    script = BoundScript(server)
    async with serving(server) as issuer, serving(script) as url:
        server.url = issuer.removesuffix("/mcp")
        yield url, script, server
