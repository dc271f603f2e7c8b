"""Functions as tools, each with arguments and the values that the function gets for them."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta
from pydantic import Field

from tests.app.type_cases import Address, Cat, Circle, Colour, Line, Point, Square, User
from typedmcp import Context

__all__ = ["FUNCTIONS", "Case", "received"]

received: list[tuple[Any, ...]] = []
"""The values that functions were called with."""

NOTHING = object()


class Case(NamedTuple):
    """The arguments of a call, and the values that the function gets."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    gets: tuple[Any, ...]


FUNCTIONS: dict[str, Case] = {}


def case(*gets: Any, name: str | None = None, **arguments: Any) -> Callable[[Any], Any]:
    """Register a function with arguments and the values that it gets."""

    def decorate(function: Any) -> Any:
        key = name or function.__name__.replace("_", " ").strip()
        while key in FUNCTIONS:
            key += ", again"
        FUNCTIONS[key] = Case(function, arguments, gets)
        return function

    return decorate


def record(*values: Any) -> None:
    received.append(values)


def is_context(value: Any) -> bool:
    return isinstance(value, Context)


# Defaults


@case(3)
@case(4, x=4)
def a_default(x: int = 3) -> None:
    record(x)


@case([1])
def a_default_that_can_be_changed(x: list[int] = [1]) -> None:  # noqa: B006
    record(x)


@case({"a": [1]})
def a_nested_default(x: dict[str, list[int]] = {"a": [1]}) -> None:  # noqa: B006
    record(x)


@case(Colour.RED)
@case(Colour.BLUE, x="blue")
def an_enum_for_a_default(x: Colour = Colour.RED) -> None:
    record(x)


@case(None)
def an_optional_default(x: int | None = None) -> None:
    record(x)


@case("all")
def a_default_of_another_type(x: int = "all") -> None:  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    record(x)


@case((1, 2))
def a_tuple_for_a_default(x: tuple[int, ...] = (1, 2)) -> None:
    record(x)


@case({1})
def a_set_for_a_default(x: set[int] = {1}) -> None:  # noqa: B006
    record(x)


@case(User("a"))
def a_struct_for_a_default(x: User = User("a")) -> None:  # noqa: B008
    record(x)


@case(Point(1, 2))
def a_dataclass_for_a_default(x: Point = Point(1, 2)) -> None:  # noqa: B008
    record(x)


@case(Address(street="b"), x={"street": "b", "number": 1})
def a_model_for_a_default(x: Address = Address(street="a")) -> None:  # noqa: B008
    record(x)


@case(date(2026, 1, 2))
def a_date_for_a_default(x: date = date(2026, 1, 2)) -> None:
    record(x)


@case(NOTHING)
def a_default_that_json_has_no_form_for(x: Any = NOTHING) -> None:
    record(x)


@case(float("inf"))
def an_infinite_default(x: float = float("inf")) -> None:
    record(x)


@case(1, "a", True, x=1)
def defaults_at_the_end(x: int, y: str = "a", z: bool = True) -> None:
    record(x, y, z)


# Pydantic's Field


@case(3)
@case(4, x=4)
def a_field_with_a_default(x: Annotated[int, Field(default=3, ge=1)]) -> None:
    record(x)


@case([1])
def a_field_with_a_factory(x: Annotated[list[int], Field(default_factory=lambda: [1])]) -> None:
    record(x)


@case(3)
@case(1, x=1)
def a_field_for_a_default(x: int = Field(default=3, ge=1)) -> None:
    record(x)


@case(1, x=1)
def a_field_for_a_default_that_has_none(x: int = Field(ge=1)) -> None:
    record(x)


@case(2)
def a_field_and_a_default(x: Annotated[int, Field(ge=1)] = 2) -> None:
    record(x)


@case("a", **{"from": "a"})
def an_alias(from_: Annotated[str, Field(alias="from")]) -> None:
    record(from_)


@case("a", 3, **{"a-b": "a"})
def an_alias_that_is_no_identifier(a_b: Annotated[str, Field(alias="a-b")], c: int = 3) -> None:
    record(a_b, c)


@case("a", x_="a")
def an_alias_for_validation(x: Annotated[str, Field(validation_alias="x_")]) -> None:
    record(x)


@case(1, 2, x=1, y=2)
def aliases_that_swap_names(x: Annotated[int, Field(alias="y")], y: Annotated[int, Field(alias="x")]) -> None:
    record(y, x)


# Kinds of parameters


@case()
def nothing() -> None:
    record()


@case(1, [2], x=1, y=[2])
def no_annotations(x, y=None) -> None:  # type: ignore[no-untyped-def]
    record(x, y)


@case(1, "a", x=1, y="a")
def by_keyword_only(*, x: int, y: str) -> None:
    record(x, y)


@case(1, 2, 3, x=1, y=2, z=3)
def of_all_kinds(x: int, /, y: int, *, z: int) -> None:
    record(x, y, z)


@case(1, 5, x=1)
def by_position_only(x: int, y: int = 5, /) -> None:
    record(x, y)


@case({"a": 1, "b": [2]}, a=1, b=[2])
@case({})
def any_others(**others: Any) -> None:
    record(others)


@case({"a": 1}, a=1)
def others_without_annotation(**others) -> None:  # type: ignore[no-untyped-def]
    record(others)


@case(1, {"y": date(2026, 1, 2)}, x=1, y="2026-01-02")
def dates_for_others(x: int, **others: date) -> None:
    record(x, others)


@case({"a": Line(Point(1), Point(2))}, a={"start": {"x": 1}, "end": {"x": 2}})
def dataclasses_for_others(**others: Line) -> None:
    record(others)


@case({"a": Square(1.0)}, a={"side": 1})
def unions_for_others(**others: Circle | Square) -> None:
    record(others)


@case(1, {"y": 2}, x=1, y=2)
def others_behind_one_by_position(x: int, /, **others: int) -> None:
    record(x, others)


@case(1, 2, 3, {"a": 4}, x=1, y=2, z=3, a=4)
def others_behind_all(x: int, /, y: int, *, z: int, **others: int) -> None:
    record(x, y, z, others)


# The context


@case(True, 1, x=1)
def context_first(ctx: Context, x: int) -> None:
    record(is_context(ctx), x)


@case(True, 1, x=1)
def context_last(x: int, ctx: Context) -> None:
    record(is_context(ctx), x)


@case(True, 1, 2, x=1, y=2)
def context_between(x: int, c: Context, y: int) -> None:
    record(is_context(c), x, y)


@case(True, 1, x=1)
def context_by_keyword(x: int, *, request: Context) -> None:
    record(is_context(request), x)


@case(True, 1, x=1)
def context_by_position(request: Context, /, x: int) -> None:
    record(is_context(request), x)


@case(True)
def context_alone(ctx: Context) -> None:
    record(is_context(ctx))


@case(True, 1, x=1)
def context_optional(x: int, ctx: Context | None = None) -> None:
    record(is_context(ctx), x)


@case(True)
def context_annotated(ctx: Annotated[Context, "who asks"]) -> None:
    record(is_context(ctx))


@case(True, 1, x=1)
def context_by_name(x: int, ctx) -> None:  # type: ignore[no-untyped-def]
    record(is_context(ctx), x)  # pyright: ignore[reportUnknownArgumentType]


@case(True, 1, x=1)
def context_by_its_whole_name(context, x: int) -> None:  # type: ignore[no-untyped-def]
    record(is_context(context), x)  # pyright: ignore[reportUnknownArgumentType]


@case("a", context="a")
def context_that_is_none(context: str) -> None:
    record(context)


@case("a", True, ctx="a")
def context_by_type_rather_than_by_name(ctx, request: Context) -> None:  # type: ignore[no-untyped-def]
    record(ctx, is_context(request))


@case(True, {"a": 1}, a=1)
def context_and_others(ctx: Context, **others: int) -> None:
    record(is_context(ctx), others)


# Callables other than functions


class Tools:
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def method(self, x: int, ctx: Context) -> None:
        record(x * self.factor, is_context(ctx))

    async def slow(self, x: int) -> None:
        record(x * self.factor)

    @staticmethod
    def static(x: Point) -> None:
        record(x)

    @classmethod
    def of_class(cls, x: int) -> None:
        record(cls.__name__, x)

    def __call__(self, x: Point, y: int = 1) -> None:
        record(x, y * self.factor)


@dataclass
class Made:
    """Make a `Made`."""

    x: Point
    y: int = 2

    def __post_init__(self) -> None:
        record(self.x, self.y)


class Initialised(dict[str, int]):
    def __init__(self, x: Point, y: int = 2) -> None:
        record(x, y)


def three(x: int, y: Point, z: int = 3) -> None:
    record(x, y, z)


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def logged_async(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    return wrapper


@case(1, Point(2), x=1, y={"x": 2})
@logged
@logged
def wrapped(x: int, y: Point) -> None:
    record(x, y)


@case(1, True, x=1)
@logged
def wrapped_with_context(x: int, ctx: Context) -> None:
    record(x, is_context(ctx))


@case(Point(1), x={"x": 1})
@logged_async
async def wrapped_async(x: Point) -> None:
    record(x)


@case(1, x=1)
@functools.lru_cache
def cached(x: int) -> None:
    record(x)


@case(1, True, x=1)
async def asynchronous(x: int, ctx: Context) -> None:
    record(x, is_context(ctx))


@case(Point(1), x={"x": 1})
def a_generator(x: Point) -> Iterator[str]:
    record(x)
    yield "a"


@case(Point(1), x={"x": 1})
async def an_async_generator(x: Point) -> AsyncIterator[str]:
    record(x)
    yield "a"


@case(1, 2, 3, 4, self=1, cls=2, _x=3, größe=4)
def odd_names(self: int, cls: int, _x: int, größe: int) -> None:
    record(self, cls, _x, größe)


@case(1, 2, 3, function=1, bound=2, struct=3)
def names_of_ours(*, function: int, bound: int, struct: int) -> None:
    record(function, bound, struct)


@case(Cat(), "b", x={"type": "cat"}, y="b")
def several_types(x: Annotated[Cat, Meta(description="Which")], y: Literal["a", "b"]) -> None:
    record(x, y)


@case(Point(1), Point(2), [Point(3)], x={"x": 1}, y={"x": 2}, z=[{"x": 3}])
def the_same_type_thrice(x: Point, y: Point | None, z: list[Point]) -> None:
    record(x, y, z)


_tools = Tools(2)
_nameless: Callable[[Any], None] = lambda x: record(x)  # noqa: E731
_MORE = {
    "method": Case(_tools.method, {"x": 2}, (4, True)),
    "async method": Case(_tools.slow, {"x": 2}, (4,)),
    "static method": Case(Tools.static, {"x": {"x": 1}}, (Point(1),)),
    "static method of an object": Case(_tools.static, {"x": {"x": 1}}, (Point(1),)),
    "class method": Case(Tools.of_class, {"x": 1}, ("Tools", 1)),
    "object that can be called": Case(_tools, {"x": {"x": 1}}, (Point(1), 2)),
    "dataclass": Case(Made, {"x": {"x": 1}}, (Point(1), 2)),
    "class": Case(Initialised, {"x": {"x": 1}}, (Point(1), 2)),
    "partial by position": Case(functools.partial(three, 1), {"y": {"x": 2}}, (1, Point(2), 3)),
    "partial by keyword": Case(functools.partial(three, z=5), {"x": 1, "y": {"x": 2}}, (1, Point(2), 5)),
    "partial in the middle": Case(functools.partial(three, y=Point(7)), {"x": 1}, (1, Point(7), 3)),
    "partial of a partial": Case(functools.partial(functools.partial(three, 1), Point(2)), {}, (1, Point(2), 3)),
    "partial of a method": Case(functools.partial(_tools.method, 4), {}, (8, True)),
    "partial of an object": Case(functools.partial(_tools, y=3), {"x": {"x": 1}}, (Point(1), 6)),
    "partial of an async function": Case(functools.partial(asynchronous, 4), {}, (4, True)),
    "lambda": Case(_nameless, {"x": [1]}, ([1],)),
}  # fmt: skip
FUNCTIONS.update(_MORE)
