"""oidc-provider as the authorization server of tests, and a person who signs in there without a browser."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPMessage
from http.cookiejar import CookieJar
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener, urlopen

import pytest

import typedmcp_auth as auth
from tests.interop import install
from tests.listening import listening

HERE = Path(__file__).parent
MODULES = install.INTEROP / "authserver" / "node_modules"

needs_provider = pytest.mark.skipif(
    not (MODULES / "oidc-provider").exists(), reason="oidc-provider is missing: python -m tests.interop.install"
)


@dataclass(frozen=True)
class Provider:
    """A running authorization server."""

    issuer: str

    def change(self, **settings: Any) -> None:
        """Change its settings: `accessSeconds`, `nonces`, and `forget` with what it removes, "tokens" or "clients"."""
        with urlopen(f"{self.issuer}/test", json.dumps(settings).encode(), timeout=10) as done:  # noqa: S310
            done.read()


@contextmanager
def provider(**settings: Any) -> Generator[Provider]:
    """Run an authorization server."""
    node = str(install.node() / "bin" / "node")
    with listening([node, str(HERE / "provider.mjs"), str(MODULES), json.dumps(settings)]) as server:
        yield Provider(server.address)


@contextmanager
def resource(issuer: str, port: int = 0, kind: str = "bearer") -> Generator[str]:
    """Run the MCP server that accepts the tokens of an issuer, and give its URL. `kind` is `bearer` or `dpop`."""
    command = [sys.executable, "-m", "tests.typedmcp_auth.resource_server", issuer, str(port), kind]
    with listening(command) as server:
        yield f"{server.address}/mcp"


class _KeepLastRedirect(HTTPRedirectHandler):
    """Follows redirects, except for one to the client."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if newurl.startswith(self._uri):
            raise _SentToClientError(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _SentToClientError(Exception):
    """The provider sent the browser to the redirect URI, with a response."""


@dataclass
class Person:
    """Signs in with the forms of the provider, as a browser with cookies does."""

    name: str = "ada"
    refuses: bool = False
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The parameters of each authorization request."""
    page: str = ""
    """The page that was shown last."""

    def sign_in_elsewhere(self, url: str) -> str | None:
        """Return the URL of the redirect to the client, or None if the provider shows an error instead."""
        self.asked.append(dict(parse_qsl(urlsplit(url).query)))
        redirects = _KeepLastRedirect(self.asked[-1]["redirect_uri"])
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()), redirects)
        try:
            place = self._open(url)
            while (action := self._find_next()) is not None:
                place = self._open(urljoin(place, action), None if self.refuses else self._fill_form())
        except _SentToClientError as end:
            return str(end)
        return None

    def visit(self, url: str) -> None:
        """Sign in, and follow the redirect to the client."""
        redirect = self.sign_in_elsewhere(url)
        if redirect is not None:
            with urlopen(redirect, timeout=10) as page:  # noqa: S310  # of the test
                self.page = page.read().decode()

    def sign_in(self, seconds: float = 20, **options: Any) -> auth.OAuth:
        """Return the option `auth` for this person."""
        return auth.OAuth(sign_in=auth.BrowserSignIn(self.visit, timeout=seconds), **options)

    def _open(self, url: str, form: bytes | None = None) -> str:
        try:
            with self._opener.open(Request(url, form), timeout=10) as page:  # noqa: S310  # of the test
                self.page = page.read().decode()
                return str(page.url)
        except HTTPError as error:
            with error:
                self.page = error.read().decode()
                return url

    def _find_next(self) -> str | None:
        pattern = r'<a href="([^"]+/abort)"' if self.refuses else r'<form [^>]*action="([^"]+)"'
        found = re.search(pattern, self.page)
        return None if found is None else found[1]

    def _fill_form(self) -> bytes:
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w*)"', self.page))
        if 'name="login"' in self.page:
            fields.update(login=self.name, password="any")  # noqa: S106  # of the test
        return urlencode(fields).encode()
