"""How contenders take turns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

import pytest

from bench.plan import ContenderFailed, Measure, Plan, in_turns, started_anew

PLAN = Plan(quick=False, rounds=2, parts=3, seconds=0)


class Log(list[str]):
    """What was done, in order; each measurement gives how many things had been done."""

    def measure(self, name: str, column: str = "x") -> dict[str, float]:
        self.append(name)
        return {column: float(len(self))}

    def contender(self, *names: str) -> Callable[[], AbstractContextManager[Sequence[Measure[str]]]]:
        """What it is called, measure by measure."""

        @contextmanager
        def start() -> Generator[Sequence[Measure[str]]]:
            self.append(f"start {names[0]}")
            yield [partial(self.measure, name, f"column {number}") for number, name in enumerate(names)]
            self.append(f"end {names[0]}")

        return start


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    log = Log()
    found = in_turns({"a": lambda: log.measure("a"), "b": lambda: log.measure("b")}, 2)
    assert log == ["a", "b", "b", "a", "a", "b"]  # in each round another one comes first
    assert found["a"]["x"].rounds == [4, 5]
    assert found["b"]["x"].rounds == [3, 6]
    assert in_turns({"a": lambda: log.measure("a")}, 1, warm=False)["a"]["x"].rounds == [7]


def test_processes_are_started_for_each_round_and_measured_part_after_part() -> None:
    log = Log()
    found = started_anew({"a": log.contender("a"), "b": log.contender("b")}, PLAN, min)
    first = ["start a", "start b", *["a", "b"] * 3, "end b", "end a"]
    assert log == [*first, "start b", "start a", *["b", "a"] * 3, "end a", "end b"]
    assert found["a"]["column 0"].rounds == [3, 14]  # of 3, 5 and 7, and of 14, 16 and 18
    assert found["b"]["column 0"].rounds == [4, 13]
    found = started_anew({"a": log.contender("a"), "b": log.contender("b")}, replace(PLAN, rounds=1), max)
    assert found["b"]["column 0"].rounds == [28]  # of 24, 26 and 28


def test_what_is_measured_of_all_is_measured_of_one_after_the_other() -> None:
    log = Log()
    contenders = {"ours": log.contender("ours, small", "ours, large"), "theirs": log.contender("small", "large")}
    found = started_anew(contenders, replace(PLAN, rounds=1, parts=2), max)
    assert log[2:-2] == ["ours, small", "small", "ours, large", "large"] * 2
    assert found["theirs"]["column 0"].rounds == [8]  # of 4 and 8
    assert found["theirs"]["column 1"].rounds == [10]  # of 6 and 10


@pytest.mark.parametrize("when", ["at the start", "in the second part", "in the second round"])
def test_a_contender_that_fails_is_left_out_and_the_others_go_on(when: str, capsys: pytest.CaptureFixture[str]) -> None:
    log, measured = Log(), 0

    def fails() -> dict[str, float]:
        nonlocal measured
        measured += 1
        if measured == {"in the second part": 2, "in the second round": 4}[when]:
            raise ContenderFailed("it went away")
        return {"x": 1}

    @contextmanager
    def start() -> Generator[Sequence[Measure[str]]]:
        if when == "at the start":
            raise ContenderFailed("it went away")
        yield [fails]

    found = started_anew({"bad": start, "good": log.contender("good")}, PLAN, min)
    assert found["bad"] == {}
    assert found.failed == {"bad": "it went away"}
    assert len(found["good"]["column 0"].rounds) == PLAN.rounds
    assert capsys.readouterr().err.splitlines() == ["left out: it went away"]
