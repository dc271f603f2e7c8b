"""The hand-written modules of the project, parsed."""

from __future__ import annotations

import ast
from functools import cache

from tests.paths import ROOT
from tools.code_figures import FOLDERS

__all__ = ["classes", "modules"]


@cache
def modules() -> dict[str, ast.Module]:
    """Parse every hand-written module: path within the project → tree."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    names = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return {name: ast.parse(path.read_bytes()) for name, path in names.items() if not name.startswith(_COPIES)}


_COPIES = ("runtime/typedmcp-cli/typedmcp_cli/comparison/",)
"""Folders that are copies of others, as tests check."""


@cache
def classes() -> list[tuple[str, ast.ClassDef]]:
    """Return path and definition of every class, private and nested ones too."""
    return [
        (path, node) for path, tree in modules().items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
