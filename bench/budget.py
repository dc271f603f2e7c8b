"""The committed budget: ratios that must not get worse."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import msgspec

from bench.results import Results

__all__ = ["Budget", "budgets", "over"]

FILE = Path(__file__).parent / "budget.toml"


class Budget(msgspec.Struct, forbid_unknown_fields=True):
    """How many times as good one contender has to be as another."""

    table: str
    column: str
    contender: str
    against: str
    at_least: float
    quick: bool = False
    """Whether a quick run is held to it too."""

    @property
    def name(self) -> str:
        return f"{self.table}, {self.column}: {self.contender} against {self.against}"


class _File(msgspec.Struct):
    budget: list[Budget]


def budgets(path: Path = FILE) -> list[Budget]:
    """All of a file. Raises `ValueError` for a file that is wrong."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_File).budget
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from error


def over(results: Results, held: list[Budget]) -> dict[str, str]:
    """What is worse than its budget, by name, and how; also what a run that should have measured it did not measure."""
    found = {budget.name: _verdict(results, budget) for budget in held if budget.quick or not results.quick}
    return {name: line for name, line in found.items() if line is not None}


def _verdict(results: Results, budget: Budget) -> str | None:
    table = results.table(budget.table)
    ratios = [] if table is None else table.ratios(budget.contender, budget.column, budget.against)
    if not ratios:
        return "not measured, or not in each round"
    if median(ratios) < budget.at_least:
        return f"{median(ratios):.2f} times as good, where it has to be {budget.at_least:g} times"
    return None
