"""The connections to servers that belong to one client of the gateway each: none of the clients can use all of them."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from typedmcp.client.targets import Target
from typedmcp.client.turns import FairLimit

__all__ = ["ConnectionShares"]

_WAIT_SECONDS: Final = 30.0
"""Seconds that a call waits until its client uses fewer connections."""


class ConnectionShares:
    """Counts connections by client and identity. A client has at most `share` of them, in use and idle together.

    `retire` closes the idle connection of a target and an identity. `total` bounds the idle ones that are remembered.
    """

    def __init__(self, share: int, total: int, retire: Callable[[Target, str], None]) -> None:
        self._share = share
        self._total = total
        self._retire = retire
        self._used: Counter[tuple[Hashable, str]] = Counter()
        """The calls over each connection, by client and identity."""
        self._limits: dict[Hashable, FairLimit] = {}
        """The connections in use, by client."""
        self._idle: OrderedDict[tuple[Hashable, str], Target] = OrderedDict()
        """Connections that were used, the oldest first. The pool may have closed them since."""

    async def enter(self, client: Hashable, identity: str, caller: Hashable) -> None:
        """Begin a call over a connection of a client. One more connection than its share has to wait.

        Raises `RequestTimeoutError` if it waits for too long.
        """
        key = client, identity
        if not self._used[key]:
            limit = self._limits.setdefault(client, FairLimit(self._share))
            if self._idle.pop(key, None) is None:
                self._make_room(client, limit)
            what = f"the client uses {self._share} connections (max_connections, client_share_percent)"
            try:
                await limit.acquire(caller, _WAIT_SECONDS, what)
            finally:
                self._drop_unused(client, limit)
            if self._used[key]:  # another call of this identity came first
                limit.release()
        self._used[key] += 1

    def leave(self, client: Hashable, identity: str, target: Target) -> None:
        """End a call."""
        key = client, identity
        self._used[key] -= 1
        if self._used[key]:
            return
        del self._used[key]
        limit = self._limits[client]
        limit.release()
        self._drop_unused(client, limit)
        self._idle[key] = target
        if len(self._idle) > self._total:
            self._idle.popitem(last=False)

    def _make_room(self, client: Hashable, limit: FairLimit) -> None:
        """Close the oldest idle connections of a client that has its share."""
        own = [key for key in self._idle if key[0] == client]
        for key in own[: max(0, len(own) + limit.used + 1 - self._share)]:
            self._retire(self._idle.pop(key), key[1])

    def _drop_unused(self, client: Hashable, limit: FairLimit) -> None:
        if not limit.used and not limit.waiting:
            self._limits.pop(client, None)
