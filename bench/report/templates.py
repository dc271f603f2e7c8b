"""The templates of the report, with what all of them need."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.report import figures

__all__ = ["printable", "render"]

# XML has no way to write these, and a terminal would obey some of them.
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """A text without control characters."""
    return _UNPRINTABLE.sub("\ufffd", text)


def _final(value: Any) -> Any:
    return printable(value) if type(value) is str else value


_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    autoescape=True,
    finalize=_final,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render(template: str, **context: Any) -> str:
    """A template of this folder, filled in; everything in it is escaped."""
    return _environment.get_template(template).render(figures=figures, **context)
