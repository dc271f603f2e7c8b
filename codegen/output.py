"""Output as data: `{path: text}`, which is either written or compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from codegen.errors import SchemaError

__all__ = ["check_folder", "compare", "formatted", "write"]

_RUFF = [sys.executable, "-m", "ruff"]
_STYLE = ["--isolated", "--line-length", "120", "--target-version", "py311", "--quiet", "--no-cache"]


def formatted(files: dict[str, str]) -> dict[str, str]:
    """Python files in the house's format: imports sorted and those unused left out, lines broken."""
    with tempfile.TemporaryDirectory() as folder:
        write(files, Path(folder))
        subprocess.run([*_RUFF, "check", "--fix", "--select", "I,F401", *_STYLE, folder], check=True)  # noqa: S603  # our own arguments
        subprocess.run([*_RUFF, "format", *_STYLE, folder], check=True)  # noqa: S603  # our own arguments
        return {path: (Path(folder) / path).read_text(encoding="utf-8") for path in files}


def write(files: dict[str, str], folder: Path) -> None:
    """Make the packages that these files are in hold exactly them; what else is in the folder stays."""
    check_folder(folder)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    for stale in _present(files, folder) - files.keys():
        (folder / stale).unlink()
        _remove_empty((folder / stale).parent, folder)


def check_folder(folder: Path) -> None:
    """What is to be written to may be missing, but must not be a file, or `SchemaError`."""
    if folder.exists() and not folder.is_dir():
        raise SchemaError(str(folder), "", "is not a folder")


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove a folder and those above it that hold no file any more."""
    while folder != root and not any(path.is_file() and path.suffix != ".pyc" for path in folder.rglob("*")):
        shutil.rmtree(folder)
        folder = folder.parent


def compare(files: dict[str, str], folder: Path) -> list[str]:
    """What differs between these files and a folder, a line each."""
    present = _present(files, folder)
    differences = [f"missing: {path}" for path in sorted(files.keys() - present)]
    differences += [f"stale: {path}" for path in sorted(present - files.keys())]
    same = files.keys() & present
    return differences + [
        f"differs: {path}" for path in sorted(same) if (folder / path).read_bytes() != files[path].encode()
    ]


def _present(files: Iterable[str], folder: Path) -> set[str]:
    """The files that are there in the packages to which `files` belong."""
    packages = {path.partition("/")[0] for path in files}
    found = (path.relative_to(folder) for package in packages for path in (folder / package).rglob("*"))
    return {path.as_posix() for path in found if (folder / path).is_file() and "__pycache__" not in path.parts}
