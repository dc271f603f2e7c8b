"""What `codegen --check` lists of a schema: each member once, and no more than a limit allows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from tests.hostile_schemas import HOSTILE, find_excess, input_schema
from typedmcp_cli.typed_clients import drift
from typedmcp_cli.typed_clients.offer import Offer

LIMIT = 20_000


def tables_of(schema: dict[str, Any]) -> drift.OfferTables:
    return drift.read_offer_tables(Offer(server="a", tools=[{"name": "tool", "inputSchema": schema}]))


@each("name", HOSTILE)
def test_the_work_and_the_lines_are_in_proportion_to_the_schema_and_the_limit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "_MAX_CHARACTERS", LIMIT)
    schema = input_schema(HOSTILE[name])
    found: list[drift.OfferTables] = []
    assert not find_excess(lambda: found.append(tables_of(schema)), 4 * (LIMIT + len(json.dumps(schema))))
    assert len(json.dumps(found[0]["arguments"])) < 2 * LIMIT


def test_a_definition_that_refers_to_itself_is_listed_once() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "below": {"$ref": "#/$defs/nodes"}}}
    nodes = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    value = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/value"}}]}
    root = {"type": "object", "properties": {"top": {"$ref": "#/$defs/node"}, "value": {"$ref": "#/$defs/value"}}}
    assert tables_of({**root, "$defs": {"node": node, "nodes": nodes, "value": value}})["arguments"] == {
        "tool.top": "object, optional",
        "tool.top.name": "string, optional",
        "tool.top.below": "list of object, optional",
        "tool.value": "string | list of any, optional",
    }


def test_lines_that_are_left_out_are_announced_and_the_digest_shows_their_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drift, "_MAX_CHARACTERS", 100)
    members = {f"m{number}": {"type": "string"} for number in range(9)}
    tables, others = (tables_of({"properties": {**members, "last": {"type": last}}}) for last in ("string", "integer"))
    assert [*tables["arguments"]] == ["tool.m0", "tool.m1", "tool.…"]
    assert tables["arguments"] == others["arguments"]
    assert tables["definitions"] != others["definitions"]
