"""The revisions of the protocol, as tasks need them: with the extension, or with tasks in the protocol itself."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import mcpspec
from mcpspec.features import FEATURES
from typedmcp.dialect import methods

__all__ = ["DIALECT", "MODERN", "RELATED_TASK", "SERVER_INFO", "WITH_TASKS", "structs_of"]

DIALECT: Final[str] = methods.PROTOCOL_VERSION
"""The revision that handlers are written in."""

MODERN: Final = tuple(version for version, each in FEATURES.items() if each.is_modern and version <= DIALECT)
"""The revisions with the extension: those without a handshake."""

WITH_TASKS: Final = frozenset(version for version, each in FEATURES.items() if each.has_tasks)
"""The revisions that have tasks in the protocol itself."""

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The member of `_meta` with the task of a message, on these revisions."""

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
"""The member of `_meta` with name and version of the server, which results of modern revisions have."""


@cache
def structs_of(revision: str) -> Any:
    """Return the module of the exact Structs of a revision."""
    return mcpspec.revision(revision).exact.structs
