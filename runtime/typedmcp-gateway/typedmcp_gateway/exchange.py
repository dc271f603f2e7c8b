"""Exchange of the tokens of callers: each principal gets credentials of its own at each server.

The token of a caller was issued for the gateway. It goes to the authorization server that exchanges it, and nowhere
else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from typedmcp import Context, Principal
from typedmcp.auth import Authorizer
from typedmcp.errors import SignInError

__all__ = ["ExchangeOf", "ExchangedCredentials"]

_MAX_PRINCIPALS: Final = 10_000
"""Principals whose tokens and credentials are remembered, those that called last."""

ExchangeOf: TypeAlias = Callable[[Principal, str, Callable[[str], str]], Authorizer | None]
"""Returns what gets the tokens of a principal at the server with a name, such as a `typedmcp_auth.TokenExchange`.

None is for a server that needs no such token. The third argument returns the newest token of the principal: it is the
`subject_token` of the exchange.
"""


class _Caller:
    """A principal, as far as it has called."""

    __slots__ = ("credentials", "token")

    def __init__(self) -> None:
        self.token = ""
        self.credentials: dict[str, Any] = {}
        """The exchange at each server."""


class ExchangedCredentials:
    """The `credentials` of a gateway that exchanges the tokens of its callers."""

    def __init__(self, exchange: ExchangeOf) -> None:
        self._exchange = exchange
        self._callers: OrderedDict[str, _Caller] = OrderedDict()

    def remember(self, ctx: Context) -> None:
        """Keep the token of a request for the exchange."""
        principal = ctx.principal
        if principal is None:
            return
        _, _, token = ctx.headers.get("authorization", "").strip().partition(" ")
        if token:
            self._caller(principal).token = token.strip()

    def __call__(self, principal: Principal | None, server: str) -> Any:
        """Return the exchange of a principal at a server. It is made once, so that it keeps the token that it gets."""
        if principal is None:
            return None
        caller = self._caller(principal)
        if server not in caller.credentials:

            def newest(_issuer: str) -> str:
                if not caller.token:
                    raise SignInError("the request of the caller had no token that could be exchanged")
                return caller.token

            caller.credentials[server] = self._exchange(principal, server, newest)
        return caller.credentials[server]

    def _caller(self, principal: Principal) -> _Caller:
        caller = self._callers.get(principal.key)
        if caller is None:
            caller = self._callers[principal.key] = _Caller()
            if len(self._callers) > _MAX_PRINCIPALS:
                self._callers.popitem(last=False)
        else:
            self._callers.move_to_end(principal.key)
        return caller
