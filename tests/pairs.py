"""What a change runs of tests that a release runs in full: pairs of a product, and a part of many random examples.

Most faults show with one value or with two that meet, and random examples that repeat their seed find nothing new. A
release sets the environment variable `FULL_PRODUCTS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, TypeVar

__all__ = ["FULL_PRODUCTS", "examples", "pairs"]

T = TypeVar("T")

FULL_PRODUCTS = bool(os.environ.get("FULL_PRODUCTS"))


def examples(number: int) -> int:
    """Return how many of a number of random examples to try: a tenth, but before a release all."""
    return number if FULL_PRODUCTS else -(-number // 10)


def pairs(product: Iterable[T], values: Callable[[T], Sequence[Any]] = lambda row: row) -> list[T]:  # type: ignore[assignment,return-value]
    """Choose rows of a product, in its order, so that no two values meet only in rows that are left out.

    `values` returns the values of a row, one for each factor. The product may have gaps. If `FULL_PRODUCTS` is set,
    all rows are chosen.
    """
    rows = list(product)
    if FULL_PRODUCTS:
        return rows
    met: list[set[Any]] = [set(combinations(enumerate(values(row)), 2)) for row in rows]
    missing: set[Any] = {pair for row in met for pair in row}
    chosen: set[int] = set()
    while missing:
        best = max(range(len(rows)), key=lambda index: (len(met[index] & missing), -index))
        chosen.add(best)
        missing -= met[best]
    return [rows[index] for index in sorted(chosen)]
