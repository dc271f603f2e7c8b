"""Tables of cases report what fails, and nothing of one case reaches the next."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cases import each
from tests.paths import ROOT

TABLE = """
import os
import pytest
from tests.cases import each

@each("a, b", [(1, 2), pytest.param(3, 3, id="equal")])
@each("kind", ["x", "y"])
def test_table(a, b, kind, tmp_path, monkeypatch, capsys):
    assert "SEEN" not in os.environ and not list(tmp_path.iterdir())
    monkeypatch.setenv("SEEN", "1")
    (tmp_path / "file").touch()
    print(a)
    assert capsys.readouterr().out == f"{a}\\n"
    if kind == "y" and a == 1:
        pytest.skip("not this one")
    assert a != b, kind
"""


def report_of(folder: Path, *options: str) -> str:
    """Run pytest on the table, and return what it prints."""
    (folder / "test_table.py").write_text(TABLE)
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += [str(folder / "test_table.py"), *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    return run.stdout + run.stderr


def test_every_case_that_fails_has_a_report_with_its_name_and_its_values(tmp_path: Path) -> None:
    report = report_of(tmp_path)
    assert "test_table [x-equal]" in report
    assert "test_table [y-equal]" in report
    assert report.count("assert 3 != 3") == 2
    assert "not this one" in report
    assert "[x-1-2]" not in report


def test_a_case_can_be_run_by_its_name(tmp_path: Path) -> None:
    assert "1 passed" in report_of(tmp_path, "--case", "x-1-2")
    assert "no case is called nothing" in report_of(tmp_path, "--case", "nothing")


def test_the_values_of_a_generator_are_read_when_the_test_runs() -> None:
    read: list[int] = []

    def values() -> Iterator[int]:
        read.append(1)
        yield 1

    @each("value", values())
    def table(value: int) -> None: ...

    assert inspect.signature(table).parameters.keys() == {"request", "subtests"}
    assert read == []
