"""The pages in Chinese: `python -m tests.docs.chinese` puts the code of the English ones into them.

The text between blocks of code is a translation by hand. The sentences of the page with one connection, which are made,
have their translation in `chinese.toml`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from tests.docs import connection
from tests.docs.markdown import replace_block
from tests.paths import ROOT

__all__ = ["FOLDER", "PAGES", "english_of", "fill", "translate"]

FOLDER: Final = ROOT / "docs" / "zh"
PAGES: Final = sorted(FOLDER.rglob("*.md"))
_SENTENCES: Final = Path(__file__).with_name("chinese.toml")
_FENCED: Final = re.compile(r"```.*?\n```", re.DOTALL)
_MADE: Final = re.compile(r"<!-- connection: [^\n]* -->\n(.*?)<!-- end of connection -->", re.DOTALL)


def english_of(page: Path) -> Path:
    """Return the English page of which a page is a translation."""
    return ROOT / "docs" / page.relative_to(FOLDER)


def fill(page: Path) -> str:
    """Return the text of a page with the blocks of code of the English one, in their order."""
    text, english = page.read_text(encoding="utf-8"), english_of(page).read_text(encoding="utf-8")
    if english_of(page) == connection.PAGE:
        made = _MADE.search(english)
        assert made is not None
        text = replace_block(text, "chinese", translate(made[1]).rstrip("\n"))
    code = _FENCED.findall(english)
    if len(code) != len(_FENCED.findall(text)):
        raise ValueError(f"{page}: expected {len(code)} blocks of code, as the English page has")
    left = iter(code)
    return _FENCED.sub(lambda _: next(left), text)


def translate(text: str) -> str:
    """Return a text with its sentences in Chinese. Raises `KeyError` for one that has no translation."""
    known = tomllib.loads(_SENTENCES.read_text(encoding="utf-8"))
    parts = re.split(r"(```.*?\n```)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("```") else _translate_text(part, known) for part in parts)


def _translate_text(text: str, known: dict[str, str]) -> str:
    paragraphs = [" ".join(each.split()) for each in text.strip().split("\n\n")]
    lines = [f"## {known[each[3:]]}" if each.startswith("## ") else known[each] for each in paragraphs if each]
    return "\n\n" + "".join(f"{line}\n\n" for line in lines)


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(fill(each), encoding="utf-8")
