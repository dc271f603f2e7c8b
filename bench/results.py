"""The results of a run, and their file.

A table compares contenders, with a row for each and a column for each measurement. Contenders take turns in rounds, so
that other load on the machine affects all of them. The figures of all rounds are kept. A ratio is computed within each
round, and then the median is taken. So ratios stay valid if the speed of the machine changes, unlike the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

__all__ = ["Environment", "Figures", "Results", "Row", "Table", "load", "merge", "save"]

FORMAT = 1


class Environment(msgspec.Struct):
    """The machine and its software."""

    machine: str
    """A short name, also used for file names."""
    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    commit: str
    load: float
    """The load average of the minute before the run. A high load makes figures worse; ratios suffer less."""
    began: str
    """Date and time, in UTC."""
    versions: dict[str, str]


class Figures(msgspec.Struct):
    """The figures of one contender in one column, by round."""

    rounds: list[float]

    @property
    def median(self) -> float:
        return median(self.rounds)


class Row(msgspec.Struct):
    """One contender."""

    contender: str
    figures: dict[str, Figures]
    """By column. A column that the contender does not support is missing."""
    note: str = ""
    checks: str = ""
    """The checks that it makes, if they differ between the contenders of the table."""


class Table(msgspec.Struct):
    """A comparison of contenders."""

    name: str
    """Such as `codecs/tools-call`. Budgets and documents refer to it."""
    title: str
    about: str
    """Description of the measurement, for readers of the report."""
    unit: str
    better: Literal["lower", "higher"]
    reference: str
    """The contender that the others are compared with."""
    columns: list[str]
    rows: list[Row]

    def figures(self, contender: str, column: str) -> Figures | None:
        """Return the figures of a contender in a column, or None."""
        row = next((row for row in self.rows if row.contender == contender), None)
        return None if row is None else row.figures.get(column)

    def ratios(self, contender: str, column: str, against: str | None = None) -> list[float]:
        """Return the ratios of one contender to another, by round: above 1 is better.

        There are no ratios if one has no figures, or a figure of 0 or less in some round: a process may have freed
        memory, and then its other rounds mean nothing either.
        """
        mine, other = self.figures(contender, column), self.figures(against or self.reference, column)
        if mine is None or other is None or min(mine.rounds + other.rounds, default=0) <= 0:
            return []
        pairs = zip(mine.rounds, other.rounds, strict=True)
        return [b / a if self.better == "lower" else a / b for a, b in pairs]


class Results(msgspec.Struct):
    """The results of a run."""

    format: int
    command: str
    """The command that repeats the run."""
    quick: bool
    environment: Environment
    tables: list[Table]
    broken: list[str] = []
    """Suites that failed, with the reason. Their finished tables are included."""

    def table(self, name: str) -> Table | None:
        """Return the table with a name, or None."""
        return next((table for table in self.tables if table.name == name), None)


def merge(runs: Sequence[Results]) -> Results:
    """Return runs on one machine as one, with the newest of each table. Raises `ValueError` for two machines."""
    if len({each.environment.machine for each in runs}) > 1:
        raise ValueError("only runs on one machine belong together")
    in_order = sorted(runs, key=lambda each: each.environment.began)
    environments = [each.environment for each in in_order]
    environment = msgspec.structs.replace(
        environments[-1],
        commit=" and ".join(dict.fromkeys(each.commit for each in environments)),
        began=" and ".join(dict.fromkeys(each.began for each in environments)),
        load=max(each.load for each in environments),
        versions={name: version for each in environments for name, version in each.versions.items()},
    )
    return msgspec.structs.replace(
        in_order[-1],
        command="` and `".join(each.command for each in in_order),
        quick=any(each.quick for each in in_order),
        environment=environment,
        tables=[*{table.name: table for each in in_order for table in each.tables}.values()],
        broken=[suite for each in in_order for suite in each.broken],
    )


def save(results: Results, path: Path) -> None:
    """Write a results file as indented JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def load(path: Path) -> Results:
    """Read a results file. Raises `ValueError` for an invalid one."""
    try:
        results = msgspec.json.decode(path.read_bytes(), type=Results)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    if results.format != FORMAT:
        raise ValueError(f"{path}: unknown format {results.format}, expected {FORMAT}; measure again")
    return results
