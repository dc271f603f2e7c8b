"""The committed budget: ratios that must not fall below a value."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import msgspec

from bench.results import Results

__all__ = ["Budget", "find_violations", "load_budgets"]

FILE = Path(__file__).parent / "budget.toml"


class Budget(msgspec.Struct, forbid_unknown_fields=True):
    """The least ratio of one contender to another."""

    table: str
    column: str
    contender: str
    against: str
    at_least: float
    quick: bool = False
    """True if quick runs are checked, too."""

    @property
    def name(self) -> str:
        return f"{self.table}, {self.column}: {self.contender} against {self.against}"


class _BudgetFile(msgspec.Struct):
    budget: list[Budget]


def load_budgets(path: Path = FILE) -> list[Budget]:
    """Load the budgets of a file. Raises `ValueError` for an invalid file."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_BudgetFile).budget
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}") from error


def find_violations(results: Results, budgets: list[Budget]) -> dict[str, str]:
    """Return descriptions of the ratios that are below their budget or missing, by name."""
    found = {budget.name: _violation(results, budget) for budget in budgets if budget.quick or not results.quick}
    return {name: line for name, line in found.items() if line is not None}


def _violation(results: Results, budget: Budget) -> str | None:
    table = results.table(budget.table)
    ratios = [] if table is None else table.ratios(budget.contender, budget.column, budget.against)
    if not ratios:
        return "not measured, or not in every round"
    if median(ratios) < budget.at_least:
        return f"{median(ratios):.2f} times as good, expected at least {budget.at_least:g} times"
    return None
