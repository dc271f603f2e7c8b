"""Standard output: text, tables and JSON. Colours appear on terminals only, unless `NO_COLOR` is set."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "escape_controls", "make_console", "print_heading", "print_json", "print_table", "print_text", "style_text",
]  # fmt: skip

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLUMN_STYLES = ("cyan", "", "", "dim")
"""The last style applies to the last column of any table."""


def make_console(*, stderr: bool = False) -> Console:
    """Make a rich console that prints text as it is."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def escape_controls(text: str) -> str:
    r"""Escape control characters as `\x1b`, so that text of a server cannot control the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


def print_text(text: str, *, stderr: bool = False) -> None:
    """Print text; escape control characters on a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    shown = escape_controls(text) if stream.isatty() else text
    stream.write(shown if shown.endswith("\n") else f"{shown}\n")
    stream.flush()


def style_text(text: str, style: str) -> str:
    """Return text with the escape sequences of a style, for a terminal on standard error."""
    with (console := make_console(stderr=True)).capture() as capture:
        console.print(text, style=style, end="")
    return capture.get()


def print_heading(text: str) -> None:
    """Print a heading, bold on a terminal."""
    if sys.stdout.isatty():
        make_console().print(escape_controls(text), style="bold")
    else:
        print_text(text)


def print_table(rows: Iterable[Sequence[str]], *, indent: int = 2) -> None:
    """Print rows in columns. A terminal wraps the last columns; anything else gets one line per row."""
    found = [[*row] for row in rows]
    if found and sys.stdout.isatty():
        _print_grid(found, indent)
        return
    widths = [max(map(len, column)) for column in zip(*found, strict=True)]
    for row in found:
        cells = [cell.replace("\n", " ").ljust(width) for cell, width in zip(row, widths, strict=True)]
        sys.stdout.write(f"{' ' * indent}{'  '.join(cells)}".rstrip() + "\n")


def _print_grid(rows: Sequence[Sequence[str]], indent: int) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for place in range(len(rows[0])):
        is_last = 0 < place == len(rows[0]) - 1
        grid.add_column(style=_COLUMN_STYLES[-1 if is_last else place], no_wrap=place == 0, overflow="fold")
    for row in rows:
        grid.add_row(*[Text(escape_controls(cell)) for cell in row])
    make_console().print(Padding(grid, (0, 0, 0, indent), expand=False))


def print_json(value: object) -> None:
    """Print a value as an indented JSON document."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.buffer.flush()
