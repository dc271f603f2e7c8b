"""The hints that datamodel-code-generator writes, and the order of definitions in a module."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspec_codegen import hints
from mcpspec_codegen.definition_order import order_definitions
from mcpspec_codegen.hints import write_hints
from tests.cases import each

_TOOL = {"$ref": "#/$defs/Tool"}


@each(
    "schema, hint",
    [
        ({}, "Any"),
        ({"type": "integer"}, "int"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": ["number", "integer"]}, "float | int"),
        ({"const": "a"}, "Literal['a']"),
        ({"enum": ["a", "it's", "\\"]}, "Literal['a', \"it's\", '\\\\']"),
        (_TOOL, "Tool"),
        ({"type": "array", "items": _TOOL}, "list[Tool]"),
        ({"type": "object", "additionalProperties": {"anyOf": [_TOOL, {"type": "null"}]}}, "dict[str, Tool | None]"),
        ({"anyOf": [_TOOL, {"$ref": "#/$defs/Annotated"}, {"type": "string"}]}, "Tool | Annotated | str"),
        ({"customTypePath": "mcpspec.support.compat.Uri"}, "Uri"),
    ],
)
def test_a_hint_follows_from_the_schema_of_a_type(schema: dict[str, Any], hint: str) -> None:
    assert [write_hints([schema], is_msgspec=is_msgspec) for is_msgspec in (True, False)] == [[hint], [hint]]


def test_a_hint_is_written_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = [{"type": "array", "items": {"$ref": f"#/$defs/Once{number}"}} for number in (1, 2, 1)]
    first = write_hints(schemas, is_msgspec=True)
    assert first == ["list[Once1]", "list[Once2]", "list[Once1]"]
    monkeypatch.setattr(hints, "generate", None)
    assert write_hints([*reversed(schemas)], is_msgspec=True) == first[::-1]


@each(
    "needed, bases, expected",
    [
        ({"B": "", "A": "", "C": ""}, {}, "ABC"),
        ({"A": "C", "B": "", "C": ""}, {}, "BCA"),
        ({"A": "B", "B": "A", "C": "A"}, {}, "ABC"),
        ({"A": "BC", "B": "AC", "C": "B"}, {"A": "C"}, "BCA"),
        ({"A": "A", "B": ""}, {}, "AB"),
        ({"A": "Z", "Z": "Y", "Y": "Z"}, {}, "YZA"),
    ],
    ids=["alphabetical", "needed first", "a cycle", "the base of a cycle", "itself", "behind a cycle"],
)
def test_definitions_come_after_those_that_they_need(
    needed: dict[str, str], bases: dict[str, str], expected: str
) -> None:
    found = order_definitions(
        {name: {*names} for name, names in needed.items()}, {name: {*bases.get(name, "")} for name in needed}
    )
    assert "".join(found) == expected
