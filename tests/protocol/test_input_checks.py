"""Answers to forms: which values fit a field, and how the text names those that do not."""

from __future__ import annotations

from typing import Any

from tests.cases import each
from typedmcp.dialect import structs
from typedmcp.protocol.input_checks import find_answer_fault
from typedmcp_schemas.flat import find_field_fault

TEXT, WHOLE, NUMBER, FLAG = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
CHOICE = {"type": "string", "enum": ["a", "b"]}
TITLED = {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}
OLDER = {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2}
SEVERAL_TITLED = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}

FITS: list[tuple[dict[str, Any], Any]] = [
    (TEXT, ""), (TEXT, "a"), ({**TEXT, "minLength": 2, "maxLength": 2}, "äö"),
    (WHOLE, 1), (WHOLE, 1.0), (WHOLE, 10**30), ({**WHOLE, "minimum": 1, "maximum": 1}, 1),
    (NUMBER, 1), (NUMBER, 1.5), ({**NUMBER, "maximum": 1.5}, 1.5), (FLAG, True), (FLAG, False),
    (CHOICE, "a"), (TITLED, "b"), (OLDER, "b"), (SEVERAL, ["a"]), (SEVERAL, ["b", "a"]), (SEVERAL_TITLED, ["a"]),
    (SEVERAL_TITLED, []),
    ({**TEXT, "format": "date"}, "2026-02-28"), ({**TEXT, "format": "email"}, "ada@example.com"),
    ({**TEXT, "format": "uri"}, "mailto:ada@example.com"), ({**TEXT, "format": "hostname"}, "anything"),
    ({**TEXT, "format": "date-time"}, "2026-02-28T12:30:00Z"),
    ({**TEXT, "format": "date-time"}, "2026-02-28T12:30:00.5+02:00"),
    ({**TEXT, "format": "date-time"}, "2026-02-28T12:30"),
    ({"type": "unknown"}, object()),
]  # fmt: skip

UNFIT: list[tuple[dict[str, Any], Any, str]] = [
    (TEXT, 1, "expected string, got 1"),
    (TEXT, ["a"], "expected string, got array"),
    (WHOLE, "1", 'expected integer, got "1"'),
    (WHOLE, 1.5, "expected integer, got 1.5"),
    (WHOLE, True, "expected integer, got true"),
    (WHOLE, float("inf"), "expected integer, got Infinity"),
    (NUMBER, "1", 'expected number, got "1"'),
    (NUMBER, False, "expected number, got false"),
    (FLAG, 1, "expected boolean, got 1"),
    (FLAG, "true", 'expected boolean, got "true"'),
    ({**TEXT, "minLength": 2}, "a", "expected at least 2 characters"),
    ({**TEXT, "maxLength": 2}, "abc", "expected at most 2 characters"),
    ({**NUMBER, "minimum": 0}, -0.5, "expected at least 0"),
    ({**WHOLE, "maximum": 8}, 9, "expected at most 8"),
    (CHOICE, "c", 'expected "a" or "b", got "c"'),
    (TITLED, "A", 'expected "a" or "b", got "A"'),
    (OLDER, "A", 'expected "a" or "b", got "A"'),
    (SEVERAL, "a", 'expected array, got "a"'),
    (SEVERAL, [], "expected at least 1 values"),
    (SEVERAL, ["a", "b", "a"], "expected at most 2 values"),
    (SEVERAL, ["c"], 'expected "a" or "b", got "c"'),
    (SEVERAL, [1], "expected string, got 1"),
    (SEVERAL_TITLED, ["A"], 'expected "a", got "A"'),
    ({**TEXT, "format": "date"}, "2026-02-30", 'expected a text of the format date, got "2026-02-30"'),
    ({**TEXT, "format": "date"}, "20260228", 'expected a text of the format date, got "20260228"'),
    ({**TEXT, "format": "date-time"}, "2026-02-28", 'expected a text of the format date-time, got "2026-02-28"'),
    ({**TEXT, "format": "email"}, "ada", 'expected a text of the format email, got "ada"'),
    ({**TEXT, "format": "uri"}, "/path", 'expected a text of the format uri, got "/path"'),
]


@each("field, value", FITS)
def test_a_value_fits_its_field(field: dict[str, Any], value: Any) -> None:
    assert find_field_fault(field, value) is None


@each("field, value, fault", UNFIT)
def test_a_value_that_does_not_fit_is_described(field: dict[str, Any], value: Any, fault: str) -> None:
    assert find_field_fault(field, value) == fault


SCHEMA = {"type": "object", "properties": {"age": WHOLE, "first name": TEXT}, "required": ["age"]}


@each(
    "answer, fault",
    [
        ({"action": "decline"}, None),
        ({"action": "cancel", "content": {"age": "x"}}, None),
        ({"action": "accept", "content": {"age": 1, "more": "x"}}, None),
        ({"action": "accept", "content": {}}, "age: required, but missing"),
        ({"action": "accept"}, "age: required, but missing"),
        ({"action": "accept", "content": {"age": "x"}}, 'age: expected integer, got "x"'),
        ({"action": "accept", "content": {"age": 1, "first name": 1}}, '["first name"]: expected string, got 1'),
    ],
)
def test_the_first_field_that_does_not_fit_is_named(answer: dict[str, Any], fault: str | None) -> None:
    assert find_answer_fault(SCHEMA, structs.ElicitResult(**answer)) == fault


@each("schema", [{}, {"type": "object"}, {"properties": {"age": True}}])
def test_a_form_without_fields_accepts_every_answer(schema: dict[str, Any]) -> None:
    assert find_answer_fault(schema, structs.ElicitResult(action="accept", content={"age": 1})) is None
