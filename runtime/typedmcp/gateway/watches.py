"""Subscriptions at servers, for as long as clients of the gateway want them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from typedmcp.client.subscriptions import Subscription
from typedmcp.errors import Error
from typedmcp.gateway.callers import GatewayCaller
from typedmcp.gateway.servers import GatewayServer, Leases
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.notifications import Change
from typedmcp.server.changes import Changes

__all__ = ["LIST_CHANGES", "ChangeMerger", "Holder", "Watches", "announced_lists"]

LIST_CHANGES: Final[tuple[Change, ...]] = ("tools", "prompts", "resources")
_MERGE_SECONDS: Final = 0.02
"""Seconds in which equal changes, which several connections to a server report, are merged."""
_FIRST_PAUSE: Final = 0.2
_MAX_PAUSE: Final = 10.0

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
    holders: set[Holder] = field(default_factory=set[Holder])
    granted: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """True if the server sends the changes. Set once that is known."""
    task: asyncio.Task[None] | None = None


class Watches:
    """Keeps one subscription for each server, client and resource, and counts who wants it."""

    def __init__(self, leases: Leases, merger: ChangeMerger, report: Callable[[Diagnostic], None]) -> None:
        self._leases = leases
        self._merger = merger
        self._report = report
        self._watches: dict[tuple[str, str, str | None], _Watch] = {}

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

        The result is True once the server sends changes, and False if it does not grant them.
        """
        wants_logs = wants_logs and caller.is_alone
        is_shared = server.is_stateless and not wants_logs
        principal = "" if caller.principal is None else caller.principal.key
        key = (server.name, principal if is_shared else caller.key, uri)
        watch = self._watches.get(key)
        if watch is None:
            own: Mapping[str, Any] = capabilities if caller.is_alone else {}
            watch = self._watches[key] = _Watch(server, caller, own, uri, wants_logs)
            watch.task = asyncio.get_running_loop().create_task(self._run(watch))
        watch.holders.add(holder)
        return watch.granted

    def release(self, holder: Holder, uris: Iterable[str] | None = None) -> None:
        """End the subscriptions that nothing else holds: all of a holder, or those to some resources."""
        wanted = None if uris is None else {*uris}
        for key, watch in list(self._watches.items()):
            if holder in watch.holders and (wanted is None or watch.uri in wanted):
                watch.holders.discard(holder)
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

    def _end(self, key: tuple[str, str, str | None]) -> None:
        watch = self._watches.pop(key)
        if watch.task is not None:
            watch.task.cancel()
        if not watch.granted.done():
            watch.granted.set_result(False)

    async def _run(self, watch: _Watch) -> None:
        """Subscribe, and subscribe again after the connection was lost: changes may have been missed then."""
        pause = _FIRST_PAUSE
        while True:
            try:
                lease = self._leases.lease(
                    watch.server, watch.caller, watch.capabilities, None, wants_logs=watch.wants_logs
                )
                async with lease as leased:
                    lists = announced_lists(watch.server) if watch.uri is None else set[Change]()
                    uris = [] if watch.uri is None else [watch.uri]
                    async with leased.client.listen(
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
                self._merger.publish("resource", uri)
        async for change in subscription:
            self._merger.publish(change.kind, change.uri)
