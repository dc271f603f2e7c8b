"""Principals: users and programs that access tokens are issued to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from typedmcp.errors import UsageError

__all__ = ["Principal", "check_scopes"]

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""https://www.rfc-editor.org/rfc/rfc6749#section-3.3"""


def check_scopes(name: str, scopes: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes that requests need. Raises `UsageError` for a value that is no list of them."""
    if isinstance(scopes, str):
        raise UsageError(f"{name} must be a list, such as {scopes.split()!r}, not a string")
    for scope in scopes:
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"{name}: {scope!r} is not a scope; expected a text without spaces, such as 'files:write'")
        if scope == "offline_access":
            raise UsageError(f"{name}: offline_access is between clients and authorization servers, not for requests")
    return tuple(dict.fromkeys(scopes))


class Principal(msgspec.Struct, frozen=True):
    """The user or program that an access token was issued to. Handlers read it as `ctx.principal`.

    Two principals are the same if their `issuer` and their `subject` are.
    """

    subject: str
    """Identifies the user or program at the issuer."""
    scopes: frozenset[str] = frozenset()
    """The scopes of the token, with those that they imply."""
    expires: float | None = None
    """The time until which the token is valid, in seconds since 1970; None if it has no end."""
    issuer: str | None = None
    """The authorization server that issued the token."""
    client_id: str | None = None
    """The OAuth client that the token was issued to."""
    claims: Mapping[str, Any] = {}
    """All members of the token or of its introspection, as the authorization server wrote them."""

    def __post_init__(self) -> None:
        if not isinstance(self.scopes, frozenset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"scopes must be a frozenset, such as frozenset({{'files:read'}}), not {self.scopes!r}")

    @property
    def key(self) -> str:
        """A text that identifies the principal: sessions, signed states and budgets belong to it."""
        if self.issuer is None and " " not in self.subject:
            return self.subject
        return f"{self.issuer or ''} {self.subject}"  # an issuer is a URL, so the first space ends it

    def __repr__(self) -> str:
        """Leave out the claims, which may be personal."""
        return f"Principal({self.subject!r}, issuer={self.issuer!r}, scopes={sorted(self.scopes)!r})"
