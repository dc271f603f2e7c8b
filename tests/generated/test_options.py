"""How the member of a union is found that an object was meant to be."""

from __future__ import annotations

import json
import random
from typing import Any, Literal

import pytest

from mcpspec._support.objects import Member, Options, Shape
from mcpspec.v2024_11_05 import structs
from mcpspec.v2026_07_28 import models as models_of_newest
from mcpspec.v2026_07_28 import structs as structs_of_newest

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


def options() -> Options[str]:
    return Options(list(SHAPES), SHAPES.get)


@pytest.mark.parametrize(
    ("value", "expected"),
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
def test_the_best_fit_comes_first_and_what_cannot_fit_not_at_all(value: dict[str, Any], expected: list[str]) -> None:
    found = options()
    assert [found.best_first(value) for _ in range(2)] == [expected] * 2


def test_where_nothing_can_fit_all_are_tried_for_their_complaints() -> None:
    closed = Options(["text", "image"], SHAPES.get)
    assert closed.best_first({"type": "other", "text": ""}) == ["text", "image"]


def test_what_is_remembered_of_others_changes_nothing() -> None:
    rng = random.Random(1)
    shared = options()
    for _ in range(5000):
        names = rng.sample(["type", "text", "data", "size", "extra", "x", "y"], rng.randrange(6))
        value = {name: rng.choice(VALUES) for name in names}
        assert shared.best_first(value) == options().best_first(value)


@pytest.mark.parametrize(
    ("value", "expected"),
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
def test_what_a_member_needs_tells_types_apart(value: dict[str, Any], expected: list[str]) -> None:
    found = Options(list(NESTED), {**NESTED, **INNER}.get)
    assert [found.best_first(value) for _ in range(2)] == [expected] * 2


def test_what_is_remembered_of_one_member_is_not_taken_for_another() -> None:
    found = Options(list(NESTED)[:2], {**NESTED, **INNER}.get)
    assert found.best_first({"of": {"name": ""}, "and": ""}) == ["by name"]
    assert found.best_first({"of": "", "and": {"name": ""}}) == ["by name"]
    assert found.best_first({"of": "", "and": {"number": 1}}) == ["by number"]


@pytest.mark.parametrize(("name", "members"), [("x{}", 1), ("x{}" + "y" * 10_000, 1), ("{}", 200)])
def test_data_that_always_looks_different_does_not_fill_memory(name: str, members: int) -> None:
    found = options()
    for number in range(2000):
        found.best_first({name.format(number + member): 1 for member in range(members)})
    kept = found._orders  # pyright: ignore[reportPrivateUsage]
    assert len(kept) <= 256
    assert sum(len(look) for look in kept) < 100 * 256
    assert sum(len(str(look)) for look in kept) < 1 << 20


@pytest.mark.parametrize("backend", [structs_of_newest, models_of_newest], ids=["structs", "models"])
def test_unions_within_unions_are_not_tried_over_and_over(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is beside the form, which has a union for each field, below three more."""
    fields = {f"field{number}": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]} for number in range(50)}
    params = {"message": 1, "mode": "form", "requestedSchema": {"type": "object", "properties": fields}}
    question = {"method": "elicitation/create", "params": params}
    result = {"resultType": "input_required", "inputRequests": {"a": question}}
    tried = 0
    best_first = Options[Any].best_first

    def counted(self: Any, value: Any) -> Any:
        nonlocal tried
        tried += 1
        return best_first(self, value)

    monkeypatch.setattr(Options, "best_first", counted)
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})
    with pytest.raises(backend.DecodeError, match="message: expected string, got 1"):
        backend.decode(text, backend.CallToolResultResponse)
    assert tried < 3.5 * len(fields)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"jsonrpc": "1.0", "id": {}}, 'jsonrpc: expected "2.0", got "1.0"'),
        ({"id": {}}, "id: expected string or integer, got object"),
        ({"method": "tools/call"}, "params: required, but missing"),
        ({"method": "x/y", "id": {}}, "method: "),
    ],
)
def test_a_fault_is_looked_for_in_the_type_that_was_meant(changes: dict[str, Any], said: str | None) -> None:
    value = {"jsonrpc": "2.0", "id": 1, "method": "ping", **changes}
    if said is None:
        structs.from_builtins(value, structs.ClientRequest)
        return
    with pytest.raises(structs.DecodeError) as caught:
        structs.from_builtins(value, structs.ClientRequest)
    assert str(caught.value).startswith(said)
