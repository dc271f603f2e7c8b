"""Dotted names of the official SDK's types: `mcp.types`, `mcp_types` and their submodules."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

__all__ = ["Path", "Target", "find_mentions", "find_target", "split_path"]

Path: TypeAlias = tuple[str, ...]
"""A dotted name in parts."""

_PACKAGE, _TYPES, _STANDALONE = "mcp", "types", "mcp_types"
_SUBMODULES = {"jsonrpc", "methods", "version"}
"""Submodules of `mcp.types` and `mcp_types`. `mcpspec.compat` has their names itself."""


@dataclass(frozen=True)
class Target:
    """The thing that a dotted name leads to: a module of the SDK, or a name in one."""

    path: Path
    depth: int
    """The number of parts that name the module."""

    @property
    def name(self) -> str:
        """The name in the module; empty for the module itself."""
        return self.path[self.depth] if len(self.path) > self.depth else ""

    @property
    def text(self) -> str:
        return ".".join(self.path[: self.depth + 1])

    @property
    def is_of_package(self) -> bool:
        """Return whether the module is `mcp`, which has names that are not types, too."""
        return self.path[: self.depth] == (_PACKAGE,)

    @property
    def is_of_submodule(self) -> bool:
        return self.path[self.depth - 1] in _SUBMODULES


def split_path(dotted: str) -> Path:
    """Return the parts of a dotted name."""
    return (*dotted.split("."),)


def find_target(path: Path) -> Target | None:
    """Return what a dotted name leads to, or None if it does not begin with `mcp` or `mcp_types`."""
    if path[:1] == (_STANDALONE,):
        depth = 1
    elif path[:1] == (_PACKAGE,):
        depth = 2 if path[1:2] == (_TYPES,) else 1
    else:
        return None
    has_submodule = path[:depth] != (_PACKAGE,) and _SUBMODULES.issuperset(path[depth : depth + 1] or ("",))
    return Target(path, depth + has_submodule)


_MENTION = re.compile(r"(?<![\w./-])(?:mcp\.types|mcp_types)(?:\.\w+)*+(?![\w/-])")


def find_mentions(source: str, content: str) -> Iterator[tuple[int, Target]]:
    """Yield the dotted names in a string that is code or a dotted name, and not prose, each with its offset.

    `source` is the string as the file spells it; `content` is its value.
    """
    for found in _MENTION.finditer(source) if _is_code(content) else ():
        if target := find_target(split_path(found[0])):
            yield found.start(), target


def _is_code(text: str) -> bool:
    if not _MENTION.search(text):
        return False
    if not re.search(r"\s", text.strip()):
        return True
    try:
        cst.parse_module(textwrap.dedent(text))
    except cst.ParserSyntaxError:
        return False
    return True
