"""The listeners of a session, and the change notifications that they get.

A session is of one client, or of all clients of a stateless application.

On modern revisions each `subscriptions/listen` request is a listener until it ends.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
On legacy revisions the session is one listener, whose resources follow `resources/subscribe` and
`resources/unsubscribe`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, cast

from typedmcp import dialect
from typedmcp.errors import InvalidParamsError, MethodNotFoundError, ResourceNotFoundError
from typedmcp.protocol.backends import to_model, to_struct
from typedmcp.protocol.budgets import Hold
from typedmcp.protocol.meta import SUBSCRIPTION
from typedmcp.protocol.notifications import CHANGES, Change
from typedmcp.server.channel import Channel
from typedmcp.server.context import Context, ServedSession
from typedmcp.transports.concurrency import is_awaitable

if TYPE_CHECKING:
    from typedmcp.server.extension_filters import ExtensionFilters

__all__ = ["Subscriptions", "too_many_subscriptions"]

D = dialect.structs

_MAX_URI_LENGTH = 8192
_IN_ONE_TURN = 16
"""Listeners that are notified in one turn of the event loop: a millisecond of work."""
_URI_BYTES = 128
"""Bytes that a subscription counts in addition to its URI."""
_LISTS: tuple[Change, ...] = tuple(change for change in CHANGES.values() if change != "resource")
_METHODS: dict[Change, str] = {change: method for method, change in CHANGES.items()}


def too_many_subscriptions(reason: str) -> InvalidParamsError:
    """Return the error for a subscription that a limit forbids."""
    return InvalidParamsError(reason, {"path": "params.uri"})


class _ChangeListener:
    """The changes that one listener subscribed to. `ctx` is its request; None for a session."""

    __slots__ = ("changes", "ctx", "delayed", "filters", "id", "uris")

    def __init__(
        self, ctx: Context | None, changes: set[Change], uris: set[str], filters: ExtensionFilters | None = None
    ) -> None:
        self.ctx, self.id = ctx, None if ctx is None else ctx.id
        self.changes, self.uris = changes, uris
        self.filters = filters
        """The members that extensions serve, if there are any."""
        self.delayed: dict[tuple[Change, str | None], None] = {}
        """The changes that wait until the client reads again, each once."""

    def wants(self, change: Change, uri: str | None) -> bool:
        if self.ctx is not None and self.ctx.cancelled:  # its task has yet to end
            return False
        return uri in self.uris if change == "resource" else change in self.changes


def _seconds_left(ctx: Context) -> float | None:
    """Return the seconds until the credentials of a request expire; None if they do not, or belong to a session."""
    expires = None if ctx.principal is None or ctx.session_id is not None else ctx.principal.expires
    return None if expires is None else max(0.0, expires - time.time())


class Subscriptions:
    """The listeners of one session."""

    def __init__(self, session: ServedSession) -> None:
        self._session = session
        self._listeners: dict[_ChangeListener, None] = {}
        self._waiting: dict[_ChangeListener, None] = {}
        """The listeners whose changes are sent in the next turns of the loop."""
        self.uris: set[str] = set()
        """The resources that a legacy session is subscribed to."""
        self._hold: Hold | None = None
        """The bytes of the URIs of a legacy connection."""
        self._unsubscribe: Callable[[], None] | None = None

    async def listen(self, params: Any, ctx: Context) -> Any:
        """Handle `subscriptions/listen`: acknowledge it, and respond when the server ends it.

        It does when it closes the connection, or when the client's credentials expire.
        """
        config = self._session.config
        opening: AbstractAsyncContextManager[ExtensionFilters | None] = nullcontext()
        if config.extensions or config.service is not None:
            from typedmcp.server.extension_filters import find_filters, open_filters  # few servers have extensions

            opening = open_filters(find_filters(ctx, config.extensions, config.service), ctx, self._session)
        with self._hold_for(ctx.channel) as hold:
            granted = await self._authorize(self._grant(to_struct(params).notifications, hold), ctx)
            del params  # it may be large
            ctx.raw, ctx.params = b"", None  # not needed while it waits, and perhaps large
            async with opening as filters:
                return await self._listen(ctx, granted, filters)

    async def _listen(self, ctx: Context, granted: D.SubscriptionFilter, filters: ExtensionFilters | None) -> Any:
        """Acknowledge a subscription, and serve it until its end. `filters` are those of extensions."""
        changes: set[Change] = {name for name in _LISTS if getattr(granted, f"{name}_list_changed")}
        uris = {self._topic(uri, ctx) for uri in granted.resource_subscriptions or ()}
        listener = _ChangeListener(ctx, changes, uris, filters)
        meta = {SUBSCRIPTION: ctx.id}
        acknowledged = D.SubscriptionsAcknowledgedNotificationParams(notifications=granted, meta=meta)
        if filters is not None:
            acknowledged.notifications = cast(Any, {**D.to_builtins(granted), **D.to_builtins(filters.granted)})
        self._session.notify(ctx, "notifications/subscriptions/acknowledged", acknowledged)
        self._add(listener)
        if filters is not None:
            filters.resume()
        del granted, acknowledged
        try:
            async with asyncio.timeout(_seconds_left(ctx)):
                await self._session.closing.wait()
        except TimeoutError:
            pass  # the client can listen again, with credentials that are valid
        finally:
            self._listeners.pop(listener, None)
        return self.final_result(ctx)

    def final_result(self, ctx: Context) -> Any:
        """Notify a listener that the server ends its subscription, and return the result of its request."""
        assert ctx.id is not None
        meta = {SUBSCRIPTION: ctx.id}
        reason = "the server ends the subscription"
        cancelled = D.CancelledNotificationParams(request_id=ctx.id, reason=reason, meta=meta)
        self._session.notify(ctx, "notifications/cancelled", cancelled)
        result = D.SubscriptionsListenResult(meta=meta)
        return result if self._session.config.codec == "msgspec" else to_model(result)

    def _hold_for(self, channel: Channel) -> Hold:
        return Hold(self._session.config.budgets.subscriptions, channel.client)

    def _grant(self, wanted: D.SubscriptionFilter, hold: Hold) -> D.SubscriptionFilter:
        """Return the part of a filter that the server's capabilities and limits allow."""
        granted, announced = D.SubscriptionFilter(), self._announced()
        for name in _LISTS:
            if getattr(wanted, f"{name}_list_changed") and name in announced:
                setattr(granted, f"{name}_list_changed", True)
        if wanted.resource_subscriptions and self._can_subscribe():
            uris = [uri for uri in wanted.resource_subscriptions if len(uri) <= _MAX_URI_LENGTH]
            uris = uris[: self._session.config.limits.resource_subscriptions]
            granted.resource_subscriptions = [*takewhile(lambda uri: hold.take(_URI_BYTES + len(uri)), uris)]
        return granted

    async def _authorize(self, wanted: D.SubscriptionFilter, ctx: Context) -> D.SubscriptionFilter:
        """Return the part of a filter that the handler grants to the client; everything, if it does not decide."""
        authorize, codec = self._session.config.authorize_subscriptions, self._session.config.codec
        if authorize is None:
            return wanted
        asked = D.SubscriptionsListenRequestParams(notifications=wanted, meta=ctx.meta)
        made = authorize(asked if codec == "msgspec" else to_model(asked), ctx)
        return _intersection(wanted, to_struct(await made if is_awaitable(made) else made))

    def _announced(self) -> set[Change]:
        """Return the lists whose changes the server's capabilities announce."""
        capabilities = self._session.config.capabilities
        return {name for name in _LISTS if (has := getattr(capabilities, name)) and has.list_changed}

    def _can_subscribe(self) -> bool:
        resources = self._session.config.capabilities.resources
        return bool(resources and resources.subscribe)

    # Legacy sessions

    def add_session(self) -> None:
        """Add the session as a listener to every list that the capabilities announce."""
        self._add(_ChangeListener(None, self._announced(), self.uris))

    async def subscribe(self, params: Any, ctx: Context) -> dict[str, Any]:
        """Handle `resources/subscribe`."""
        self._require("resources/subscribe")
        if len(params.uri) > _MAX_URI_LENGTH:
            raise InvalidParamsError(f"params.uri: longer than {_MAX_URI_LENGTH} characters", {"path": "params.uri"})
        granted = await self._authorize(D.SubscriptionFilter(resource_subscriptions=[params.uri]), ctx)
        if not granted.resource_subscriptions:
            raise ResourceNotFoundError(params.uri)  # like a resource that the client must not know of
        await self._session.home.add_subscription(ctx.channel, self._topic(params.uri, ctx))
        return {}

    async def unsubscribe(self, params: Any, ctx: Context) -> dict[str, Any]:
        """Handle `resources/unsubscribe`."""
        self._require("resources/unsubscribe")
        await self._session.home.remove_subscription(ctx.channel, self._topic(params.uri, ctx))
        if (service := self._session.config.service) is not None:
            await service.on_unsubscribed(params.uri, ctx)
        return {}

    def _topic(self, uri: str, ctx: Context) -> str:
        service = self._session.config.service
        return uri if service is None else service.topic_of(uri, ctx)

    def _require(self, method: str) -> None:
        if self._session.is_shared or not self._can_subscribe():  # a client without a session cannot be notified
            raise MethodNotFoundError(method)

    def add(self, channel: Channel, uri: str) -> None:
        """Subscribe a connection to a resource. Raises `InvalidParamsError` at a limit."""
        limit = self._session.config.limits.resource_subscriptions
        if uri in self.uris:
            return
        if len(self.uris) >= limit:
            raise too_many_subscriptions(f"more than {limit} subscriptions; unsubscribe first")
        self._hold = self._hold or self._hold_for(channel)
        if not self._hold.take(_URI_BYTES + len(uri)):
            raise too_many_subscriptions("the subscriptions hold as many bytes as their limit allows")
        self.uris.add(uri)

    def remove(self, uri: str) -> None:
        """End a subscription of a connection."""
        if uri in self.uris:
            self.uris.remove(uri)
            if self._hold is not None:
                self._hold.add(-_URI_BYTES - len(uri))

    # Changes

    def publish(self, change: Change, uri: str | None) -> None:
        """Notify the listeners of a change, few in each turn of the loop, so that requests get their turns in between.

        A listener that does not read, or whose turn it is later, gets equal changes once.
        """
        wanting = [listener for listener in self._listeners if listener.wants(change, uri)]
        for listener in wanting:
            listener.delayed[(change, uri)] = None
        self._resume_in_turn(wanting)

    def _resume_in_turn(self, listeners: Iterable[_ChangeListener]) -> None:
        is_idle = not self._waiting
        self._waiting.update(dict.fromkeys(listeners))
        if is_idle:
            self._notify_some()

    def _notify_some(self) -> None:
        for listener in (batch := [*islice(self._waiting, _IN_ONE_TURN)]):
            del self._waiting[listener]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._notify_some)
        for listener in batch:
            if listener in self._listeners:
                self._resume(listener)

    def resume(self) -> None:
        """Send the delayed changes to the listeners that read again."""
        self._resume_in_turn(self._listeners)

    def _resume(self, listener: _ChangeListener) -> None:
        for change, uri in list(listener.delayed):
            if self._session.is_congested(listener.ctx):
                self._session.drain_later(listener.ctx)
                return
            del listener.delayed[(change, uri)]
            if listener.wants(change, uri):
                self._notify(listener, change, uri)
        if listener.filters is not None:
            listener.filters.resume()

    def publish_all(self) -> None:
        """Publish every kind of change, since any may have been missed."""
        for change in _METHODS:
            for uri in tuple(self.uris) if change == "resource" else (None,):
                self.publish(change, uri)

    def close(self) -> None:
        """Remove all listeners."""
        self._listeners.clear()
        if self._hold is not None:
            self._hold.close()
            self._hold = None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _add(self, listener: _ChangeListener) -> None:
        self._listeners[listener] = None
        if self._unsubscribe is None:
            self._unsubscribe = self._session.home.listen()

    def _notify(self, listener: _ChangeListener, change: Change, uri: str | None) -> None:
        meta = None if listener.id is None else {SUBSCRIPTION: listener.id}
        params: Any = D.NotificationParams(meta=meta)
        if uri is not None:
            params = D.ResourceUpdatedNotificationParams(uri=uri.partition("\n")[0], meta=meta)
        self._session.notify(listener.ctx, _METHODS[change], params)


def _intersection(wanted: D.SubscriptionFilter, granted: D.SubscriptionFilter) -> D.SubscriptionFilter:
    """Return the part of a filter that another one contains, too."""
    made = D.SubscriptionFilter()
    for name in _LISTS:
        member = f"{name}_list_changed"
        if getattr(wanted, member) and getattr(granted, member):
            setattr(made, member, True)
    if wanted.resource_subscriptions is not None:
        uris = {*(granted.resource_subscriptions or ())}
        made.resource_subscriptions = [uri for uri in wanted.resource_subscriptions if uri in uris]
    return made
