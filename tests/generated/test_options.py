"""How the member of a union is found that an object was meant to be."""

from __future__ import annotations

import random
from typing import Any, Literal

import pytest

from mcpspec._support.objects import Member, Options, Shape
from mcpspec.v2024_11_05 import structs

SHAPES = {
    "text": Shape((Member("type", Literal["text"], True), Member("text", str, True))),
    "image": Shape((Member("type", Literal["image"], True), Member("data", str, True), Member("size", int, False))),
    "any": Shape((Member("data", str, False), Member("extra", int, False))),
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


@pytest.mark.parametrize(("name", "members"), [("x{}", 1), ("x{}" + "y" * 10_000, 1), ("{}", 200)])
def test_data_that_always_looks_different_does_not_fill_memory(name: str, members: int) -> None:
    found = options()
    for number in range(2000):
        found.best_first({name.format(number + member): 1 for member in range(members)})
    kept = found._orders  # pyright: ignore[reportPrivateUsage]
    assert len(kept) <= 256
    assert sum(len(look) for look in kept) < 100 * 256
    assert sum(len(str(look)) for look in kept) < 1 << 20


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
