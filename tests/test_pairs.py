"""Pairs are few, and leave out no two values that meet."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from tests import pairs as module
from tests.cases import each
from tests.pairs import pairs

CLIENTS, SERVERS, REVISIONS = "abcdef", "uvwxyz", range(5)


def meetings(rows: list[tuple[Any, ...]]) -> set[Any]:
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


@each(
    "rows, most",
    [
        ([*product(CLIENTS, SERVERS, REVISIONS)], 50),
        ([row for row in product(CLIENTS, SERVERS, REVISIONS) if (ord(row[0]) + row[2]) % 3], 40),
        ([*product("ab", "cd")], 4),
        ([("a", "b", "c")], 1),
        ([], 0),
    ],
)
def test_every_two_values_of_the_product_meet_in_few_rows(
    rows: list[tuple[Any, ...]], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FULL_PRODUCTS", False)
    chosen = pairs(rows)
    assert meetings(chosen) == meetings(rows)
    assert len(chosen) <= most
    assert chosen == [row for row in rows if row in chosen]


def test_a_release_runs_the_whole_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FULL_PRODUCTS", True)
    rows = [*product(CLIENTS, SERVERS)]
    assert pairs(rows) == rows
