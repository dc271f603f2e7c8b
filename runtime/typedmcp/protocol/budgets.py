"""Budgets: how many bytes the clients of a server can make it keep, in total and each.

A budget does no I/O and reads no clock. It counts what is kept after a message has been handled, or while one waits, so
that a request with an immediate response costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import TypeAlias

from typedmcp.limits import Limits

__all__ = ["CALL_BYTES", "STREAM_BYTES", "Budgets", "ByteBudget", "ClientKey", "ClientUse", "Hold"]

CALL_BYTES = 4 << 10
"""Bytes that a request in progress counts in addition to its message: context, task and response."""
STREAM_BYTES = 16 << 10
"""Bytes that an open event stream counts in addition to its queue."""

_REMEMBERED_CLIENTS = 1024
"""Clients that are remembered although they hold nothing, so that their next request finds them."""

ClientKey: TypeAlias = Hashable
"""The client that bytes are kept for: its principal, its address or its connection. None if it is unknown."""


class ClientUse:
    """The bytes that one client holds of a budget. A client that is unknown has no share."""

    __slots__ = ("client", "excess", "held", "share")

    def __init__(self, client: ClientKey, share: float) -> None:
        self.client: ClientKey = client
        self.excess: float = 0
        """The bytes beyond its share that do not count for all clients together."""
        self.held: int = 0
        self.share: float = share


class ByteBudget:
    """Counts the bytes that are kept for clients. `name` is the limit that `total` comes from.

    A client that holds its share, or any client while all together hold `total`, gets nothing more. What crosses the
    line is still counted, so that one message of any allowed size fits. A client that is unknown has no share.
    With `counts_excess=False`, what a client holds beyond its share does not count for all together, so that one large
    message does not take what is left for others. `on_reached` is called with the name and a text at the first refusal,
    and again only after the use has halved.
    """

    __slots__ = (
        "_counts_excess", "_excess", "_on_reached", "full", "name", "reported", "share", "total", "used", "uses",
    )  # fmt: skip

    def __init__(
        self, name: str, total: int, percent: int, on_reached: Callable[[str, str], None], *, counts_excess: bool = True
    ) -> None:
        self.name: str = name
        self.total: int = total
        self.share: int = max(1, total * percent // 100)
        """Bytes that one client can hold."""
        self.used: int = 0
        """Bytes that all clients hold."""
        self.full: set[ClientKey] = set()
        """The clients that hold their share, and None while all together hold the total."""
        self.uses: dict[ClientKey, ClientUse] = {}
        """What each client holds, of those that `use_of` remembers."""
        self.reported: set[ClientKey] = set()
        """The members of `full` that were refused something, until their use has halved."""
        self._counts_excess = counts_excess
        self._excess: float = 0
        """The bytes beyond the shares of clients that do not count."""
        self._on_reached = on_reached

    def use_of(self, client: ClientKey) -> ClientUse:
        """Return what a client holds: an object that is valid until the client holds nothing and others come."""
        if (use := self.uses.get(client)) is None:
            if len(self.uses) >= _REMEMBERED_CLIENTS:
                self.uses = {client: use for client, use in self.uses.items() if use.held}
            use = self.uses[client] = ClientUse(client, math.inf if client is None else self.share)
        return use

    def admits(self, client: ClientKey) -> bool:
        """Return whether a client may hold more, and report the first refusal."""
        reached = client if client in self.full else None
        if reached not in self.full:
            return True
        if reached not in self.reported:
            self.reported.add(reached)
            self._on_reached(self.name, self._describe(reached))
        return False

    def _describe(self, reached: ClientKey) -> str:
        if reached is None:
            return f"all clients together hold {self.used} bytes; the limit is {self.total}"
        return f"{reached!a} holds {self.held_by(reached)} bytes; its share is {self.share} of {self.total}"

    def held_by(self, client: ClientKey) -> int:
        """Return how many bytes a client holds."""
        use = self.uses.get(client)
        return 0 if use is None else use.held

    def take(self, client: ClientKey, size: int) -> bool:
        """Count bytes for a client. False if it gets nothing more."""
        if self.full and not self.admits(client):
            return False
        self.count(client, size)
        return True

    def count(self, client: ClientKey, size: int) -> None:
        """Count bytes of a client that cannot be refused; a negative number gives bytes back."""
        self.add(self.use_of(client), size)

    def add(self, use: ClientUse, size: int) -> None:
        """Count bytes that cannot be refused; a negative number gives bytes back."""
        self.used += size
        use.held += size
        if self.used >= self.total or use.held >= use.share or self.full or self.reported:
            self.settle(use)

    def settle(self, use: ClientUse) -> None:
        """Decide whether a client, and all together, hold as much as they may."""
        if not self._counts_excess:
            excess = max(0, use.held - use.share)  # its client is in `full` while there is any: each change comes here
            self._excess += excess - use.excess
            use.excess = excess
        self._settle(None, self.used - self._excess, self.total)
        if use.client is not None:
            self._settle(use.client, use.held, self.share)

    def _settle(self, client: ClientKey, held: float, limit: int) -> None:
        (self.full.add if held >= limit else self.full.discard)(client)
        if held <= limit // 2:
            self.reported.discard(client)


class Hold:
    """The bytes that one request, stream or listener holds of a budget, until it is closed."""

    __slots__ = ("_budget", "_client", "_is_closed", "size")

    def __init__(self, budget: ByteBudget, client: ClientKey) -> None:
        self._budget = budget
        self._client = client
        self._is_closed = False
        self.size: int = 0

    @property
    def is_full(self) -> bool:
        """True if its client gets nothing more. Unlike `ByteBudget.admits` it reports nothing."""
        full = self._budget.full
        return bool(full) and (self._client in full or None in full)

    def take(self, size: int) -> bool:
        """Hold more bytes. False if the client gets nothing more."""
        if self._is_closed or not self._budget.admits(self._client):
            return False
        self.add(size)
        return True

    def add(self, size: int) -> None:
        """Hold bytes that cannot be refused; a negative number gives bytes back."""
        if not self._is_closed:
            self.size += size
            self._budget.count(self._client, size)

    def close(self) -> None:
        """Give everything back. Further calls do nothing."""
        if not self._is_closed:
            self.add(-self.size)
            self._is_closed = True

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Budgets:
    """The budgets of one server, which all its connections and sessions share."""

    __slots__ = ("calls", "streams", "subscriptions")

    def __init__(self, limits: Limits, on_reached: Callable[[str, str], None]) -> None:
        def budget(name: str, total: int) -> ByteBudget:
            return ByteBudget(name, total, limits.client_share_percent, on_reached, counts_excess=False)

        self.calls: ByteBudget = budget("call_bytes", limits.call_bytes)
        """Requests in progress, and responses that wait for their client."""
        self.streams: ByteBudget = budget("stream_bytes", limits.stream_bytes)
        """Event streams and their queues."""
        self.subscriptions: ByteBudget = budget("subscription_bytes", limits.subscription_bytes)
        """URIs that listeners and sessions are subscribed to."""

    def in_use(self) -> dict[str, int]:
        """Return the bytes in use, by the name of the limit."""
        return {budget.name: budget.used for budget in (self.calls, self.streams, self.subscriptions)}
