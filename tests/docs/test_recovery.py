"""The table of docs/clients.md on lost connections is what clients, pools, groups and gateways do."""

from __future__ import annotations

import pytest

from tests.docs.markdown import tables
from tests.docs.recovery import HOSTS, PAGE, STAYS_LOST, WAYS, cell_of, find_outcomes


def test_every_cell_is_what_happens_and_no_tool_call_takes_effect_twice(subtests: pytest.Subtests) -> None:
    outcomes = find_outcomes()
    (rows,) = (rows for _, (head, *rows) in tables(PAGE) if head[1:] == [*HOSTS])
    assert [row[0] for row in rows] == [way.text for way in WAYS]
    for way, *cells in rows:
        for host, cell in zip(HOSTS, cells, strict=True):
            with subtests.test(f"{host}: {way}"):
                assert cell == cell_of(outcomes, way, host)
    for outcome in outcomes:
        with subtests.test(f"effects, {outcome.host}: {outcome.way}"):
            assert outcome.effects <= outcome.made
    lost = {(outcome.way, outcome.host) for outcome in outcomes if outcome.text == STAYS_LOST}
    assert {way for way, _ in lost} <= {WAYS[0].text}  # a process of an older revision may have had state
    assert {host for _, host in lost} <= {"`connect`", "`connect_all`"}
