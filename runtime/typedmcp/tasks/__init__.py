"""Tasks on servers: calls that outlive their requests, and the stores that keep them.

https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typedmcp.tasks.extension import ServerTasks
from typedmcp.tasks.limits import TaskLimits
from typedmcp.tasks.memory import MemoryTaskStore
from typedmcp.tasks.store import TaskStore

__all__ = ["MemoryTaskStore", "ServerTasks", "TaskLimits", "TaskStore"]

if not TYPE_CHECKING:  # with `__getattr__`, type checkers would accept every name

    def __getattr__(name: str) -> object:
        """Say where the store in Redis is."""
        if name != "RedisTaskStore":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from typedmcp.errors import moved

        raise ImportError(moved(f"{__name__}.{name}", "redis", f"from typedmcp_redis import {name}"))
