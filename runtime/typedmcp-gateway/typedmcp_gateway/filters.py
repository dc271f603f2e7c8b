"""Members that extensions add to the filter of `subscriptions/listen`, served by the servers behind a gateway."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple

from typedmcp import Context, Diagnostic, DiagnosticKind
from typedmcp.building import is_array
from typedmcp.errors import Error, InvalidParamsError
from typedmcp.services import ExtensionListener, OpenMember
from typedmcp_gateway.callers import ClientKey, GatewayCaller
from typedmcp_gateway.notifications import PassedExtensions
from typedmcp_gateway.servers import GatewayServer, Leases, can_be_asked, input_capabilities, wants_logs
from typedmcp_gateway.tasks import TaskIds

__all__ = ["FilterRelay"]

_TASK_IDS: Final = "taskIds"
_MAX_SUBSCRIPTIONS: Final = 500
"""Subscriptions at a time with members of extensions, over connections that clients share."""
_MAX_MEMBERS: Final = 20
"""Members of one filter."""
_WAITING: Final = 100
"""Notifications of one subscription that wait for a client that does not read. The oldest are replaced."""
_FIRST_PAUSE: Final = 0.2
_MAX_PAUSE: Final = 10.0


class _MemberWatch(NamedTuple):
    """A member of a filter at one server."""

    server: GatewayServer
    member: str
    value: Any
    listener: ExtensionListener
    caller: GatewayCaller
    opened: asyncio.Future[Any]
    """The part that the server grants; None for nothing. Set once that is known."""


class FilterRelay:
    """Subscribes at servers to members that the protocol does not have, and passes their notifications on.

    A subscription uses a lease, and some have a connection of their own, so both are limited: in all, and for each
    client over HTTP to `percent` of that.
    """

    def __init__(
        self,
        servers: Mapping[str, GatewayServer],
        leases: Leases,
        task_ids: TaskIds,
        report: Callable[[Diagnostic], None],
        max_connections: int,
        percent: int,
    ) -> None:
        self._servers = servers
        self._leases = leases
        self._task_ids = task_ids
        self._report = report
        self._limits: dict[bool, int] = {True: _MAX_SUBSCRIPTIONS, False: max(1, max_connections // 4)}
        """The limit of subscriptions over shared connections, and of others."""
        self._percent = percent
        self._used: Counter[tuple[bool, ClientKey]] = Counter()

    def find(self, names: Sequence[str], ctx: Context, caller: GatewayCaller) -> Mapping[str, OpenMember]:
        """Return the functions for the members of a filter that extensions of servers may serve."""
        if not ctx.client_capabilities.extensions:
            return {}
        if len(names) > _MAX_MEMBERS:
            raise InvalidParamsError(f"params.notifications: more than {_MAX_MEMBERS} members that are not known")
        return {name: partial(self._serve, name, caller) for name in names}

    @asynccontextmanager
    async def _serve(
        self, member: str, caller: GatewayCaller, value: Any, listener: ExtensionListener
    ) -> AsyncGenerator[Any]:
        """Serve a member, and yield the part that servers grant."""
        loop = asyncio.get_running_loop()
        watches = [
            _MemberWatch(server, member, own, listener, caller, loop.create_future())
            for server, own in self._split(member, value, listener.ctx)
        ]
        tasks = [loop.create_task(self._follow(watch)) for watch in watches]
        try:
            granted = await asyncio.gather(*(watch.opened for watch in watches))
            yield self._merge(member, watches, granted)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    def _split(self, member: str, value: Any, ctx: Context) -> list[tuple[GatewayServer, Any]]:
        """Return the servers to subscribe at, each with its part of the value."""
        if member != _TASK_IDS:
            servers = self._servers.values()
            return [(server, value) for server in servers if server.is_stateless and server.extensions]
        by_server: dict[GatewayServer, list[str]] = {}
        for id in value if is_array(value) else []:
            with suppress(InvalidParamsError):  # a subscription to it is not granted
                server, own = self._task_ids.resolve(id, ctx)
                by_server.setdefault(server, []).append(own)
        return [(server, ids) for server, ids in by_server.items() if server.is_stateless]

    def _merge(self, member: str, watches: list[_MemberWatch], granted: list[Any]) -> Any:
        """Return what the servers grant together; None for nothing."""
        if member == _TASK_IDS:
            return [
                self._task_ids.expose(watch.server, id, watch.listener.ctx)
                for watch, ids in zip(watches, granted, strict=True)
                for id in (ids if is_array(ids) else ())
                if isinstance(id, str)
            ]
        found = [each for each in granted if each is not None]
        if len(found) > 1 and all(is_array(each) for each in found):
            return [item for each in found for item in each]
        return found[0] if found else None

    # Subscriptions at servers

    async def _follow(self, watch: _MemberWatch) -> None:
        """Subscribe, and subscribe again after the connection was lost."""
        key = self._key_of(watch)
        if (limit := self._find_limit(key)) is not None:
            text = f"server {watch.server.name!r}: no further subscription of an extension: {limit}"
            self._report(Diagnostic(DiagnosticKind.LIMIT_REACHED, text))
            watch.opened.set_result(None)
            return
        self._used[key] += 1
        pause = _FIRST_PAUSE
        try:
            while not watch.opened.done() or watch.opened.result() is not None:
                try:
                    await self._listen(watch)
                    pause = _FIRST_PAUSE
                except Error as error:
                    text = f"server {watch.server.name!r}: a subscription of an extension ended: {error}"
                    self._report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text, error=error))
                if not watch.opened.done():
                    watch.opened.set_result(None)
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
        finally:
            self._used[key] -= 1
            if not self._used[key]:
                del self._used[key]
            if not watch.opened.done():
                watch.opened.cancel()

    def _key_of(self, watch: _MemberWatch) -> tuple[bool, ClientKey]:
        """Return whether the connection of a subscription is shared, and the client that it counts for."""
        ctx = watch.listener.ctx
        is_own = wants_logs(ctx) or watch.server.may_notify(input_capabilities(ctx).get("extensions", {}))
        return not is_own, watch.caller.client

    def _find_limit(self, key: tuple[bool, ClientKey]) -> str | None:
        """Return the limit that a further subscription would exceed, or None."""
        is_shared, client = key
        total, share = self._limits[is_shared], max(1, self._limits[is_shared] * self._percent // 100)
        if sum(number for (shared, _), number in self._used.items() if shared is is_shared) >= total:
            return f"there are {total} (max_connections)"
        if client is not None and self._used[key] >= share:
            return f"the client has {share} (max_connections, client_share_percent)"
        return None

    async def _listen(self, watch: _MemberWatch) -> None:
        """Serve one subscription at a server until it ends."""
        ctx = watch.listener.ctx
        capabilities = input_capabilities(ctx)
        given = {name: value for name, value in capabilities.items() if not can_be_asked({name: value})}
        lease = self._leases.lease(watch.server, watch.caller, given, None, wants_logs=wants_logs(ctx))
        with await lease.enter():
            passed: PassedExtensions = lease.questions.passed
            members = {watch.member: watch.value}
            subscription = lease.client.listen(members=members, capabilities=capabilities)
            with passed.following(subscription, self._passing(watch)):
                async with subscription:
                    if not watch.opened.done():
                        watch.opened.set_result(subscription.granted_members.get(watch.member))
                    async for _ in subscription:
                        pass  # it has no changes of the protocol

    def _passing(self, watch: _MemberWatch) -> Callable[[str, dict[str, Any]], object]:
        """Return the function that passes the notifications of a subscription on."""
        numbers, listener = count(), watch.listener

        def on_passed(method: str, params: dict[str, Any]) -> None:
            key: object = (watch.server.name, method, next(numbers) % _WAITING)
            id: Any = params.get("taskId")
            if watch.member == _TASK_IDS and isinstance(id, str):
                key = id
                params = {**params, "taskId": self._task_ids.expose(watch.server, id, listener.ctx)}
            listener.notify(method, params, key=key)

        return on_passed
