"""Write corrected schemas as plain JSON Schema 2020-12, for validators and generators of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcpspec_codegen.budget import MAX_STEPS
from mcpspec_codegen.own import list_files
from mcpspec_codegen.packages import load_own
from mcpspec_codegen.pipeline import correct_schemas, plain_schema

__all__ = ["bundle"]


def bundle(
    folder: Path, schemas: Sequence[Path], extends: str | None, only: Sequence[str], max_steps: int = MAX_STEPS
) -> dict[str, str]:
    """Return one file for each official version, or one for schemas of one's own: path → text."""
    if schemas:
        definitions = load_own(folder, schemas, extends, max_steps).definitions
        return {f"{list_files(schemas)[0].stem}.json": plain_schema(definitions)}
    corrected = correct_schemas(folder, only)
    return {f"{version}.json": plain_schema(definitions) for version, definitions in corrected.items()}
