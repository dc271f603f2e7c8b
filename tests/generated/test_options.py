"""The choice of a union's member for an object."""

from __future__ import annotations

import json
import random
from typing import Any, Literal

import pytest

from mcpspec.support.objects import Member, Shape, UnionOptions
from mcpspec.v2024_11_05.exact import structs
from mcpspec.v2026_07_28.exact import models as models_of_newest
from mcpspec.v2026_07_28.exact import structs as structs_of_newest
from tests.cases import each

SHAPES = {
    "text": Shape((Member("type", Literal["text"], True), Member("text", str, True))),
    "image": Shape((Member("type", Literal["image"], True), Member("data", str, True), Member("size", int, False))),
    "any": Shape((Member("data", str, False), Member("extra", int, False))),
}


INNER = {
    "named": Shape((Member("name", str, True),)),
    "numbered": Shape((Member("number", int, True),)),
}
NESTED = {
    "by name": Shape((Member("of", "named", True), Member("and", "named", False))),
    "by number": Shape((Member("of", "numbered", True), Member("and", "numbered", False))),
    "by anything": Shape((Member("of", dict, True), Member("and", str, True))),
}

VALUES: list[Any] = ["text", "image", "other", 1, None, [], {}]


def options() -> UnionOptions[str]:
    return UnionOptions(list(SHAPES), SHAPES.get)


@each(
    "value, expected",
    [
        ({"type": "text", "text": ""}, ["text", "any"]),
        ({"type": "image", "data": ""}, ["image", "any"]),
        ({"type": "image", "text": ""}, ["image", "any"]),
        ({"type": "other", "data": ""}, ["any"]),
        ({"type": ["text"], "text": ""}, ["any"]),
        ({"type": {}, "data": ""}, ["any"]),
        ({"type": None, "text": ""}, ["text", "image", "any"]),
        ({"data": "", "size": 1}, ["image", "any", "text"]),
        ({}, ["any", "text", "image"]),
        ({"unknown": 1}, ["any", "text", "image"]),
    ],
)
def test_the_best_fit_comes_first_and_types_that_cannot_fit_are_left_out(
    value: dict[str, Any], expected: list[str]
) -> None:
    found = options()
    assert [found.rank(value) for _ in range(2)] == [expected] * 2


def test_if_no_type_can_fit_all_are_tried_for_their_errors() -> None:
    closed = UnionOptions(["text", "image"], SHAPES.get)
    assert closed.rank({"type": "other", "text": ""}) == ["text", "image"]


def test_cached_orders_of_other_values_change_nothing() -> None:
    rng = random.Random(1)
    shared = options()
    for _ in range(5000):
        names = rng.sample(["type", "text", "data", "size", "extra", "x", "y"], rng.randrange(6))
        value = {name: rng.choice(VALUES) for name in names}
        assert shared.rank(value) == options().rank(value)


@each(
    "value, expected",
    [
        ({"of": {"name": ""}}, ["by name", "by anything"]),
        ({"of": {"number": 1, "more": 2}}, ["by number", "by anything"]),
        ({"of": {"name": "", "number": 1}}, ["by name", "by number", "by anything"]),
        ({"of": {}, "and": ""}, ["by anything"]),
        ({"of": None}, ["by name", "by number", "by anything"]),
        ({"of": "", "and": {"name": ""}}, ["by anything", "by name"]),
        ({"of": {"name": ""}, "and": ""}, ["by anything", "by name"]),
        ({"of": {"number": 1}, "and": {"name": ""}}, ["by anything"]),
    ],
)
def test_required_members_of_a_member_distinguish_types(value: dict[str, Any], expected: list[str]) -> None:
    found = UnionOptions(list(NESTED), {**NESTED, **INNER}.get)
    assert [found.rank(value) for _ in range(2)] == [expected] * 2


def test_a_cached_order_for_one_member_is_not_used_for_another() -> None:
    found = UnionOptions(list(NESTED)[:2], {**NESTED, **INNER}.get)
    assert found.rank({"of": {"name": ""}, "and": ""}) == ["by name"]
    assert found.rank({"of": "", "and": {"name": ""}}) == ["by name"]
    assert found.rank({"of": "", "and": {"number": 1}}) == ["by number"]


@each("name, members", [("x{}", 1), ("x{}" + "y" * 10_000, 1), ("{}", 200)])
def test_data_that_always_differs_does_not_fill_the_memory(name: str, members: int) -> None:
    found = options()
    for number in range(2000):
        found.rank({name.format(number + member): 1 for member in range(members)})
    kept = found._orders  # pyright: ignore[reportPrivateUsage]
    assert len(kept) <= 256
    assert sum(len(look) for look in kept) < 100 * 256
    assert sum(len(str(look)) for look in kept) < 1 << 20


@each("backend", [structs_of_newest, models_of_newest], ids=["exact.structs", "exact.models"])
def test_nested_unions_are_not_tried_repeatedly(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault is beside the form, which has a union for each field, below three others."""
    fields = {f"field{number}": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]} for number in range(50)}
    params = {"message": 1, "mode": "form", "requestedSchema": {"type": "object", "properties": fields}}
    question = {"method": "elicitation/create", "params": params}
    result = {"resultType": "input_required", "inputRequests": {"a": question}}
    tried = 0
    rank = UnionOptions[Any].rank

    def counted(self: Any, value: Any) -> Any:
        nonlocal tried
        tried += 1
        return rank(self, value)

    monkeypatch.setattr(UnionOptions, "rank", counted)
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})
    with pytest.raises(backend.DecodeError, match="message: expected string, got 1"):
        backend.decode(text, backend.CallToolResultResponse)
    assert tried < 3.5 * len(fields)


@each(
    "changes, message",
    [
        ({}, None),
        ({"jsonrpc": "1.0", "id": {}}, 'jsonrpc: expected "2.0", got "1.0"'),
        ({"id": {}}, "id: expected string or integer, got object"),
        ({"method": "tools/call"}, "params: required, but missing"),
        ({"method": "x/y", "id": {}}, "method: "),
    ],
)
def test_the_fault_is_searched_in_the_type_that_the_value_claims(changes: dict[str, Any], message: str | None) -> None:
    value = {"jsonrpc": "2.0", "id": 1, "method": "ping", **changes}
    if message is None:
        structs.from_builtins(value, structs.ClientRequest)
        return
    with pytest.raises(structs.DecodeError) as caught:
        structs.from_builtins(value, structs.ClientRequest)
    assert str(caught.value).startswith(message)
