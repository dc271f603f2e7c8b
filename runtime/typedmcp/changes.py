"""The change hub: handlers publish what changed, and every listener that asked hears of it.

A modern listener is a `subscriptions/listen` request with a filter; an older session is one listener, whose set of
resources follows `resources/subscribe` and `resources/unsubscribe`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

__all__ = ["Change", "Changes", "Listener"]

Change: TypeAlias = Literal["tools", "prompts", "resources", "resource"]

Listener: TypeAlias = Callable[[Change, str | None], None]
"""Called with what changed; for one resource with its URI."""


class Changes:
    """Tells listeners what changed. Share one between all that `serve` the same things in a process."""

    def __init__(self) -> None:
        self._listeners: dict[object, Listener] = {}

    def tools_changed(self) -> None:
        """The list of tools is another than before."""
        self._publish("tools", None)

    def prompts_changed(self) -> None:
        """The list of prompts is another than before."""
        self._publish("prompts", None)

    def resources_changed(self) -> None:
        """The list of resources is another than before."""
        self._publish("resources", None)

    def resource_updated(self, uri: str) -> None:
        """What can be read at a URI is another than before."""
        self._publish("resource", uri)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear of every change; call what is returned to stop."""
        key = object()
        self._listeners[key] = listener
        return lambda: (self._listeners.pop(key, None), None)[1]

    def __len__(self) -> int:
        return len(self._listeners)

    def _publish(self, change: Change, uri: str | None) -> None:
        for listener in list(self._listeners.values()):
            listener(change, uri)
