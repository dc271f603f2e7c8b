"""Which revisions there are, and of which era.

Modern revisions carry version and capabilities in every request; legacy ones agree on them in a handshake.
https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mcpspec

__all__ = [
    "DIALECT", "LEGACY", "SUPPORTED", "UNSAID", "has_batches", "is_modern", "methods", "takes_empty_events", "types",
]  # fmt: skip


@cache
def methods(revision: str) -> Any:
    """The method records of a revision."""
    return mcpspec.revision(revision).methods


@cache
def types(revision: str) -> Any:
    """The msgspec types of a revision."""
    return mcpspec.revision(revision).structs


@cache
def has_batches(revision: str) -> bool:
    """Whether a frame may hold several messages."""
    return hasattr(types(revision), "JSONRPCBatchRequest")


def _dialect() -> str:
    from typedmcp import dialect

    return dialect.methods.PROTOCOL_VERSION


DIALECT = _dialect()
"""The revision that handlers and clients are written in."""

SUPPORTED = tuple(reversed([version for version in mcpspec.VERSIONS if version <= DIALECT]))
"""Every revision that is spoken, newest first."""

LEGACY = tuple(version for version in SUPPORTED if version < DIALECT)
"""Those with a handshake, newest first. Known without a look at their types: who does not speak them loads none."""


UNSAID = "2025-03-26"
"""What a request over HTTP is taken to be of that does not say it: later revisions have a header for that.

https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#protocol-version-header
"""

_FIRST_WITH_EMPTY_EVENTS = "2025-11-25"


def takes_empty_events(revision: str) -> bool:
    """Whether clients take a server-sent event without data, after which a stream can be resumed.

    https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server
    """
    return revision >= _FIRST_WITH_EMPTY_EVENTS


def is_modern(revision: str) -> bool:
    """Whether a revision does without a handshake. Revisions that nobody here knows are taken for new ones."""
    return revision not in LEGACY
