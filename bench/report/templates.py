"""The templates of the report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.report import figures

__all__ = ["render_template", "replace_unprintable"]

# XML cannot contain these, and some of them control a terminal.
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def replace_unprintable(text: str) -> str:
    """Replace control characters."""
    return _UNPRINTABLE.sub("\ufffd", text)


def _finalize(value: Any) -> Any:
    return replace_unprintable(value) if type(value) is str else value


_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    autoescape=True,
    finalize=_finalize,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render_template(template: str, **context: Any) -> str:
    """Render a template of this folder. Everything is escaped."""
    return _environment.get_template(template).render(figures=figures, **context)
