"""Members that extensions add to the filter of `subscriptions/listen`, and the notifications that follow from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple, TypeVar, cast, overload

import msgspec

from mcpspec.support.methods import Method
from mcpspec.support.objects import is_object
from mcpspec.support.structs import from_builtins, to_builtins
from typedmcp import dialect
from typedmcp.errors import DecodeError, InvalidParamsError
from typedmcp.protocol.meta import SUBSCRIPTION
from typedmcp.server.context import Context, ServedSession
from typedmcp.server.extension_setup import OfferedExtension, require_extension
from typedmcp.server.service import OpenMember, Service

__all__ = ["ExtensionFilters", "ExtensionListener", "WantedMember", "find_filters", "open_filters"]

P = TypeVar("P")


class WantedMember(NamedTuple):
    """A member of a filter that an extension, or a service, serves."""

    open: OpenMember
    """The function that serves it."""
    name: str
    value: Any


class ExtensionListener:
    """A `subscriptions/listen` request that gets notifications of an extension."""

    def __init__(self, ctx: Context, session: ServedSession) -> None:
        self.ctx: Context = ctx
        """The request. Middleware has seen it, and the client has declared the extension."""
        self._session = session
        self._delayed: dict[object, tuple[str, Any]] = {}
        self._has_begun = False

    @overload
    def notify(self, method: Method[P, None], params: P, *, key: object = None) -> None: ...
    @overload
    def notify(self, method: str, params: Mapping[str, Any], *, key: object = None) -> None: ...
    def notify(self, method: Any, params: Any, *, key: object = None) -> None:
        """Send a notification, with the id of the subscription. Call it in the event loop.

        A name instead of a record sends plain JSON. Until the subscription is acknowledged, and while the client does
        not read, one notification waits for each key, the newest. Without a key that is the method.
        """
        if self.ctx.cancelled:
            return
        name: str = method if isinstance(method, str) else method.name
        if not self._has_begun or self._session.is_congested(self.ctx):
            self._delayed[name if key is None else key] = name, params
            if self._has_begun:
                self._session.drain_later(self.ctx)
        else:
            self._send(name, params)

    def resume(self) -> None:
        """Send the delayed notifications, if the client reads again."""
        self._has_begun = True
        for key, (method, params) in list(self._delayed.items()):
            if self._session.is_congested(self.ctx):
                self._session.drain_later(self.ctx)
                return
            del self._delayed[key]
            if not self.ctx.cancelled:
                self._send(method, params)

    def _send(self, method: str, params: Any) -> None:
        plain: dict[str, Any] = to_builtins(params)
        meta: dict[str, Any] = {**(plain.get("_meta") or {}), SUBSCRIPTION: self.ctx.id}
        self._session.notify(self.ctx, method, cast(Any, {**plain, "_meta": meta}))


class ExtensionFilters(NamedTuple):
    """The members that extensions have granted in one subscription."""

    granted: dict[str, Any]
    """The granted values, by the name of the member."""
    listeners: list[ExtensionListener]

    def resume(self) -> None:
        """Send the delayed notifications of all extensions."""
        for listener in self.listeners:
            listener.resume()


def find_filters(
    ctx: Context, extensions: Sequence[OfferedExtension], service: Service | None = None
) -> list[WantedMember]:
    """Return the members that a `subscriptions/listen` request has for extensions, decoded, and for a service.

    Raises `MissingCapabilityError` for an extension that the client has not declared, and `InvalidParamsError`.
    """
    wanted: Any = msgspec.json.decode(ctx.raw_params().get("notifications", b"null"))
    found: list[WantedMember] = []
    if not is_object(wanted):
        return found
    for extension in extensions:
        for member, (kind, serve) in extension.filters.items():
            if member in wanted:
                require_extension(extension.extension, ctx)
                found.append(WantedMember(serve, member, _decode_member(member, wanted[member], kind)))
    if service is not None:
        known = {*dialect.exact.SubscriptionFilter.__struct_encode_fields__, *(each.name for each in found)}
        served = service.members([name for name in wanted if name not in known], ctx)
        found += [WantedMember(serve, name, wanted[name]) for name, serve in served.items()]
    return found


def _decode_member(member: str, value: Any, kind: Any) -> Any:
    path = f"params.notifications.{member}"
    try:
        return from_builtins(value, kind)
    except DecodeError as error:
        place = f"{path}{'' if error.path.startswith('[') or not error.path else '.'}{error.path}"
        raise InvalidParamsError(f"{place}: {error.reason}", {"path": place}) from error


@asynccontextmanager
async def open_filters(
    wanted: Sequence[WantedMember], ctx: Context, session: ServedSession
) -> AsyncGenerator[ExtensionFilters | None]:
    """Serve the members of a filter in a block; None if there are none."""
    made = ExtensionFilters({}, [])
    async with AsyncExitStack() as stack:
        for serve, member, value in wanted:
            listener = ExtensionListener(ctx, session)
            granted = await stack.enter_async_context(serve(value, listener))
            if granted is not None:
                made.granted[member] = granted
            made.listeners.append(listener)
        yield made if wanted else None
