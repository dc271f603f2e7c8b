"""Compares runs: `python -m bench.compare_runs FILE FILE …` checks whether the ratios of results files agree.

The median of one run should lie within the spread of another, the range of its rounds. The others are printed. By
chance alone, 17 % lie outside with five rounds, and 40 % with three.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bench.figures import Spread, format_ratio, format_ratio_span, is_typedmcp, summarise
from bench.results import Results, Table, load

__all__ = ["Comparison", "Ratios", "collect_ratios", "compare"]

Ratios: TypeAlias = Mapping[str, Spread]
"""Ratios of a run, by table, column and the two contenders."""


class Comparison(NamedTuple):
    """A ratio in two runs: the median of the first, and the spread of the second."""

    name: str
    first: str
    first_ratio: Spread
    second: str
    second_ratio: Spread

    @property
    def is_within_spread(self) -> bool:
        """True if the median of the first run lies within the spread of the second."""
        return self.second_ratio.low <= self.first_ratio.median <= self.second_ratio.high


def collect_ratios(results: Results) -> Ratios:
    """Return the ratios of all contenders of this project to all others."""
    return {
        f"{table.name}, {column}: {mine} against {other}": summarise(rounds)
        for table in results.tables
        for column in table.columns
        for mine, other in _pairs(table)
        if (rounds := table.ratios(mine, column, other))
    }


def _pairs(table: Table) -> Iterator[tuple[str, str]]:
    names = [row.contender for row in table.rows]
    return ((mine, other) for mine in names if is_typedmcp(mine) for other in names if not is_typedmcp(other))


def compare(runs: Mapping[str, Ratios]) -> list[Comparison]:
    """Compare every ordered pair of runs, in all ratios that both have."""
    return [
        Comparison(name, first, ratios[name], second, others[name])
        for (first, ratios), (second, others) in permutations(runs.items(), 2)
        for name in sorted(ratios.keys() & others.keys())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare_runs", description="Compare the ratios of several runs."
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results of `make bench`, at least two")
    files: list[Path] = parser.parse_args().files
    if len(set(files)) < 2:
        parser.error("expected at least two files")
    try:
        runs = {str(file): collect_ratios(load(file)) for file in files}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    compared = compare(runs)
    if not compared:
        parser.error("these files have no ratio in common")
    outside = [comparison for comparison in compared if not comparison.is_within_spread]
    for name, first, ratio, second, other in sorted(outside, key=lambda comparison: comparison.name):
        print(f"{name}: {format_ratio(ratio.median)} in {first}, {format_ratio_span(other)} in {second}")
    print(f"{len(compared) - len(outside)} of {len(compared)} medians lie within the spread of another run")


if __name__ == "__main__":
    main()
