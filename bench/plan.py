"""The duration of a run, and the turns of the contenders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from bench.results import Figures

__all__ = [
    "FULL",
    "QUICK",
    "ContenderError",
    "Measure",
    "Measurements",
    "Plan",
    "log",
    "measure_in_turns",
    "measure_restarting",
]


class ContenderError(Exception):
    """A contender does not run, does not respond, or responds incorrectly."""


@dataclass(frozen=True)
class Plan:
    """The durations and repetitions of a run."""

    quick: bool
    rounds: int
    """Turns of each contender."""
    parts: int
    """Parts of a turn. Other contenders are measured between them."""
    seconds: float
    """The approximate duration of a part, for one figure."""


FULL = Plan(quick=False, rounds=5, parts=5, seconds=0.1)
QUICK = Plan(quick=True, rounds=2, parts=1, seconds=0.05)

Name = TypeVar("Name", bound=Hashable)
Column = TypeVar("Column", bound=Hashable)
Measure: TypeAlias = Callable[[], Mapping[Column, float]]
"""Measures one contender, and returns figures by column."""


class Measurements(dict[Name, dict[Column, Figures]]):
    """Figures by contender and column.

    A contender that fails gets no figures and no more turns; `failed` has the reason. The others go on.
    """

    def __init__(self, contenders: Iterable[Name]) -> None:
        super().__init__((name, {}) for name in contenders)
        self.failed: dict[Name, str] = {}

    def add(self, name: Name, measured: Mapping[Column, float]) -> None:
        """Add the figures of a round."""
        for column, value in measured.items():
            self[name].setdefault(column, Figures([])).rounds.append(value)

    @contextmanager
    def skip_on_failure(self, name: Name) -> Generator[None]:
        """Leave out the contender if it fails in this block."""
        try:
            yield
        except ContenderError as error:
            log(f"left out: {error}")
            self.failed[name] = str(error).partition("\n")[0]
            self[name] = {}

    def order(self, turn: int) -> list[Name]:
        """Return the contenders that have not failed. Each turn starts with another one, so that the order is fair."""
        names = list(self)
        first = turn % len(names) if names else 0
        return [name for name in names[first:] + names[:first] if name not in self.failed]


def measure_in_turns(
    contenders: Mapping[Name, Measure[Column]], rounds: int, *, warm: bool = True
) -> Measurements[Name, Column]:
    """Measure each contender in each round. With `warm`, an additional first round does not count."""
    found = Measurements[Name, Column](contenders)
    for turn in range(rounds + warm):
        for name in found.order(turn):
            with found.skip_on_failure(name):
                measured = contenders[name]()
                if turn >= warm:
                    found.add(name, measured)
    return found


def measure_restarting(
    contenders: Mapping[Name, Callable[[], AbstractContextManager[Sequence[Measure[Column]]]]],
    plan: Plan,
    best: Callable[[Sequence[float]], float],
) -> Measurements[Name, Column]:
    """Restart each contender for each round, measure it in parts, and keep the `best` figure of the parts.

    Two processes of one program are not equally fast, so each round has new ones. The speed of a machine changes from
    second to second, so contenders alternate: all are measured in the first column, then all in the second, and so on,
    and then again for the next part. If the machine is slow for some seconds, that affects some parts of some
    contenders, but not their best ones.
    """
    found = Measurements[Name, Column](contenders)
    for turn in range(plan.rounds):
        measured: dict[Name, dict[Column, list[float]]] = {}
        with ExitStack() as stack:
            ready: dict[Name, Sequence[Measure[Column]]] = {}
            for name in found.order(turn):
                with found.skip_on_failure(name):
                    ready[name] = stack.enter_context(contenders[name]())
            for name, measure in _alternate(ready, plan.parts):
                if name not in found.failed:
                    with found.skip_on_failure(name):
                        for column, value in measure().items():
                            measured.setdefault(name, {}).setdefault(column, []).append(value)
        for name in measured.keys() - found.failed.keys():
            found.add(name, {column: best(parts) for column, parts in measured[name].items()})
    return found


def _alternate(ready: Mapping[Name, Sequence[Measure[Column]]], parts: int) -> Iterator[tuple[Name, Measure[Column]]]:
    """Yield the first measure of each contender, then the second of each, and so on; all of that for each part."""
    for measures in [*zip(*ready.values(), strict=True)] * parts:
        yield from zip(ready, measures, strict=True)


def log(text: str) -> None:
    """Print progress of the run on standard error."""
    print(text, file=sys.stderr, flush=True)
