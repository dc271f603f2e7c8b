"""Subscriptions to changes at a server.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from typedmcp import dialect
from typedmcp.client.requests.call_options import CallOptions
from typedmcp.errors import ConnectionLostError, Error, RequestTimeoutError
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.notifications import Change
from typedmcp.protocol.pending import Call
from typedmcp.transports.concurrency import limit_time

__all__ = ["ChangeEvent", "Subscription"]

D = dialect.structs


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """A change: of a list, or of the content at `uri` if `kind` is "resource"."""

    kind: Change
    uri: str | None = None


Listen: TypeAlias = "Callable[[Subscription], Coroutine[Any, Any, None]]"


class Subscription:
    """An async iterator over changes. Enter it with `async with`, which also ends it.

    Changes that repeat before they are read are merged. After a restart of the server the iterator yields one change
    for everything that it is subscribed to, since changes may have been missed.
    """

    def __init__(
        self,
        listen: Listen,
        timeout: float | None,
        lists: Iterable[Change],
        uris: Iterable[str],
        members: Mapping[str, Any] | None,
        options: CallOptions,
    ) -> None:
        self._listen = listen
        self._timeout = timeout
        self.lists: frozenset[Change] = frozenset(lists)
        """The lists that are subscribed to."""
        self.uris: frozenset[str] = frozenset(uris)
        """The resources that are subscribed to."""
        self.members: Mapping[str, Any] = dict(members or {})
        """The members of the filter that extensions add, by name."""
        self.options: CallOptions = options
        """The options of the request, on modern servers."""
        self.granted_members: Mapping[str, Any] = {}
        """The members that a modern server agreed to, by name, with those of the protocol."""
        self.granted: D.SubscriptionFilter | None = None
        """What a modern server agreed to send. None before that, and on legacy servers."""
        self.call: Call | None = None
        """The request `subscriptions/listen`, on modern servers."""
        self._changes: dict[ChangeEvent, None] = {}
        self._has_changes = asyncio.Event()
        self._established: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._has_ended = False
        self._error: Error | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def filter(self) -> D.SubscriptionFilter:
        """The filter of the request `subscriptions/listen`."""
        made = D.SubscriptionFilter()
        for name in self.lists:
            setattr(made, f"{name}_list_changed", True)
        if self.uris:
            made.resource_subscriptions = sorted(self.uris)
        return made

    @property
    def id(self) -> RequestId | None:
        """The id of the request `subscriptions/listen`, on modern servers."""
        return None if self.call is None else self.call.id

    @property
    def not_granted(self) -> list[str]:
        """The changes that a modern server did not agree to send: kinds of lists, URIs, and members of extensions."""
        if self.granted is None:
            return []
        lists = [kind for kind in self.lists if not getattr(self.granted, f"{kind}_list_changed")]
        members = [name for name in self.members if name not in self.granted_members]
        return sorted(lists) + sorted(self.uris - {*(self.granted.resource_subscriptions or ())}) + members

    @property
    def is_established(self) -> bool:
        """True once the server sends changes."""
        return self._established.done()

    # For its user

    async def __aenter__(self) -> Subscription:
        self._task = asyncio.get_running_loop().create_task(self._listen(self))
        self._task.add_done_callback(self._on_task_done)
        try:
            if not await limit_time(self._timeout, asyncio.shield(self._established)):
                error = RequestTimeoutError(self._timeout or 0.0)
                raise error.attach_call("subscriptions/listen", self.id or "none")
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> ChangeEvent:
        """Wait for the next change. Raises `ConnectionLostError` if neither side ended the subscription."""
        while not self._changes:
            if self._has_ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._has_changes.clear()
            await self._has_changes.wait()
        change = next(iter(self._changes))
        del self._changes[change]
        return change

    async def close(self) -> None:
        """End the subscription. May be called again."""
        self._end(None)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # For the client

    def establish(self, granted: D.SubscriptionFilter | None) -> None:
        """Note that the server sends changes from now on."""
        self.granted = granted
        if not self._established.done():
            self._established.set_result(None)

    def add(self, change: ChangeEvent) -> None:
        """Add a change, if it is subscribed to."""
        is_wanted = change.uri in self.uris if change.kind == "resource" else change.kind in self.lists
        if is_wanted:
            self._changes[change] = None
            self._has_changes.set()

    def add_all(self) -> None:
        """Add every change that is subscribed to, after changes may have been missed."""
        for kind in self.lists:
            self.add(ChangeEvent(kind))
        for uri in self.uris:
            self.add(ChangeEvent("resource", uri))

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Error):
            error = ConnectionLostError(f"the subscription failed: {error!r}")
        self._end(error)

    def _end(self, error: Error | None) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self._error = error
        if not self._established.done():
            self._established.set_exception(error or ConnectionLostError("the server ended the subscription"))
            self._established.exception()  # marks it as retrieved
        self._has_changes.set()
