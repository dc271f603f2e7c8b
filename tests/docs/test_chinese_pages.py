"""The pages in Chinese have the code of the English ones, which `tests/test_documentation.py` runs."""

from __future__ import annotations

from tests.docs.chinese import FOLDER, PAGES, english_of, fill
from tests.docs.markdown import blocks


def test_the_code_of_a_page_is_that_of_the_english_one() -> None:
    assert [page for page in PAGES if fill(page) != page.read_text(encoding="utf-8")] == [], (
        "run: python -m tests.docs.chinese"
    )
    for page in PAGES:
        both = [(block.language, block.title, block.code, block.excuse) for block in blocks(page)]
        assert both == [(each.language, each.title, each.code, each.excuse) for each in blocks(english_of(page))]


def test_all_steps_of_the_tutorial_are_translated() -> None:
    english = {page.name for page in english_of(FOLDER / "tutorial" / "x").parent.glob("*.md")}
    assert {page.name for page in PAGES if page.parent.name == "tutorial"} == english
