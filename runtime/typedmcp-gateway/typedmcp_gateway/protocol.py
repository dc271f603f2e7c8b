"""The parts of the protocol that a gateway has to know: members of `_meta`, and the Tasks extension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcpspec.ext.tasks import methods
from typedmcp.revisions.features import MODERN

__all__ = ["META_PREFIX", "SERVER_INFO", "SUBSCRIPTION", "TASKS", "TASK_NAMES", "TASK_REVISIONS"]

META_PREFIX: Final = "io.modelcontextprotocol/"
"""The beginning of the names of members that the protocol reserves."""
SERVER_INFO: Final = f"{META_PREFIX}serverInfo"
"""The member of the `_meta` of a result with the name and version of the server."""
SUBSCRIPTION: Final = f"{META_PREFIX}subscriptionId"
"""The member of the `_meta` of a notification with the id of the request `subscriptions/listen` that it belongs to."""
TASKS: Final = methods.EXTENSION_ID
"""The identifier of the Tasks extension."""
TASK_NAMES: Final[Mapping[str, str]] = dict.fromkeys(methods.CLIENT_REQUESTS, "taskId")
"""The requests with the id of a task, and the parameter that has it."""
TASK_REVISIONS: Final = frozenset(MODERN)
"""The revisions on which the extension can be used."""
