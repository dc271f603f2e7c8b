"""The output as data, `{path: text}`, which is either written or compared."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from mcpspec_codegen.errors import SchemaError

__all__ = ["check_is_folder", "check_links", "compare", "find_unusable_name", "format_files", "write"]

_RUFF = [sys.executable, "-m", "ruff"]
_STYLE = ["--isolated", "--line-length", "120", "--target-version", "py311", "--quiet", "--no-cache"]


def format_files(files: dict[str, str]) -> dict[str, str]:
    """Format Python files with ruff: lines wrapped, imports sorted, unused imports removed."""
    with tempfile.TemporaryDirectory() as folder:
        write(files, Path(folder))
        for command in (["check", "--fix", "--select", "I,F401"], ["format"]):
            done = subprocess.run([*_RUFF, *command, *_STYLE, folder], capture_output=True, text=True, check=False)  # noqa: S603  # our own arguments
            if done.returncode:
                raise SchemaError(next(iter(files)), "", f"ruff cannot format what was generated: {done.stderr}")
        return {path: (Path(folder) / path).read_text(encoding="utf-8") for path in files}


def find_unusable_name(files: dict[str, str], paths: Iterable[str]) -> tuple[str, str, str] | None:
    """Use every name of some modules in a process of its own. Return the module, name and error of the first fault."""
    modules = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in paths]
    with tempfile.TemporaryDirectory() as folder:
        write(files, Path(folder))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
        command = [sys.executable, "-m", "mcpspec_codegen.use_names", *modules]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603  # our own arguments
    found: list[str] | None = json.loads(done.stdout)
    return None if found is None else (found[0], found[1], found[2])


def write(files: dict[str, str], folder: Path) -> None:
    """Write files, and delete all other files of the same packages. Other packages in the folder stay."""
    check_is_folder(folder)
    check_links(files, folder)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    for stale in _present(files, folder) - files.keys():
        (folder / stale).unlink()
        _remove_empty((folder / stale).parent, folder)


def check_is_folder(folder: Path) -> None:
    """Raise `SchemaError` if the path is a file. It may be missing."""
    if folder.exists() and not folder.is_dir():
        raise SchemaError(str(folder), "", "expected a folder, found a file")


def check_links(paths: Iterable[str], folder: Path) -> None:
    """Raise `SchemaError` for a path that a symbolic link leads out of the folder. The folder may be a link."""
    root = folder.resolve()
    for path in paths:
        if not (target := (folder / path).resolve()).is_relative_to(root):
            text = f"a symbolic link leads to {target}, outside of {folder}; remove the link"
            raise SchemaError(str(folder / path), "", text)


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove a folder that has no files left, and then its parents in the same way."""
    while folder != root and not any(path.is_file() and path.suffix != ".pyc" for path in folder.rglob("*")):
        shutil.rmtree(folder)
        folder = folder.parent


def compare(files: dict[str, str], folder: Path) -> list[str]:
    """List the differences between files and a folder, one line each."""
    present = _present(files, folder)
    differences = [f"missing: {path}" for path in sorted(files.keys() - present)]
    differences += [f"stale: {path}" for path in sorted(present - files.keys())]
    same = files.keys() & present
    return differences + [
        f"differs: {path}" for path in sorted(same) if (folder / path).read_bytes() != files[path].encode()
    ]


def _present(files: Iterable[str], folder: Path) -> set[str]:
    """List the files of a folder that are in the same packages as `files`, or beside them under the same name."""
    tops = {path.partition("/")[0] for path in files}
    found = (path.relative_to(folder) for top in tops for path in (folder / top, *(folder / top).rglob("*")))
    return {path.as_posix() for path in found if (folder / path).is_file() and "__pycache__" not in path.parts}
