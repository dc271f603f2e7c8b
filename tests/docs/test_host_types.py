"""The table of docs/hosts.md on types is true: hosts take their schemas, or `check` names those that they do not."""

from __future__ import annotations

import pytest

from tests.app.type_cases import TYPES
from tests.docs.host_types import PAGE, is_installed, our_rows, render, rows_of_node
from tests.docs.markdown import replace_block


def test_the_apis_take_what_the_page_says_and_check_names_the_rest() -> None:
    rows = our_rows()
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert set(render(rows).splitlines()) <= {*page, ""}
    assert [row.host for row in rows if row.unnamed] == []
    assert f"{len(TYPES)} types" in " ".join(page)


@pytest.mark.long
def test_the_whole_table_is_true() -> None:
    if not is_installed():
        pytest.skip("Node.js and its packages are not installed: run tests/interop/install.py py2 node")
    page = PAGE.read_text(encoding="utf-8")
    assert replace_block(page, "host_types", render([*our_rows(), *rows_of_node()])) == page
