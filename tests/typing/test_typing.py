"""Both type checkers accept the code in `accepted/`, and reject each line marked `# E` in
`rejected/` is an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = Path(__file__).parent / "accepted"
REJECTED = Path(__file__).parent / "rejected"
FILES = [*sorted(ACCEPTED.glob("*.py")), *sorted(REJECTED.glob("*.py"))]

Place: TypeAlias = tuple[str, int]
"""File, relative to this folder, and line."""
Diagnostics: TypeAlias = dict[Place, str]


def place(file: Path, line: int) -> Place:
    return file.resolve().relative_to(Path(__file__).parent).as_posix(), line


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), f"{arguments[0]} could not do its work:\n{done.stdout}{done.stderr}"
    return done.stdout


def run_mypy(scratch: Path) -> Diagnostics:
    output = run(
        "mypy", "--strict", "--follow-imports=silent", "--output=json", f"--cache-dir={scratch}", *map(str, FILES)
    )
    found = [json.loads(line) for line in output.splitlines()]
    return {place(ROOT / item["file"], item["line"]): item["message"] for item in found if item["severity"] == "error"}


def run_pyright(scratch: Path) -> Diagnostics:
    config = pyright_config(scratch)
    project = scratch / "pyrightconfig.json"
    project.write_text(json.dumps(config), encoding="utf-8")
    report = json.loads(run("pyright", "--outputjson", "--project", str(project)))
    assert report["summary"]["filesAnalyzed"] == len(FILES)
    return {
        place(Path(item["file"]), item["range"]["start"]["line"] + 1): item["message"]
        for item in report["generalDiagnostics"]
    }


def pyright_config(folder: Path) -> dict[str, Any]:
    """Return the project's configuration, for the two folders here. It excludes one of them."""
    config: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pyright"]
    return {
        **config,
        "include": [os.path.relpath(path, folder) for path in (ACCEPTED, REJECTED)],
        "exclude": [],
        "extraPaths": [str(ROOT / path) for path in config["extraPaths"]],
        "venvPath": str(ROOT / config["venvPath"]),
    }


CHECKERS: dict[str, Callable[[Path], Diagnostics]] = {"mypy": run_mypy, "pyright": run_pyright}


@pytest.fixture(scope="module", params=CHECKERS)
def diagnostics(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Diagnostics:
    return CHECKERS[request.param](tmp_path_factory.mktemp(request.param).resolve())


def marked() -> Iterator[Place]:
    for file in REJECTED.glob("*.py"):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if line.endswith("  # E"):
                yield place(file, number)


def in_folder(diagnostics: Diagnostics, folder: Path) -> Diagnostics:
    return {at: text for at, text in diagnostics.items() if at[0].startswith(f"{folder.name}/")}


def listed(diagnostics: Diagnostics) -> str:
    return "\n".join(f"{file}:{line}: {text}" for (file, line), text in sorted(diagnostics.items()))


def test_correctly_typed_code_is_accepted(diagnostics: Diagnostics) -> None:
    found = in_folder(diagnostics, ACCEPTED)
    assert not found, listed(found)


def test_wrong_code_is_rejected(diagnostics: Diagnostics) -> None:
    missed = dict.fromkeys(set(marked()) - diagnostics.keys(), "accepted, but marked as an error")
    assert not missed, listed(missed)


def test_only_the_marked_lines_are_rejected(diagnostics: Diagnostics) -> None:
    marks = set(marked())
    found = {at: text for at, text in in_folder(diagnostics, REJECTED).items() if at not in marks}
    assert not found, listed(found)


def test_every_folder_makes_claims() -> None:
    assert len(set(marked())) > 50
    assert all("assert_type" in file.read_text(encoding="utf-8") for file in ACCEPTED.glob("*.py"))
