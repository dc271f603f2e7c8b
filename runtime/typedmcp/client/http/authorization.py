"""The credentials of requests to one server: where they come from, and when they are renewed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from typedmcp.errors import AuthorizationRequiredError, SignInError, UsageError
from typedmcp.transports.concurrency import is_awaitable
from typedmcp.transports.deadlines import Timer

if TYPE_CHECKING:
    from typedmcp.auth import Authorization, Authorizer, RequestSigner

__all__ = ["MAX_RESENDS", "Credentials", "CredentialsManager", "check_header", "pause_timer"]

AuthValue: TypeAlias = "str | Mapping[str, str] | None"
"""A bearer token, or headers with credentials. None if there are none."""

Credentials: TypeAlias = (
    "str | Callable[[AuthorizationRequiredError | None], AuthValue | Awaitable[AuthValue]] | Authorizer"
)
"""A bearer token, an authorizer such as `typedmcp_auth.OAuth()`, or a function that returns a token or headers.

The function is called with None first, and after that with the error of each request that the server rejected.
"""

_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

_MAX_ATTEMPTS: Final = 3
"""Tokens that are got for one request: renewed, obtained, and obtained with more scopes."""

MAX_RESENDS: Final = 16
"""Times that one request is sent again, with tokens that were got for it and for other requests."""


def check_header(name: str, value: object) -> None:
    """Raise `UsageError` for a name or a value that a header cannot have."""
    if not isinstance(value, str) or not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise UsageError(f"headers: {name!r} is not a valid header, or its value is not")


@contextmanager
def pause_timer(timer: Timer | None) -> Generator[None]:
    """Stop a timer while a person signs in."""
    deadline = None if timer is None or timer.expired() else timer.when()
    if timer is None or deadline is None:
        yield
        return
    start = asyncio.get_running_loop().time()
    timer.reschedule(None)
    try:
        yield
    finally:
        timer.reschedule(deadline + asyncio.get_running_loop().time() - start)


class CredentialsManager:
    """Provides the headers with credentials. One renewal serves all requests that wait for it.

    `on_change` is called after each change, with whether the new credentials replaced others.
    """

    def __init__(
        self, auth: Credentials | None, authorization: Authorization | None, on_change: Callable[[bool], None]
    ) -> None:
        self.headers: dict[str, str] | None = None
        """The current headers. None before they are first needed."""
        self.signer: RequestSigner | None = None
        """Signs each request with the key that the token is bound to."""
        self.renew_at: float | None = None
        """The time from which they should be renewed before a request."""
        self.is_signing_in: bool = False
        self.tolerate: Callable[[str], bool] = bool
        """Called with each deviation of an authorization server from the standards. False refuses it."""
        self.attempts: int = 1 if authorization is None else _MAX_ATTEMPTS
        self._auth = auth
        self._authorization = authorization
        self._on_change = on_change
        self._lock = asyncio.Lock()
        self._failure: tuple[dict[str, str] | None, SignInError] | None = None
        """The headers for which the last renewal failed, and its error."""

    async def prepare(self) -> None:
        """Get the first credentials, or renew them before they expire."""
        async with self._lock:
            if self.headers is None or (self.renew_at is not None and time.time() >= self.renew_at):
                await self._renew(None, is_retry=False)

    async def replace(
        self, used: dict[str, str] | None, rejected: AuthorizationRequiredError, timer: Timer | None, *, is_retry: bool
    ) -> bool | None:
        """Get other credentials than the rejected ones.

        Return True if this call got them, False if another request had done so, and None if there are none to try.
        """
        failure = self._failure
        with pause_timer(None if self._authorization is None else timer):  # functions have the time of the call
            async with self._lock:
                if used is not self.headers:
                    return False
                if self._failure is not failure and self._failure is not None and self._failure[0] is used:
                    raise SignInError(str(self._failure[1].args[0]), self._failure[1].code)
                return await self._sign_in(used, rejected, is_retry=is_retry) or None

    async def _sign_in(
        self, used: dict[str, str] | None, rejected: AuthorizationRequiredError, *, is_retry: bool
    ) -> bool:
        self.is_signing_in = self._authorization is not None
        try:
            return await self._renew(rejected, is_retry=is_retry)
        except SignInError as error:
            self._failure = (used, error)
            raise
        finally:
            self.is_signing_in = False

    async def _renew(self, rejected: AuthorizationRequiredError | None, *, is_retry: bool) -> bool:
        """Get credentials from the option `auth`. Return whether there are new ones to try."""
        if self._authorization is not None:
            grant = await self._authorization.authorize(rejected, is_retry=is_retry)
            value: AuthValue = None if grant is None else grant.headers
            self.renew_at = None if grant is None else grant.renew_at
            signer = None if grant is None else grant.signer
        else:
            value, signer = await self._ask(rejected), None
        if rejected is not None and value is None:
            return False
        if isinstance(value, str):  # a token, or all of the header
            value = {"authorization": value if value[:7].lower() == "bearer " else f"Bearer {value}"}
        headers = dict(value or {})
        for name, text in headers.items():
            check_header(name, text)
        is_change = self.headers not in (None, headers)
        self.headers, self.signer = headers, signer
        self._on_change(is_change)
        return True

    async def _ask(self, rejected: AuthorizationRequiredError | None) -> AuthValue:
        auth = self._auth
        if auth is None or isinstance(auth, str):
            return auth if rejected is None else None
        assert callable(auth)
        returned = auth(rejected)
        return await returned if is_awaitable(returned) else returned
