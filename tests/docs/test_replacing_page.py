"""The page on replacing mcp.types names what `mcpspec.compat` lacks."""

from __future__ import annotations

import re

from mcpspec.compat.names import MISSING
from tests.paths import ROOT


def test_the_page_lists_the_official_names_that_are_missing_and_no_others() -> None:
    page = (ROOT / "docs" / "replacing-mcp-types.md").read_text(encoding="utf-8")
    section = page[page.index("## Names") : page.index("## Objects of the official SDK")]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    listed = {name: row[1].removesuffix(" |") for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert listed == MISSING
