"""Documents of an authorization server: its metadata, and its keys.

Requests go to the configured issuer, and to the URLs that its metadata name: with https, or to loopback addresses. No
redirect is followed. The bytes and the time of each document are bounded.
https://www.rfc-editor.org/rfc/rfc8414#section-3
"""

from __future__ import annotations

import ssl
from typing import Final, TypeVar

from msgspec import Struct

from typedmcp.auth import AuthRequest, AuthResponse
from typedmcp.building import FetchClient
from typedmcp.errors import SignInError, UsageError
from typedmcp.limits import Limits
from typedmcp_auth.documents import read_document
from typedmcp_auth.urls import check_url, server_urls

__all__ = ["Documents", "IssuerMetadata", "check_option_url"]

_TIMEOUT: Final = 10.0
"""Seconds for one request. Calls with unknown tokens wait for it."""

S = TypeVar("S", bound=Struct)


class IssuerMetadata(Struct):
    """The metadata of an authorization server, as far as servers need them."""

    issuer: str
    jwks_uri: str | None = None
    introspection_endpoint: str | None = None


class Documents:
    """Gets documents of one authorization server. Its methods raise `SignInError`."""

    def __init__(self, issuer: str, limits: Limits, tls: ssl.SSLContext | None) -> None:
        self.issuer = issuer
        self._tls = tls
        self._client = FetchClient(self._tls_context, limits, timeout=_TIMEOUT, follows_redirects=False)

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    async def send(self, request: AuthRequest) -> AuthResponse:
        """Send a request, and return its response, which is no redirect."""
        return await self._client.fetch(request)

    async def get(self, url: str, kind: type[S]) -> S:
        """Get a JSON document."""
        response = await self.send(AuthRequest(url, {"accept": "application/json"}))
        if response.status != 200:
            raise SignInError(f"{url} answered {response.status}")
        return read_document(response, kind, url)[0]

    async def discover(self) -> IssuerMetadata:
        """Get the metadata of the issuer, from the first of the well-known URLs that has those of this issuer.

        The error says what is wrong with each.
        """
        wrong = list[str]()
        for url in server_urls(self.issuer):
            try:
                response = await self.send(AuthRequest(url, {"accept": "application/json"}))
                if 400 <= response.status < 500:
                    continue
                if response.status != 200:
                    raise SignInError(f"{url} answered {response.status}")
                found, _ = read_document(response, IssuerMetadata, url)
                if found.issuer != self.issuer:
                    raise SignInError(f"{url}: the issuer is {found.issuer[:200]!a}, expected {self.issuer!r}")
            except SignInError as error:
                wrong.append(str(error))
            else:
                return found
        raise SignInError("; ".join(wrong) or f"{self.issuer} has no metadata at the well-known URLs")

    def check_named(self, url: str | None, name: str) -> str:
        """Return a URL that the metadata name. It must not lead into a private network, unless the issuer is in one."""
        if url is None:
            raise SignInError(f"the metadata of {self.issuer} have no {name}")
        return check_url(url, f"{name} of {self.issuer}", self.issuer)


def check_option_url(url: str, name: str) -> str:
    """Return a URL that is an option. Raises `UsageError` unless it has https, or is a loopback address."""
    try:
        return check_url(url, name, url)
    except SignInError as error:
        raise UsageError(str(error)) from None
