"""Which revisions there are, and of which era.

Modern revisions carry version and capabilities in every request; legacy ones agree on them in a handshake.
https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mcpspec

__all__ = ["DIALECT", "LEGACY", "SUPPORTED", "has_batches", "is_modern", "methods", "types"]


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


def is_modern(revision: str) -> bool:
    """Whether a revision does without a handshake. Revisions that nobody here knows are taken for new ones."""
    return revision not in LEGACY
