"""Hearing of what changes at a server.

A modern server tells a `subscriptions/listen` request, an older one tells the session, and resources by
`resources/subscribe`.
https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typedmcp import dialect
from typedmcp.changes import Change
from typedmcp.errors import ConnectionLost, Error, RequestTimeout

if TYPE_CHECKING:
    from typedmcp.client.client import Client

__all__ = ["Changed", "Subscription"]

D = dialect.structs

KINDS: dict[str, Change] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    "notifications/resources/updated": "resource",
}


@dataclass(frozen=True, slots=True)
class Changed:
    """Something changed: a list, or what can be read at `uri` where `kind` is "resource"."""

    kind: Change
    uri: str | None = None


class Subscription:
    """What changes, as an async iterator; to be entered with `async with`, which ends it too.

    A change that happens again before it is taken is given once. After a restart of the server everything that is
    listened for is given, since nobody knows what was missed.
    """

    def __init__(self, client: Client, wanted: Iterable[Change], uris: Iterable[str]) -> None:
        self._client = client
        self.wanted: set[Change] = set(wanted)
        self.uris: set[str] = set(uris)
        self.granted: D.SubscriptionFilter | None = None
        """What a modern server agreed to tell; None until it did, and on older wires."""
        self.id: int | None = None
        self._happened: dict[Changed, None] = {}
        self._news = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = False
        self._error: Error | None = None
        self._listening: asyncio.Task[None] | None = None

    @property
    def filter(self) -> D.SubscriptionFilter:
        """What is asked for on a modern wire."""
        asked = D.SubscriptionFilter()
        if "tools" in self.wanted:
            asked.tools_list_changed = True
        if "prompts" in self.wanted:
            asked.prompts_list_changed = True
        if "resources" in self.wanted:
            asked.resources_list_changed = True
        if self.uris:
            asked.resource_subscriptions = sorted(self.uris)
        return asked

    @property
    def is_established(self) -> bool:
        """Whether the server has said that it tells."""
        return self._ready.done()

    # For whoever listens

    async def __aenter__(self) -> Subscription:
        self._listening = asyncio.get_running_loop().create_task(self._client._listen(self))  # pyright: ignore[reportPrivateUsage]
        self._listening.add_done_callback(self._over)
        try:
            await self._acknowledged()
        except BaseException:
            await self.close()
            raise
        return self

    async def _acknowledged(self) -> None:
        seconds = self._client.timeout
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), seconds)
        except TimeoutError:
            raise RequestTimeout(seconds or 0.0).of_call("subscriptions/listen", self.id or "none") from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Changed:
        """The next change. Raises `ConnectionLost` where the end was not the server's or this side's will."""
        while not self._happened:
            if self._ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        changed = next(iter(self._happened))
        del self._happened[changed]
        return changed

    async def close(self) -> None:
        """Stop listening. Twice is once."""
        self._end(None)
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    # For the client

    def established(self, granted: D.SubscriptionFilter | None) -> None:
        """The server tells from now on."""
        self.granted = granted
        if not self._ready.done():
            self._ready.set_result(None)

    def heard(self, changed: Changed) -> None:
        """Something changed; not everything is wanted here."""
        if changed.uri in self.uris if changed.kind == "resource" else changed.kind in self.wanted:
            self._happened[changed] = None
            self._news.set()

    def missed(self) -> None:
        """Anything may have changed."""
        for kind in self.wanted:
            self.heard(Changed(kind))
        for uri in self.uris:
            self.heard(Changed("resource", uri))

    def _over(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Error):
            error = ConnectionLost(f"listening failed: {error!r}")
        self._end(error)

    def _end(self, error: Any) -> None:
        if self._ended:
            return
        self._ended = True
        self._error = error
        if not self._ready.done():
            self._ready.set_exception(error or ConnectionLost("the server ended the subscription"))
            self._ready.exception()  # it may be that nobody waits
        self._news.set()
