"""The revisions that the runtime speaks, and the features of each.

Code that depends on a revision asks its feature record, and never compares versions. Modern revisions carry version
and capabilities in every request; legacy ones agree on them in a handshake.
https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import mcpspec
from mcpspec.features import Features
from typedmcp import dialect

__all__ = [
    "DEFAULT_HTTP_REVISION", "DIALECT", "FEATURES", "LEGACY", "MODERN", "MODERN_ERROR_CODES",
    "SUPPORTED", "Features", "is_modern", "methods_of", "structs_of",
]  # fmt: skip

DIALECT: Final[str] = dialect.methods.PROTOCOL_VERSION
"""The revision that handlers and clients are written in."""

FEATURES: Final = dialect.SPOKEN
"""The features of each supported revision, oldest first."""

SUPPORTED: Final = tuple(reversed([*FEATURES]))
"""The revisions that the runtime speaks, newest first: the dialect and all older ones."""

MODERN: Final = tuple(version for version in SUPPORTED if FEATURES[version].is_modern)
"""The supported revisions without a handshake, newest first."""

LEGACY: Final = tuple(version for version in SUPPORTED if not FEATURES[version].is_modern)
"""The supported revisions with a handshake, newest first."""

MODERN_ERROR_CODES: Final = frozenset(code for version in MODERN for code in FEATURES[version].error_codes.values()) - {
    code for version in LEGACY for code in FEATURES[version].error_codes.values()
}
"""The error codes that only modern revisions have. A server that answers with one is a modern server."""

DEFAULT_HTTP_REVISION: Final = next(
    version for version in LEGACY if FEATURES[version].has_streamable_http and not FEATURES[version].has_version_header
)
"""The revision assumed for an HTTP request without the header `MCP-Protocol-Version`.

https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#protocol-version-header
"""


def is_modern(revision: str) -> bool:
    """Return whether a revision works without a handshake. An unknown revision counts as a future, modern one."""
    return revision not in LEGACY


@cache
def methods_of(revision: str) -> Any:
    """Return the `methods` module of a revision. The exact types of a method are in its `exact`."""
    return mcpspec.revision(revision).methods


@cache
def structs_of(revision: str) -> Any:
    """Return the module of the exact structs of a revision."""
    return mcpspec.revision(revision).exact.structs
