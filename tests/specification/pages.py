"""The pages about conformance: `docs/conformance.md`, and those beneath it, which `make docs` makes for the site.

`python -m tests.specification.pages` writes them. A test compares the first one; the others are not committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from tests.conformance.run import TABLE, Table
from tests.mutants.features import chosen_rows, load_features
from tests.paths import ROOT
from tests.specification.tables import EXTENSIONS, PageTable, Requirement, load

__all__ = ["FOLDER", "SUMMARY", "render"]

SUMMARY = ROOT / "docs" / "conformance.md"
FOLDER = ROOT / "docs" / "conformance"
"""The folder of the pages that are made when the site is built."""

_KINDS = {
    "tests": "shown by tests",
    "application": "the application's",
    "not applicable": "not applicable",
    "not yet": "not yet",
}

_INTRODUCTION = """# Conformance

The specification binds with words like MUST and SHOULD. Each such sentence has a row here. The row says in our words
what holds, with the specification's own word as its level, whom it binds, and which tests show that typedmcp does it.
Where no test can show it, the row says why:

| a row has | meaning |
|---|---|
| tests | they fail if typedmcp does not do it; `make test` and `make test-all` run them |
| the application's | it binds what is built with typedmcp, such as a user interface or the contents of a log message |
| not applicable | it binds neither a library nor what uses it, or a feature that typedmcp does not have on purpose |
| not yet | typedmcp should do it, and does not |

"""

_LAST = """
2025-06-18 and older revisions have no rows. The rows are data in `tests/specification`: one table for each page of a
revision, and one for each official extension, whose pages are in the repositories of the extensions. A test checks that
every test they name exists. With the environment variable `MCP_SPECIFICATION`, which names the folder
`docs/specification` of upstream's repository, it also checks that no section of a revision is left out.

`make mutants ARGS=--features` takes features out of the code, and checks that the rows about each have a test that
fails then. `tests/mutants/features.toml` has {entries} edits, for {tried} rows: among them are {known} of the {chosen}
that are chosen, all about tokens, sign-in, consent and headers, and a hundred others.

This is our own list. The [official conformance suite](https://github.com/modelcontextprotocol/conformance) is something
else: programs of upstream that talk to our server and to our client. `make conformance` runs it, and
`tests/conformance/expected.toml` has the outcome of each scenario. In numbers:

"""

_SUITE = """
A scenario has passed if each of its checks has. The scenario `tasks-status-notifications` of 2026-07-28 has no checks
yet. The scenarios of clients have those of authorization among them, also with tokens that are bound to a key (DPoP)
and with the identities of workloads. 2024-11-05 is not part of the suite.
"""


def render(tables: dict[str, list[PageTable]]) -> dict[Path, str]:
    """Render all pages: path → text."""
    made = {FOLDER / f"{revision}.md": _revision_page(revision, pages) for revision, pages in tables.items()}
    return {SUMMARY: _summary(tables), **made}


def _summary(tables: dict[str, list[PageTable]]) -> str:
    rows = [
        [f"[{revision}](conformance/{revision}.md)", *_counts(row for page in pages for row in page.requirement)]
        for revision, pages in tables.items()
    ]
    suite = [
        [*map(str, counts)] for counts in sorted(Table.read(TABLE).counts(), key=lambda row: (row[0] != "server", row))
    ]
    return (
        f"{_INTRODUCTION}{_table(['revision', 'requirements', *_KINDS.values()], rows)}{_last()}"
        f"{_table(['role', 'revision', 'scenarios', 'passed', 'checks'], suite)}{_SUITE}"
    )


def _last() -> str:
    listed, chosen = load_features(), chosen_rows()
    rows = {row for feature in listed for row in feature.rows}
    known = sum(row in rows for row in chosen)
    return _LAST.format(entries=len(listed), tried=len(rows), known=known, chosen=len(chosen))


def _revision_page(revision: str, pages: list[PageTable]) -> str:
    kind = "the official extensions" if revision == EXTENSIONS else f"the revision {revision}, by page"
    head = (
        f"# Requirements of {revision}\n\n"
        f"The requirements of {kind}. [Conformance](../conformance.md) explains the rows.\n\n"
    )
    rows = [[f"[{page.page}](#{page.page.replace('/', '')})", *_counts(page.requirement)] for page in pages]
    parts = "".join(f"\n## {page.page}\n{''.join(_sections(revision, page))}" for page in pages)
    return f"{head}{_table(['page', 'requirements', *_KINDS.values()], rows)}{parts}"


def _counts(rows: Iterable[Requirement]) -> list[str]:
    """Count rows: all, and those of each kind."""
    counts: Counter[str] = Counter(row.responsible or "tests" for row in rows)
    return [f"{number:,}" for number in (counts.total(), *(counts[kind] for kind in _KINDS))]


def _sections(revision: str, page: PageTable) -> Iterator[str]:
    for section, rows in groupby(page.requirement, lambda row: row.section):
        title = f"`#{section}`" if section else "Introduction"
        cells = [[row.text, row.level, row.side, _evidence(row)] for row in rows]
        table = _table(["requirement", "level", "side", "shown by"], cells)
        yield f"\n[{title}]({page.link(revision, section)})\n\n{table}"


def _evidence(row: Requirement) -> str:
    if row.responsible:
        return f"{_KINDS[row.responsible]}: {row.why}"
    return "<br>".join(f"`{name}`" for name in row.tests)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" if line[0] != "---" else f"|{'|'.join(line)}|\n" for line in lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for page, text in render(load()).items():
        page.write_text(text, encoding="utf-8")
