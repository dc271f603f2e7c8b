"""Standard output: text, tables and JSON. Colours appear on terminals only, unless `NO_COLOR` is set."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from typedmcp.building import decode_json, escape_controls, is_array, is_object

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "encode_visible",
    "make_console",
    "print_heading",
    "print_json",
    "print_table",
    "print_text",
    "print_value",
    "style_text",
]

_CONTROL_IN_JSON = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON allows in strings, and that a terminal must not get."""
_COLUMN_STYLES = ("cyan", "", "", "dim")
"""The last style applies to the last column of any table."""
_MAX_COLUMNS = 8
"""Columns of a table of objects. Objects with more members are shown as JSON."""


def make_console(*, stderr: bool = False) -> Console:
    """Make a rich console that prints text as it is."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def print_text(text: str, *, stderr: bool = False) -> None:
    """Print text; escape control characters on a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    shown = escape_controls(text, keep_lines=True) if stream.isatty() else text
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
        make_console().print(escape_controls(text, keep_lines=True), style="bold")
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
        grid.add_row(*[Text(escape_controls(cell, keep_lines=True)) for cell in row])
    make_console().print(Padding(grid, (0, 0, 0, indent), expand=False))


def print_json(value: object) -> None:
    """Print a value as an indented JSON document. On a terminal, control characters are written as JSON escapes."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    if sys.stdout.isatty():
        text = _escape_in_json(text.decode()).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def encode_visible(value: object) -> bytes:
    """Return a value as JSON in which control characters are escapes, which mean the same."""
    text = msgspec.json.encode(value).decode()
    return (text if text.isprintable() else _escape_in_json(text)).encode()


def _escape_in_json(text: str) -> str:
    return _CONTROL_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_value(text: str) -> None:
    """Print a text of a result. On a terminal, JSON is indented, and a list of like objects is a table."""
    value = _parse_value(text) if sys.stdout.isatty() else None
    if value is None:
        print_text(text)
    elif (rows := _object_rows(value)) is not None:
        _print_objects([*value[0]], rows)
    else:
        print_json(msgspec.Raw(text.encode()))  # the text itself, so that no number changes


def _parse_value(text: str) -> Any:
    """Return the object or array that a text is, or None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return decode_json(text)
    except ValueError:
        return None


def _object_rows(value: Any) -> list[list[str]] | None:
    """Return the cells of a list of objects that have the same members, without objects or arrays in them."""
    if (
        not is_array(value)
        or not value
        or not all(is_object(item) and item.keys() == value[0].keys() for item in value)
    ):
        return None
    if not 0 < len(value[0]) <= _MAX_COLUMNS or any(
        is_object(cell) or is_array(cell) for item in value for cell in item.values()
    ):
        return None
    return [
        [cell if isinstance(cell, str) else msgspec.json.encode(cell).decode() for cell in map(item.get, value[0])]
        for item in value
    ]


def _print_objects(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(names):
        table.add_column(Text(escape_controls(name)), style=_COLUMN_STYLES[0] if place == 0 else "", overflow="fold")
    for row in rows:
        table.add_row(*[Text(escape_controls(cell, keep_lines=True)) for cell in row])
    make_console().print(table)
