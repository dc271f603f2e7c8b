"""The pages of the site that are made when it is built, and not committed: `python -m tests.docs.site` writes them."""

from __future__ import annotations

from pathlib import Path

from tests.docs import frames, limits
from tests.paths import ROOT
from tests.specification import pages
from tests.specification.tables import load

__all__ = ["render"]


def render() -> dict[Path, str]:
    """Render all pages: path → text."""
    made = {page: text for page, text in pages.render(load()).items() if page != pages.SUMMARY}
    made[pages.FOLDER / "frames.md"] = frames.render()
    made[ROOT / "docs" / "reference" / "limits.md"] = limits.render()
    return made


if __name__ == "__main__":
    for path, content in render().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
