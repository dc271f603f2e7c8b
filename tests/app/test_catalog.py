"""Pages of lists."""

from __future__ import annotations

import pytest

from tests.cases import each
from typedmcp.app.catalog import paginate
from typedmcp.errors import InvalidParamsError

ITEMS = [(name, name.upper()) for name in "abcde"]


def test_without_a_page_size_there_is_one_page() -> None:
    assert paginate(ITEMS, None, None) == (["A", "B", "C", "D", "E"], None)
    assert paginate([], None, 2) == ([], None)


def test_cursors_lead_through_all_pages() -> None:
    first, cursor = paginate(ITEMS, None, 2)
    second, cursor = paginate(ITEMS, cursor, 2)
    third, cursor = paginate(ITEMS, cursor, 2)
    assert [first, second, third, cursor] == [["A", "B"], ["C", "D"], ["E"], None]


def test_a_page_begins_earlier_if_the_item_before_it_is_gone() -> None:
    _, cursor = paginate(ITEMS, None, 2)
    remaining = [item for item in ITEMS if item[0] != "b"]
    assert paginate(remaining, cursor, 2)[0] == ["A", "C"]


@each("cursor", ["", "c", "-1:a", "9" * 10 + ":a"])
def test_an_invalid_cursor_is_an_error_with_a_remedy(cursor: str) -> None:
    with pytest.raises(InvalidParamsError, match="invalid cursor: list again from the start"):
        paginate(ITEMS, cursor, 2)
