"""The store in Redis behaves as every store does."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.redis_server import RedisServer, shared_redis
from tests.server.store.suite import StoreSuite, StoreWorld
from typedmcp.stores import Store, StoreLimits
from typedmcp_redis import RedisStore

__all__ = ["shared_redis"]  # a fixture


class RedisWorld(StoreWorld):
    """Stores with the same keys in Redis."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._prefix = f"{secrets.token_hex(4)}:"

    def store(self, **options: Any) -> Store:
        lease = options.pop("lease", 5.0)
        return RedisStore(self._server.url, prefix=self._prefix, lease=lease, limits=StoreLimits(**options))

    def advance(self, seconds: float) -> None:
        self._server.advance(self._prefix, seconds)


class TestRedisStore(StoreSuite):
    @pytest.fixture
    def world(self, shared_redis: RedisServer) -> RedisWorld:
        return RedisWorld(shared_redis)
