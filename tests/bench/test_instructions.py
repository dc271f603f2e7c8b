"""Instructions that are counted by valgrind."""

from __future__ import annotations

import shutil
from functools import partial

import pytest

from bench.suites import instructions, stdio
from bench.suites.processes import CONTENDERS, MODERN, Contender, make_python_command


@pytest.mark.parametrize(
    ("report", "count"),
    [
        ("==7== I refs:        1,234\n", 1234),
        ("==7== \n==7== I   refs:      2,468,101,214\n==7== I1  misses: 3\n", 2_468_101_214),
    ],
)
def test_the_count_is_read_from_the_report(report: str, count: int) -> None:
    assert instructions.parse_count(report) == count


@pytest.mark.parametrize("report", ["", "valgrind: failed to start tool", "==7== D refs: 12"])
def test_a_report_without_a_count_is_an_error(report: str) -> None:
    with pytest.raises(ValueError, match="I refs"):
        instructions.parse_count(report)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_call_takes_as_many_instructions_in_the_next_run() -> None:
    command = make_python_command(CONTENDERS / "stdio" / "blocking_loop.py", MODERN)
    runs = {"one at a time": partial(instructions.serve_stdio, MODERN, 1)}
    first, second = (instructions.count_calls(Contender(stdio.FLOOR, command), runs)["one at a time"] for _ in range(2))
    assert first == pytest.approx(second, rel=0.02)
    assert 3 < first < 300
