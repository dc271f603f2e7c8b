"""Requests whose handlers wait: what such a request needs begins only once it has waited for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from typedmcp.server.http.messages import Receive

__all__ = ["WaitingRequests"]

_MOMENT: Final = 0.02
"""Seconds after which a request is watched. Most handlers that wait have ended before."""


class WaitingRequests:
    """Calls a function for each request that waits for a moment. All requests share one timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._requests: dict[Any, tuple[float, Callable[[Any, Receive], None], Receive]] = {}
        """When each request is due, and its function, in the order of time."""
        self._has_timer = False

    def add(self, request: Any, on_wait: Callable[[Any, Receive], None], receive: Receive) -> None:
        """Call a function, with the request and `receive`, unless the request is removed within a moment."""
        due = self._loop.time() + _MOMENT
        self._requests[request] = due, on_wait, receive
        if not self._has_timer:
            self._has_timer = True
            self._loop.call_at(due, self._call_due)

    def remove(self, request: Any) -> None:
        """Remove a request, which has ended."""
        self._requests.pop(request, None)

    def _call_due(self) -> None:
        self._has_timer = False
        now = self._loop.time()
        for request, (due, on_wait, receive) in list(self._requests.items()):
            if due > now:
                self._has_timer = True
                self._loop.call_at(due, self._call_due)
                return
            del self._requests[request]
            on_wait(request, receive)
