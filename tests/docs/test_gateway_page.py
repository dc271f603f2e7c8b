"""The tables of the page about gateways are those of runs: `python -m tests.docs.gateways`, `tests.docs.crossings`."""

from __future__ import annotations

import pytest

from tests.docs.crossings import crossing_table, expected_crossings
from tests.docs.gateways import PAGE, TRANSPORTS, cell, expected_cell, run_pair, tables
from tests.docs.markdown import replace_block
from tests.helpers import LEGACY, MODERN_REVISION, run
from tests.typedmcp_gateway.cases import CASES, unsaid


def test_the_tables_say_what_the_revisions_can_say() -> None:
    async def predict(_transport: str, client: str, server: str) -> dict[str, str | None]:
        return {name: unsaid(name, client, server) for name in CASES}

    text = PAGE.read_text(encoding="utf-8")
    assert replace_block(text, "gateways", run(tables(predict))) == text


def test_the_table_of_official_clients_says_what_the_revisions_can_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replace_block(text, "crossings", crossing_table(expected_crossings())) == text


def test_the_table_of_official_clients_shows_what_fails_beside_that() -> None:
    crossings = expected_crossings()
    (key, _), *_ = crossings.items()
    crossings[key] = ["cancel"]
    assert "all but cancel (fails)" in crossing_table(crossings)


@pytest.mark.long
@pytest.mark.parametrize(
    ("client", "server"), [(MODERN_REVISION, LEGACY[0]), (LEGACY[-1], MODERN_REVISION), (LEGACY[0], LEGACY[-1])]
)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_cell_of_the_tables_is_true(transport: str, client: str, server: str) -> None:
    results = run(run_pair(transport, client, server))
    assert cell([name for name, error in results.items() if error is not None]) == expected_cell(client, server)
