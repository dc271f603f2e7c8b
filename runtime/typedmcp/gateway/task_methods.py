"""The extension Tasks, as a gateway passes it on: its methods, and the results that are tasks."""

from __future__ import annotations

from typing import Final

from mcpspec.ext.tasks import methods, structs
from typedmcp.protocol.extensions import Extension
from typedmcp.revisions.features import MODERN

__all__ = ["TASKS", "TASK_METHODS"]

TASKS: Final = Extension(
    methods.EXTENSION_ID,
    methods,
    results={"tools/call": structs.CreateTaskResult},
    names=dict.fromkeys(methods.CLIENT_REQUESTS, "taskId"),
    revisions=MODERN,
)
"""The extension Tasks, whose ids of tasks the gateway converts."""

TASK_METHODS: Final = frozenset(name for name, record in TASKS.methods.items() if record.kind == "request")
"""The requests with the id of a task."""
