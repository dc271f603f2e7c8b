"""The limits on tasks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite

from typedmcp.errors import UsageError

__all__ = ["TASK_BYTES", "TaskLimits"]

TASK_BYTES = 1 << 10
"""Bytes that a task counts in addition to its request, its questions and answers, and its result."""


@dataclass(frozen=True)
class TaskLimits:
    """The limits of a store of tasks. Raises `UsageError` for a limit that is not positive."""

    # Tasks
    tasks: int = 10_000
    """Tasks at a time, until they are deleted.

    A call that needs another task gets error -32603.
    """
    task_bytes: int = 64 << 20
    """Bytes of all tasks: requests, questions and answers, results, and 1 KiB for each task.

    A call that needs another task gets error -32603. A task whose result does not fit fails.
    """
    client_share_percent: int = 25
    """Percent of tasks and of their bytes that one client can use: a principal or an address. 100 sets no share.

    The client gets what follows from the limit. Other clients do not notice it.
    """
    result_bytes: int = 4 << 20
    """Bytes of the result of one task, and of one input request.

    The task fails.
    """
    ttl: float = 3600.0
    """Seconds that a task may take.

    The task fails.
    """
    keep: float = 300.0
    """Seconds after `ttl` for which a task is kept, so at least so long after its end.

    The task is deleted.
    """
    takeovers: int = 3
    """Times that a task with `retry=True` is run again, since its worker has died.

    The task fails.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not (value > 0 and isfinite(value)):
                raise UsageError(f"tasks: {field.name} must be a positive number, not {value!r}")
        if self.client_share_percent > 100:
            raise UsageError(f"tasks: client_share_percent must be at most 100, not {self.client_share_percent}")

    @property
    def ttl_ms(self) -> int:
        """The milliseconds from the beginning of a task until it is deleted."""
        return int((self.ttl + self.keep) * 1000)

    def share_of(self, total: int) -> int:
        """Return the part of a limit that one client can use."""
        return max(1, total * self.client_share_percent // 100)
