"""A hook of the site: pages for users come before references in a search, and those before what explains the code."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["BOOSTS", "boost_of", "on_page_markdown"]

BOOSTS: Final = {
    "index.md": 4.0, "servers.md": 4.0, "clients.md": 4.0,
    "coming-from.md": 0.1, "mcp1.md": 0.1,
    "conformance": 1e-3, "architecture.md": 1e-3, "benchmarks.md": 1e-3, "decisions.md": 1e-3, "peers.md": 1e-3,
    "reference/": 1e-6, "zh/": 1e-9,
}  # fmt: skip
"""The weight of a page, by the beginning of its path. A heading counts a thousand times as much as text."""


def boost_of(path: str) -> float:
    """Return the weight of a page; 1 if none is given."""
    return next((boost for begin, boost in BOOSTS.items() if path.startswith(begin)), 1.0)


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Set the boost of a page, which its front matter would set otherwise."""
    page.meta.setdefault("search", {})["boost"] = boost_of(page.file.src_uri)
    return markdown
