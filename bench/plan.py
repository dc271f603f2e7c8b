"""How long a run may take, and how contenders take turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.results import Figures

__all__ = ["FULL", "QUICK", "ContenderFailed", "Plan", "in_turns", "say"]


class ContenderFailed(Exception):  # noqa: N818  # named for the state
    """A contender does not run, does not answer, or answers wrongly."""


@dataclass(frozen=True)
class Plan:
    """What a run may take."""

    quick: bool
    rounds: int
    """How often each contender has its turn."""
    seconds: float
    """About how long one turn may be, for one figure."""


FULL = Plan(quick=False, rounds=7, seconds=0.5)
QUICK = Plan(quick=True, rounds=2, seconds=0.05)


def in_turns(
    contenders: Mapping[str, Callable[[], Mapping[str, float]]], rounds: int, *, warm: bool = True
) -> dict[str, dict[str, Figures]]:
    """Have each contender measured in each round; figures by contender and column.

    The first round is to get warm and does not count, if `warm`. A contender that fails has no figures, and no more
    turns: the others are measured all the same.
    """
    found: dict[str, dict[str, Figures]] = {name: {} for name in contenders}
    failed: set[str] = set()
    for number in range(-1 if warm else 0, rounds):
        for name, measure in contenders.items():
            if name in failed:
                continue
            try:
                measured = measure()
            except ContenderFailed as error:
                say(f"left out: {error}")
                failed.add(name)
                found[name] = {}
                continue
            for column, value in measured.items():
                if number >= 0:
                    found[name].setdefault(column, Figures([])).rounds.append(value)
    return found


def say(text: str) -> None:
    """Tell how far the run is, beside what it prints as its result."""
    print(text, file=sys.stderr, flush=True)
