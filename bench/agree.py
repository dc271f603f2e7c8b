"""Whether runs agree: `python -m bench.agree FILE FILE …` compares the ratios in results files, run by run.

A median of one run should lie within the spread that another states, which is the range of its rounds. What does not is
printed. Where rounds differ by chance alone, 17 in a hundred lie outside if there are five rounds, and 40 if there
are three.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bench.report.figures import Spread, is_ours, ratio, ratio_span, spread
from bench.results import Results, Table, load

__all__ = ["Comparison", "Ratios", "comparisons", "ratios"]

Ratios: TypeAlias = Mapping[str, Spread]
"""Ratios of one run, by table, column and the two contenders."""


class Comparison(NamedTuple):
    """A ratio in two runs."""

    name: str
    first: str
    """Which run has the median,"""
    one: Spread
    second: str
    """and which the range."""
    other: Spread

    @property
    def agree(self) -> bool:
        """Whether the median of one lies within the spread of the other."""
        return self.other.low <= self.one.median <= self.other.high


def ratios(results: Results) -> Ratios:
    """How many times as good each of ours is as each other contender, in every column of every table."""
    return {
        f"{table.name}, {column}: {mine} against {other}": spread(rounds)
        for table in results.tables
        for column in table.columns
        for mine, other in _pairs(table)
        if (rounds := table.ratios(mine, column, other))
    }


def _pairs(table: Table) -> Iterator[tuple[str, str]]:
    names = [row.contender for row in table.rows]
    return ((mine, other) for mine in names if is_ours(mine) for other in names if not is_ours(other))


def comparisons(runs: Mapping[str, Ratios]) -> list[Comparison]:
    """Each run with each other one, ratio by ratio, where both have it."""
    return [
        Comparison(name, first, one[name], second, other[name])
        for (first, one), (second, other) in permutations(runs.items(), 2)
        for name in sorted(one.keys() & other.keys())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agree", description="Compare the ratios of several runs.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results of `make bench`, two at least")
    files: list[Path] = parser.parse_args().files
    if len(set(files)) < 2:
        parser.error("two files at least")
    try:
        runs = {str(file): ratios(load(file)) for file in files}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    compared = comparisons(runs)
    if not compared:
        parser.error("these files have nothing in common")
    outside = [each for each in compared if not each.agree]
    for name, first, one, second, other in sorted(outside, key=lambda each: each.name):
        print(f"{name}: {ratio(one.median)} in {first}, {ratio_span(other)} in {second}")
    print(f"{len(compared) - len(outside)} of {len(compared)} medians lie within the spread of another run")


if __name__ == "__main__":
    main()
