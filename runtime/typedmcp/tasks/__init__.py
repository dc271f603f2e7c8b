"""Tasks on servers: calls that outlive their requests, and the stores that keep them.

https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md
"""

from __future__ import annotations

from typedmcp.tasks.extension import ServerTasks
from typedmcp.tasks.limits import TaskLimits
from typedmcp.tasks.memory import MemoryTaskStore
from typedmcp.tasks.redis import RedisTaskStore
from typedmcp.tasks.store import TaskStore

__all__ = ["MemoryTaskStore", "RedisTaskStore", "ServerTasks", "TaskLimits", "TaskStore"]
