"""Defaults of parameters: a call may change its copy, and the next call does not see it."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import attrs
import msgspec
from pydantic import BaseModel, Field

import typedmcp
from tests.cases import each
from typedmcp.app.functions import read_signature


@dataclass
class Plain:
    items: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Frozen:
    items: list[int] = field(default_factory=list[int])


class Struct(msgspec.Struct, frozen=True):
    items: list[int] = []


@attrs.define
class Attrs:
    items: list[int] = attrs.Factory(lambda: list[int]())


class Model(BaseModel):
    items: list[int] = []


class Named(NamedTuple):
    items: list[int]


def _put(into: Any) -> None:
    into.items.append(1)


CHANGES: dict[str, tuple[Any, Callable[[Any], object]]] = {
    "list": ([1], lambda x: x.append(2)),
    "empty list": ([], lambda x: x.append(2)),
    "dict": ({"a": 1}, lambda x: x.update(b=2)),
    "list in a dict": ({"a": [1]}, lambda x: x["a"].append(2)),
    "dict in a tuple": ((1, {}), lambda x: x[1].update(b=2)),
    "set": ({1}, lambda x: x.add(2)),
    "bytearray": (bytearray(b"a"), lambda x: x.append(2)),
    "deque": (deque([1], maxlen=2), lambda x: x.append(2)),
    "defaultdict": (defaultdict(list[int], a=[1]), lambda x: x["b"].append(2)),
    "OrderedDict": (OrderedDict(a=[1]), lambda x: x["a"].append(2)),
    "dataclass": (Plain(), _put),
    "frozen dataclass": (Frozen(), _put),
    "Struct": (Struct(), _put),
    "attrs": (Attrs(), _put),
    "model": (Model(), _put),
    "model in a list": ([Model()], lambda x: _put(x[0])),
    "NamedTuple": (Named([]), _put),
}
"""Mutable defaults, each with a function that changes it."""


@each("name", CHANGES)
@each("texts", [True, False])
def test_each_call_gets_a_copy_of_a_mutable_default(name: str, texts: bool) -> None:
    default, change = CHANGES[name]

    def function(x: Any = default) -> Any:
        before = repr(x)
        change(x)
        return type(x), before

    signature = read_signature(function, "tool 'it'")
    expected: Any = type(default), repr(default)
    for _ in range(2):
        bound = signature.bind_texts({}) if texts else signature.bind({})
        assert signature.call(bound, None) == expected


class Sentinel:
    pass


@dataclass(frozen=True)
class Missing:
    why: str = ""


@each("default", [Sentinel(), object(), (1, "a"), Missing(), print, Sentinel])
def test_other_objects_are_not_copied(default: Any) -> None:
    def function(x: Any = default) -> Any:
        return x

    signature = read_signature(function, "tool 'it'")
    assert signature.call(signature.bind({}), None) is default


def test_objects_in_a_container_are_not_copied() -> None:
    marker = Sentinel()

    def function(x: Any = [marker]) -> Any:  # noqa: B006
        return x

    signature = read_signature(function, "tool 'it'")
    assert signature.call(signature.bind({}), None)[0] is marker


def test_each_call_calls_the_default_factory_of_a_field() -> None:
    def function(
        made: Annotated[list[int], Field(default_factory=list)], own: Annotated[list[int], Field(default=[])]
    ) -> tuple[list[int], list[int]]:
        made.append(1)
        own.append(1)
        return made, own

    signature = read_signature(function, "tool 'it'")
    assert [signature.call(signature.bind({}), None) for _ in range(2)] == [([1], [1])] * 2


@dataclass
class Inner:
    size: int = 3


@dataclass
class Outer:
    name: str
    count: int = 5
    inner: Inner = field(default_factory=Inner)
    more: list[Inner] = field(default_factory=list[Inner])


def test_a_dataclass_that_is_returned_as_it_came_has_its_defaults() -> None:
    server = typedmcp.Server("s")

    @server.tool
    def back(given: Outer) -> Outer:
        return given

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            result = await client.call_tool("back", {"given": {"name": "n", "inner": {}, "more": [{}]}})
            whole = {"name": "n", "count": 5, "inner": {"size": 3}, "more": [{"size": 3}]}
            assert result.structured_content == whole
            assert json.loads(typedmcp.text_of(result)) == whole

    asyncio.run(main())
