"""How long a run may take, and how contenders take turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from bench.results import Figures

__all__ = ["FULL", "QUICK", "ContenderFailed", "Found", "Measure", "Plan", "in_turns", "say", "started_anew"]


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


FULL = Plan(quick=False, rounds=5, parts=5, seconds=0.1)
QUICK = Plan(quick=True, rounds=2, parts=1, seconds=0.05)

Name = TypeVar("Name", bound=Hashable)
Column = TypeVar("Column", bound=Hashable)
Measure: TypeAlias = Callable[[], Mapping[Column, float]]
"""Gives figures of one contender, by column."""


class Found(dict[Name, dict[Column, Figures]]):
    """Figures by contender, whatever names it, and column.

    A contender that fails has none, and no more turns, but `failed` says why: the others go on.
    """

    def __init__(self, contenders: Iterable[Name]) -> None:
        super().__init__((name, {}) for name in contenders)
        self.failed: dict[Name, str] = {}

    def add(self, name: Name, measured: Mapping[Column, float]) -> None:
        """Take in what was measured in a round."""
        for column, value in measured.items():
            self[name].setdefault(column, Figures([])).rounds.append(value)

    @contextmanager
    def leaving_out(self, name: Name) -> Generator[None]:
        """Leave out a contender that fails meanwhile."""
        try:
            yield
        except ContenderFailed as error:
            say(f"left out: {error}")
            self.failed[name] = str(error).partition("\n")[0]
            self[name] = {}

    def in_order(self, turn: int) -> list[Name]:
        """Those that have not failed. Each turn another one comes first: what the first meets should meet them all."""
        names = list(self)
        first = turn % len(names) if names else 0
        return [name for name in names[first:] + names[:first] if name not in self.failed]


def in_turns(contenders: Mapping[Name, Measure[Column]], rounds: int, *, warm: bool = True) -> Found[Name, Column]:
    """Have each contender measured in each round.

    The first round is to get warm and does not count, if `warm`.
    """
    found = Found[Name, Column](contenders)
    for turn in range(rounds + warm):
        for name in found.in_order(turn):
            with found.leaving_out(name):
                measured = contenders[name]()
                if turn >= warm:
                    found.add(name, measured)
    return found


def started_anew(
    contenders: Mapping[Name, Callable[[], AbstractContextManager[Sequence[Measure[Column]]]]],
    plan: Plan,
    best: Callable[[Sequence[float]], float],
) -> Found[Name, Column]:
    """Have each contender started for each round, and measured in parts, of which the `best` one's figure counts.

    Two processes of one program are not equally fast, nor is a machine from second to second. So all contenders have
    the first of their measures taken, then all the second, and so on; and then all again, for the next part. A machine
    that is slower for some seconds would decide a round by whom it meets, if it were not the best that counts.
    """
    found = Found[Name, Column](contenders)
    for turn in range(plan.rounds):
        measured: dict[Name, dict[Column, list[float]]] = {}
        with ExitStack() as stack:
            ready: dict[Name, Sequence[Measure[Column]]] = {}
            for name in found.in_order(turn):
                with found.leaving_out(name):
                    ready[name] = stack.enter_context(contenders[name]())
            for measures in [*zip(*ready.values(), strict=True)] * plan.parts:
                for name, measure in zip(ready, measures, strict=True):
                    if name not in found.failed:
                        with found.leaving_out(name):
                            for column, value in measure().items():
                                measured.setdefault(name, {}).setdefault(column, []).append(value)
        for name in measured.keys() - found.failed.keys():
            found.add(name, {column: best(parts) for column, parts in measured[name].items()})
    return found


def say(text: str) -> None:
    """Tell how far the run is, beside what it prints as its result."""
    print(text, file=sys.stderr, flush=True)
