"""The cost of schemas: how it grows, and which schemas are rejected before a validator sees them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.cases import each
from typedmcp_schemas.schema_cost import SchemaCost, SchemaRejectedError, estimate_cost


def chain(length: int, references: int = 2) -> dict[str, Any]:
    """Return a schema whose definitions each refer a number of times to the next one."""
    definitions: dict[str, Any] = {
        f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * references} for number in range(length)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": {"type": "integer"}}}


def processor_time(schema: dict[str, Any]) -> float:
    """Return the seconds of the processor that an estimate takes, at best."""

    def measure() -> float:
        start = time.process_time()
        estimate_cost(schema)
        return time.process_time() - start

    return min(measure() for _ in range(3))


COSTS: list[tuple[Any, SchemaCost]] = [
    ({}, SchemaCost(1)),
    ({"type": "string"}, SchemaCost(1)),
    ({"properties": {"a": {}, "b": {"not": {}}}}, SchemaCost(3)),  # only the largest property counts
    ({"anyOf": [{}, {}, True]}, SchemaCost(4)),
    ({"properties": {"a": {"$ref": "#"}}}, SchemaCost(3, 1)),
    ({"unevaluatedProperties": False}, SchemaCost(4)),
    ({"enum": ["a", "b", None, True]}, SchemaCost(1)),
    ({"enum": [1, 2, None]}, SchemaCost(1)),
    ({"const": 1}, SchemaCost(1)),
    ({"enum": ["a", 1, 0.5]}, SchemaCost(1 + 9 * 32)),  # what the validator compares one by one
    ({"enum": [{}, {"a": [True, "b"]}, "c"]}, SchemaCost(1 + 5 * 32)),
    ({"anyOf": [{"const": {"a": 1}}] * 2}, SchemaCost(3 + 4 * 32)),
]


@each("schema, cost", COSTS)
def test_the_cost_is_the_number_of_schemas_for_one_value_and_the_cycles(schema: Any, cost: SchemaCost) -> None:
    assert estimate_cost(schema) == cost


def test_the_cost_of_a_chain_doubles_with_each_definition_and_is_found_fast() -> None:
    once, twice = (processor_time(chain(18, references)) for references in (1, 2))
    assert twice < 100 * once, "to follow each reference anew would take a hundred thousand times"
    costs = [estimate_cost(chain(length)).schemas for length in (10, 11, 40)]
    assert costs[1] > 2 * costs[0]
    assert costs[2] > 2**40


@each(
    "schema, text",
    [
        ({"$ref": "https://x.y/z"}, '$ref: refers to "https://x.y/z", which is outside it and is not fetched'),
        ({"items": {"$ref": "#/$defs/a"}}, 'items.$ref: refers to "/$defs/a", which does not exist'),
        ({"$defs": {"a": {"$id": "https://x/"}}, "$ref": "#/$defs/a"}, "$ref.$id: inner schemas with an $id are not"),
    ],
)
def test_a_reference_that_cannot_be_followed_is_an_error_with_its_place(schema: Any, text: str) -> None:
    with pytest.raises(SchemaRejectedError) as caught:
        estimate_cost(schema)
    assert str(caught.value).startswith(text)
    assert caught.value.place("outputSchema").startswith("outputSchema.")


def test_the_time_to_follow_references_to_many_anchors_grows_with_their_number_only() -> None:
    def anchored(count: int) -> dict[str, Any]:
        anchors = {f"d{number}": {"$anchor": f"a{number}"} for number in range(count)}
        return {"$defs": anchors, "properties": {f"p{number}": {"$ref": f"#a{number}"} for number in range(count)}}

    few, many = (processor_time(anchored(count)) for count in (100, 10_000))
    assert many < 1000 * few, "a hundred times as many references; a search for each would take ten thousand times"
