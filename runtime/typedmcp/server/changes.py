"""The hub for changes: handlers publish them, and connections listen for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from typedmcp.protocol.notifications import Change

__all__ = ["Changes", "Listener"]

Listener: TypeAlias = Callable[[Change, str | None], None]
"""Called with the kind of a change, and with its URI if it is about one resource."""


class Changes:
    """Passes changes on to listeners. Servers in one process that serve the same content should share one hub."""

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}

    def tools_changed(self) -> None:
        """Publish that the list of tools has changed."""
        self._publish("tools", None)

    def prompts_changed(self) -> None:
        """Publish that the list of prompts has changed."""
        self._publish("prompts", None)

    def resources_changed(self) -> None:
        """Publish that the list of resources has changed."""
        self._publish("resources", None)

    def resource_updated(self, uri: str) -> None:
        """Publish that the content of one resource has changed."""
        self._publish("resource", uri)

    def listen(self, listener: Listener, loop: asyncio.AbstractEventLoop | None = None) -> Callable[[], None]:
        """Call `listener` with every change, until the returned function is called.

        With a loop, it is called in the next turn of the loop, whatever thread publishes, and once for equal changes.
        """
        key = object()
        self._listeners[key] = listener if loop is None else _merge_equal(listener, loop)
        return lambda: (self._listeners.pop(key, None), None)[1]

    def __len__(self) -> int:
        return len(self._listeners)

    def _publish(self, change: Change, uri: str | None) -> None:
        for listener in list(self._listeners.values()):
            listener(change, uri)


def _merge_equal(listener: Listener, loop: asyncio.AbstractEventLoop) -> Listener:
    waiting = set[tuple[Change, str | None]]()

    def publish(change: Change, uri: str | None) -> None:
        waiting.discard((change, uri))
        listener(change, uri)

    def on_change(change: Change, uri: str | None) -> None:
        if (change, uri) not in waiting and not loop.is_closed():
            waiting.add((change, uri))
            loop.call_soon_threadsafe(publish, change, uri)

    return on_change
