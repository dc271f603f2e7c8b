"""What the generated handler Protocols share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

from mcpspec._support.errors import MethodNotFoundError

__all__ = ["ContextT", "MaybeAwaitable", "MethodNotFoundError"]

ContextT = TypeVar("ContextT", contravariant=True)
"""What a runtime passes to handlers beside the parameters."""

T = TypeVar("T")

MaybeAwaitable: TypeAlias = T | Awaitable[T]
"""Handlers may be plain functions or coroutine functions."""
