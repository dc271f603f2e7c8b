"""Access to upstream's files, in the folder that `MCP_OFFICIAL_SCHEMA` names."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcpspec_codegen import errata
from mcpspec_codegen.messages import inherit_envelope
from mcpspec_codegen.nodes import definitions_key
from tests.paths import SCHEMA

__all__ = ["EXAMPLES_VERSION", "examples", "folder", "patched_schema"]

EXAMPLES_VERSION = "2026-07-28"
"""The only revision with examples of upstream."""


def folder() -> Path:
    """Return the folder of upstream's files, or skip the test if there is none."""
    named = os.environ.get("MCP_OFFICIAL_SCHEMA")
    if not named:
        pytest.skip("MCP_OFFICIAL_SCHEMA names no folder with upstream's files")
    return Path(named)


def examples() -> list[Path]:
    """List upstream's examples, if there are any. The folder of each is named after its type."""
    named = os.environ.get("MCP_OFFICIAL_SCHEMA")
    return sorted(Path(named, EXAMPLES_VERSION, "examples").glob("*/*.json")) if named else []


@cache
def patched_schema(version: str) -> tuple[dict[str, Any], str]:
    """Return a revision's schema with the errata and the envelope of messages, and the keyword of its definitions.

    It is upstream's file if available, else ours, which is the same without prose.
    """
    official = Path(os.environ.get("MCP_OFFICIAL_SCHEMA", "nowhere"), version.replace("/", "-"), "schema.json")
    path = official if official.is_file() else SCHEMA / f"{version}.json"
    schema = errata.apply(json.loads(path.read_bytes()), errata.load(SCHEMA), version, str(path))
    key = definitions_key(schema)
    return {**schema, key: inherit_envelope(schema[key])}, key
