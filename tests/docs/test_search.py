"""Words that users type lead to the page for them, before any reference: asked of the site's own worker and index."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools.site_search import BOOSTS, boost_of

SITE = ROOT / "site"
PROGRAM = Path(__file__).with_name("search.mjs")

QUERIES = {
    "install": "index cli dependencies deploying hosts",
    "tool": "servers tutorial/1-a-tool tutorial/2-types",
    "resources": "servers tutorial/3-resources-and-prompts",
    "prompts": "servers tutorial/3-resources-and-prompts",
    "progress": "servers cli tutorial/4-asking-the-user",
    "timeout": "clients servers limits",
    "cancel": "clients servers handlers",
    "token": "authorization http tutorial/5-http-with-a-token",
    "oauth": "authorization",
    "middleware": "servers",
    "lifespan": "servers",
    "errors": "servers clients handlers",
    "structured output": "servers",
    "elicit": "servers clients tutorial/4-asking-the-user",
    "sampling": "handlers clients servers",
    "roots": "clients handlers",
    "notifications": "servers clients extensions",
    "subscribe": "clients servers handlers",
    "pagination": "clients servers handlers",
    "testing": "servers",
    "http": "http",
    "workers": "deploying tutorial/6-tests-and-two-workers",
    "redis": "deploying tasks",
    "telemetry": "telemetry",
    "recording": "recording",
    "gateway": "gateway",
    "tasks": "tasks",
    "limits": "limits",
    "convert": "types",
    "pydantic": "types servers",
    "fastmcp": "coming-from mcp1 arguments",
    "bump": "bumping",
}
"""Queries, and the pages one of which has to be among the first three results."""


def search(queries: list[str]) -> dict[str, list[str]]:
    """Return the places that the site finds for each query, best first."""
    node = shutil.which("node")
    if node is None or not (SITE / "search").is_dir():
        pytest.skip("needs Node.js and a site: run `make docs`")
    asked = json.dumps(queries)
    done = subprocess.run([node, PROGRAM, SITE], input=asked, capture_output=True, text=True, timeout=120, check=True)
    return dict(zip(queries, json.loads(done.stdout), strict=True))


def test_a_query_finds_the_page_for_users_among_the_first_three() -> None:
    wrong: list[str] = []
    for query, found in search([*QUERIES]).items():
        pages = [place.partition(".html")[0] for place in found[:3]]
        if not {*pages} & {*QUERIES[query].split()} or any(page.startswith("reference/") for page in pages[:2]):
            wrong.append(f"{query}: {', '.join(pages)}")
    assert wrong == []


def test_each_boost_is_of_a_page() -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [begin for begin in BOOSTS if not any(page.startswith(begin) for page in pages)] == []
    assert boost_of("reference/server.md") < boost_of("servers.md")
