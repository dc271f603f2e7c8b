"""Stores of events, under the names of `mcp.server.streamable_http`: typedmcp keeps events itself.

`typedmcp.asgi(…, store=…)` takes one that several workers share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from typedmcp_mcp1 import types

__all__ = ["EventCallback", "EventId", "EventMessage", "EventStore", "StreamId"]

StreamId: TypeAlias = str
EventId: TypeAlias = str


@dataclass
class EventMessage:
    """A message with the id of its event."""

    message: types.JSONRPCMessage
    event_id: str | None = None


EventCallback: TypeAlias = Callable[[EventMessage], Awaitable[None]]


class EventStore(ABC):
    """A store of events. It is accepted, and not used."""

    @abstractmethod
    async def store_event(self, stream_id: StreamId, message: types.JSONRPCMessage | None) -> EventId:
        """Keep an event."""

    @abstractmethod
    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Send the events after one of them."""
