"""Paths of the project."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ROOT", "SCHEMA", "VECTORS"]

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "schema"
VECTORS = ROOT / "tests" / "vectors"
