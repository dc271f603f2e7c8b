"""The tables of `docs/arguments.md` are what the libraries do."""

from __future__ import annotations

import pytest

from tests.docs.arguments import ENVIRONMENTS, PAGE, cases, our_outcomes, outcomes_of, render, to_cell, to_code
from tests.docs.markdown import replace_block, tables
from tests.interop import install


def test_there_are_at_least_sixty_cases_and_none_twice() -> None:
    calls = [(case.takes, case.sends) for case in cases()]
    assert len({*calls}) == len(calls) >= 60
    assert f"{len(calls)} sets of arguments" in PAGE.read_text(encoding="utf-8")


def test_our_column_is_what_our_server_does() -> None:
    calls = [(to_code(case.takes), to_code(case.sends)) for case in cases()]
    found = dict(zip(calls, map(to_cell, our_outcomes()), strict=True))
    rows = [row for _, (heads, *rows) in tables(PAGE) if "from" in heads for row in rows]
    assert len(rows) > 30
    assert [row for row in rows if found[row[0], row[1]] != row[5]] == []


@pytest.mark.long
def test_the_whole_table_is_what_the_libraries_do() -> None:
    for environment in ENVIRONMENTS.values():
        if not (install.INTEROP / environment / ".installed").exists():
            pytest.skip("the libraries of others are not installed: run tests/interop/install.py")
    page = PAGE.read_text(encoding="utf-8")
    made = render([*map(outcomes_of, ENVIRONMENTS), our_outcomes()])
    assert replace_block(page, "arguments", made) == page
