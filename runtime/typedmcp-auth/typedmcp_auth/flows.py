"""The flows: a person who signs in, a client of its own, and assertions of an identity provider."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Sequence
from secrets import token_urlsafe
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from typedmcp.auth import ProtectedServer
from typedmcp.building import check_flag, check_list, is_awaitable, visible
from typedmcp.errors import SignInError, UsageError
from typedmcp_auth.discovery import Discovery, ServerMetadata
from typedmcp_auth.dpop import DpopKey
from typedmcp_auth.registration import register
from typedmcp_auth.session import Run, SignInSession, client_key, decode_stored
from typedmcp_auth.sign_in import BrowserSignIn, Redirect, SignIn
from typedmcp_auth.storage import MemoryStorage, TokenStorage
from typedmcp_auth.tokens import ClientCredential, TokenResponse, request_token
from typedmcp_auth.urls import require_safe_server

__all__ = ["Assertion", "ClientCredentials", "EnterpriseManaged", "JwtBearer", "OAuth", "TokenExchange"]

Assertion: TypeAlias = "str | Callable[[str], str | Awaitable[str]]"
"""A signed assertion, or a function, plain or async, that gets its audience and returns one."""

_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105  # a name
_ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105
_ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
_ACCESS_TOKENS: Final = (None, _ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt")
"""The types of issued tokens that a header may hold. Servers have to name one, but some do not."""
_OFFLINE: Final = "offline_access"


class _BaseFlow:
    """The common part of all flows: the issuer, the scopes, the storage, and what requests for tokens have."""

    needs_person: bool = False

    def __init__(
        self,
        client_id: str | None,
        issuer: str | None,
        scopes: Sequence[str],
        storage: TokenStorage | None,
        dpop: bool | None,
        send_resource: bool,
    ) -> None:
        check_list("scopes", scopes)
        check_flag("send_resource", send_resource)
        if dpop is not None:
            check_flag("dpop", dpop)
        self.client_id: str | None = client_id
        self.issuer: str | None = issuer
        self.scopes: tuple[str, ...] = tuple(scopes)
        self.storage: TokenStorage = MemoryStorage() if storage is None else storage
        self.dpop: bool | None = dpop
        self._send_resource = send_resource

    def __repr__(self) -> str:
        return f"{type(self).__name__}(client_id={self.client_id!r}, issuer={self.issuer!r})"

    async def obtain(
        self, run: Run, found: Discovery, scopes: tuple[str, ...], key: DpopKey | None
    ) -> tuple[TokenResponse, ClientCredential]:
        """Get a token."""
        raise NotImplementedError

    def resource_field(self, resource: str) -> dict[str, str]:
        """Return the parameter `resource` for a request, if the authorization server is to get it."""
        return {"resource": resource} if self._send_resource else {}

    def start(self, server: ProtectedServer) -> SignInSession:
        """Return what gets the tokens for one server. Raises `UsageError` for plain HTTP to another machine."""
        return SignInSession(self, server)


class OAuth(_BaseFlow):
    """A person signs in, with an authorization code and PKCE.

    The client identifies itself with `client_id`, else with `client_metadata_url` if the authorization server supports
    that, else it registers under `client_name`, else `ask_client` gets the issuer and returns a `ClientCredential`.
    `issuer` is the only authorization server to accept. `sign_in` is `BrowserSignIn()` or `ConsoleSignIn()`. `storage`
    keeps tokens and registrations; by default they are kept in memory. `scopes` are requested in place of those that
    the server names; more are added only when a call needs them. `send_resource=False` leaves out the parameter
    `resource`, which the specification requires and some authorization servers refuse. `assume_pkce` signs in, with
    PKCE, where the metadata do not say that it is supported. `dpop` binds tokens to a key, by default if both servers
    support it; True makes everything else an error, False never does so.
    """

    needs_person: bool = True

    def __init__(
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        client_metadata_url: str | None = None,
        client_name: str = "typedmcp",
        issuer: str | None = None,
        scopes: Sequence[str] = (),
        sign_in: SignIn | None = None,
        storage: TokenStorage | None = None,
        dpop: bool | None = None,
        send_resource: bool = True,
        ask_client: Callable[[str], ClientCredential | Awaitable[ClientCredential]] | None = None,
        assume_pkce: bool = False,
    ) -> None:
        super().__init__(client_id, issuer, scopes, storage, dpop, send_resource)
        if client_metadata_url is not None:
            parts = urlsplit(client_metadata_url)
            if parts.scheme != "https" or parts.path in ("", "/"):
                raise UsageError(f"client_metadata_url must use https and have a path, not {client_metadata_url!r}")
        check_flag("assume_pkce", assume_pkce)
        self._assume_pkce = assume_pkce
        self._client_secret = client_secret
        self._client_metadata_url = client_metadata_url
        self._client_name = client_name
        self._sign_in: SignIn = BrowserSignIn() if sign_in is None else sign_in
        self._ask_client = ask_client

    async def obtain(
        self, run: Run, found: Discovery, scopes: tuple[str, ...], key: DpopKey | None
    ) -> tuple[TokenResponse, ClientCredential]:
        """Let a person sign in. Sign-ins at the same authorization server follow one another."""
        server = found.server
        _check_code_flow(server, assume_pkce=self._assume_pkce)
        if not self.scopes and scopes and _OFFLINE in server.scopes_supported and _OFFLINE not in scopes:
            scopes = (*scopes, _OFFLINE)
        async with self.storage.lock(client_key(server.issuer)):
            known = await self._load_registration(server.issuer)
            try:
                return await self._sign_in_with(run, found, known, scopes, key)
            except BaseException as error:
                if not _proves_registration(error):
                    await self.storage.save(client_key(server.issuer), None)
                raise

    async def _sign_in_with(
        self,
        run: Run,
        found: Discovery,
        known: ClientCredential | None,
        scopes: tuple[str, ...],
        key: DpopKey | None,
    ) -> tuple[TokenResponse, ClientCredential]:
        server = found.server
        async with self._sign_in.open_redirect(None if known is None else known.redirect_uri) as redirect:
            credential = await self._identify(run, server, redirect.uri, known, scopes)
            resource = self.resource_field(found.resource)
            code, verifier = await _get_code(redirect, found.server, credential.client_id, scopes, resource, key)
            fields = {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": redirect.uri,
                "code_verifier": verifier,
                **resource,
            }
        return await run(request_token(server, credential, fields, time.time(), key)), credential

    async def _load_registration(self, issuer: str) -> ClientCredential | None:
        known = decode_stored(await self.storage.load(client_key(issuer)), ClientCredential)
        has_expired = known is not None and 0 < known.secret_expires < time.time()
        return None if has_expired else known

    async def _identify(
        self,
        run: Run,
        server: ServerMetadata,
        redirect_uri: str,
        known: ClientCredential | None,
        scopes: tuple[str, ...],
    ) -> ClientCredential:
        """Return the client's id at an authorization server, in the order of the specification."""
        if self.client_id is not None:
            return ClientCredential(client_id=self.client_id, client_secret=self._client_secret)
        if self._client_metadata_url is not None and server.client_id_metadata_document_supported:
            return ClientCredential(client_id=self._client_metadata_url)
        if known is not None and known.redirect_uri == redirect_uri and set(scopes) <= set(known.scopes):
            return known
        if server.registration_endpoint is not None:
            registered = await run(register(server, redirect_uri, self._client_name, scopes))
            await self.storage.save(client_key(server.issuer), msgspec.json.encode(registered))
            return registered
        if self._ask_client is None:
            raise SignInError(f"{server.issuer} does not register clients: give auth=OAuth(client_id=…)")
        answer = self._ask_client(server.issuer)
        return await answer if is_awaitable(answer) else answer


def _proves_registration(error: BaseException) -> bool:
    """Return whether a failed sign-in shows that the authorization server still knows the client.

    For a client that it has forgotten, it may show a page to the person and never answer. Only another registration
    helps then, so that one is kept only if a refusal of the person confirms it.
    """
    return isinstance(error, SignInError) and error.code == "access_denied"


def _check_code_flow(server: ServerMetadata, *, assume_pkce: bool) -> None:
    if server.authorization_endpoint is None:
        raise SignInError(f"{server.issuer} has no authorization_endpoint, so that nobody can sign in there")
    methods = server.code_challenge_methods_supported
    if methods is None and not assume_pkce:
        text = (
            "does not say that it supports PKCE (code_challenge_methods_supported); if it does, give assume_pkce=True"
        )
        raise SignInError(f"{server.issuer} {text}")
    if methods is not None and "S256" not in methods:
        raise SignInError(f"{server.issuer} does not support PKCE with S256 (code_challenge_methods_supported)")


async def _get_code(
    redirect: Redirect,
    server: ServerMetadata,
    client_id: str,
    scopes: tuple[str, ...],
    resource: dict[str, str],
    key: DpopKey | None,
) -> tuple[str, str]:
    """Send the person to the authorization server. Return the code, and the verifier that belongs to it."""
    state, verifier = token_urlsafe(32), token_urlsafe(64)
    challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect.uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **resource,
        **({"scope": " ".join(scopes)} if scopes else {}),
        **({"prompt": "consent"} if _OFFLINE in scopes else {}),
        **({} if key is None else {"dpop_jkt": key.thumbprint}),
    }
    answers: list[dict[str, str]] = []

    def accept(query: str) -> bool:
        """Keep the parameters of a redirect, if they belong to this request."""
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=20)
            answer = dict(pairs)
            is_ours = hmac.compare_digest(answer.get("state", "").encode(), state.encode())
        except ValueError:
            return False
        if is_ours and len(answer) == len(pairs):
            answers.append(answer)
            return True
        return False

    endpoint = server.authorization_endpoint or ""
    await redirect.visit(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}", accept)
    return _read_code(answers[0], server), verifier


def _read_code(answer: dict[str, str], server: ServerMetadata) -> str:
    """Return the code of an authorization response.

    https://www.rfc-editor.org/rfc/rfc9207#section-2.4
    """
    issuer = answer.get("iss")
    if issuer is None and server.authorization_response_iss_parameter_supported:
        raise SignInError(f"the response of {server.issuer} names no issuer, which it promises")
    if issuer is not None and issuer != server.issuer:
        raise SignInError(f"the response comes from {visible(issuer, 200)!r}, expected {server.issuer!r}")
    if "error" in answer:
        code, text = visible(answer["error"], 100), visible(answer.get("error_description", ""), 300)
        raise SignInError(f"{server.issuer} did not sign in: {code}{f' ({text})' if text else ''}", code)
    if not answer.get("code"):
        raise SignInError(f"the response of {server.issuer} has no code")
    return answer["code"]


class ClientCredentials(_BaseFlow):
    """The client signs in as itself, with a secret or a private key (PEM).

    `issuer` is the only authorization server that gets these credentials; without it, the one that the server names.
    """

    extension: str = "io.modelcontextprotocol/oauth-client-credentials"

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        private_key: str | None = None,
        algorithm: str = "ES256",
        issuer: str | None = None,
        scopes: Sequence[str] = (),
        storage: TokenStorage | None = None,
        dpop: bool | None = None,
        send_resource: bool = True,
    ) -> None:
        super().__init__(client_id, issuer, scopes, storage, dpop, send_resource)
        if (client_secret is None) == (private_key is None):
            raise UsageError("ClientCredentials needs either a client_secret or a private_key")
        self._credential = ClientCredential(
            client_id=client_id, client_secret=client_secret, private_key=private_key, algorithm=algorithm
        )

    async def obtain(
        self, run: Run, found: Discovery, scopes: tuple[str, ...], key: DpopKey | None
    ) -> tuple[TokenResponse, ClientCredential]:
        """Request a token with the client's own credentials."""
        fields = {"grant_type": "client_credentials", **self.resource_field(found.resource), **_scope(scopes)}
        token = await run(request_token(found.server, self._credential, fields, time.time(), key))
        return token, ClientCredential(client_id=self._credential.client_id)


class JwtBearer(_BaseFlow):
    """An assertion that somebody else signed, such as the platform on which a workload runs (RFC 7523, section 2.1).

    If the authorization server rejects the assertion, there is no second attempt.
    """

    def __init__(
        self,
        client_id: str,
        assertion: Assertion,
        *,
        client_secret: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = (),
        storage: TokenStorage | None = None,
        dpop: bool | None = None,
        send_resource: bool = True,
    ) -> None:
        super().__init__(client_id, issuer, scopes, storage, dpop, send_resource)
        self._assertion = assertion
        self._credential = ClientCredential(client_id=client_id, client_secret=client_secret)

    async def obtain(
        self, run: Run, found: Discovery, scopes: tuple[str, ...], key: DpopKey | None
    ) -> tuple[TokenResponse, ClientCredential]:
        """Exchange the assertion for a token."""
        assertion = await _get_assertion(self._assertion, found.server.issuer)
        fields = {
            "grant_type": _JWT_BEARER,
            "assertion": assertion,
            **self.resource_field(found.resource),
            **_scope(scopes),
        }
        token = await run(request_token(found.server, self._credential, fields, time.time(), key))
        return token, ClientCredential(client_id=self._credential.client_id)


class EnterpriseManaged(_BaseFlow):
    """The identity provider of an organization decides, without asking the person (ID-JAG).

    `id_token` is the assertion of the person's sign-in at the identity provider, whose `idp_token_endpoint` exchanges
    it. The client is `client_id` at the authorization server, and `idp_client_id` at the identity provider.
    """

    extension: str = "io.modelcontextprotocol/enterprise-managed-authorization"

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        id_token: Assertion,
        idp_token_endpoint: str,
        idp_client_id: str,
        idp_client_secret: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = (),
        storage: TokenStorage | None = None,
        dpop: bool | None = None,
        send_resource: bool = True,
    ) -> None:
        super().__init__(client_id, issuer, scopes, storage, dpop, send_resource)
        require_safe_server(idp_token_endpoint)
        self._id_token = id_token
        self._idp = ServerMetadata(issuer=idp_token_endpoint, token_endpoint=idp_token_endpoint)
        self._idp_credential = ClientCredential(client_id=idp_client_id, client_secret=idp_client_secret)
        self._credential = ClientCredential(client_id=client_id, client_secret=client_secret)

    async def obtain(
        self, run: Run, found: Discovery, scopes: tuple[str, ...], key: DpopKey | None
    ) -> tuple[TokenResponse, ClientCredential]:
        """Exchange the identity token for a grant, and the grant for an access token."""
        exchange = {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": _ID_JAG,
            "audience": found.server.issuer,
            **self.resource_field(found.resource),
            "subject_token": await _get_assertion(self._id_token, self._idp.token_endpoint),
            "subject_token_type": _ID_TOKEN,
            **_scope(scopes),
        }
        grant = await run(request_token(self._idp, self._idp_credential, exchange, time.time()))
        if grant.issued_token_type != _ID_JAG:
            raise SignInError(f"{self._idp.token_endpoint} issued another token than an ID-JAG")
        fields = {"grant_type": _JWT_BEARER, "assertion": grant.access_token, **self.resource_field(found.resource)}
        token = await run(request_token(found.server, self._credential, fields, time.time(), key))
        return token, ClientCredential(client_id=self._credential.client_id)


class TokenExchange(_BaseFlow):
    """A token of a person or a program is exchanged for one that is issued for the server (RFC 8693).

    `subject_token` is the token to exchange, or a function that gets the issuer and returns it, such as the newest one.
    `subject_token_type` is its type, by default an access token. `client_id` and `client_secret` are those of the
    program that exchanges it. `audience` is a name of the server beside its URL, if the authorization server needs one.
    https://www.rfc-editor.org/rfc/rfc8693
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        subject_token: Assertion,
        subject_token_type: str = _ACCESS_TOKEN,
        audience: str | None = None,
        issuer: str | None = None,
        scopes: Sequence[str] = (),
        storage: TokenStorage | None = None,
        dpop: bool | None = None,
        send_resource: bool = True,
    ) -> None:
        super().__init__(client_id, issuer, scopes, storage, dpop, send_resource)
        self._subject_token = subject_token
        self._subject_token_type = subject_token_type
        self._audience = audience
        self._credential = ClientCredential(client_id=client_id, client_secret=client_secret)

    async def obtain(
        self, run: Run, found: Discovery, scopes: tuple[str, ...], key: DpopKey | None
    ) -> tuple[TokenResponse, ClientCredential]:
        """Exchange the token. Raises `SignInError` if the same token comes back, which must not be passed on."""
        subject = await _get_assertion(self._subject_token, found.server.issuer)
        fields = {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": _ACCESS_TOKEN,
            **self.resource_field(found.resource),
            "subject_token": subject,
            "subject_token_type": self._subject_token_type,
            **({} if self._audience is None else {"audience": self._audience}),
            **_scope(scopes),
        }
        token = await run(request_token(found.server, self._credential, fields, time.time(), key))
        url = found.server.token_endpoint
        if token.issued_token_type not in _ACCESS_TOKENS:
            raise SignInError(f"{url} issued another token than an access token")
        if hmac.compare_digest(token.access_token.encode(), subject.encode()):
            raise SignInError(f"{url} returned the token that was to be exchanged, which is not for this server")
        # Another token is got with the newest subject token, so that no access outlives it by a refresh token.
        token = msgspec.structs.replace(token, refresh_token=None)
        return token, ClientCredential(client_id=self._credential.client_id)


def _scope(scopes: tuple[str, ...]) -> dict[str, str]:
    return {"scope": " ".join(scopes)} if scopes else {}


async def _get_assertion(assertion: Assertion, audience: str) -> str:
    if isinstance(assertion, str):
        return assertion
    answer = assertion(audience)
    return await answer if is_awaitable(answer) else answer
