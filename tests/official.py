"""Upstream's own files, where `MCP_OFFICIAL_SCHEMA` names a folder that holds them."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codegen import errata
from codegen.nodes import definitions_key
from tests.paths import SCHEMA

__all__ = ["EXAMPLES_VERSION", "examples", "folder", "patched_schema"]

EXAMPLES_VERSION = "2026-07-28"
"""The one revision for which upstream has examples."""


def folder() -> Path:
    """The folder of upstream's files; skips the test where there is none."""
    named = os.environ.get("MCP_OFFICIAL_SCHEMA")
    if not named:
        pytest.skip("MCP_OFFICIAL_SCHEMA names no folder with upstream's files")
    return Path(named)


def examples() -> list[Path]:
    """Upstream's examples, empty where there are none; the folder of each names its type."""
    named = os.environ.get("MCP_OFFICIAL_SCHEMA")
    return sorted(Path(named, EXAMPLES_VERSION, "examples").glob("*/*.json")) if named else []


@cache
def patched_schema(version: str) -> tuple[dict[str, Any], str]:
    """A revision's schema with the errata applied, and the keyword that holds its definitions.

    Upstream's own file where it is at hand, else ours, which is the same without prose.
    """
    named = os.environ.get("MCP_OFFICIAL_SCHEMA")
    path = Path(named, version.replace("/", "-"), "schema.json") if named else SCHEMA / f"{version}.json"
    schema = errata.apply(json.loads(path.read_bytes()), errata.load(SCHEMA), version, str(path))
    return schema, definitions_key(schema)
