"""Each requirement of the specification has a test that shows it, or a reason; the pages are made from the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import each
from tests.specification import pages, upstream
from tests.specification.tables import EXTENSIONS, PageTable, Requirement, find_faults, load

TABLES = load()
REVISIONS = [revision for revision in TABLES if revision != EXTENSIONS]
CASES = [
    pytest.param(revision, table, id=f"{revision}/{table.page}") for revision in TABLES for table in TABLES[revision]
]


@each("revision, table", CASES)
def test_every_row_has_a_test_that_exists_or_a_reason(revision: str, table: PageTable) -> None:
    faults = [f"{row.section}: {row.text}: {fault}" for row in table.requirement for fault in find_faults(row)]
    assert faults == []


@each("revision, table", CASES)
def test_no_requirement_stands_twice_in_a_section(revision: str, table: PageTable) -> None:
    rows = [(row.section, row.side, row.text) for row in table.requirement]
    assert sorted({*rows}) == sorted(rows)


ROW = Requirement("a", "MUST", "server", "It is right.", ["tests/vectors/frames.toml::a request"])
REASON = Requirement("a", "MUST", "server", "It is right.", [], "application", "It decides.")


def test_a_row_with_a_test_or_a_reason_is_right() -> None:
    assert [*find_faults(ROW), *find_faults(REASON)] == []


@each(
    "row, fault",
    [
        (Requirement("a", "MUST", "server", "It is right."), "has either tests or a responsible"),
        (Requirement("a", "MUST", "server", "Yes.", ROW.tests, "application", "It decides."), "has either"),
        (Requirement("a", "MUST", "server", "Yes.", [], "application"), "has a why"),
        (Requirement("a", "MUST", "server", "Yes.", ROW.tests, None, "It decides."), "has a why"),
        (Requirement("a", "MUST", "server", "Yes", ROW.tests), "'Yes' is a sentence"),
        (Requirement("a", "MUST", "server", "Yes|no.", ROW.tests), "without bars"),
        (Requirement("a", "MUST", "server", "Yes.", ROW.tests * 2), "names a test twice"),
        (Requirement("a", "MUST", "server", "Yes.", ["tests/vectors/frames.toml::no such frame"]), "does not exist"),
        (Requirement("a", "MUST", "server", "Yes.", ["tests/test_errors.py::test_nothing"]), "does not exist"),
        (Requirement("a", "MUST", "server", "Yes.", ["tests/no_such_file.py::test_nothing"]), "does not exist"),
        (Requirement("a", "MUST", "server", "Yes.", ["runtime/typedmcp/errors.py::test_nothing"]), "does not exist"),
    ],
)
def test_a_wrong_row_is_found(row: Requirement, fault: str) -> None:
    assert any(fault in found for found in find_faults(row))


@each(
    "text, error",
    [
        ('page = "a"\n[[requirement]]\nsecton = "b"', "secton"),
        ('page = "a"\nrevision = "b"\nrequirement = []', "revision"),
        ('page = "b"\nrequirement = []', "the page must be 'a'"),
        ("page =", "a.toml"),
    ],
)
def test_a_malformed_table_is_an_error_that_names_its_file(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "2026-07-28").mkdir()
    (tmp_path / "2026-07-28" / "a.toml").write_text(text)
    with pytest.raises(ValueError, match=error) as caught:
        load(tmp_path)
    assert "a.toml" in str(caught.value)


def test_the_page_about_conformance_is_made_from_the_tables() -> None:
    made = pages.render(TABLES)
    assert pages.SUMMARY.read_text(encoding="utf-8") == made[pages.SUMMARY], "run: python -m tests.specification.pages"


def test_the_pages_of_the_site_are_made_from_the_tables() -> None:
    made = pages.render(TABLES)
    for revision in REVISIONS:
        assert made[pages.FOLDER / f"{revision}.md"].count("\n| ") > 300


# Upstream's pages


@each("revision", REVISIONS)
def test_every_page_and_section_that_binds_has_rows(revision: str) -> None:
    rows = {(table.page, row.section) for table in TABLES[revision] for row in table.requirement}
    texts = upstream.pages(revision)
    bound = {(page, section) for page, text in texts.items() for section in upstream.binding_sections(text)}
    assert sorted(bound - rows) == []


@each("revision", REVISIONS)
def test_the_section_of_every_row_exists(revision: str) -> None:
    texts = upstream.pages(revision)
    unknown = [
        f"{table.page}#{row.section}"
        for table in TABLES[revision]
        for row in table.requirement
        if row.section not in upstream.sections(texts[table.page])
    ]
    assert unknown == []


@each("revision", REVISIONS)
def test_the_words_are_our_own(revision: str) -> None:
    texts = {page: upstream.plain(text) for page, text in upstream.pages(revision).items()}
    copied = [
        row.text
        for table in TABLES[revision]
        for row in table.requirement
        if upstream.plain(row.text) in texts[table.page]
    ]
    assert copied == []
