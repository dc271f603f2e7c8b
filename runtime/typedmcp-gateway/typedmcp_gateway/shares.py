"""Shares of connections to servers, and of the calls over each: no client of the gateway can use all of them."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Final

from typedmcp.building import FairLimit
from typedmcp.client import Target
from typedmcp_gateway.callers import ClientKey, GatewayCaller

__all__ = ["CallShares", "ConnectionNumbers", "ConnectionShares"]

_WAIT_SECONDS: Final = 30.0
"""Seconds that a call waits until its client, or all together, use less."""
_REMEMBERED_CLIENTS: Final = 1000
"""Clients that are remembered although they use nothing, so that their next use finds them."""


class _ClientShares:
    """Admits at most `share` uses of one client at a time; its callers take turns. One that is None has no share.

    `what` describes the limit in the error of a use that waited for too long.
    """

    def __init__(self, share: int, what: str) -> None:
        self.share = share
        self._what = what
        self._limits: dict[ClientKey, FairLimit] = {}

    def used_by(self, client: ClientKey) -> int:
        """Return the number of uses of a client."""
        limit = self._limits.get(client)
        return 0 if limit is None else limit.used

    def try_enter(self, client: ClientKey) -> bool:
        """Begin a use if the client may have it at once. Return whether it has begun."""
        return client is None or (self._limits.get(client) or self._add(client)).try_acquire()

    async def enter(self, client: ClientKey, caller: Hashable) -> None:
        """Begin a use; wait for it if necessary. Raises `RequestTimeoutError` if it waits for too long."""
        if client is None:
            return
        await (self._limits.get(client) or self._add(client)).acquire(caller, _WAIT_SECONDS, self._what)

    def _add(self, client: ClientKey) -> FairLimit:
        if len(self._limits) >= _REMEMBERED_CLIENTS:
            self._limits = {each: limit for each, limit in self._limits.items() if limit.used or limit.waiting}
        limit = self._limits[client] = FairLimit(self.share)
        return limit

    def leave(self, client: ClientKey) -> None:
        """End a use."""
        if client is not None:
            self._limits[client].release()


class CallShares:
    """Counts the calls over one connection: at most `total`, and at most `share` of one client over HTTP.

    `limit` names what `total` comes from. Clients take turns.
    """

    def __init__(self, total: int, share: int, limit: str) -> None:
        names = limit if share == total else f"{limit}, client_share_percent"
        own = f"this client has {share} calls over the connection ({names}): wait for some of them, or cancel them"
        self._clients = _ClientShares(share, own)
        self._all = FairLimit(total)
        self._what = f"all clients together have {total} calls over the connection ({limit}): try again later"

    def try_enter(self, caller: GatewayCaller) -> bool:
        """Begin a call if it may begin at once. Return whether it has begun."""
        if not self._clients.try_enter(caller.client):
            return False
        if self._all.try_acquire():
            return True
        self._clients.leave(caller.client)
        return False

    async def enter(self, caller: GatewayCaller) -> None:
        """Begin a call; wait for it if necessary. Raises `RequestTimeoutError` if it waits for too long."""
        await self._clients.enter(caller.client, caller.key)
        try:
            await self._all.acquire(caller.turn, _WAIT_SECONDS, self._what)
        except BaseException:
            self._clients.leave(caller.client)
            raise

    def leave(self, caller: GatewayCaller) -> None:
        """End a call."""
        self._all.release()
        self._clients.leave(caller.client)


class ConnectionNumbers:
    """Numbers for equal connections that one call uses alone each: a call gets the lowest number that is free."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._count = 0

    def take(self) -> int:
        """Return a number that no other call has."""
        if self._free:
            return heappop(self._free)
        self._count += 1
        return self._count - 1

    def give_back(self, number: int) -> None:
        """Let other calls have a number."""
        heappush(self._free, number)


class ConnectionShares:
    """Counts connections by client and identity. A client has at most `share` of them, in use and idle together.

    `retire` closes the idle connection of a target and an identity. `total` bounds the idle ones that are remembered.
    """

    def __init__(self, share: int, total: int, retire: Callable[[Target, str], None]) -> None:
        what = f"this client uses {share} connections to servers (max_connections, client_share_percent)"
        self._clients = _ClientShares(share, f"{what}: wait for some of its calls, or cancel them")
        """The connections in use, by client."""
        self._total = total
        self._retire = retire
        self._used: Counter[tuple[ClientKey, str]] = Counter()
        """The calls over each connection, by client and identity."""
        self._idle: OrderedDict[tuple[ClientKey, str], Target] = OrderedDict()
        """Connections that were used, the oldest first. The pool may have closed them since."""

    async def enter(self, client: ClientKey, identity: str, caller: Hashable) -> None:
        """Begin a call over a connection of a client. One more connection than its share has to wait.

        Raises `RequestTimeoutError` if it waits for too long.
        """
        key = client, identity
        if not self._used[key]:
            if self._idle.pop(key, None) is None:
                self._make_room(client)
            await self._clients.enter(client, caller)
            if self._used[key]:  # another call of this identity came first
                self._clients.leave(client)
        self._used[key] += 1

    def leave(self, client: ClientKey, identity: str, target: Target) -> None:
        """End a call."""
        key = client, identity
        self._used[key] -= 1
        if self._used[key]:
            return
        del self._used[key]
        self._clients.leave(client)
        self._idle[key] = target
        if len(self._idle) > self._total:
            self._idle.popitem(last=False)

    def _make_room(self, client: ClientKey) -> None:
        """Close the oldest idle connections of a client that has its share."""
        own = [key for key in self._idle if key[0] == client]
        for key in own[: max(0, len(own) + self._clients.used_by(client) + 1 - self._clients.share)]:
            self._retire(self._idle.pop(key), key[1])
