"""The former place of the store of tasks in Redis, now a distribution of its own. Importing it says where it is."""

from __future__ import annotations

from typedmcp.errors import moved

__all__: list[str] = []

raise ImportError(moved("typedmcp.tasks.redis", "redis", "from typedmcp_redis import RedisTaskStore"))
