"""The tables of requirements: each sentence of the specification that binds, with the tests that show it.

There is a table for each page of a revision: `2026-07-28/basic/index.toml` is for `basic/index`. In `extensions` there
is one for each official extension, whose specification is elsewhere.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tests.paths import ROOT

__all__ = ["EXTENSIONS", "PageTable", "Requirement", "find_faults", "load"]

TABLES = Path(__file__).parent
_TEST_FILE = re.compile(r"tests/(.*/)?test_\w+\.py|tests/vectors/frames\.toml")
EXTENSIONS = "extensions"
"""The folder of the tables for extensions, in place of a revision."""
SITE = "https://modelcontextprotocol.io/specification"

Level: TypeAlias = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"]
Side: TypeAlias = Literal["server", "client", "both", "host", "authorization server", "intermediary", "extension"]
Responsible: TypeAlias = Literal["application", "not applicable", "not yet"]


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One requirement, in our words."""

    section: str
    """The anchor of the heading on the page; empty before the first heading."""
    level: Level
    side: Side
    text: str
    tests: list[str] = []
    """`path::function`, `path::class::function`, or `tests/vectors/frames.toml::name of a frame`."""
    responsible: Responsible | None = None
    """Where no test can show it: the application that uses the library, or the reason that `why` gives."""
    why: str = ""


class PageTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All requirements of one page of a revision."""

    page: str
    requirement: list[Requirement]
    url: str = ""
    """The address of the page, if it is not on the site of the revision."""

    def link(self, revision: str, section: str) -> str:
        """Return the address of a section on upstream's site."""
        page = self.url or f"{SITE}/{revision}/{self.page}".removesuffix("/index")
        anchor = section.replace("--", "-%26-")  # the site keeps `&`, where GitHub leaves nothing
        return f"{page}#{anchor}" if section else page


def load(folder: Path = TABLES) -> dict[str, list[PageTable]]:
    """Read all tables, by revision, those of extensions last. Raises an error that names a malformed file."""
    revisions = sorted((path for path in folder.iterdir() if path.is_dir() and path.name[0].isdigit()), reverse=True)
    revisions += [path for path in (folder / EXTENSIONS,) if path.is_dir()]
    return {revision.name: [_read(path, revision) for path in _files(revision)] for revision in revisions}


def _files(revision: Path) -> list[Path]:
    return sorted(revision.rglob("*.toml"), key=lambda path: path.with_suffix("").parts)


def _read(path: Path, revision: Path) -> PageTable:
    try:
        table = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), PageTable)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"{path}: {error}") from error
    expected = path.relative_to(revision).with_suffix("").as_posix()
    if table.page != expected:
        raise ValueError(f"{path}: the page must be {expected!r}, not {table.page!r}")
    return table


def find_faults(requirement: Requirement) -> Iterator[str]:
    """Yield everything that is wrong with a row."""
    if bool(requirement.tests) == bool(requirement.responsible):
        yield "has either tests or a responsible"
    if bool(requirement.responsible) != bool(requirement.why):
        yield "has a why if it has a responsible, and only then"
    for text in filter(None, (requirement.text, requirement.why)):
        if not text.endswith(".") or text != text.strip() or {"|", "\n"} & {*text}:
            yield f"{text!r} is a sentence on one line, without bars"
    if len({*requirement.tests}) < len(requirement.tests):
        yield "names a test twice"
    yield from (f"{name} does not exist" for name in requirement.tests if not _has_test(name))


def _has_test(name: str) -> bool:
    """Whether a test exists, by the syntax tree of its file."""
    path, _, inner = name.partition("::")
    return _TEST_FILE.fullmatch(path) is not None and (ROOT / path).is_file() and inner in _tests_in(ROOT / path)


@cache
def _tests_in(path: Path) -> set[str]:
    """Find the tests of a file: functions, methods of classes, or frames."""
    if path.suffix == ".toml":
        return {frame["name"] for frame in tomllib.loads(path.read_text(encoding="utf-8"))["frame"]}
    body = ast.parse(path.read_bytes()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    return {*_functions(body), *(f"{node.name}::{name}" for node in classes for name in _functions(node.body))}


def _functions(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name
