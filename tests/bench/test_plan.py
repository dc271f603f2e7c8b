"""Contenders take turns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

import pytest

from bench.plan import ContenderError, Measure, Plan, measure_in_turns, measure_restarting

PLAN = Plan(quick=False, rounds=2, parts=3, seconds=0)


class Log(list[str]):
    """A log of events. Each measurement returns the length of the log."""

    def measure(self, name: str, column: str = "x") -> dict[str, float]:
        self.append(name)
        return {column: float(len(self))}

    def contender(self, *names: str) -> Callable[[], AbstractContextManager[Sequence[Measure[str]]]]:
        """Return a contender with a measure for each name."""

        @contextmanager
        def start() -> Generator[Sequence[Measure[str]]]:
            self.append(f"start {names[0]}")
            yield [partial(self.measure, name, f"column {number}") for number, name in enumerate(names)]
            self.append(f"end {names[0]}")

        return start


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    log = Log()
    found = measure_in_turns({"a": lambda: log.measure("a"), "b": lambda: log.measure("b")}, 2)
    assert log == ["a", "b", "b", "a", "a", "b"]  # each round starts with another one
    assert found["a"]["x"].rounds == [4, 5]
    assert found["b"]["x"].rounds == [3, 6]
    assert measure_in_turns({"a": lambda: log.measure("a")}, 1, warm=False)["a"]["x"].rounds == [7]


def test_processes_restart_for_each_round_and_are_measured_in_parts() -> None:
    log = Log()
    found = measure_restarting({"a": log.contender("a"), "b": log.contender("b")}, PLAN, min)
    first = ["start a", "start b", *["a", "b"] * 3, "end b", "end a"]
    assert log == [*first, "start b", "start a", *["b", "a"] * 3, "end a", "end b"]
    assert found["a"]["column 0"].rounds == [3, 14]  # of 3, 5 and 7, and of 14, 16 and 18
    assert found["b"]["column 0"].rounds == [4, 13]
    found = measure_restarting({"a": log.contender("a"), "b": log.contender("b")}, replace(PLAN, rounds=1), max)
    assert found["b"]["column 0"].rounds == [28]  # of 24, 26 and 28


def test_contenders_alternate_for_each_column() -> None:
    log = Log()
    contenders = {"ours": log.contender("ours, small", "ours, large"), "theirs": log.contender("small", "large")}
    found = measure_restarting(contenders, replace(PLAN, rounds=1, parts=2), max)
    assert log[2:-2] == ["ours, small", "small", "ours, large", "large"] * 2
    assert found["theirs"]["column 0"].rounds == [8]  # of 4 and 8
    assert found["theirs"]["column 1"].rounds == [10]  # of 6 and 10


@pytest.mark.parametrize("when", ["at the start", "in the second part", "in the second round"])
def test_a_failed_contender_is_left_out(when: str, capsys: pytest.CaptureFixture[str]) -> None:
    log, measured = Log(), 0

    def fails() -> dict[str, float]:
        nonlocal measured
        measured += 1
        if measured == {"in the second part": 2, "in the second round": 4}[when]:
            raise ContenderError("it closed its output")
        return {"x": 1}

    @contextmanager
    def start() -> Generator[Sequence[Measure[str]]]:
        if when == "at the start":
            raise ContenderError("it closed its output")
        yield [fails]

    found = measure_restarting({"bad": start, "good": log.contender("good")}, PLAN, min)
    assert found["bad"] == {}
    assert found.failed == {"bad": "it closed its output"}
    assert len(found["good"]["column 0"].rounds) == PLAN.rounds
    assert capsys.readouterr().err.splitlines() == ["left out: it closed its output"]
