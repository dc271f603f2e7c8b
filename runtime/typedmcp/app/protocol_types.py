"""The protocol's types in what functions return: of either library, exact, of `mcpspec.compat`, or official.

Content and results become everyday Structs. Other types of the protocol are data, like any class.
"""

from __future__ import annotations

from typing import Any, Final

from typedmcp import dialect
from typedmcp.protocol.backends import to_plain, to_struct

__all__ = ["BLOCK_NAMES", "OtherRevisionError", "is_protocol_type", "to_everyday"]

D = dialect.structs

BLOCK_NAMES: Final = frozenset({"TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource"})
_ROOTS: Final = ("mcpspec", "mcp", "mcp_types")
"""The packages with the protocol's types: ours, and the official ones of 1.x and 2.x."""
_EVERYDAY: Final = D.TextContent.__module__
_DIALECT: Final = _EVERYDAY.split(".")[1]


class OtherRevisionError(TypeError):
    """A function returned content or a result of another revision."""


def is_protocol_type(kind: Any, names: frozenset[str]) -> bool:
    """Return whether a class is one of the protocol's types with these names, of any library and revision."""
    return getattr(kind, "__name__", None) in names and _path(kind)[0] in _ROOTS


def to_everyday(value: Any, names: frozenset[str]) -> Any:
    """Return a value of the protocol's types with these names as an everyday Struct, and any other value as it is.

    Raises `OtherRevisionError` for a type of another revision.
    """
    kind = value.__class__
    if kind.__name__ not in names or kind.__module__ == _EVERYDAY or not is_protocol_type(kind, names):
        return value
    root, package, *_ = _path(kind)
    if root == "mcpspec" and package not in (_DIALECT, "compat", "ext"):
        version = dialect.methods.PROTOCOL_VERSION
        raise OtherRevisionError(
            f"{kind.__name__} of {root}.{package}; return that of typedmcp.types, "
            f"or mcpspec.convert(value, to={version!r}).value"
        )
    made = to_struct(value)
    if made.__class__.__module__ == _EVERYDAY:
        return made
    return D.from_builtins(to_plain(made), getattr(D, kind.__name__))  # the same type in an extension


def _path(kind: Any) -> list[str]:
    return f"{kind.__module__}.".split(".")
