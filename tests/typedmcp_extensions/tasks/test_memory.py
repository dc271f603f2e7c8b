"""The store of tasks in memory."""

from __future__ import annotations

import pytest

from tests.typedmcp_extensions.tasks.suite import Make, TaskStoreSuite
from typedmcp_extensions.tasks import MemoryTaskStore


class TestMemoryTaskStore(TaskStoreSuite):
    @pytest.fixture
    def make(self) -> Make:
        return MemoryTaskStore
