"""Tasks: calls that outlive their requests, on servers and on clients, and the stores that keep them.

The extension `io.modelcontextprotocol/tasks`, and tasks as revision 2025-11-25 has them in the protocol itself. A name
is imported when it is first used, so that a server loads nothing of clients.
https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.building import lazy_names

if TYPE_CHECKING:
    from typedmcp_extensions.tasks.blocking import SyncTaskCalls
    from typedmcp_extensions.tasks.client import ClientTasks, OnTaskStatus, TaskCalls
    from typedmcp_extensions.tasks.extension import FINAL_STATUSES, TASKS
    from typedmcp_extensions.tasks.journal import KnownTask
    from typedmcp_extensions.tasks.limits import TASK_BYTES, TaskLimits
    from typedmcp_extensions.tasks.memory import MemoryTaskStore
    from typedmcp_extensions.tasks.server import ServerTasks
    from typedmcp_extensions.tasks.store import (
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
else:
    __getattr__, __dir__ = lazy_names(globals(), {
        ".blocking": ["SyncTaskCalls"],
        ".client": ["ClientTasks", "OnTaskStatus", "TaskCalls"],
        ".extension": ["FINAL_STATUSES", "TASKS"],
        ".journal": ["KnownTask"],
        ".limits": ["TASK_BYTES", "TaskLimits"],
        ".memory": ["MemoryTaskStore"],
        ".server": ["ServerTasks"],
        ".store": [
            "NewTask", "OnTaskChange", "Outcome", "Question", "Renewal", "TakenTask", "TaskRecord", "TaskStatus",
            "TaskStore", "TasksFullError", "is_unfinished",
        ],
    })  # fmt: skip

__all__ = [
    "FINAL_STATUSES", "TASKS", "TASK_BYTES", "ClientTasks", "KnownTask", "MemoryTaskStore", "NewTask", "OnTaskChange",
    "OnTaskStatus", "Outcome", "Question", "Renewal", "ServerTasks", "SyncTaskCalls", "TakenTask", "TaskCalls",
    "TaskLimits", "TaskRecord", "TaskStatus", "TaskStore", "TasksFullError", "is_unfinished",
]  # fmt: skip
