"""Pairs instead of products: the rows of a product in which every two values that occur together do so at least once.

Most faults show with one value or with two that meet. So a change runs pairs, and a release, which sets the environment
variable `FULL_PRODUCTS`, runs the whole product.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, TypeVar

__all__ = ["FULL_PRODUCTS", "pairs"]

T = TypeVar("T")

FULL_PRODUCTS = bool(os.environ.get("FULL_PRODUCTS"))


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
