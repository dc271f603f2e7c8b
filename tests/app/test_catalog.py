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


@each("gone", ["b", "d", "abd", "abcd"])
def test_a_list_begins_again_if_the_item_before_the_page_is_gone(gone: str) -> None:
    _, cursor = paginate(ITEMS, None, 2)
    _, cursor = paginate(ITEMS, cursor, 2) if "d" in gone else (None, cursor)
    remaining = [item for item in ITEMS if item[0] not in gone]
    assert paginate(remaining, cursor, 2)[0] == [item for _, item in remaining[:2]]


@each("cursor", ["", "c", "-1:a", "9" * 10 + ":a", "2:b", "2:gone", "99:gone", ":b"])
def test_an_invalid_cursor_is_an_error_with_a_remedy(cursor: str) -> None:
    with pytest.raises(InvalidParamsError, match="invalid cursor: list again from the start"):
        paginate(ITEMS, cursor, 2)
