"""An authorization server and an MCP server that follow a script, each on a port of its own."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import urlopen

import pytest

import typedmcp_auth as auth
from tests.client.http.scripted_http import Request, Script, Wire, serving

PRM = "/.well-known/oauth-protected-resource/mcp"


@dataclass
class AuthorizationServer:
    """Signs everybody in at once. `metadata` and `redirect` change what it says."""

    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    redirect: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    token: dict[str, Any] = field(default_factory=dict[str, Any])
    handle: Callable[[Request, Wire], bool] = lambda _request, _wire: False
    """Answers a request in another way, and returns whether it did."""
    url: str = ""
    requests: list[Request] = field(default_factory=list[Request])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, "dict[str, str]"])
    refresh_tokens: set[str] = field(default_factory=set[str])
    reused: list[str] = field(default_factory=list[str])
    granted: str | None = None
    """The scopes of new tokens. None: those that were requested."""
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    """The valid access tokens, with their scopes."""
    count: int = 0

    def paths(self) -> list[str]:
        return [urlsplit(request.target).path for request in self.requests]

    def forms(self) -> list[dict[str, str]]:
        """Return the forms that were posted to the token endpoint."""
        return [dict(parse_qsl(r.body.decode())) for r in self.requests if urlsplit(r.target).path == "/token"]

    async def answer(self, request: Request, wire: Wire) -> None:
        self.requests.append(request)
        if self.handle(request, wire):
            return
        path = urlsplit(request.target).path
        if path == "/.well-known/oauth-authorization-server":
            wire.json(self.describe())
        elif path == "/register":
            asked = json.loads(request.body)
            wire.json({"client_id": f"client-{asked['redirect_uris'][0]}"}, 201)
        elif path == "/authorize":
            self.authorize(dict(parse_qsl(urlsplit(request.target).query)), wire)
        elif path == "/token":
            self.grant(dict(parse_qsl(request.body.decode())), wire)
        else:
            wire.reply(404)

    def describe(self) -> dict[str, Any]:
        known = {
            "issuer": self.url,
            **{f"{name}_endpoint": f"{self.url}/{path}" for name, path in ENDPOINTS.items()},
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }
        return {name: value for name, value in {**known, **self.metadata}.items() if value is not None}

    def authorize(self, asked: dict[str, str], wire: Wire) -> None:
        self.count += 1
        code = f"code-{self.count}"
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.url, **self.redirect}
        query = urlencode({n: v.replace("{url}", self.url) for n, v in answer.items() if v is not None})
        wire.reply(302, location=f"{asked['redirect_uri']}?{query}")

    def grant(self, form: dict[str, str], wire: Wire) -> None:
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
            assert (form["redirect_uri"], form["resource"]) == (asked["redirect_uri"], asked["resource"])
            self.issue(asked.get("scope", ""), wire)
        elif form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh_tokens:
                self.reused.append(form["refresh_token"])
                wire.json({"error": "invalid_grant", "error_description": "used \x1b[31mbefore"}, 400)
            else:
                self.refresh_tokens.remove(form["refresh_token"])
                self.issue("", wire)
        else:
            self.issue(form.get("scope", ""), wire)

    def issue(self, scope: str, wire: Wire) -> None:
        self.count += 1
        token, refresh = f"access-{self.count}", f"refresh-{self.count}"
        self.tokens[token] = scope if self.granted is None else self.granted
        self.refresh_tokens.add(refresh)
        issued = {"access_token": token, "token_type": "Bearer", "refresh_token": refresh, "expires_in": 3600}
        wire.json({name: value for name, value in {**issued, **self.token}.items() if value is not None})


ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


class ProtectedScript(Script):
    """An MCP server that accepts the tokens of an authorization server. `needs` has scopes by tool."""

    def __init__(self, server: AuthorizationServer) -> None:
        super().__init__()
        self.server = server
        self.resource: dict[str, Any] = {}
        self.challenge = 'Bearer resource_metadata="{url}' + PRM + '", scope="read"'
        self.needs: dict[str, str] = {}
        self.describe_resource: Callable[[Request, Wire], None] = self.describe
        """Answers requests for metadata."""
        self.seen: list[str] = []
        self.url = ""

    async def answer(self, request: Request, wire: Wire) -> None:
        self.url = f"http://{request.headers['host']}"
        if request.target.startswith("/.well-known/"):
            self.describe_resource(request, wire)
            return
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.seen.append(token)
        if token not in self.server.tokens:
            wire.reply(401, b"who?", www_authenticate=self.challenge.format(url=self.url))
            return
        needed = self.needs.get(request.json.get("params", {}).get("name", ""), "")
        if not set(needed.split()) <= set(self.server.tokens[token].split()):
            wire.reply(403, b"no", www_authenticate=f'Bearer error="insufficient_scope", scope="{needed}"')
            return
        await super().answer(request, wire)

    def describe(self, request: Request, wire: Wire) -> None:
        if request.target != PRM:
            wire.reply(404)
            return
        known = {"resource": f"{self.url}/mcp", "authorization_servers": [self.server.url]}
        wire.json({**known, **self.resource})


def visit(url: str) -> None:
    """Open a URL as a browser would, with its redirects."""
    with urlopen(url, timeout=10) as page:  # noqa: S310  # of the test
        page.read()


def sign_in(**options: Any) -> auth.OAuth:
    """Return the option `auth` with a browser that needs no person."""
    return auth.OAuth(sign_in=auth.BrowserSignIn(visit, timeout=10), **options)


@asynccontextmanager
async def protected(**options: Any) -> AsyncGenerator[tuple[str, ProtectedScript, AuthorizationServer]]:
    """Run both servers, and give the URL of the MCP server."""
    server = AuthorizationServer(**options)
    script = ProtectedScript(server)
    async with serving(server) as issuer, serving(script) as url:
        server.url = issuer.removesuffix("/mcp")
        yield url, script, server


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let it be later for what compares the lifetimes of tokens."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)
