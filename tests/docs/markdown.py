"""Read the pages of the documentation: blocks of code, tables, headings, links. Replace what is made in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

__all__ = ["PAGES", "Block", "anchors", "blocks", "links", "name_of", "prose", "replace_block", "tables"]

_APART = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "codegen/README.md",
    "examples/README.md",
    "generated/README.md",
    "schema/README.md",
)

PAGES: list[Path] = [
    *(ROOT / name for name in _APART),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "conformance" and page != ROOT / "docs" / "reference" / "limits.md"
    ),
]
"""All pages but those that are made when the site is built."""

_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*) *(title=\"(?P<title>[^\"]*)\")?.*\Z")
_EXCUSE = re.compile(r"<!-- not run: (?P<why>.+?) -->\Z")
_HEADING = re.compile(r"#{1,6} (?P<text>.+)\Z")
_LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)\)")
_CODE = re.compile(r"``.+?``|`[^`]*`")


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    page: Path
    line: int
    """The number of the first line of code, from 1."""
    language: str
    title: str
    """The name of the file to write the block to; empty if it has none."""
    code: str
    excuse: str
    """The reason for not running the block; empty if it is run."""

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    """Return the path of a page from the root of the project, or the full path of a page outside of it."""
    return (page.relative_to(ROOT) if page.is_relative_to(ROOT) else page).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of code of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    above, number = "", 0
    while number < len(lines):
        found = _FENCE.match(lines[number])
        if found is None:
            above = lines[number].strip() or above
            number += 1
            continue
        indent, begin = len(found["indent"]), number + 1
        number = begin + next(
            (more for more, line in enumerate(lines[begin:]) if line.strip() == found["ticks"]), len(lines) - begin
        )
        excuse = _EXCUSE.match(above)
        code = "".join(f"{line[indent:]}\n" for line in lines[begin:number])
        yield Block(page, begin + 1, found["language"], found["title"] or "", code, excuse["why"] if excuse else "")
        above, number = "", number + 1


def prose(page: Path) -> list[str]:
    """Return the lines of a page, with empty lines in the place of code."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in blocks(page):
        count = block.code.count("\n")
        lines[block.line - 2 : block.line + count] = [""] * (count + 2)
    return lines


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and the target of each link of a page."""
    for number, line in enumerate(prose(page), 1):
        for found in _LINK.finditer(_CODE.sub(lambda code: code[0].replace("(", " ").replace("[", " "), line)):
            yield number, found["target"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: its headings, as GitHub and the site spell them."""
    found: set[str] = set()
    for line in prose(page):
        if heading := _HEADING.match(line):
            text = re.sub(r"[^\w\- ]", "", heading["text"].lower())
            found.add(re.sub(r"[ ]", "-", text.strip()))
    return found


def tables(page: Path) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield the tables of a page: the number of the first line, and rows of cells, beginning with the header."""
    rows: list[list[str]] = []
    begin = 0
    for number, line in enumerate([*prose(page), ""], 1):
        if line.startswith("|"):
            begin = begin or number
            rows.append(_cells(line))
        elif rows:
            yield begin, [rows[0], *rows[2:]]
            rows, begin = [], 0


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in inner.split("|")]


def replace_block(page: str, name: str, block: str) -> str:
    """Put what `python -m tests.docs.NAME` makes into its place in a page.

    Raises `ValueError` unless the page has one place for it.
    """
    place = rf"(?<=<!-- {name}: python -m tests\.docs\.{name} -->\n).*?(?=<!-- end of {name} -->)"
    made, places = re.subn(place, lambda _: f"{block}\n", page, flags=re.DOTALL)
    if places != 1:
        raise ValueError(f"a page must have one place for {name}, not {places}")
    return made
