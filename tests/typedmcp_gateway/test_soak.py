"""Many clients use servers that are killed and stopped again and again: every call ends, and no process is left."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.typedmcp_gateway.soak import Outcome, find_faults, parse_options, run_soak

_ARGUMENTS = ["--clients=20", "--servers=5", "--seconds=8", "--rate=40", "--disturb=0.5"]


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")
def test_every_call_ends_while_servers_are_killed_and_no_process_is_left() -> None:
    outcome = asyncio.run(run_soak(parse_options(_ARGUMENTS)))
    memory = {**outcome.memory, "rise": 0.0}  # a few seconds are too short for that
    assert find_faults(outcome._replace(memory=memory)) == []


def test_faults_of_a_soak_are_named() -> None:
    memory = {"start": 50.0, "warm": 60.0, "most": 61.0, "end": 61.0, "rise": 0.1}
    good = Outcome(100, 0, 0, {"lost": 3}, {"median": 0.1}, 4, 1, memory, 0, ended=True)
    assert find_faults(good) == []
    for changes in (
        {"endless": 1},
        {"wrong": 1},
        {"left": 1},
        {"ended": False},
        {"killed": 0},
        {"failures": {"lost": 100}},
        {"memory": {**memory, "rise": 50.0}},
    ):
        assert len(find_faults(good._replace(**changes))) == 1
