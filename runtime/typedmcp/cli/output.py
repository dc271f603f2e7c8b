"""Standard output: texts, tables, documents. Coloured where somebody looks at it, and nobody set `NO_COLOR`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["coloured", "console", "document", "heading", "say", "table", "visible"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLES = ("cyan", "", "", "dim")
"""Of columns: what comes last is least."""


def console(*, stderr: bool = False) -> Console:
    """A console of rich's, for a terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def visible(text: str) -> str:
    r"""Text of a server's for a terminal: what would move its cursor or change its colours is shown as `\x1b`."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


def say(text: str, *, stderr: bool = False) -> None:
    """Print a text as it is; on a terminal, without what would control it."""
    stream = sys.stderr if stderr else sys.stdout
    shown = visible(text) if stream.isatty() else text
    stream.write(shown if shown.endswith("\n") else f"{shown}\n")
    stream.flush()


def coloured(text: str, style: str) -> str:
    """Text for a terminal, on standard error."""
    with (made := console(stderr=True)).capture() as capture:
        made.print(text, style=style, end="")
    return capture.get()


def heading(text: str) -> None:
    """A line above what follows."""
    if sys.stdout.isatty():
        console().print(visible(text), style="bold")
    else:
        say(text)


def table(rows: Iterable[Sequence[str]], *, indent: int = 2) -> None:
    """Rows in columns. On a terminal the last ones are as wide as there is room, else each row is one line."""
    found = [[*row] for row in rows]
    if found and sys.stdout.isatty():
        _grid(found, indent)
        return
    widths = [max(map(len, column)) for column in zip(*found, strict=True)]
    for row in found:
        cells = [cell.replace("\n", " ").ljust(width) for cell, width in zip(row, widths, strict=True)]
        sys.stdout.write(f"{' ' * indent}{'  '.join(cells)}".rstrip() + "\n")


def _grid(rows: Sequence[Sequence[str]], indent: int) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for place in range(len(rows[0])):
        is_last = 0 < place == len(rows[0]) - 1
        made.add_column(style=_STYLES[-1 if is_last else place], no_wrap=place == 0, overflow="fold")
    for row in rows:
        made.add_row(*[Text(visible(cell)) for cell in row])
    console().print(Padding(made, (0, 0, 0, indent), expand=False))


def document(value: object) -> None:
    """Print JSON."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    sys.stdout.buffer.flush()
