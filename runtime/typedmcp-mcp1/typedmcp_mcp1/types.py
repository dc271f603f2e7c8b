"""The types of the protocol under the names of `mcp.types`: those of `mcpspec.compat`, with both spellings of members.

An object has its members under their Python names and under those on the wire: `tool.input_schema`, `tool.inputSchema`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import AnyUrl as AnyUrl

from mcpspec import compat
from typedmcp.revisions.features import LEGACY

AnyFunction: TypeAlias = Callable[..., Any]

if TYPE_CHECKING:
    from mcpspec.compat.types import *
else:
    LATEST_PROTOCOL_VERSION: str = LEGACY[0]
    """The newest revision that has a handshake, which is the newest one that mcp 1.x speaks."""

_OWN = ("AnyFunction", "AnyUrl", "LATEST_PROTOCOL_VERSION")

__all__ = sorted({*dir(compat), *_OWN} - {"names", "sdk"})  # pyright: ignore[reportUnsupportedDunderAll]
__all__ = [name for name in __all__ if not name.startswith("_")]  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a type, which is made when it is first used."""
        try:
            value = getattr(compat, name)
        except AttributeError:
            reason = compat.names.MISSING.get(name)
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}{f': it {reason}' if reason else ''}"
            ) from None
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return __all__
