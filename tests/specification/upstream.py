"""Upstream's pages of the specification, in the folder that `MCP_SPECIFICATION` names: only compared, never copied."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

__all__ = ["binding_sections", "pages", "plain", "sections"]

_BINDING = re.compile(r"\b(MUST|SHOULD|SHALL|REQUIRED|RECOMMENDED)\b")
_FENCED = re.compile(r"^[ ]*```.*?^[ ]*```", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_WITHOUT_TABLE = {"changelog", "schema"}
"""Pages that only repeat what others say."""


def pages(revision: str) -> dict[str, str]:
    """Read the pages of a revision, without blocks of code, or skip the test if they are not there."""
    named = os.environ.get("MCP_SPECIFICATION")
    if not named:
        pytest.skip("MCP_SPECIFICATION names no folder `docs/specification` of upstream's repository")
    folder = Path(named, revision)
    paths = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.mdx")}
    assert paths, f"{folder} has no pages"
    return {
        page: _FENCED.sub("", _FRONT_MATTER.sub("", path.read_text("utf-8")))
        for page, path in paths.items()
        if page not in _WITHOUT_TABLE
    }


def sections(text: str) -> dict[str, str]:
    """Split a page at its headings: anchor → text."""
    beginning, *rest = _HEADING.split(text)
    found = {"": beginning}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        anchor = _anchor(heading)
        found[anchor] = found.get(anchor, "") + body
    return found


def binding_sections(text: str) -> set[str]:
    """Return the sections of a page that have words like MUST."""
    return {anchor for anchor, body in sections(text).items() if _BINDING.search(body)}


def plain(text: str) -> str:
    """Return the letters and digits of a text, for a comparison of wordings."""
    return " ".join(re.findall(r"\w+", text.lower()))


def _anchor(heading: str) -> str:
    text = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return text.replace(" ", "-").strip("_")
