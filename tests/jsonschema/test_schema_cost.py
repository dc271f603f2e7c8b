"""The cost of schemas: how it grows, and which schemas are rejected before a validator sees them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from typedmcp.jsonschema.schema_cost import SchemaCost, SchemaRejectedError, estimate_cost


def chain(length: int) -> dict[str, Any]:
    """Return a schema whose definitions each refer twice to the next one."""
    definitions: dict[str, Any] = {
        f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(length)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": {"type": "integer"}}}


COSTS: list[tuple[Any, SchemaCost]] = [
    ({}, SchemaCost(1)),
    ({"type": "string"}, SchemaCost(1)),
    ({"properties": {"a": {}, "b": {"not": {}}}}, SchemaCost(3)),  # only the largest property counts
    ({"anyOf": [{}, {}, True]}, SchemaCost(4)),
    ({"properties": {"a": {"$ref": "#"}}}, SchemaCost(3, 1)),
    ({"unevaluatedProperties": False}, SchemaCost(4)),
]


@pytest.mark.parametrize(("schema", "cost"), COSTS)
def test_the_cost_is_the_number_of_schemas_for_one_value_and_the_cycles(schema: Any, cost: SchemaCost) -> None:
    assert estimate_cost(schema) == cost


def test_the_cost_of_a_chain_doubles_with_each_definition_and_is_found_fast() -> None:
    start = time.process_time()
    costs = [estimate_cost(chain(length)).schemas for length in (10, 11, 40)]
    assert costs[1] > 2 * costs[0]
    assert costs[2] > 2**40
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("schema", "text"),
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
    def measure(count: int) -> float:
        anchors = {f"d{number}": {"$anchor": f"a{number}"} for number in range(count)}
        references = {f"p{number}": {"$ref": f"#a{number}"} for number in range(count)}
        start = time.process_time()
        estimate_cost({"$defs": anchors, "properties": references})
        return time.process_time() - start

    few, many = (min(measure(count) for _ in range(3)) for count in (2_000, 20_000))
    assert many < 50 * few, "ten times as many references; a search for each would take a hundred times"
