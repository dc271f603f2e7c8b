"""Who on a connection has asked to hear of changes, and telling them.

Modern: each `subscriptions/listen` request is a listener until it ends.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
Older: the session is one listener.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from typedmcp import dialect
from typedmcp.backends import as_model, as_struct
from typedmcp.changes import Change
from typedmcp.errors import InvalidParams, MethodNotFound
from typedmcp.meta import SUBSCRIPTION
from typedmcp.wire import RequestId

if TYPE_CHECKING:
    from typedmcp.context import Context
    from typedmcp.engine import Engine

__all__ = ["URI", "Subscriptions"]

URI = "uri:"
"""What the name of a field begins with that stands for a resource that an older session hears of."""

D = dialect.structs

_LONGEST = 8192
"""How long a URI may be that is subscribed to."""
_METHODS: dict[Change, str] = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
    "resource": "notifications/resources/updated",
}


class _Listener:
    """One listener: what it wants, and the subscription that its notifications name."""

    __slots__ = ("ctx", "held", "id", "uris", "wanted")

    def __init__(self, ctx: Context | None, wanted: set[Change], uris: set[str]) -> None:
        self.ctx = ctx
        self.id = None if ctx is None else ctx.id
        self.wanted = wanted
        self.uris = uris
        self.held: dict[tuple[Change, str | None], None] = {}
        """Changes that wait for a slow reader: each once, however often it happened."""

    def wants(self, change: Change, uri: str | None) -> bool:
        if self.ctx is not None and self.ctx.cancelled:  # its task has yet to learn that
            return False
        return uri in self.uris if change == "resource" else change in self.wanted


class Subscriptions:
    """The listeners of one connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._listeners: dict[_Listener, None] = {}
        self.uris: set[str] = set()
        """The resources that an older session hears of."""
        self._leave: Callable[[], None] | None = None

    async def listen(self, params: Any, ctx: Context) -> Any:
        """`subscriptions/listen`: acknowledge, tell, and answer when this side ends the connection."""
        granted = self._granted(as_struct(params).notifications)
        listener = _Listener(ctx, _wanted(granted), set(granted.resource_subscriptions or ()))
        self._acknowledge(ctx, granted)
        self._add(listener)
        try:
            await self._engine.ending.wait()
        finally:
            self._listeners.pop(listener, None)
        return self.farewell(ctx)

    def farewell(self, ctx: Context) -> Any:
        """Tell a listener that this side ends: the answer to its request."""
        meta = {SUBSCRIPTION: ctx.id}
        ended = D.CancelledNotificationParams(request_id=_id(ctx), reason="the server ends the subscription")
        self._engine.notify(ctx, "notifications/cancelled", ended)
        result = D.SubscriptionsListenResult(
            meta=D.from_builtins(meta, D.SubscriptionsListenResultMetaObject), result_type="complete"
        )
        return result if self._engine.service.codec == "msgspec" else as_model(result)

    def _granted(self, asked: D.SubscriptionFilter) -> D.SubscriptionFilter:
        """The part of a filter that the server's capabilities cover."""
        has = self._engine.service.capabilities
        granted = D.SubscriptionFilter()
        if asked.tools_list_changed and has.tools and has.tools.list_changed:
            granted.tools_list_changed = True
        if asked.prompts_list_changed and has.prompts and has.prompts.list_changed:
            granted.prompts_list_changed = True
        if asked.resources_list_changed and has.resources and has.resources.list_changed:
            granted.resources_list_changed = True
        if asked.resource_subscriptions and has.resources and has.resources.subscribe:
            uris = [uri for uri in asked.resource_subscriptions if len(uri) <= _LONGEST]
            granted.resource_subscriptions = uris[: self._engine.service.subscriptions]
        return granted

    def _acknowledge(self, ctx: Context, granted: D.SubscriptionFilter) -> None:
        meta = D.from_builtins({SUBSCRIPTION: ctx.id}, D.NotificationMetaObject)
        params = D.SubscriptionsAcknowledgedNotificationParams(notifications=granted, meta=meta)
        self._engine.notify(ctx, "notifications/subscriptions/acknowledged", params)

    def begin_legacy(self) -> None:
        """An older session hears of every list that changes, as its capabilities say."""
        has = self._engine.service.capabilities
        wanted: set[Change] = set()
        if has.tools and has.tools.list_changed:
            wanted.add("tools")
        if has.prompts and has.prompts.list_changed:
            wanted.add("prompts")
        if has.resources and has.resources.list_changed:
            wanted.add("resources")
        self._add(_Listener(None, wanted, self.uris))

    def subscribe(self, params: Any, _ctx: Context) -> dict[str, Any]:
        """`resources/subscribe` of older revisions."""
        self._require("resources/subscribe")
        if len(params.uri) > _LONGEST:
            raise InvalidParams(f"the URI is longer than {_LONGEST} characters", {"path": "params.uri"})
        most = self._engine.service.subscriptions
        if len(self.uris) >= most and params.uri not in self.uris:
            raise InvalidParams(f"more than {most} subscriptions", {"path": "params.uri"})
        self.uris.add(params.uri)
        self._engine.keep({URI + params.uri: ""})
        return {}

    def unsubscribe(self, params: Any, _ctx: Context) -> dict[str, Any]:
        """`resources/unsubscribe` of older revisions."""
        self._require("resources/unsubscribe")
        self.uris.discard(params.uri)
        self._engine.keep({URI + params.uri: None})
        return {}

    def _require(self, method: str) -> None:
        has = self._engine.service.capabilities.resources
        if not (has and has.subscribe):
            raise MethodNotFound(method)

    def publish(self, change: Change, uri: str | None) -> None:
        """Tell whoever wants to hear of it; a slow reader later, and once."""
        for listener in self._listeners:
            if not listener.wants(change, uri):
                continue
            if self._engine.is_congested(listener.ctx):
                listener.held[(change, uri)] = None
                self._engine.drain_later(listener.ctx)
            else:
                self._tell(listener, change, uri)

    def resume(self) -> None:
        """The reader keeps up again, or one of them does."""
        for listener in self._listeners:
            self._resume(listener)

    def _resume(self, listener: _Listener) -> None:
        for change, uri in list(listener.held):
            if self._engine.is_congested(listener.ctx):
                self._engine.drain_later(listener.ctx)
                return
            del listener.held[(change, uri)]
            if listener.wants(change, uri):
                self._tell(listener, change, uri)

    def publish_all(self) -> None:
        """Anything may have changed."""
        for change in _METHODS:
            for uri in tuple(self.uris) if change == "resource" else (None,):
                self.publish(change, uri)

    def close(self) -> None:
        """Stop hearing of changes."""
        self._listeners.clear()
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _add(self, listener: _Listener) -> None:
        self._listeners[listener] = None
        if self._leave is None:
            self._leave = self._engine.listen()

    def _tell(self, listener: _Listener, change: Change, uri: str | None) -> None:
        id = listener.id
        meta = UNSET if id is None else D.from_builtins({SUBSCRIPTION: id}, D.NotificationMetaObject)
        params = (
            D.NotificationParams(meta=meta) if uri is None else D.ResourceUpdatedNotificationParams(uri=uri, meta=meta)
        )
        self._engine.notify(listener.ctx, _METHODS[change], params)


def _wanted(granted: D.SubscriptionFilter) -> set[Change]:
    wanted: set[Change] = set()
    if granted.tools_list_changed:
        wanted.add("tools")
    if granted.prompts_list_changed:
        wanted.add("prompts")
    if granted.resources_list_changed:
        wanted.add("resources")
    return wanted


def _id(ctx: Context) -> RequestId:
    assert ctx.id is not None
    return ctx.id
