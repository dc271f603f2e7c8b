"""The description of a server, as negotiation finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typedmcp import dialect

__all__ = ["ServerDescription"]

D = dialect.structs


@dataclass(frozen=True)
class ServerDescription:
    """The description of a server, in the dialect."""

    revision: str
    """The negotiated protocol revision."""
    capabilities: D.ServerCapabilities
    info: D.Implementation | None
    """Name and version. Modern servers may leave them out."""
    instructions: str | None
    supported: Sequence[str] = ()
    """All revisions that the server names as supported."""
    tasks: Mapping[str, Any] | None = None
    """The capability `tasks` in plain JSON, on a revision that has tasks in the protocol itself."""
