"""How long a run may take, and how contenders take turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, TypeAlias, TypeVar

from bench.results import Figures

__all__ = ["FULL", "QUICK", "ContenderFailed", "Measure", "Plan", "in_turns", "say", "started_anew"]


class ContenderFailed(Exception):  # noqa: N818  # named for the state
    """A contender does not run, does not answer, or answers wrongly."""


@dataclass(frozen=True)
class Plan:
    """What a run may take."""

    quick: bool
    rounds: int
    """How often each contender has its turn."""
    parts: int
    """In how many parts the turn of a process is, between which others have theirs,"""
    seconds: float
    """and about how long such a part may be, for one figure."""


FULL = Plan(quick=False, rounds=7, parts=3, seconds=0.1)
QUICK = Plan(quick=True, rounds=2, parts=1, seconds=0.05)

Name = TypeVar("Name", bound=Hashable)
Column = TypeVar("Column", bound=Hashable)
Measure: TypeAlias = Callable[[], Mapping[Column, float]]
"""Gives figures of one contender, by column."""


class _Found(Generic[Name, Column]):
    """What has been measured. A contender that fails has no figures, and no more turns: the others go on."""

    def __init__(self, contenders: Iterable[Name]) -> None:
        self.figures: dict[Name, dict[Column, Figures]] = {name: {} for name in contenders}
        self.failed: set[Name] = set()

    def add(self, name: Name, measured: Mapping[Column, float]) -> None:
        for column, value in measured.items():
            self.figures[name].setdefault(column, Figures([])).rounds.append(value)

    @contextmanager
    def leaving_out(self, name: Name) -> Generator[None]:
        """Leave out a contender that fails meanwhile."""
        try:
            yield
        except ContenderFailed as error:
            say(f"left out: {error}")
            self.failed.add(name)
            self.figures[name] = {}


def in_turns(
    contenders: Mapping[Name, Measure[Column]], rounds: int, *, warm: bool = True
) -> dict[Name, dict[Column, Figures]]:
    """Have each contender measured in each round; figures by contender, whatever names it, and column.

    The first round is to get warm and does not count, if `warm`.
    """
    found = _Found[Name, Column](contenders)
    for number in range(-1 if warm else 0, rounds):
        for name, measure in contenders.items():
            if name in found.failed:
                continue
            with found.leaving_out(name):
                measured = measure()
                if number >= 0:
                    found.add(name, measured)
    return found.figures


def started_anew(
    contenders: Mapping[Name, Callable[[], AbstractContextManager[Sequence[Measure[Column]]]]], plan: Plan
) -> dict[Name, dict[Column, Figures]]:
    """Have each contender started for each round, and measured in parts, part after part; figures as above.

    Two processes of one program are not equally fast, nor is a machine from second to second. So all contenders have
    the first of their measures taken, then all the second, and so on.
    """
    found = _Found[Name, Column](contenders)
    for _ in range(plan.rounds):
        measured: dict[Name, dict[Column, list[float]]] = {}
        with ExitStack() as stack:
            ready: dict[Name, Sequence[Measure[Column]]] = {}
            for name, start in contenders.items():
                if name not in found.failed:
                    with found.leaving_out(name):
                        ready[name] = stack.enter_context(start())
            for measures in [*zip(*ready.values(), strict=True)] * plan.parts:
                for name, measure in zip(ready, measures, strict=True):
                    if name not in found.failed:
                        with found.leaving_out(name):
                            for column, value in measure().items():
                                measured.setdefault(name, {}).setdefault(column, []).append(value)
        for name in measured.keys() - found.failed:
            found.add(name, {column: fmean(parts) for column, parts in measured[name].items()})
    return found.figures


def say(text: str) -> None:
    """Tell how far the run is, beside what it prints as its result."""
    print(text, file=sys.stderr, flush=True)
