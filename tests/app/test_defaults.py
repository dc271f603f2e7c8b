"""Defaults of parameters: a call may change its copy, and the next call does not see it."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import attrs
import msgspec
from annotated_types import Predicate
from msgspec import Meta
from pydantic import BaseModel, Field, SecretBytes, SecretStr
from typing_extensions import TypedDict

import typedmcp
from tests.cases import each
from typedmcp.app.functions import read_signature
from typedmcp.app.results import ToolOutput


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


class Holder(BaseModel):
    number: int = 1
    inner: Inner | None = None


@dataclass
class Mixed:
    inner: Inner
    model: Holder


@dataclass(slots=True)
class Slots:
    inner: Inner


@attrs.define
class OfAttrs:
    inner: Inner


class OfStruct(msgspec.Struct):
    inner: Inner
    model: Holder | None = None


class OfTypedDict(TypedDict):
    inner: Inner
    model: Holder


class OfTuple(NamedTuple):
    inner: Inner
    model: Holder


@dataclass
class WithPath:
    inner: Inner
    path: Path = Path()


NESTED: dict[str, tuple[Any, Any]] = {
    "a dataclass with a model": (Mixed, {"inner": {}, "model": {"inner": {}}}),
    "a list of those": (list[Mixed], [{"inner": {}, "model": {}}]),
    "slots": (Slots, {"inner": {}}),
    "attrs": (OfAttrs, {"inner": {}}),
    "a Struct": (OfStruct, {"inner": {}}),
    "a TypedDict": (OfTypedDict, {"inner": {}, "model": {}}),
    "a named tuple": (OfTuple, [{}, {}]),
    "a dataclass with a path": (WithPath, {"inner": {}}),
    "a deque": (deque[Inner], [{}]),
    "a deque of those": (deque[Mixed], [{"inner": {}, "model": {}}]),
    "a union": (dict[str, Slots | WithPath], {"k": {"inner": {}}}),
    "keys": (dict[int, Inner], {"1": {}}),
    "constraints": (Annotated[list[Inner], Meta(min_length=1)], [{}]),
    "a validator": (Annotated[Mixed, Predicate(lambda value: value is not None)], {"inner": {}, "model": {}}),
}


@each("name", NESTED)
@each("is_annotated", [True, False])
def test_dataclasses_have_their_defaults_in_results_wherever_they_are_nested(name: str, is_annotated: bool) -> None:
    hint, value = NESTED[name]

    def back(given: Any) -> Any:
        return given

    back.__annotations__.update(given=hint, **({"return": hint} if is_annotated else {}))
    server = typedmcp.Server("s")
    server.add_tool(back)

    async def main() -> None:
        async with typedmcp.connect(server) as client:
            text = typedmcp.text_of(await client.call_tool("back", {"given": value}))
            assert '{"size":3}' in text
            assert "{}" not in text

    asyncio.run(main())


# Defaults in schemas


class Credentials(BaseModel):
    user: str = "u"
    token: SecretStr = SecretStr("x")
    other: SecretStr | None = SecretStr("x")
    several: list[SecretStr] = [SecretStr("x")]
    path: Path = Path("a")
    price: Decimal = Decimal("1.50")


class Excluding(BaseModel):
    shown: int = 1
    hidden: str = Field(default="x", exclude=True)


def test_a_default_that_json_cannot_say_is_not_in_the_schema() -> None:
    def function(
        user: str = "u",
        token: SecretStr = SecretStr("x"),  # noqa: B008
        either: SecretStr | None = SecretStr("x"),  # noqa: B008
        secret: SecretBytes = SecretBytes(b"x"),  # noqa: B008
        credentials: Credentials = Credentials(),  # noqa: B008
        same: Excluding = Excluding(),  # noqa: B008
        another: Excluding = Excluding(hidden="y"),  # noqa: B008
        price: Decimal = Decimal("1.50"),
        path: Path = Path("a"),
        wrong: int = "all",  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    ) -> Credentials:
        return credentials

    signature = read_signature(function, "tool 'it'")
    properties = signature.schema()["properties"]
    shown = {name: each["default"] for name, each in properties.items() if "default" in each}
    assert shown == {"user": "u", "same": {"shown": 1}, "price": "1.50", "path": "a", "wrong": "all"}
    members = properties["credentials"]["properties"]
    inner = {name: each["default"] for name, each in members.items() if "default" in each}
    assert inner == {"user": "u", "path": "a", "price": "1.50"}
    assert signature.call(signature.bind({}), None).token.get_secret_value() == "x"
    output = ToolOutput(Credentials, None, "tool 'it'").schema
    assert "***" not in json.dumps(output)
