"""State that several workers of a server share, in Redis 6.2 or newer: sessions and their streams, and tasks."""

from __future__ import annotations

from typedmcp_redis.store import RedisStore
from typedmcp_redis.tasks import RedisTaskStore

__all__ = ["RedisStore", "RedisTaskStore"]
