"""Write corrected schemas as plain JSON Schema 2020-12, for validators and generators of others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpspec_codegen.nodes import Schema, definitions_key
from mcpspec_codegen.own import list_files, to_2020_12
from mcpspec_codegen.packages import load_own
from mcpspec_codegen.pipeline import correct_schemas

__all__ = ["bundle"]


def bundle(folder: Path, schemas: Sequence[Path], extends: str | None, only: Sequence[str]) -> dict[str, str]:
    """Return one file for each official version, or one for schemas of one's own: path → text."""
    if schemas:
        definitions = load_own(folder, schemas, extends).definitions
        return {f"{list_files(schemas)[0].stem}.json": _text(definitions)}
    corrected = correct_schemas(folder, only)
    return {f"{version}.json": _text(schema[definitions_key(schema)]) for version, schema in corrected.items()}


def _text(definitions: Mapping[str, Any]) -> str:
    bundled: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {name: to_2020_12(node) for name, node in definitions.items()},
    }
    return json.dumps(bundled, indent=2, ensure_ascii=False) + "\n"
