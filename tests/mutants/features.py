"""Features that can be taken out: for rows of the specification, the edit after which their tests must fail.

`python -m tests.mutants.features` prints the chosen rows that have no entry yet.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.mutants.faults import Fault
from tests.specification.tables import EXTENSIONS, PageTable, Requirement, load

__all__ = ["SEED", "Feature", "chosen_rows", "find_row_problems", "load_features", "shown_rows"]

_LIST = Path(__file__).with_name("features.toml")
_SUBJECT: Final = re.compile(
    r"\b(tokens?|sign(s|ed|-in)?|consent|headers?|authoriz\w+|credentials?|PKCE|scopes?|challenges?|origins?|issuers?)\b",
    re.IGNORECASE,
)
"""The subjects of which every row is chosen, beside the pages about authorization."""
SEED: Final = "2026"
_DRAWN: Final = 100
"""Rows about anything else that are drawn."""


class Feature(Fault, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An edit that takes a feature out of the code, and the rows whose tests must fail then.

    `breaks` says what the code no longer does.
    """

    rows: list[str]
    """`revision/page: text of the row`."""


def load_features() -> list[Feature]:
    """Read the list. Raises `msgspec.ValidationError` for an entry that lacks a member or has an unknown one."""
    entries = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    return [msgspec.convert({"name": name, **entry}, Feature) for name, entry in entries.items()]


def shown_rows() -> dict[str, list[Requirement]]:
    """Return all rows that tests show, by `revision/page: text`. Sections of a page may have the same text."""
    found: dict[str, list[Requirement]] = {}
    for revision, pages in load().items():
        for page in pages:
            for row in page.requirement:
                if row.tests:
                    found.setdefault(_name(revision, page, row), []).append(row)
    return found


def chosen_rows() -> list[str]:
    """Return the rows to try: all about tokens, sign-in, consent and headers, and others that are drawn by the seed."""
    names = shown_rows()
    subject = [name for name in names if "/authorization" in name.partition(": ")[0] or _is_about(name)]
    of_revisions = {name for name in names if not name.startswith(f"{EXTENSIONS}/")}
    others = sorted(of_revisions - {*subject}, key=lambda name: hashlib.sha256(f"{SEED} {name}".encode()).digest())
    return [*subject, *others[:_DRAWN]]


def find_row_problems(features: list[Feature]) -> Iterator[str]:
    """Yield what is wrong with the rows that entries name."""
    known = shown_rows()
    named = [row for feature in features for row in feature.rows]
    yield from (f"features.toml: no table has the row {row!r}, shown by tests" for row in named if row not in known)
    yield from (f"features.toml: the row {row!r} stands there twice" for row in {*named} if named.count(row) > 1)
    yield from (f"features.toml: {feature.name} names no row" for feature in features if not feature.rows)


def _name(revision: str, page: PageTable, row: Requirement) -> str:
    return f"{revision}/{page.page}: {row.text}"


def _is_about(name: str) -> bool:
    return _SUBJECT.search(name.partition(": ")[2]) is not None


def _main() -> None:
    listed = {row for feature in load_features() for row in feature.rows}
    chosen = chosen_rows()
    missing = [row for row in chosen if row not in listed]
    print("\n".join([*missing, f"{len(chosen) - len(missing)} of {len(chosen)} chosen rows are listed"]))


if __name__ == "__main__":
    _main()
