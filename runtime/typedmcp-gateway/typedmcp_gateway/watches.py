"""Subscriptions at servers, for as long as clients of the gateway want them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from typedmcp import Changes, Diagnostic, DiagnosticKind, Subscription
from typedmcp.errors import Error
from typedmcp.services import Change
from typedmcp_gateway.callers import CallerKey, ClientKey, GatewayCaller
from typedmcp_gateway.servers import GatewayServer, Leases, encode_identity

__all__ = ["LIST_CHANGES", "ChangeMerger", "Holder", "Watches", "announced_lists"]

LIST_CHANGES: Final[tuple[Change, ...]] = ("tools", "prompts", "resources")
_MERGE_SECONDS: Final = 0.02
"""Seconds in which equal changes, which several connections to a server report, are merged."""
_FIRST_PAUSE: Final = 0.2
_MAX_PAUSE: Final = 10.0

_MAX_WATCHES: Final = 500
"""Subscriptions at a time over one connection to a server."""

Holder = object
"""A user of watches: a request or a client."""


def announced_lists(server: GatewayServer) -> set[Change]:
    """Return the lists whose changes a server announces."""
    if server.description is None:
        return set()
    capabilities = server.description.capabilities
    return {name for name in LIST_CHANGES if (has := getattr(capabilities, name)) is not None and has.list_changed}


class ChangeMerger:
    """Publishes changes to the clients of the gateway. Equal changes within a moment are published once."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._waiting: dict[tuple[Change, str | None], None] = {}

    def publish(self, change: Change, uri: str | None = None) -> None:
        """Publish a change in a moment."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(_MERGE_SECONDS, self._flush)
        self._waiting[(change, uri)] = None

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for change, uri in waiting:
            if uri is not None:
                self._changes.resource_updated(uri)
            else:
                getattr(self._changes, f"{change}_changed")()


@dataclass(eq=False)
class _Watch:
    server: GatewayServer
    caller: GatewayCaller
    capabilities: Mapping[str, Any]
    uri: str | None
    """The resource to watch; None for the lists."""
    wants_logs: bool
    """True if the client wants log messages, so that its calls have a connection of their own."""
    owner: CallerKey
    """The identity of its connection; empty for that which all clients share."""
    holders: dict[Holder, ClientKey] = field(default_factory=dict[Holder, ClientKey])
    """The users of the watch, and the client that each counts for."""
    granted: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """True if the server sends the changes. Set once that is known."""
    task: asyncio.Task[None] | None = None


class Watches:
    """Keeps one subscription for each server, client and resource, and counts who wants it.

    A subscription keeps a connection open. So that calls find one, subscriptions take half of the `max_connections`.
    One client over HTTP has `percent` of the places.
    """

    def __init__(
        self,
        leases: Leases,
        merger: ChangeMerger,
        report: Callable[[Diagnostic], None],
        max_connections: int,
        percent: int,
    ) -> None:
        self._leases = leases
        self._merger = merger
        self._report = report
        self._watches: dict[tuple[str, CallerKey, str | None], _Watch] = {}
        self._max_connections = max(1, max_connections // 2)
        self._connection_share = max(1, self._max_connections * percent // 100)
        self._resource_share = max(1, _MAX_WATCHES * percent // 100)
        self._connections: dict[tuple[str, CallerKey], tuple[bool, ClientKey]] = {}
        """For each server and identity, whether its connection is its own, and its first client."""
        self._numbers: Counter[tuple[str, CallerKey]] = Counter()
        """The subscriptions of each server and identity."""
        self._resources: Counter[ClientKey] = Counter()
        """The resources that each client wants."""
        self._owners: dict[tuple[Holder, str], CallerKey] = {}
        """The identity of the connection that reports the changes of a resource to a holder."""
        self._has_reported = False
        """True once a refusal was reported, until something is released."""

    def hold(
        self,
        holder: Holder,
        server: GatewayServer,
        caller: GatewayCaller,
        capabilities: Mapping[str, Any],
        uri: str | None = None,
        *,
        wants_logs: bool,
    ) -> asyncio.Future[bool]:
        """Subscribe to a resource of a server, or to its lists, until the holder releases it.

        The result is True once the server sends changes, and False if it does not grant them, or if there is no room.
        """
        wants_logs = wants_logs and caller.is_alone
        is_shared = server.is_stateless and not wants_logs
        owner = self._leases.owner_of(caller) if is_shared else caller.key
        if not server.is_stateless:  # a session has the capabilities that it began with
            owner = (*owner, encode_identity([capabilities]))
        is_own = bool(owner)
        key = (server.name, owner, uri)
        watch = self._watches.get(key)
        if watch is not None and holder in watch.holders:
            return watch.granted
        if (reason := self._find_limit(key, caller.client, is_own=is_own, is_new=watch is None)) is not None:
            return self._refuse(f"server {server.name!r}: no further subscription: {reason}")
        if watch is None:
            self._connections.setdefault(key[:2], (is_own, caller.client))
            self._numbers[key[:2]] += 1
            own: Mapping[str, Any] = {} if server.is_stateless else capabilities
            watch = self._watches[key] = _Watch(server, caller, own, uri, wants_logs, owner)
            watch.task = asyncio.get_running_loop().create_task(self._run(watch))
        watch.holders[holder] = caller.client
        if uri is not None:
            self._owners[(holder, uri)] = owner
        self._resources[caller.client] += uri is not None
        return watch.granted

    def _find_limit(
        self, key: tuple[str, CallerKey, str | None], client: ClientKey, *, is_own: bool, is_new: bool
    ) -> str | None:
        """Return the limit that a further subscription would exceed, or None."""
        if is_new and key[:2] not in self._connections and is_own:
            clients = [each for is_own, each in self._connections.values() if is_own]
            if len(clients) >= self._max_connections:
                return f"subscriptions use {len(clients)} connections (max_connections)"
            if client is not None and clients.count(client) >= self._connection_share:
                return f"the client uses {self._connection_share} connections for them (client_share_percent)"
        if is_new and self._numbers[key[:2]] >= _MAX_WATCHES:
            return f"the connection has {_MAX_WATCHES} of them"
        if key[2] is not None and client is not None and self._resources[client] >= self._resource_share:
            return f"the client has {self._resource_share} resources (client_share_percent)"
        return None

    def _refuse(self, text: str) -> asyncio.Future[bool]:
        if not self._has_reported:
            self._has_reported = True
            self._report(Diagnostic(DiagnosticKind.LIMIT_REACHED, text))
        refused: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        refused.set_result(False)
        return refused

    def topic_of(self, holder: Holder, uri: str) -> str:
        """Return the topic of a resource for a holder: only those with the same connection hear of its changes."""
        return _topic(uri, self._owners.get((holder, uri), ()))

    def release(self, holder: Holder, uris: Iterable[str] | None = None) -> None:
        """End the subscriptions that nothing else holds: all of a holder, or those to some resources."""
        wanted = None if uris is None else {*uris}
        for key, watch in list(self._watches.items()):
            if holder in watch.holders and (wanted is None or watch.uri in wanted):
                self._forget(watch, watch.holders.pop(holder))
                self._owners.pop((holder, watch.uri or ""), None)
                if not watch.holders:
                    self._end(key)

    def end_server(self, name: str) -> None:
        """End all subscriptions at a server."""
        for key in [key for key in self._watches if key[0] == name]:
            self._end(key)

    async def close(self) -> None:
        """End all subscriptions."""
        tasks = [watch.task for watch in self._watches.values() if watch.task is not None]
        for key in list(self._watches):
            self._end(key)
        if tasks:
            await asyncio.wait(tasks)

    def _end(self, key: tuple[str, CallerKey, str | None]) -> None:
        watch = self._watches.pop(key)
        for holder, client in watch.holders.items():
            self._forget(watch, client)
            self._owners.pop((holder, watch.uri or ""), None)
        self._numbers[key[:2]] -= 1
        if not self._numbers[key[:2]]:
            del self._numbers[key[:2]], self._connections[key[:2]]
        if watch.task is not None:
            watch.task.cancel()
        if not watch.granted.done():
            watch.granted.set_result(False)

    def _forget(self, watch: _Watch, client: ClientKey) -> None:
        """Count a holder of a watch no longer."""
        self._has_reported = False
        self._resources[client] -= watch.uri is not None
        if not self._resources[client]:
            del self._resources[client]

    async def _run(self, watch: _Watch) -> None:
        """Subscribe, and subscribe again after the connection was lost: changes may have been missed then."""
        pause = _FIRST_PAUSE
        while True:
            try:
                lease = self._leases.lease(
                    watch.server, watch.caller, watch.capabilities, None, wants_logs=watch.wants_logs
                )
                with await lease.enter():
                    lists = announced_lists(watch.server) if watch.uri is None else set[Change]()
                    uris = [] if watch.uri is None else [watch.uri]
                    async with lease.client.listen(
                        tools="tools" in lists, prompts="prompts" in lists, resources="resources" in lists, uris=uris
                    ) as subscription:
                        pause = _FIRST_PAUSE
                        await self._follow(watch, subscription)
            except Error as error:
                watch.server.error = error
                if not watch.granted.done():
                    watch.granted.set_result(False)
                text = f"server {watch.server.name!r}: a subscription ended: {error}"
                self._report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text, error=error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)

    async def _follow(self, watch: _Watch, subscription: Subscription) -> None:
        """Publish the changes of a subscription until it ends."""
        if not watch.granted.done():
            watch.granted.set_result(watch.uri is None or not subscription.not_granted)
        else:
            for kind in subscription.lists:
                self._merger.publish(kind)
            for uri in subscription.uris:
                self._merger.publish("resource", _topic(uri, watch.owner))
        async for change in subscription:
            self._merger.publish(change.kind, None if change.uri is None else _topic(change.uri, watch.owner))


def _topic(uri: str, owner: CallerKey) -> str:
    return f"{uri}\n{encode_identity([*owner])}" if owner else uri
