"""The Tasks extension, as servers and clients both see it.

https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md
"""

from __future__ import annotations

from typing import Final

from mcpspec.ext.tasks import methods, structs
from typedmcp.extensions import Extension
from typedmcp_extensions.tasks.revisions import MODERN

__all__ = ["FINAL_STATUSES", "TASKS"]

TASKS: Final = Extension(
    methods.EXTENSION_ID,
    methods,
    results={"tools/call": structs.CreateTaskResult},
    names=dict.fromkeys(methods.CLIENT_REQUESTS, "taskId"),
    revisions=MODERN,
)
"""The extension: `tasks/get`, `tasks/update`, `tasks/cancel`, and tasks as results of `tools/call`."""

FINAL_STATUSES: Final = frozenset(("completed", "failed", "cancelled"))
"""The states that a task does not leave."""
