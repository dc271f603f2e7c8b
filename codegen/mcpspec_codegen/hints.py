"""Write the type hints of members and aliases with datamodel-code-generator. No other module calls it.

A hint follows from the schema of a type alone, in which references are names. So each is written once in a process,
for all faces, packages and revisions that have such a type.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datamodel_code_generator import InputFileType, LiteralType, PythonVersion, generate
from datamodel_code_generator.config import GenerateConfig
from datamodel_code_generator.enums import DataModelType, TargetPydanticVersion

from mcpspec_codegen.nodes import Schema, is_schema, map_children, ref_name

__all__ = ["write_hints"]

_TEMPLATES = Path(__file__).parent / "templates" / "hints"
_MARK = "HINTS = "
"""The line of the output that has the hints, as JSON. The template writes it."""

_written: dict[tuple[bool, str], str] = {}
"""The hints that were written in this process, by library and schema."""


def write_hints(schemas: Sequence[Schema], *, is_msgspec: bool) -> list[str]:
    """Return the type hint of each schema, for msgspec or for Pydantic."""
    keys = [(is_msgspec, json.dumps(schema)) for schema in schemas]
    if new := {key: schema for key, schema in zip(keys, schemas, strict=True) if key not in _written}:
        _written.update(zip(new, _generate([*new.values()], is_msgspec=is_msgspec), strict=True))
    return [_written[key] for key in keys]


def _generate(schemas: Sequence[Schema], *, is_msgspec: bool) -> list[str]:
    """Let one class have a member of each type, of which the template writes the hints."""
    members = {f"h{number}": _name_references(schema) for number, schema in enumerate(schemas)}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Hints", "type": "object", "properties": members, "required": [*members],
    }  # fmt: skip
    config = GenerateConfig(
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.MsgspecStruct if is_msgspec else DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        target_pydantic_version=TargetPydanticVersion.V2_12,
        custom_template_dir=_TEMPLATES,
        enum_field_as_literal=LiteralType.All,
        field_constraints=True,
        use_union_operator=True,
        use_standard_collections=True,
        disable_timestamp=True,
        formatters=[],
    )
    with warnings.catch_warnings():
        # It warns of unions that msgspec cannot decode; the templates make `untagged` unions of them.
        warnings.simplefilter("ignore", UserWarning)
        source = generate(document, config=config)
    assert isinstance(source, str)
    hints: list[str] = json.loads(source.rpartition(_MARK)[2])
    return hints


def _name_references(node: Any) -> Any:
    """Replace references by the names of types that exist already."""
    if not is_schema(node):
        return node
    if "$ref" in node:
        return {"customTypePath": f"here.{ref_name(node['$ref'])}"}
    return map_children(node, _name_references)
