"""Access tokens: requests to the token endpoint, and what it answers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final
from urllib.parse import quote_plus

from msgspec import Struct

from typedmcp.auth import AuthRequest, AuthResponse
from typedmcp.building import decode_json, visible
from typedmcp.errors import SignInError
from typedmcp_auth.assertions import sign_assertion
from typedmcp_auth.discovery import Deviation, ServerMetadata, Steps, decode_document
from typedmcp_auth.dpop import DpopKey

__all__ = ["ClientCredential", "RefusedError", "TokenResponse", "authenticate", "read_error", "request_token"]

_TEMPORARY: Final = ("server_error", "slow_down", "temporarily_unavailable")
"""Codes of errors after which the same request may succeed."""


class ClientCredential(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The client at one authorization server: its id, and how it proves it."""

    client_id: str
    client_secret: str | None = None
    method: str | None = None
    """The method of authentication, such as `client_secret_basic`. None: one that the server supports."""
    private_key: str | None = None
    """A private key as PEM, for `private_key_jwt`."""
    algorithm: str = "ES256"
    redirect_uri: str | None = None
    """The redirect URI with which the client was registered."""
    secret_expires: float = 0
    """The time at which the secret expires. 0: never."""
    scopes: tuple[str, ...] = ()
    """The scopes with which the client was registered. Some authorization servers grant it no others."""

    def __repr__(self) -> str:
        return f"ClientCredential(client_id={self.client_id!r})"


class TokenResponse(Struct, kw_only=True):
    """The response of a token endpoint.

    https://www.rfc-editor.org/rfc/rfc6749#section-5.1
    """

    access_token: str
    token_type: str = ""
    expires_in: float | str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    issued_token_type: str | None = None

    def __repr__(self) -> str:
        return f"TokenResponse(token_type={self.token_type!r}, expires_in={self.expires_in!r}, scope={self.scope!r})"


class RefusedError(SignInError):
    """An authorization server refused a request: the same one will not succeed later."""


class _ErrorResponse(Struct):
    error: str
    error_description: Any = ""


def request_token(
    server: ServerMetadata,
    credential: ClientCredential,
    fields: dict[str, str],
    now: float,
    key: DpopKey | None = None,
) -> Steps[TokenResponse]:
    """Request a token, which is to be bound to `key`.

    Raises `SignInError`, with the code of the error that the server returned.
    """
    url = server.token_endpoint
    response = yield from _post(server, credential, fields, now, key)
    if key is not None and response.status != 200 and read_error(response, url).code == "use_dpop_nonce":
        response = yield from _post(server, credential, fields, now, key)
    if not 200 <= response.status < 300:
        raise read_error(response, url)
    try:
        token = yield from decode_document(response, TokenResponse, url)
    except SignInError as error:
        refusal = read_error(response, url)  # some servers send errors with the status 200
        raise (error if refusal.code is None else refusal) from None
    if response.status != 200 or not token.token_type:
        kind = f"with the type {visible(token.token_type, 50)!r}" if token.token_type else "without a type"
        yield Deviation(f"{url}: a token {kind} and the status {response.status}")
        token.token_type = token.token_type or "Bearer"
    if not token.access_token or not token.access_token.isascii() or not token.access_token.isprintable():
        raise SignInError(f"{url}: the access token is not a text that a header can hold")
    return token


def _post(
    server: ServerMetadata, credential: ClientCredential, fields: dict[str, str], now: float, key: DpopKey | None
) -> Steps[AuthResponse]:
    """Send a request for a token, and keep the nonce of the response for the next proof."""
    url = server.token_endpoint
    headers, more = authenticate(credential, server, now)
    proof = {} if key is None else {"dpop": key.prove("POST", url)}
    response = yield AuthRequest.form(url, {**fields, **more}, {"accept": "application/json", **headers, **proof})
    if key is not None:
        key.keep_nonce(url, response.headers.get("dpop-nonce"))
    return response


def authenticate(
    credential: ClientCredential, server: ServerMetadata, now: float
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and the fields of a form that authenticate the client."""
    fields = {"client_id": credential.client_id}
    if credential.private_key is not None:
        kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        assertion = sign_assertion(
            credential.private_key, credential.algorithm, credential.client_id, server.issuer, now
        )
        return {}, {**fields, "client_assertion_type": kind, "client_assertion": assertion}
    if credential.client_secret is None:
        return {}, fields
    method = credential.method or _choose_method(server.token_endpoint_auth_methods_supported)
    if method == "client_secret_basic":
        pair = f"{quote_plus(credential.client_id)}:{quote_plus(credential.client_secret)}"
        return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}, {}
    if method == "client_secret_post":
        return {}, {**fields, "client_secret": credential.client_secret}
    if method == "none":
        return {}, fields
    raise SignInError(f"{server.issuer} wants clients to authenticate with {visible(method, 50)!r}, which needs a key")


def _choose_method(supported: list[str] | None) -> str:
    """Return the first method for secrets that the server supports. Its default is `client_secret_basic` (RFC 8414)."""
    if supported is None:
        return "client_secret_basic"
    known = ("client_secret_basic", "client_secret_post")
    return next((method for method in known if method in supported), (supported or ["none"])[0])


def read_error(response: AuthResponse, url: str) -> SignInError:
    """Return the error in a response, a `RefusedError` for a refusal. The text of the server is escaped."""
    is_refusal = 400 <= response.status < 500 and response.status != 429
    try:
        found: _ErrorResponse = decode_json(response.body, _ErrorResponse)
    except ValueError:
        return (RefusedError if is_refusal else SignInError)(f"{url} answered {response.status}")
    code, text = visible(found.error, 100), visible(str(found.error_description or ""), 300)
    kind = SignInError if code in _TEMPORARY or response.status == 429 else RefusedError
    return kind(f"{url} answered {response.status}: {code}{f' ({text})' if text else ''}", code)
