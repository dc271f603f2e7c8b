"""The tokens of one server: kept, renewed, and obtained by a flow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from typedmcp.auth import AccessGrant, AuthRequest, AuthResponse, ProtectedServer
from typedmcp.building import decode_json, visible
from typedmcp.errors import AuthorizationRequiredError, SignInError
from typedmcp_auth.challenge import Challenge, find_challenge
from typedmcp_auth.discovery import Deviation, Discovery, ServerMetadata, Steps, discover, discover_server
from typedmcp_auth.dpop import ALGORITHMS, BoundToken, DpopKey, choose_algorithm
from typedmcp_auth.storage import TokenStorage
from typedmcp_auth.tokens import ClientCredential, RefusedError, TokenResponse, request_token
from typedmcp_auth.urls import origin_of, require_safe_server

__all__ = ["Flow", "Run", "SignInSession", "client_key", "decode_stored"]

_EARLY_SECONDS: Final = 60.0
"""Seconds before its end at which a token is renewed; at most a tenth of its lifetime."""

_SHORTEST_LIFETIME: Final = 1.0
_LONGEST_LIFETIME: Final = 1e9
"""Seconds of a lifetime that is taken to be meant."""

_RETRY_SECONDS: Final = 10.0
"""Seconds after which an early renewal that failed is tried again."""

_NOTHING: Final = AuthResponse(0, b"")
"""Given to a flow for a deviation."""

_FINISH_SECONDS: Final = 10.0
"""Seconds that a cancelled request with a refresh token gets to end, since the token may be used only once."""

T = TypeVar("T")
S = TypeVar("S", bound=Struct)


class Run(Protocol):
    """Carries out the steps of a flow."""

    async def __call__(self, steps: Steps[T], /) -> T:
        """Return the outcome of the steps."""
        ...


class Flow(Protocol):
    """A way to get tokens."""

    needs_person: bool
    """True if a person takes part. Without one, another token can be got at any time."""
    issuer: str | None
    scopes: tuple[str, ...]
    client_id: str | None
    storage: TokenStorage
    dpop: bool | None
    """True binds tokens to a key, False never does. None: if both servers support it."""

    async def obtain(
        self, run: Run, found: Discovery, scopes: tuple[str, ...], key: DpopKey | None
    ) -> tuple[TokenResponse, ClientCredential]:
        """Get a token, to be bound to `key`. Raises `SignInError`."""
        ...

    def resource_field(self, resource: str) -> dict[str, str]:
        """Return the parameter `resource` for a request, if the authorization server is to get it."""
        ...


class StoredGrant(Struct, kw_only=True, omit_defaults=True):
    """A token and what is needed to renew it, as it is stored."""

    issuer: str
    resource: str
    credential: ClientCredential
    access_token: str
    refresh_token: str | None = None
    renew_at: float | None = None
    scopes: tuple[str, ...] = ()
    """The scopes that have been requested."""
    flow: str = "OAuth"
    """The class of the flow that got the token."""
    dpop_key: str | None = None
    """The private key that the tokens are bound to. None for bearer tokens."""

    def __repr__(self) -> str:
        return f"StoredGrant(issuer={self.issuer!r}, resource={self.resource!r})"

    def to_access(self, key: DpopKey | None) -> AccessGrant:
        """Return the headers for requests to the server. `key` is the one that the token is bound to."""
        if key is None:
            return AccessGrant({"authorization": f"Bearer {self.access_token}"}, self.renew_at)
        headers = {"authorization": f"DPoP {self.access_token}"}
        return AccessGrant(headers, self.renew_at, BoundToken(key, self.access_token))


class SignInSession:
    """Implements `Authorization` for one server."""

    def __init__(self, flow: Flow, server: ProtectedServer) -> None:
        require_safe_server(server.url)
        self._flow = flow
        self._server = server
        self._key = f"token {origin_of(server.url)}{urlsplit(server.url).path}"
        self._sent: str | None = None
        """The access token that was returned last."""
        self._last_step = ""
        self._nonces: dict[str, str] = {}
        """The last nonces of the servers, for the proofs of all keys."""

    async def authorize(
        self, rejected: AuthorizationRequiredError | None, *, is_retry: bool = False
    ) -> AccessGrant | None:
        """Return a token. See `Authorization`."""
        grant = await self._load()
        if rejected is None and (grant is None or not _is_due(grant)):
            return self._use(grant)
        async with self._flow.storage.lock(self._key):
            known = await self._load()
            if known is not None and known.access_token != self._sent and not _is_due(known):
                return self._use(known)  # another client has renewed it
            if rejected is None:
                return self._use(await self._renew_early(known))
            return self._use(await self._replace(known, rejected, is_retry=is_retry))

    def _use(self, grant: StoredGrant | None) -> AccessGrant | None:
        self._sent = None if grant is None else grant.access_token
        return None if grant is None else grant.to_access(self._key_of(grant))

    def _key_of(self, grant: StoredGrant) -> DpopKey | None:
        return None if grant.dpop_key is None else DpopKey.load(grant.dpop_key, self._nonces)

    async def _load(self) -> StoredGrant | None:
        grant = decode_stored(await self._flow.storage.load(self._key), StoredGrant)
        if grant is None or grant.flow != type(self._flow).__name__:
            return None
        is_other_client = self._flow.client_id not in (None, grant.credential.client_id)
        is_other_kind = self._flow.dpop not in (None, grant.dpop_key is not None)
        try:
            self._key_of(grant)
        except ValueError:  # the stored key is damaged
            return None
        return None if is_other_client or is_other_kind else grant

    async def _save(self, grant: StoredGrant) -> None:
        grant.flow = type(self._flow).__name__
        await self._flow.storage.save(self._key, msgspec.json.encode(grant))

    async def run(self, steps: Steps[T]) -> T:
        """Carry out the steps of a flow."""
        try:
            step = next(steps)
            while True:
                try:
                    response = await self._carry_out(step)
                except SignInError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
        except StopIteration as end:
            outcome: T = end.value
            return outcome

    async def _carry_out(self, step: AuthRequest | Deviation) -> AuthResponse:
        if isinstance(step, AuthRequest):
            return await self._server.fetch(step)
        if not self._server.tolerate(step.text):
            raise SignInError(step.text)
        return _NOTHING

    # Renewal

    async def _renew_early(self, grant: StoredGrant | None) -> StoredGrant | None:
        """Renew a token that is about to expire, if no person has to sign in for that.

        If it fails, the token is used for as long as the server accepts it.
        """
        if grant is None or (grant.refresh_token is None and self._flow.needs_person):
            return grant
        try:
            if grant.refresh_token is None:
                found = await self._discover(None, grant)
                return await self._obtain(grant, found, None) if found.server.issuer == grant.issuer else grant
            return await self._renew(grant, await self.run(discover_server(grant.issuer, self._server.url)))
        except SignInError as error:
            if isinstance(error, RefusedError) and grant.refresh_token is not None:
                grant.renew_at = None  # some servers refuse it until the token has expired: it is tried once more then
                await self._save(grant)
                return grant
            grant.renew_at = time.time() + _RETRY_SECONDS
            return grant

    async def _discover(self, challenge: Challenge | None, grant: StoredGrant | None) -> Discovery:
        known = None if grant is None else grant.issuer
        return await self.run(discover(self._server.url, challenge, self._flow.issuer, known))

    async def _replace(
        self, grant: StoredGrant | None, rejected: AuthorizationRequiredError, *, is_retry: bool
    ) -> StoredGrant | None:
        """Get another token in place of one that the server rejected, or return None if none would be better."""
        challenge = find_challenge(rejected.challenge)
        is_known = grant is not None and grant.access_token == self._sent
        if rejected.status == 403 and not _can_step_up(grant, challenge):
            return None
        if is_known and challenge is not None and challenge.is_about_proof:
            return None  # such as by a clock that is wrong, which another token does not mend
        if rejected.status == 401 and is_retry and self._last_step == "obtain":
            return None
        found = await self._discover(challenge, grant)
        if grant is not None and grant.issuer != found.server.issuer:
            self._check_moved(grant, found)
            grant = None
        may_refresh = rejected.status == 401 and not (is_retry and self._last_step == "refresh")
        if grant is not None and found.requires_dpop and grant.dpop_key is None:
            may_refresh = False  # the new token would be a bearer token, too
        if grant is not None and is_known and may_refresh and grant.refresh_token is not None:
            renewed = await self._refresh(grant, found.server)
            if renewed is not None:
                return renewed
        return await self._obtain(grant, found, challenge)

    def _check_moved(self, grant: StoredGrant, found: Discovery) -> None:
        if self._flow.client_id is not None:
            was, now = grant.issuer, found.server.issuer
            raise SignInError(f"the authorization server was {was} and is now {now}: register the client there")

    async def _refresh(self, grant: StoredGrant, server: ServerMetadata) -> StoredGrant | None:
        """Use the refresh token, or return None if it is refused: servers have many codes for one that has ended."""
        try:
            return await self._renew(grant, server)
        except RefusedError as error:
            if error.code in ("invalid_client", "unauthorized_client"):  # it has forgotten the client
                await self._flow.storage.save(client_key(server.issuer), None)
            await self._flow.storage.save(self._key, None)
            return None

    async def _renew(self, grant: StoredGrant, server: ServerMetadata) -> StoredGrant:
        """Use the refresh token. Raises `RefusedError`."""
        assert grant.refresh_token is not None
        self._last_step = "refresh"
        fields = {
            "grant_type": "refresh_token",
            "refresh_token": grant.refresh_token,
            **self._flow.resource_field(grant.resource),
        }

        async def work() -> StoredGrant:
            key = self._key_of(grant)
            token = await self.run(request_token(server, grant.credential, fields, time.time(), key))
            renewed = _to_grant(token, server.issuer, grant.resource, grant.credential, grant.scopes)
            self._bind(renewed, token, key, is_required=key is not None)
            renewed.refresh_token = renewed.refresh_token or grant.refresh_token
            await self._save(renewed)
            return renewed

        return await _finish(work())

    async def _obtain(self, grant: StoredGrant | None, found: Discovery, challenge: Challenge | None) -> StoredGrant:
        demanded = challenge.scopes if challenge is not None else ()
        if grant is not None and grant.scopes:
            asked = (*self._flow.scopes, *grant.scopes, *demanded)
        else:
            asked = self._flow.scopes or demanded or found.scopes
        scopes = tuple(dict.fromkeys(asked))
        key = self._make_key(found) if grant is None or grant.dpop_key is None else self._key_of(grant)
        try:
            token, credential = await self._flow.obtain(self.run, found, scopes, key)
        except SignInError as error:
            if not found.is_assumed:
                raise
            text = f"{found.server.issuer} has no metadata of an authorization server, and {error.args[0]}"
            raise SignInError(text, error.code) from None
        self._last_step = "obtain"
        obtained = _to_grant(token, found.server.issuer, found.resource, credential, scopes)
        self._bind(obtained, token, key, is_required=self._flow.dpop is True or found.requires_dpop)
        await self._save(obtained)
        return obtained

    # Keys

    def _make_key(self, found: Discovery) -> DpopKey | None:
        """Return a new key to bind tokens to, or None for bearer tokens.

        Raises `SignInError` if a key is needed and impossible, or possible and not wanted.
        """
        wanted, server = self._flow.dpop, found.server
        if wanted is False or (wanted is None and found.dpop_algorithms is None):
            if found.requires_dpop:
                raise SignInError(f"{self._server.url} only takes tokens that are bound to a key, and dpop=False")
            return None
        offered = server.dpop_signing_alg_values_supported
        algorithm = choose_algorithm(offered, found.dpop_algorithms) if offered else None
        if algorithm is not None:
            return DpopKey.generate(algorithm, self._nonces)
        if wanted is None and not found.requires_dpop:
            return None
        known = ", ".join(ALGORITHMS)
        raise SignInError(f"tokens should be bound to a key (DPoP), but {server.issuer} takes no proofs with {known}")

    def _bind(self, grant: StoredGrant, token: TokenResponse, key: DpopKey | None, *, is_required: bool) -> None:
        """Store the key with a token that is bound to it. Raises `SignInError` for a token of another type."""
        kind = token.token_type.lower()
        if kind == "dpop" and key is not None:
            grant.dpop_key = key.dump()
        elif kind != "bearer":
            expected = "Bearer" if key is None else "DPoP or Bearer"
            shown = visible(token.token_type, 50)
            raise SignInError(f"{grant.issuer}: the token has the type {shown!r}, expected {expected}")
        elif is_required:
            raise SignInError(f"{grant.issuer}: the token is not bound to the key of the client")


def client_key(issuer: str) -> str:
    """Return the key of the storage for the client's registration at an authorization server."""
    return f"client {issuer}"


def decode_stored(value: bytes | None, kind: type[S]) -> S | None:
    """Decode what is stored, or return None if it was written by another version, or is damaged."""
    try:
        stored: S | None = None if value is None else decode_json(value, kind)
    except ValueError:
        return None
    return stored


def _is_due(grant: StoredGrant) -> bool:
    return grant.renew_at is not None and time.time() >= grant.renew_at


def _can_step_up(grant: StoredGrant | None, challenge: Challenge | None) -> bool:
    """Return whether a challenge asks for scopes that have not been requested yet."""
    if challenge is None or challenge.parameters.get("error") != "insufficient_scope":
        return False
    return not set(challenge.scopes) <= set(() if grant is None else grant.scopes)


def _to_grant(
    token: TokenResponse, issuer: str, resource: str, credential: ClientCredential, scopes: tuple[str, ...]
) -> StoredGrant:
    seconds = _read_lifetime(token.expires_in)
    renew_at = None if seconds is None else time.time() + seconds - min(_EARLY_SECONDS, seconds / 10)
    return StoredGrant(
        issuer=issuer,
        resource=resource,
        credential=credential,
        access_token=token.access_token,
        refresh_token=token.refresh_token,
        renew_at=renew_at,
        scopes=scopes,
    )


def _read_lifetime(value: float | str | None) -> float | None:
    """Return seconds, or None if they are unknown: the server then says when the token has expired."""
    try:
        seconds = float(value or 0)
    except ValueError:
        return None
    return seconds if _SHORTEST_LIFETIME <= seconds <= _LONGEST_LIFETIME else None


async def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Await something. If the caller is cancelled, let it end first, for some seconds."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            await asyncio.wait([task], timeout=_FINISH_SECONDS)
        finally:
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks it as retrieved
        raise
