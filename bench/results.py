"""What a run of the benchmarks has found, as it is kept in a file.

A table compares contenders: a row for each, a column for each thing that was measured. Contenders take turns in rounds,
so that whatever else the machine does meets all of them, and the figures of all rounds are kept. A ratio is worked out
round by round, between two contenders in the same round, and then the median is taken: it holds on machines whose speed
changes meanwhile, where the figures themselves do not.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

__all__ = ["Environment", "Figures", "Results", "Row", "Table", "load", "save"]

FORMAT = 1


class Environment(msgspec.Struct):
    """The machine, and what ran on it."""

    machine: str
    """A short name, of which the results file has its own."""
    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    commit: str
    load: float
    """The average load over the minute before the run: much more than 0 makes figures worse, and ratios less so."""
    began: str
    """Date and time, in UTC."""
    versions: dict[str, str]


class Figures(msgspec.Struct):
    """What was measured in one column for one contender, round by round."""

    rounds: list[float]

    @property
    def median(self) -> float:
        return median(self.rounds)


class Row(msgspec.Struct):
    """One contender."""

    contender: str
    figures: dict[str, Figures]
    """By column; one that a contender does not take part in is missing."""
    note: str = ""


class Table(msgspec.Struct):
    """One comparison."""

    name: str
    """Such as `codecs/tools-call`: budgets and documents refer to it."""
    title: str
    about: str
    """What is measured, for somebody who has not read the code."""
    unit: str
    better: Literal["lower", "higher"]
    reference: str
    """The contender that the others are compared with."""
    columns: list[str]
    rows: list[Row]
    kind: Literal["bars", "lines"] = "bars"
    """How it is drawn: lines where the columns are sizes, on logarithmic scales."""
    headline: str = ""
    """The column that tells most; without it the first, and where they are sizes the last."""

    @property
    def leading(self) -> str:
        """The column that tells most, of a table that has some."""
        return self.headline or self.columns[-1 if self.kind == "lines" else 0]

    def figures(self, contender: str, column: str) -> Figures | None:
        """What was measured, if it was."""
        row = next((row for row in self.rows if row.contender == contender), None)
        return None if row is None else row.figures.get(column)

    def ratios(self, contender: str, column: str, against: str | None = None) -> list[float]:
        """How many times as good a contender is as another, round by round; empty where one did not take part.

        And where one has nothing in a round, or less: memory that a process has given back meanwhile. Others of its
        rounds then say nothing either.
        """
        mine, other = self.figures(contender, column), self.figures(against or self.reference, column)
        if mine is None or other is None or min(mine.rounds + other.rounds, default=0) <= 0:
            return []
        pairs = zip(mine.rounds, other.rounds, strict=True)
        return [b / a if self.better == "lower" else a / b for a, b in pairs]


class Results(msgspec.Struct):
    """One run."""

    format: int
    command: str
    """What was run, by which anybody can run it again."""
    quick: bool
    environment: Environment
    tables: list[Table]
    broken: list[str] = []
    """Suites that broke off, with why; what they had measured by then is there."""

    def table(self, name: str) -> Table | None:
        """One by its name."""
        return next((table for table in self.tables if table.name == name), None)


def save(results: Results, path: Path) -> None:
    """Write a file of results, to be read by people too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def load(path: Path) -> Results:
    """Read one. Raises `ValueError` for what is none."""
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    if results.format != FORMAT:
        raise ValueError(f"{path}: format {results.format}, where {FORMAT} is known: measure again")
    return results
