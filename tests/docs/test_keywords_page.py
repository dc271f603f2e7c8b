"""The table of docs/keywords.md is true, and the types of each keyword are as exact as it says."""

from __future__ import annotations

from tests.docs.keywords import CASES, PAGE, measure, render
from tests.docs.markdown import replace_block


def test_the_types_accept_what_the_schemas_accept() -> None:
    page = PAGE.read_text(encoding="utf-8")
    measured = measure(CASES)
    faults = [
        (case.keywords, found.differences)
        for case, found in zip(CASES, measured, strict=True)
        if any(found.differences.values())
    ]
    assert faults == []
    assert [
        case.keywords for case, found in zip(CASES, measured, strict=True) if min(found.valid, found.invalid) < 4
    ] == []
    assert replace_block(page, "keywords", render(measured)) == page
