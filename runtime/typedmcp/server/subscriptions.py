"""The listeners of a dispatcher, and the change notifications that they get.

A dispatcher serves one connection or session, or all clients of a stateless application.

On modern revisions each `subscriptions/listen` request is a listener until it ends.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
On legacy revisions the session is one listener, whose resources follow `resources/subscribe` and
`resources/unsubscribe`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from typedmcp import dialect
from typedmcp.errors import InvalidParamsError, MethodNotFoundError
from typedmcp.protocol.backends import to_model, to_struct
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.meta import SUBSCRIPTION
from typedmcp.protocol.notifications import CHANGES, Change
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context

__all__ = ["URI_FIELD", "SubscriptionBackend", "Subscriptions"]

URI_FIELD = "uri:"
"""The prefix of the fields of a stored session that name the resources it is subscribed to."""

D = dialect.structs

_MAX_URI_LENGTH = 8192
_LISTS: tuple[Change, ...] = tuple(change for change in CHANGES.values() if change != "resource")
_METHODS: dict[Change, str] = {change: method for method, change in CHANGES.items()}


class SubscriptionBackend(Protocol):
    """The part of a dispatcher that subscriptions use."""

    @property
    def config(self) -> ServerConfig: ...
    @property
    def closing(self) -> asyncio.Event: ...
    def notify(self, ctx: Context | None, method: str, params: msgspec.Struct) -> None: ...
    def is_congested(self, ctx: Context | None) -> bool: ...
    def drain_later(self, ctx: Context | None) -> None: ...
    def save_fields(self, fields: Mapping[str, str | None]) -> None: ...
    def listen(self) -> Callable[[], None]: ...


class _ChangeListener:
    """The changes that one listener subscribed to. `ctx` is its request; None for a session."""

    __slots__ = ("changes", "ctx", "delayed", "id", "uris")

    def __init__(self, ctx: Context | None, changes: set[Change], uris: set[str]) -> None:
        self.ctx = ctx
        self.id = None if ctx is None else ctx.id
        self.changes = changes
        self.uris = uris
        self.delayed: dict[tuple[Change, str | None], None] = {}
        """The changes that wait until the client reads again, each once."""

    def wants(self, change: Change, uri: str | None) -> bool:
        if self.ctx is not None and self.ctx.cancelled:  # its task has yet to end
            return False
        return uri in self.uris if change == "resource" else change in self.changes


class Subscriptions:
    """The listeners of one dispatcher."""

    def __init__(self, backend: SubscriptionBackend) -> None:
        self._backend = backend
        self._listeners: dict[_ChangeListener, None] = {}
        self.uris: set[str] = set()
        """The resources that a legacy session is subscribed to."""
        self._unsubscribe: Callable[[], None] | None = None

    async def listen(self, params: Any, ctx: Context) -> Any:
        """Handle `subscriptions/listen`: acknowledge it, and respond when the server closes the connection."""
        granted = self._grant(to_struct(params).notifications)
        changes: set[Change] = {name for name in _LISTS if getattr(granted, f"{name}_list_changed")}
        listener = _ChangeListener(ctx, changes, set(granted.resource_subscriptions or ()))
        meta = {SUBSCRIPTION: ctx.id}
        acknowledged = D.SubscriptionsAcknowledgedNotificationParams(notifications=granted, meta=meta)
        self._backend.notify(ctx, "notifications/subscriptions/acknowledged", acknowledged)
        self._add(listener)
        try:
            await self._backend.closing.wait()
        finally:
            self._listeners.pop(listener, None)
        return self.final_result(ctx)

    def final_result(self, ctx: Context) -> Any:
        """Notify a listener that the server ends its subscription, and return the result of its request."""
        assert ctx.id is not None
        reason = "the server ends the subscription"
        self._backend.notify(
            ctx, "notifications/cancelled", D.CancelledNotificationParams(request_id=ctx.id, reason=reason)
        )
        meta = {SUBSCRIPTION: ctx.id}
        result = D.SubscriptionsListenResult(meta=meta)
        return result if self._backend.config.codec == "msgspec" else to_model(result)

    def _grant(self, wanted: D.SubscriptionFilter) -> D.SubscriptionFilter:
        """Return the part of a filter that the server's capabilities and limits allow."""
        granted, announced = D.SubscriptionFilter(), self._announced()
        for name in _LISTS:
            if getattr(wanted, f"{name}_list_changed") and name in announced:
                setattr(granted, f"{name}_list_changed", True)
        if wanted.resource_subscriptions and self._can_subscribe():
            uris = [uri for uri in wanted.resource_subscriptions if len(uri) <= _MAX_URI_LENGTH]
            granted.resource_subscriptions = uris[: self._backend.config.limits.resource_subscriptions]
        return granted

    def _announced(self) -> set[Change]:
        """Return the lists whose changes the server's capabilities announce."""
        capabilities = self._backend.config.capabilities
        return {name for name in _LISTS if (has := getattr(capabilities, name)) and has.list_changed}

    def _can_subscribe(self) -> bool:
        resources = self._backend.config.capabilities.resources
        return bool(resources and resources.subscribe)

    # Legacy sessions

    def add_session(self) -> None:
        """Add the session as a listener to every list that the capabilities announce."""
        self._add(_ChangeListener(None, self._announced(), self.uris))

    def subscribe(self, params: Any, _ctx: Context) -> dict[str, Any]:
        """Handle `resources/subscribe`."""
        self._require("resources/subscribe")
        if len(params.uri) > _MAX_URI_LENGTH:
            raise InvalidParamsError(f"params.uri: longer than {_MAX_URI_LENGTH} characters", {"path": "params.uri"})
        limit = self._backend.config.limits.resource_subscriptions
        if len(self.uris) >= limit and params.uri not in self.uris:
            raise InvalidParamsError(f"more than {limit} subscriptions; unsubscribe first", {"path": "params.uri"})
        self.uris.add(params.uri)
        self._backend.save_fields({URI_FIELD + params.uri: ""})
        return {}

    def unsubscribe(self, params: Any, _ctx: Context) -> dict[str, Any]:
        """Handle `resources/unsubscribe`."""
        self._require("resources/unsubscribe")
        self.uris.discard(params.uri)
        self._backend.save_fields({URI_FIELD + params.uri: None})
        return {}

    def _require(self, method: str) -> None:
        if not self._can_subscribe():
            raise MethodNotFoundError(method)

    # Changes

    def publish(self, change: Change, uri: str | None) -> None:
        """Notify the listeners of a change. A listener that does not read gets it later, and only once."""
        for listener in self._listeners:
            if not listener.wants(change, uri):
                continue
            if self._backend.is_congested(listener.ctx):
                listener.delayed[(change, uri)] = None
                self._backend.drain_later(listener.ctx)
            else:
                self._notify(listener, change, uri)

    def resume(self) -> None:
        """Send the delayed changes to the listeners that read again."""
        for listener in self._listeners:
            self._resume(listener)

    def _resume(self, listener: _ChangeListener) -> None:
        for change, uri in list(listener.delayed):
            if self._backend.is_congested(listener.ctx):
                self._backend.drain_later(listener.ctx)
                return
            del listener.delayed[(change, uri)]
            if listener.wants(change, uri):
                self._notify(listener, change, uri)

    def publish_all(self) -> None:
        """Publish every kind of change, since any may have been missed."""
        for change in _METHODS:
            for uri in tuple(self.uris) if change == "resource" else (None,):
                self.publish(change, uri)

    def close(self) -> None:
        """Remove all listeners."""
        self._listeners.clear()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _add(self, listener: _ChangeListener) -> None:
        self._listeners[listener] = None
        if self._unsubscribe is None:
            self._unsubscribe = self._backend.listen()

    def _notify(self, listener: _ChangeListener, change: Change, uri: str | None) -> None:
        id: RequestId | None = listener.id
        meta = None if id is None else {SUBSCRIPTION: id}
        params = (
            D.NotificationParams(meta=meta) if uri is None else D.ResourceUpdatedNotificationParams(uri=uri, meta=meta)
        )
        self._backend.notify(listener.ctx, _METHODS[change], params)
