"""Stores: the interface of what keeps the state of servers, and what a store of your own needs.

`Store` is for servers over HTTP: sessions, streams of events, and messages between workers. A store keeps within its
limits, and counts what it keeps with the size functions, so that limits mean the same for all stores.
`docs/building-on-typedmcp.md` describes it, and the stores of tasks of `typedmcp_extensions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.satellites import satellite_names
from typedmcp.server.store import (
    MessageCallback,
    Store,
    StoredEvent,
    StreamNotFoundError,
    TooManySessionsError,
    TooManySubscriptionsError,
    deliver,
)
from typedmcp.server.store.limits import EVENT_STREAM_BYTES, StoreLimits, session_size, subscription_size

__all__ = [
    "EVENT_STREAM_BYTES", "MessageCallback", "Store", "StoreLimits", "StoredEvent", "StreamNotFoundError",
    "TooManySessionsError", "TooManySubscriptionsError", "deliver", "session_size", "subscription_size",
]  # fmt: skip

_OF_TASKS = frozenset((
    "TASK_BYTES", "NewTask", "OnTaskChange", "Outcome", "Question", "Renewal", "TakenTask", "TaskLimits", "TaskRecord",
    "TaskStatus", "TaskStore", "TasksFullError", "is_unfinished",
))  # fmt: skip


if not TYPE_CHECKING:  # with `__getattr__`, type checkers would accept every name
    __getattr__ = satellite_names(__name__, _OF_TASKS, "extensions.tasks")
