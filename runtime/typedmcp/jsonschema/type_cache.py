"""A cache for functions of types."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

__all__ = ["cached_by_type"]

P = ParamSpec("P")
T = TypeVar("T")

_CACHED_TYPES: Final = 1024


def cached_by_type(make: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Keep what a function returns for the types that were used last; types that are not hashable are not kept.

    The text of a type is part of the key: unions that differ only in their order compare equal.
    """

    @lru_cache(_CACHED_TYPES)
    def kept(hint: Any, _text: str, *args: P.args, **kwargs: P.kwargs) -> T:
        return make(hint, *args, **kwargs)

    @wraps(make)
    def cached(hint: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            hash(hint)
        except TypeError:
            return make(hint, *args, **kwargs)
        return kept(hint, repr(hint), *args, **kwargs)

    return cached
