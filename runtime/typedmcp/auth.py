"""The interface between clients of URLs and what gets their access tokens: the option `auth` takes an `Authorizer`.

Authorizers, such as `OAuth`, and verifiers of tokens for servers are in the distribution `typedmcp-auth`. Its names are
found here, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlencode

from typedmcp.errors import AuthorizationRequiredError
from typedmcp.satellites import satellite_names

__all__ = [
    "AccessGrant", "AuthRequest", "AuthResponse", "Authorization", "Authorizer", "ProtectedServer", "RequestSigner",
]  # fmt: skip

_OF_SATELLITE = frozenset((
    "Assertion", "BrowserSignIn", "ClientCredential", "ClientCredentials", "ConsoleSignIn", "DpopVerifier",
    "EnterpriseManaged", "FileStorage", "IntrospectionVerifier", "JwtBearer", "JwtVerifier", "KeyringStorage",
    "MemoryStorage", "OAuth", "Redirect", "SignIn", "TokenExchange", "TokenStorage",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuthRequest:
    """A request for a document or a token. `form` makes it a POST."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes | None = field(default=None, repr=False)

    @staticmethod
    def form(url: str, fields: Mapping[str, str], headers: Mapping[str, str]) -> AuthRequest:
        """Return a POST with the fields of a form."""
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return AuthRequest(url, {**kind, **headers}, urlencode(fields).encode())


@dataclass(frozen=True, slots=True)
class AuthResponse:
    """The status and the whole body of a response. Redirects to other origins never get here."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The headers, with names in lower case."""


@dataclass(frozen=True, slots=True)
class ProtectedServer:
    """An MCP server that needs authorization: its URL, and a function that sends requests for documents and tokens.

    `fetch` raises `SignInError` if there is no response within bounds of time and bytes. `tolerate` reports a deviation
    from a standard, and returns False for a client with `strict=True`.
    """

    url: str
    fetch: Callable[[AuthRequest], Awaitable[AuthResponse]]
    tolerate: Callable[[str], bool] = bool


class RequestSigner(Protocol):
    """Signs each request with the key that an access token is bound to.

    https://www.rfc-editor.org/rfc/rfc9449#section-7
    """

    def sign(self, method: str, url: str) -> str:
        """Return the value of the header `DPoP` for one request."""
        ...

    def nonce_of(self, url: str) -> str | None:
        """Return the nonce of the server that the next signature has."""
        ...

    def keep_nonce(self, url: str, nonce: str | None) -> None:
        """Keep the nonce that a response has, for the next signature."""
        ...


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """Headers with an access token, and the time (`time.time()`) from which it should be renewed.

    `signer` is for tokens that are bound to a key.
    """

    headers: Mapping[str, str] = field(repr=False)
    renew_at: float | None = None
    signer: RequestSigner | None = None


class Authorization(Protocol):
    """Gets access tokens for one server."""

    async def authorize(
        self, rejected: AuthorizationRequiredError | None, *, is_retry: bool = False
    ) -> AccessGrant | None:
        """Return an access token, or None if there is none.

        `rejected` is the error of a request that the server rejected. Without it, no person is asked for anything.
        `is_retry` says that the request had a token which was got after a rejection. Raises `SignInError`.
        """
        ...


class Authorizer(Protocol):
    """The option `auth` of a client that signs in. It may serve several servers and event loops."""

    def start(self, server: ProtectedServer) -> Authorization:
        """Return what gets the tokens for one server."""
        ...


if not TYPE_CHECKING:  # with `__getattr__`, type checkers would accept every name
    __getattr__ = satellite_names(__name__, _OF_SATELLITE, "auth")
