"""Output as data: the same input gives the same bytes, which are either written or compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspec_codegen.errors import SchemaError
from mcpspec_codegen.output import compare, find_unusable_name, write
from tests.cases import each
from tests.codegen.helpers import (
    GENERATED,
    NEWEST,
    ROOT,
    SCHEMA,
    codegen,
    schema_folder,
    small_folder,
    small_schema,
    snapshot,
)

_PACKAGE = f"mcpspec/v{NEWEST.replace('-', '_')}"


@pytest.mark.long
def test_the_output_does_not_depend_on_the_order_of_hashes(tmp_path: Path) -> None:
    schema = schema_folder(tmp_path / "schema")
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "mcpspec_codegen", "--schema", schema, "--output", tmp_path / seed, "generate"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.DEVNULL,
        )
        for seed in ("1", "2")
    ]
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    first, second = (
        {path.relative_to(tmp_path / seed): data for path, data in snapshot(tmp_path / seed).items()}
        for seed in ("1", "2")
    )
    assert len(first) > 10
    assert first == second


@pytest.mark.long
def test_the_committed_package_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    status = codegen(SCHEMA, GENERATED, "check")
    assert capsys.readouterr().out == ""
    assert status == 0


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a schema folder and its compiled package."""
    folder = tmp_path_factory.mktemp("fresh")
    small_folder(folder / "schema", small_schema())
    assert codegen(folder / "schema", folder / "output", "generate") == 0
    return folder


def _edit(output: Path) -> None:
    path = output / _PACKAGE / "structs.py"
    path.write_text(path.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")


def _edit_line_endings(output: Path) -> None:
    path = output / _PACKAGE / "methods.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def _edit_to_no_text(output: Path) -> None:
    (output / _PACKAGE / "methods.py").write_bytes(b"\xff\xfe")


def _remove(output: Path) -> None:
    (output / _PACKAGE / "models.py").unlink()


def _add(output: Path) -> None:
    (output / _PACKAGE / "notes.py").touch()


def _add_bytecode(output: Path) -> None:
    (output / _PACKAGE / "__pycache__").mkdir()
    (output / _PACKAGE / "__pycache__" / "structs.cpython-311.pyc").touch()


@each(
    "change, expected",
    [
        pytest.param(_edit, f"differs: {_PACKAGE}/structs.py", id="edited"),
        pytest.param(_edit_line_endings, f"differs: {_PACKAGE}/methods.py", id="other line endings"),
        pytest.param(_edit_to_no_text, f"differs: {_PACKAGE}/methods.py", id="no text"),
        pytest.param(_remove, f"missing: {_PACKAGE}/models.py", id="missing"),
        pytest.param(_add, f"stale: {_PACKAGE}/notes.py", id="stale"),
    ],
)
def test_check_names_a_file_that_differs_and_changes_nothing(
    change: Callable[[Path], None], expected: str, fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = Path(shutil.copytree(fresh / "output", tmp_path / "output"))
    change(output)
    before = snapshot(output)
    assert codegen(fresh / "schema", output, "check") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [expected, "run `make generate` and commit what it writes"]
    assert snapshot(output) == before


def test_check_accepts_a_package_that_was_just_generated_and_imported(
    fresh: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = Path(shutil.copytree(fresh / "output", tmp_path / "output"))
    _add_bytecode(output)
    assert codegen(fresh / "schema", output, "check") == 0
    assert capsys.readouterr().out == ""


_FILES = {"mcpspec/__init__.py": "a = 1\n", "mcpspec/v1/structs.py": '"""é"""\n', "mcpspec/py.typed": ""}


def _written(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): data.decode() for path, data in snapshot(folder).items()}


def test_write_makes_a_package_contain_exactly_the_files(tmp_path: Path) -> None:
    write(_FILES, tmp_path)
    assert _written(tmp_path) == _FILES
    assert compare(_FILES, tmp_path) == []


def test_write_overwrites_edited_files_and_removes_stale_ones(tmp_path: Path) -> None:
    write({**_FILES, "mcpspec/v0/structs.py": "gone = 1\n", "mcpspec/v1/structs.py": "old = 1\n"}, tmp_path)
    write(_FILES, tmp_path)
    assert _written(tmp_path) == _FILES


def test_write_removes_the_folder_of_a_deleted_package(tmp_path: Path) -> None:
    """Python would import an empty one as a namespace package."""
    write({**_FILES, "mcpspec/v0/structs.py": "gone = 1\n"}, tmp_path)
    write(_FILES, tmp_path)
    assert not (tmp_path / "mcpspec" / "v0").exists()


def test_compare_lists_all_differences_in_order(tmp_path: Path) -> None:
    write({"p/b.py": "", "p/c.py": "old = 1\n", "p/d.py": "", "p/stale.py": ""}, tmp_path)
    wanted = {"p/a.py": "", "p/b.py": "", "p/c.py": "new = 1\n", "p/d.py": "new = 1\n"}
    assert compare(wanted, tmp_path) == ["missing: p/a.py", "stale: p/stale.py", "differs: p/c.py", "differs: p/d.py"]


def test_write_changes_nothing_beside_the_package(tmp_path: Path) -> None:
    mine = [tmp_path / "notes.txt", tmp_path / "other" / "mcpspec" / "v0.py", tmp_path / "mcpspecs" / "a.py"]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine\n", encoding="utf-8")
    write(_FILES, tmp_path)
    write({"mcpspec/__init__.py": ""}, tmp_path)
    assert [path.read_text(encoding="utf-8") for path in mine] == ["mine\n"] * 3
    assert compare({"mcpspec/__init__.py": ""}, tmp_path) == []


@each("command", [("generate",), ("bump", NEWEST, str(SCHEMA / f"{NEWEST}.json"), "--repin")])
def test_an_output_that_is_a_file_is_an_error_and_nothing_is_written(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, output = small_folder(tmp_path / "schema", small_schema()), tmp_path / "output"
    output.touch()
    before = snapshot(tmp_path)
    assert codegen(schema, output, *command) == 2
    assert f"error: {output}#: expected a folder, found a file" in capsys.readouterr().err
    assert snapshot(tmp_path) == before


def test_write_refuses_a_link_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "output" / "mcpspec").mkdir(parents=True)
    (tmp_path / "output" / "mcpspec" / "structs.py").symlink_to(tmp_path / "target.py")
    with pytest.raises(SchemaError, match="a symbolic link leads to"):
        write({"mcpspec/__init__.py": "", "mcpspec/structs.py": ""}, tmp_path / "output")
    assert not (tmp_path / "target.py").exists()
    assert not (tmp_path / "output" / "mcpspec" / "__init__.py").exists()


def test_compare_with_a_missing_folder_lists_all_files(tmp_path: Path) -> None:
    assert compare({"a.py": ""}, tmp_path / "nowhere") == ["missing: a.py"]


def test_a_name_that_cannot_be_used_is_found_in_the_first_module_that_has_one() -> None:
    lazy = "__all__ = ['Good', 'Bad']\nGood = 1\n\ndef __getattr__(name):\n    if name == 'Bad':\n"
    lazy += "        return Missing\n    raise AttributeError(name)\n"
    hinted = "class Bad:\n    it: 'Missing'\n\n__all__ = ['Bad']\n"
    files = {"pkg/__init__.py": "", "pkg/good.py": "__all__ = ['it']\nit = 1\n"}
    assert find_unusable_name(files, files) is None
    for text in (lazy, hinted):
        changed = {**files, "pkg/bad.py": text}
        assert find_unusable_name(changed, changed) == (
            "pkg.bad", "Bad", "NameError: name 'Missing' is not defined",
        )  # fmt: skip
