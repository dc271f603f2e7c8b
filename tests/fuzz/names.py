"""The names of the targets, which can be read without loading them."""

from __future__ import annotations

from typing import Final

__all__ = ["NAMES"]

NAMES: Final = ("frames", "connections", "requests", "responses", "events", "schemas", "conversion", "protocols")
