"""Tasks: calls that outlive their requests, on servers and on clients, and the stores that keep them.

The extension `io.modelcontextprotocol/tasks`, and tasks as revision 2025-11-25 has them in the protocol itself. A name
is imported when it is first used, so that a server loads nothing of clients.
https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names as in _MODULES, which a test compares
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

_MODULES = {
    "blocking": ["SyncTaskCalls"],
    "client": ["ClientTasks", "OnTaskStatus", "TaskCalls"],
    "extension": ["FINAL_STATUSES", "TASKS"],
    "journal": ["KnownTask"],
    "limits": ["TASK_BYTES", "TaskLimits"],
    "memory": ["MemoryTaskStore"],
    "server": ["ServerTasks"],
    "store": [
        "NewTask", "OnTaskChange", "Outcome", "Question", "Renewal", "TakenTask", "TaskRecord", "TaskStatus",
        "TaskStore", "TasksFullError", "is_unfinished",
    ],
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "FINAL_STATUSES", "TASKS", "TASK_BYTES", "ClientTasks", "KnownTask", "MemoryTaskStore", "NewTask", "OnTaskChange",
    "OnTaskStatus", "Outcome", "Question", "Renewal", "ServerTasks", "SyncTaskCalls", "TakenTask", "TaskCalls",
    "TaskLimits", "TaskRecord", "TaskStatus", "TaskStore", "TasksFullError", "is_unfinished",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
