"""Stores: the interfaces of what keeps the state of servers, and what a store of your own needs.

`Store` is for servers over HTTP: sessions, streams of events, and messages between workers. `TaskStore` is for
`ServerTasks`. A store keeps within its limits, and counts what it keeps with the size functions, so that limits mean
the same for all stores. `docs/building-on-typedmcp.md` describes both.
"""

from __future__ import annotations

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
from typedmcp.tasks.limits import TASK_BYTES, TaskLimits
from typedmcp.tasks.store import (
    NewTask,
    OnTaskChange,
    Outcome,
    Question,
    Renewal,
    TakenTask,
    TaskRecord,
    TasksFullError,
    TaskStatus,
    TaskStore,
    is_unfinished,
)

__all__ = [
    "EVENT_STREAM_BYTES", "TASK_BYTES", "MessageCallback", "NewTask", "OnTaskChange", "Outcome", "Question", "Renewal",
    "Store", "StoreLimits", "StoredEvent", "StreamNotFoundError", "TakenTask", "TaskLimits", "TaskRecord",
    "TaskStatus", "TaskStore", "TasksFullError", "TooManySessionsError", "TooManySubscriptionsError", "deliver",
    "is_unfinished", "session_size", "subscription_size",
]  # fmt: skip
