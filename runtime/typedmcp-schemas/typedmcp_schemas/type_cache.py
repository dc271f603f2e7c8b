"""A cache for functions of types."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar, cast

__all__ = ["cached_by_type"]

F = TypeVar("F", bound=Callable[..., Any])

_CACHED_TYPES: Final = 1024


def cached_by_type(make: F) -> F:
    """Keep what a function returns for the types that were used last; types that are not hashable are not kept.

    The text of a type is part of the key: unions that differ only in their order compare equal.
    """

    @lru_cache(_CACHED_TYPES)
    def kept(hint: Any, _text: str, *args: Any) -> Any:
        return make(hint, *args)

    @wraps(make)
    def cached(hint: Any, *args: Any) -> Any:
        try:
            hash(hint)
        except TypeError:
            return make(hint, *args)
        return kept(hint, repr(hint), *args)

    return cast(F, cached)
