"""Access tokens that the authorization server looks up for each resource server.

https://www.rfc-editor.org/rfc/rfc7662
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

from typedmcp import Principal
from typedmcp.auth import AuthRequest, AuthResponse
from typedmcp.building import FairLimit, check_integer, check_seconds, decode_json, is_object
from typedmcp.errors import SignInError, UsageError
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.server.http.asgi import client_of
from typedmcp_auth.discovery import ServerMetadata
from typedmcp_auth.tokens import ClientCredential, authenticate
from typedmcp_auth.verifiers.cache import VerifiedTokens
from typedmcp_auth.verifiers.claims import Audience, check_issuer, is_time, to_principal
from typedmcp_auth.verifiers.documents import Documents, check_option_url

__all__ = ["IntrospectionVerifier"]

_INACTIVE_SECONDS: Final = 10.0
"""Seconds for which a token that is not valid is remembered."""
_DISCOVERY_SECONDS: Final = 10.0
"""Seconds after a failed discovery until the next one."""
_TIMEOUT: Final = 15.0
"""Seconds that a call waits for an answer, with the time until it is its turn."""


class IntrospectionVerifier:
    """Verifies access tokens by asking the authorization server: `Auth(IntrospectionVerifier(…))`.

    `issuer` is the URL of the authorization server. Its metadata name the endpoint for introspection, unless `endpoint`
    does. `client_id` is this server's identity there, with a `client_secret`, or with a `private_key` (PEM) and its
    `algorithm`.

    `audience` is the URL of the MCP endpoint, or a list of names under which the authorization server knows it; the
    member `aud` must have one. None leaves that to an authorization server that returns no `aud`, and calls a token
    active only for the resource server that it was issued for.

    An answer is used for `cache_seconds`, and never longer than the token is valid: for so long a token that has been
    revoked is accepted. `subject_claim` is the member that identifies the user or program; a token without it is not
    valid. `tls` is the context for requests.

    Tokens cost a client nothing to invent, and each unknown one is a request. There are at most `max_requests` at a
    time, which the addresses of clients take in turn, and `max_waiting` further tokens wait for one. One address has
    at most `limits.client_share_percent` of each. Tokens beyond that get `ConnectionError` at once: status 503.

    Raises `UsageError` for options that make no sense.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str | None = None,
        *,
        audience: str | Sequence[str] | None,
        endpoint: str | None = None,
        private_key: str | None = None,
        algorithm: str = "ES256",
        cache_seconds: float = 60.0,
        subject_claim: str = "sub",
        tls: ssl.SSLContext | None = None,
        max_requests: int = 16,
        max_waiting: int = 256,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        for name, number in (("max_requests", max_requests), ("max_waiting", max_waiting)):
            check_integer(name, number)
            if number < 1:
                raise UsageError(f"{name} must be at least 1, not {number}")
        check_issuer(issuer)
        check_seconds("cache_seconds", cache_seconds)
        check_option_url(issuer if endpoint is None else endpoint, "issuer" if endpoint is None else "endpoint")
        if (client_secret is None) == (private_key is None):
            raise UsageError("the server needs a client_secret or a private_key at the authorization server")
        self.issuer: str = issuer
        """The authorization server whose tokens are accepted."""
        self._credential = ClientCredential(
            client_id=client_id, client_secret=client_secret, private_key=private_key, algorithm=algorithm
        )
        self._audience = None if audience is None else Audience(audience)
        self._endpoint = endpoint
        self._discovery_failed_at = float("-inf")
        self._cache_seconds, self._subject_claim = cache_seconds, subject_claim
        self._limits = limits
        self._documents = Documents(issuer, limits, tls)
        self._cache = VerifiedTokens(limits.verified_token_bytes)
        self._open: dict[bytes, asyncio.Task[Principal | None]] = {}
        self._places = max_requests + max_waiting
        self._place_share = max(1, self._places * limits.client_share_percent // 100)
        self._used: Counter[str | None] = Counter()
        """The tokens that are being looked up or wait for that, by the client that sent them first."""
        self._max_requests = max_requests
        self._slots = self._make_slots()
        self._discovering = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def _make_slots(self) -> FairLimit:
        share = max(1, self._max_requests * self._limits.client_share_percent // 100)
        return FairLimit(self._max_requests, share)

    def __repr__(self) -> str:
        """Leave out the credentials."""
        return f"IntrospectionVerifier({self.issuer!r})"

    def __call__(self, token: str) -> Principal | Awaitable[Principal | None] | None:
        """Return the principal of a token, or None if the token is not valid for this server.

        The awaitable raises `ConnectionError` if the authorization server gives no answer.
        """
        if len(token) > self._limits.access_token_bytes:
            return None
        hashed = self._cache.hash(token)
        entry = self._cache.get(hashed)
        return self._look_up(token, hashed) if entry is None else entry.principal

    async def _look_up(self, token: str, hashed: bytes) -> Principal | None:
        """Ask the authorization server, once for all calls that wait for the same token."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._slots, self._discovering = loop, self._make_slots(), asyncio.Lock()
            self._open.clear()
            self._used.clear()
        task = self._open.get(hashed)
        if task is None:
            client = client_of(None)
            self._check_places(client)
            self._used[client] += 1
            task = self._open[hashed] = asyncio.create_task(self._introspect(token, hashed, client))
            task.add_done_callback(lambda ended: self._forget_open(hashed, client, ended))
        return await asyncio.shield(task)

    def _check_places(self, client: str | None) -> None:
        """Raise `ConnectionError` if too many tokens wait, of all clients or of this one."""
        if len(self._open) >= self._places:
            raise ConnectionError(f"{self.issuer}: {self._places} tokens wait for introspection (max_waiting)")
        if client is not None and self._used[client] >= self._place_share:
            share = f"{self._place_share} tokens of this address wait for introspection"
            raise ConnectionError(f"{self.issuer}: {share} (max_waiting, client_share_percent)")

    def _forget_open(self, hashed: bytes, client: str | None, ended: asyncio.Task[Principal | None]) -> None:
        if self._open.get(hashed) is ended:
            del self._open[hashed]
            self._used[client] -= 1
            if not self._used[client]:
                del self._used[client]
        if not ended.cancelled():
            ended.exception()  # marks it as retrieved: all callers may have been cancelled

    async def _introspect(self, token: str, hashed: bytes, client: str | None) -> Principal | None:
        slots = self._slots
        try:
            async with asyncio.timeout(_TIMEOUT):
                await slots.acquire(client)
                try:
                    response = await self._send(token)
                finally:
                    slots.release(client)
        except TimeoutError:
            raise ConnectionError(f"introspection at {self.issuer}: no answer within {_TIMEOUT:g} s") from None
        except SignInError as error:
            raise ConnectionError(f"introspection at {self.issuer}: {error}") from error
        now = time.time()
        principal = self._to_principal(_read_answer(response, self.issuer), now)
        if principal is None:
            self._cache.put(hashed, None, now + min(_INACTIVE_SECONDS, self._cache_seconds), 0)
            return None
        end = now + self._cache_seconds
        self._cache.put(hashed, principal, min(end, principal.expires or end), len(response.body))
        return principal

    async def _send(self, token: str) -> AuthResponse:
        endpoint = await self._find_endpoint()
        server = ServerMetadata(issuer=self.issuer, token_endpoint=endpoint)
        headers, fields = authenticate(self._credential, server, time.time())
        fields = {**fields, "token": token, "token_type_hint": "access_token"}
        return await self._documents.send(AuthRequest.form(endpoint, fields, {"accept": "application/json", **headers}))

    async def _find_endpoint(self) -> str:
        async with self._discovering:
            if self._endpoint is None:
                if time.monotonic() - self._discovery_failed_at < _DISCOVERY_SECONDS:
                    raise SignInError("the last discovery failed, and is not repeated yet")
                try:
                    found = await self._documents.discover()
                    self._endpoint = self._documents.check_named(found.introspection_endpoint, "introspection_endpoint")
                except BaseException:
                    self._discovery_failed_at = time.monotonic()
                    raise
            return self._endpoint

    def _to_principal(self, answer: Mapping[str, Any], now: float) -> Principal | None:
        """Return the principal of an answer, or None if it says that the token is not valid for this server."""
        if answer.get("active") is not True or answer.get("iss", self.issuer) != self.issuer:
            return None
        if self._audience is not None and not self._audience.includes(answer.get("aud")):
            return None
        expires, begins = answer.get("exp"), answer.get("nbf")
        has_times = all(time is None or is_time(time) for time in (expires, begins))
        if not has_times or (expires is not None and expires <= now) or (begins is not None and begins > now):
            return None
        return to_principal(answer, self.issuer, self._subject_claim, None if expires is None else float(expires))


def _read_answer(response: AuthResponse, issuer: str) -> Mapping[str, Any]:
    """Return the members of an answer. Raises `ConnectionError` if it is none."""
    if response.status != 200:
        raise ConnectionError(f"introspection at {issuer} answered {response.status}: check the client's credentials")
    try:
        answer: Any = decode_json(response.body)
    except ValueError:
        answer = None
    if not is_object(answer):
        raise ConnectionError(f"introspection at {issuer} answered something other than a JSON object")
    return answer
