"""The events that the page is told, kept so that a page that is opened later, or again, shows the same."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

__all__ = ["EventLog"]

_MAX_WAITING = 10_000
"""Events that wait for a browser. A slower one is disconnected, connects again, and begins with what is kept."""
_HEARTBEAT_SECONDS = 15.0
_HEARTBEAT = b": alive\n\n"


class EventLog:
    """Current values by key, and past events of at most `max_bytes` in total; the oldest are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size: int = 0
        """Bytes of the past events."""
        self._values: dict[str, bytes] = {}
        self._past: deque[bytes] = deque()
        self._dropped = 0
        self._readers: set[asyncio.Queue[bytes | None]] = set()
        self._is_closed = False

    def set(self, key: str, kind: str, data: Mapping[str, Any]) -> None:
        """Tell the page the current value of something, in place of an earlier one."""
        self._values[key] = event = _encode(kind, data)
        self._send(event)

    def unset(self, key: str, kind: str, data: Mapping[str, Any]) -> None:
        """Forget a value, and tell the page with another event that it is gone."""
        if self._values.pop(key, None) is not None:
            self._send(_encode(kind, data))

    def add(self, kind: str, data: Mapping[str, Any]) -> None:
        """Tell the page that something happened."""
        event = _encode(kind, data)
        self._past.append(event)
        self.size += len(event)
        while self.size > self.max_bytes:
            self.size -= len(self._past.popleft())
            self._dropped += 1
        self._send(event)

    def clear(self) -> None:
        """Forget the past events."""
        self._past.clear()
        self.size = self._dropped = 0
        self._send(_encode("cleared", {}))

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        for reader in self._readers:
            reader.put_nowait(None)

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield what is kept, and then each new event, in the format of an event stream."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._readers.add(queue)
        if self._is_closed:
            queue.put_nowait(None)
        try:
            yield _encode("begin", {"dropped": self._dropped})
            for event in [*self._values.values(), *self._past]:
                yield event
            yield _encode("ready", {})
            while queue.qsize() < _MAX_WAITING:
                new: bytes | None = _HEARTBEAT
                with suppress(TimeoutError):
                    async with asyncio.timeout(_HEARTBEAT_SECONDS):
                        new = await queue.get()
                if new is None:
                    return
                yield new
        finally:
            self._readers.discard(queue)

    def _send(self, event: bytes) -> None:
        for reader in self._readers:
            if reader.qsize() < _MAX_WAITING:
                reader.put_nowait(event)


def _encode(kind: str, data: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(data))
