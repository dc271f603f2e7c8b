"""The hub for changes: handlers publish them, and connections listen for them."""

from __future__ import annotations

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

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every change, until the returned function is called."""
        key = object()
        self._listeners[key] = listener
        return lambda: (self._listeners.pop(key, None), None)[1]

    def __len__(self) -> int:
        return len(self._listeners)

    def _publish(self, change: Change, uri: str | None) -> None:
        for listener in list(self._listeners.values()):
            listener(change, uri)
