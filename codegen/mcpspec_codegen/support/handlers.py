"""Types that the generated handler Protocols share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

from mcpspec.support.errors import UnimplementedMethodError

__all__ = ["ContextT", "MaybeAwaitable", "UnimplementedMethodError"]

ContextT = TypeVar("ContextT", contravariant=True)
"""Type of the context that a runtime passes to handlers, in addition to the parameters."""

T = TypeVar("T")

MaybeAwaitable: TypeAlias = T | Awaitable[T]
"""Return type of handlers, which may be plain functions or coroutine functions."""
