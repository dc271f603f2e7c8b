"""The official schemas, corrected, are data of the package."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import mcpspec
from mcpspec_codegen.bundle import bundle
from tests.cases import each
from tests.generated.json_schemas import check_schema
from tests.paths import SCHEMA


def accepts(schema: dict[str, Any], value: object) -> bool:
    validator: Any = Draft202012Validator(schema)
    return bool(validator.is_valid(value))


def definitions(version: str) -> list[str]:
    return sorted(json.loads(bundle(SCHEMA, [], None, [version])[f"{version}.json"])["$defs"])


@each("version", mcpspec.VERSIONS)
def test_every_definition_is_a_valid_schema_whose_references_resolve(version: str) -> None:
    for name in definitions(version):
        schema = mcpspec.json_schema(name, version)
        check_schema(schema)
        text = json.dumps(schema)
        assert all(f"#/$defs/{key}" in text for key in schema["$defs"])


CASES: list[tuple[str, str, Any, bool]] = [
    ("Tool", "2025-06-18", {"name": "a", "inputSchema": {"type": "object"}}, True),
    ("Tool", "2025-06-18", {"name": "a"}, False),
    ("Tool", "2025-06-18", {"name": "a", "inputSchema": {"type": "array"}}, False),
    ("CallToolResult", "2024-11-05", {"content": [{"type": "text", "text": "x"}]}, True),
    ("CallToolResult", "2024-11-05", {"content": [{"type": "audio", "data": "", "mimeType": "a/b"}]}, False),
    ("CallToolResult", "2025-03-26", {"content": [{"type": "audio", "data": "", "mimeType": "a/b"}]}, True),
]


@each("name, version, value, is_valid", CASES)
def test_a_schema_accepts_what_its_revision_allows(name: str, version: str, value: Any, is_valid: bool) -> None:
    assert accepts(mcpspec.json_schema(name, version), value) is is_valid


def test_the_newest_revision_is_the_default() -> None:
    assert mcpspec.json_schema("Tool") == mcpspec.json_schema("Tool", mcpspec.LATEST)


def test_a_schema_is_the_callers_own() -> None:
    mcpspec.json_schema("Tool")["$defs"].clear()
    assert mcpspec.json_schema("Tool")["$defs"]


@each(
    "name, version, message",
    [
        ("Tol", "2025-06-18", "2025-06-18 defines no 'Tol'; known: "),
        ("Tool", "../x", "unknown revision '../x'; known: "),
    ],
)
def test_an_unknown_name_is_reported_with_the_known_ones(name: str, version: str, message: str) -> None:
    with pytest.raises(LookupError) as caught:
        mcpspec.json_schema(name, version)
    assert str(caught.value).startswith(message)
