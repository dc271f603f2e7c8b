"""Programs for the official SDK 1.x and for fastmcp 2 run with other imports, and docs/mcp1.md says how they differ."""

from __future__ import annotations

import pytest

from tests.interop.programs import PAGE, compare_all, find_unexplained, is_installed, list_programs, render, with_tables
from tests.pairs import FULL_PRODUCTS

pytestmark = pytest.mark.long


@pytest.mark.skipif(not is_installed(), reason="the examples are not installed: run `make interop`")
def test_programs_of_others_run_with_other_imports_and_answer_as_the_page_says() -> None:
    """A tenth of the programs; all of them, and the counts of the page, before a release."""
    programs = list_programs()
    assert len(programs) >= 40
    assert {each.changed_lines for each in programs} <= set(range(1, 8))
    found = [*compare_all(programs if FULL_PRODUCTS else programs[::10])]
    assert find_unexplained(found) == []
    page, made = PAGE.read_text(encoding="utf-8"), render(found)
    rows = [line for line in made.splitlines() if line.startswith("| `")]
    assert [row for row in rows if row not in page] == []
    if FULL_PRODUCTS:
        assert with_tables(page, made) == page
