"""Types of parameters, each with an argument and the value that the function gets for it."""

import enum
import re
import sys
from collections.abc import Collection, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    LiteralString,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)
from typing import Dict as DictOf  # noqa: UP035
from typing import List as ListOf  # noqa: UP035
from typing import Tuple as TupleOf  # noqa: UP035
from uuid import UUID

import annotated_types as at
import attrs
import msgspec
import pydantic
from msgspec import Meta
from pydantic import BaseModel, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypeAliasType

T = TypeVar("T")
N = TypeVar("N", bound=int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Shade(enum.StrEnum):
    DARK = "dark"
    LIGHT = "light"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"
    NONE = None


class Pair(enum.Enum):
    FLAT = ("x", "y")
    DEEP = ("x", "y", "z")


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Line:
    """Two points."""

    start: Point
    end: Point
    names: list[str] = field(default_factory=list[str])


@dataclass
class Tree:
    value: int
    children: "list[Tree]" = field(default_factory=lambda: list[Tree]())
    parent: "Tree | None" = None


@dataclass
class Box(Generic[T]):
    content: T
    others: list[T] = field(default_factory=lambda: list[Any]())


UserId = NewType("UserId", int)


@dataclass
class Owned:
    owner: UserId
    others: list[UserId] = field(default_factory=list[UserId])


@dataclass
class Circle:
    radius: float


@dataclass
class Square:
    side: float


@dataclass
class Drawing:
    """A class with fields of types that msgspec rejects."""

    shape: Circle | Square
    title: Annotated[str, "What it is called", at.MinLen(1)] = "untitled"
    folder: Path = Path()
    more: "list[Drawing]" = field(default_factory=lambda: list[Drawing]())


@dataclass
class Described:
    """A class with metadata on its fields."""

    count: Annotated[int, at.Ge(1), "How many"]
    name: Annotated[str, Field(max_length=3, description="Who")] = "x"
    when: datetime | None = None


class Movie(TypedDict):
    title: str
    year: int


class Options(TypedDict, total=False):
    depth: Required[int]
    deep: bool


class Partly(TypedDict):
    a: int
    b: NotRequired[Annotated[int, at.Le(9)]]


class User(msgspec.Struct):
    name: str
    groups: set[str] = set()
    email: str | None = None


class Cat(msgspec.Struct, tag="cat"):
    lives: int = 9


class Dog(msgspec.Struct, tag="dog", forbid_unknown_fields=True):
    tricks: list[str] = []


class Camel(msgspec.Struct, rename="camel"):
    first_name: str
    last_name: str = msgspec.field(default="", name="surname")


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    x: int


class Row(msgspec.Struct, array_like=True):
    id: int
    name: str = ""


class Holder(msgspec.Struct):
    shape: Circle | Square


@attrs.define
class Attrs:
    x: int
    y: list[str] = attrs.Factory(lambda: list[str]())


class Place(NamedTuple):
    lat: float
    lon: float
    name: str = ""


class Address(BaseModel):
    street: str
    number: int = Field(default=1, ge=1)


class Person(BaseModel):
    name: str = Field(min_length=1)
    born: date | None = None
    home: Address | None = None
    others: list["Person"] = []


class Aliased(BaseModel):
    first: str = Field(alias="firstName")


class Checked(BaseModel):
    low: int
    high: int

    @pydantic.model_validator(mode="after")
    def _is_ordered(self) -> "Checked":
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Severe(BaseModel, strict=True, extra="forbid"):
    at: datetime
    ids: tuple[int, ...] = ()


class Rat(BaseModel):
    kind: Literal["rat"]
    tail: float


class Owl(BaseModel):
    kind: Literal["owl"]
    wings: int = 2


@pydantic_dataclass
class Spot:
    x: int = Field(ge=0)
    inner: Address | None = None


@dataclass
class Team:
    """A dataclass with models in it."""

    lead: Address
    others: list[Address] = field(default_factory=lambda: list[Address]())


class Even:
    """A class with a core schema of its own for Pydantic."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Even) and other.value == self.value

    def __repr__(self) -> str:
        return f"Even({self.value})"

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(cls, core_schema.int_schema(multiple_of=2))


def doubled(value: int) -> int:
    return value * 2


Names = TypeAliasType("Names", list[str])
Pairs = TypeAliasType("Pairs", list[tuple[T, T]], type_params=(T,))
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | float | bool | None")

TYPES: dict[str, tuple[Any, Any, Any]] = {
    # Builtins
    "int": (int, 5, 5),
    "float": (float, 1.5, 1.5),
    "float of an integer": (float, 5, 5.0),
    "str": (str, "a", "a"),
    "bool": (bool, True, True),
    "None": (None, None, None),
    "Any": (Any, {"a": [1]}, {"a": [1]}),
    "object": (object, [1, "a"], [1, "a"]),
    "LiteralString": (LiteralString, "a", "a"),
    "bytes": (bytes, "aGk=", b"hi"),
    "bytearray": (bytearray, "aGk=", bytearray(b"hi")),
    "list": (list, [1, "a"], [1, "a"]),
    "dict": (dict, {"a": 1}, {"a": 1}),
    "tuple": (tuple, [1, "a"], (1, "a")),
    "set": (set, ["a"], {"a"}),
    "frozenset": (frozenset, ["a"], frozenset({"a"})),
    # Types written as text
    "datetime": (datetime, "2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    "date": (date, "2026-01-02", date(2026, 1, 2)),
    "time": (time, "03:04:05", time(3, 4, 5)),
    "timedelta": (timedelta, "P1DT2H", timedelta(days=1, hours=2)),
    "UUID": (UUID, "5a0ca52c-37fc-4b2c-8ee0-2ab4d8a08f3a", UUID("5a0ca52c-37fc-4b2c-8ee0-2ab4d8a08f3a")),
    "Decimal": (Decimal, "1.10", Decimal("1.10")),
    "Decimal of a number": (Decimal, 3, Decimal(3)),
    "Path": (Path, "/etc/hosts", Path("/etc/hosts")),
    "PurePosixPath": (PurePosixPath, "a/b", PurePosixPath("a/b")),
    "Pattern": (re.Pattern, "a+", re.compile("a+")),
    "Pattern of texts": (re.Pattern[str], "a+", re.compile("a+")),
    "IPv4Address": (IPv4Address, "127.0.0.1", IPv4Address("127.0.0.1")),
    # Literal, enums
    "Literal of texts": (Literal["a", "b"], "a", "a"),
    "Literal of numbers": (Literal[1, 2], 2, 2),
    "Literal of both": (Literal[1, "a", None], "a", "a"),
    "Literal of a boolean": (Literal[True, "auto"], True, True),
    "Literal of an enum": (Literal[Colour.RED], "red", Colour.RED),
    "enum of texts": (Colour, "red", Colour.RED),
    "StrEnum": (Shade, "dark", Shade.DARK),
    "IntEnum": (Level, 2, Level.HIGH),
    "enum of all kinds": (Mixed, "two", Mixed.TWO),
    "enum of tuples": (Pair, ["x", "y"], Pair.FLAT),
    # Containers
    "list[int]": (list[int], [1, 2], [1, 2]),
    "List[int]": (ListOf[int], [1], [1]),  # noqa: UP006
    "list of lists": (list[list[int]], [[1], []], [[1], []]),
    "set[int]": (set[int], [1, 1], {1}),
    "frozenset[str]": (frozenset[str], ["a"], frozenset({"a"})),
    "tuple of two": (tuple[int, str], [1, "a"], (1, "a")),
    "tuple of any length": (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
    "tuple of none": (tuple[()], [], ()),
    "Tuple[int, Path]": (TupleOf[int, Path], [1, "a"], (1, Path("a"))),  # noqa: UP006
    "dict[str, int]": (dict[str, int], {"a": 1}, {"a": 1}),
    "Dict[str, Path]": (DictOf[str, Path], {"a": "b"}, {"a": Path("b")}),  # noqa: UP006
    "dict[int, str]": (dict[int, str], {"1": "a"}, {1: "a"}),
    "dict of an enum": (dict[Colour, int], {"red": 1}, {Colour.RED: 1}),
    "dict of a Literal": (dict[Literal["a", "b"], int], {"a": 1}, {"a": 1}),
    "dict of dates": (dict[date, int], {"2026-01-02": 1}, {date(2026, 1, 2): 1}),
    "dict of short texts": (dict[Annotated[str, at.MaxLen(2)], int], {"ab": 1}, {"ab": 1}),
    "dict of lists of models": (
        dict[str, list[Address]],
        {"a": [{"street": "b", "number": 1}]},
        {"a": [Address(street="b")]},
    ),
    "Sequence": (Sequence[int], [1], [1]),
    "MutableSequence": (MutableSequence[Point], [{"x": 1}], [Point(1)]),
    "Iterable": (Iterable[str], ["a"], ["a"]),
    "Collection": (Collection[date], ["2026-01-02"], [date(2026, 1, 2)]),
    "AbstractSet": (AbstractSet[int], [1], {1}),
    "Mapping": (Mapping[str, Point], {"a": {"x": 1}}, {"a": Point(1)}),
    "MutableMapping": (MutableMapping[str, Any], {"a": None}, {"a": None}),
    "Sequence of anything": (Sequence, [1, "a"], [1, "a"]),
    "Mapping of anything": (Mapping, {"a": 1}, {"a": 1}),
    # Unions
    "int | None": (int | None, None, None),
    "Optional": (Optional[date], "2026-01-02", date(2026, 1, 2)),  # noqa: UP045
    "int | str": (int | str, "a", "a"),
    "int | float": (int | float, 1, 1),
    "int | bool": (int | bool, True, True),
    "Union": (Union[int, str, None], 1, 1),  # noqa: UP007
    "list | set": (list[int] | set[str], ["a"], {"a"}),
    "list of a union": (list[int | str | None], [1, "a", None], [1, "a", None]),
    "str | Path": (str | Path, "a", "a"),
    "Path | int": (Path | int, 1, 1),
    "Path | None": (Path | None, "a", Path("a")),
    "date | str": (date | str, "soon", "soon"),
    "dataclass | dataclass": (Circle | Square, {"side": 2}, Square(2.0)),
    "dataclass | None": (Point | None, {"x": 1}, Point(1)),
    "list of dataclass | dataclass": (list[Circle | Square], [{"side": 2}], [Square(2.0)]),
    "dict of nested unions": (dict[str, list[Circle | Square] | None], {"a": [{"radius": 1}]}, {"a": [Circle(1.0)]}),
    "Struct | dict": (User | dict[str, int], {"a": 1}, {"a": 1}),
    "Struct | list": (User | list[User], [{"name": "a"}], [User("a")]),
    "tagged Structs": (Cat | Dog, {"type": "dog", "tricks": ["sit"]}, Dog(["sit"])),
    "model | model": (Rat | Owl, {"kind": "owl", "wings": 2}, Owl(kind="owl")),
    "model | str": (Address | str, {"street": "a", "number": 1}, Address(street="a")),
    "model | None": (Optional[Address], {"street": "a", "number": 1}, Address(street="a")),  # noqa: UP045
    "Literal | int": (Literal["auto"] | int, "auto", "auto"),
    "enum | int": (Colour | int, "red", Colour.RED),
    "Annotated in a union": (Annotated[int, at.Ge(1)] | Annotated[str, at.MinLen(1)], "a", "a"),
    # Constraints
    "Meta": (Annotated[int, Meta(ge=1, le=9)], 9, 9),
    "Meta, exclusive": (Annotated[float, Meta(gt=0, lt=1)], 0.5, 0.5),
    "Meta multiple_of": (Annotated[int, Meta(multiple_of=3)], 6, 6),
    "Meta lengths": (Annotated[str, Meta(min_length=1, max_length=3)], "abc", "abc"),
    "Meta pattern": (Annotated[str, Meta(pattern="^[a-c]+$")], "abc", "abc"),
    "Meta of a list": (Annotated[list[int], Meta(min_length=1)], [1], [1]),
    "Meta of an optional": (Annotated[int | None, Meta(ge=1)], 1, 1),
    "annotated_types": (Annotated[int, at.Ge(1), at.Lt(9)], 8, 8),
    "Interval": (Annotated[float, at.Interval(gt=0, le=1)], 1, 1.0),
    "Len": (Annotated[list[str], at.Len(1, 2)], ["a"], ["a"]),
    "MultipleOf": (Annotated[int, at.MultipleOf(5)], 10, 10),
    "Predicate": (Annotated[str, at.Predicate(str.islower)], "abc", "abc"),
    "Field": (Annotated[int, Field(ge=1, le=9, description="d", title="t", examples=[3])], 3, 3),
    "Field, exclusive": (Annotated[float, Field(gt=0, lt=1)], 0.5, 0.5),
    "Field multiple_of": (Annotated[int, Field(multiple_of=2)], 4, 4),
    "Field lengths": (Annotated[str, Field(min_length=2, max_length=3)], "ab", "ab"),
    "Field pattern": (Annotated[str, Field(pattern=r"^\d{2}$")], "12", "12"),
    "Field of a list": (Annotated[list[int], Field(max_length=1)], [1], [1]),
    "Field of a Decimal": (Annotated[Decimal, Field(ge=0, lt=10)], "1.5", Decimal("1.5")),
    "Field of a union": (Annotated[int | str | None, Field(ge=1, max_length=2)], "ab", "ab"),
    "Field of a dict": (Annotated[dict[str, int], Field(min_length=1)], {"a": 1}, {"a": 1}),
    "a text as a description": (Annotated[int, "How many"], 1, 1),
    "Annotated twice": (Annotated[Annotated[int, at.Ge(1)], at.Le(9), "How many"], 1, 1),
    "constraints within": (list[Annotated[int, at.Ge(1)]], [1], [1]),
    "PositiveInt": (pydantic.PositiveInt, 1, 1),
    "AfterValidator": (Annotated[int, pydantic.AfterValidator(doubled)], 2, 4),
    "StringConstraints": (Annotated[str, pydantic.StringConstraints(to_upper=True, max_length=3)], "abc", "ABC"),
    "HttpUrl": (pydantic.HttpUrl, "http://a.org/", pydantic.HttpUrl("http://a.org/")),
    "Base64Bytes": (pydantic.Base64Bytes, "aGk=", b"hi"),
    "a class that Pydantic reads": (Even, 4, Even(4)),
    # Records
    "dataclass": (Point, {"x": 1}, Point(1, 0)),
    "nested dataclasses": (Line, {"start": {"x": 1}, "end": {"x": 2, "y": 3}}, Line(Point(1), Point(2, 3))),
    "recursive dataclass": (Tree, {"value": 1, "children": [{"value": 2}]}, Tree(1, [Tree(2)])),
    "generic dataclass": (Box[int], {"content": 1, "others": [2]}, Box(1, [2])),
    "generic dataclass of a dataclass": (Box[Point], {"content": {"x": 1}}, Box(Point(1))),
    "dataclass with a union": (Drawing, {"shape": {"side": 1}, "folder": "a"}, Drawing(Square(1.0), folder=Path("a"))),
    "dataclass with notes": (Described, {"count": 1, "name": "abc"}, Described(1, "abc")),
    "dataclass with models": (
        Team,
        {"lead": {"street": "a", "number": 1}, "others": [{"street": "b"}]},
        Team(Address(street="a"), [Address(street="b")]),
    ),
    "TypedDict": (Movie, {"title": "a", "year": 1}, {"title": "a", "year": 1}),
    "TypedDict, not total": (Options, {"depth": 1}, {"depth": 1}),
    "TypedDict, NotRequired": (Partly, {"a": 1, "b": 2}, {"a": 1, "b": 2}),
    "Struct": (User, {"name": "a", "groups": ["b"]}, User("a", {"b"})),
    "tagged Struct": (Cat, {"type": "cat"}, Cat()),
    "renamed Struct": (Camel, {"firstName": "a", "surname": "b"}, Camel("a", "b")),
    "strict Struct": (Strict, {"x": 1}, Strict(1)),
    "Struct as an array": (Row, [1, "a"], Row(1, "a")),
    "Struct with a union": (Holder, {"shape": {"radius": 1}}, Holder(Circle(1.0))),
    "attrs": (Attrs, {"x": 1, "y": ["a"]}, Attrs(1, ["a"])),
    "NamedTuple": (Place, [1, 2, "a"], Place(1.0, 2.0, "a")),
    "model": (Address, {"street": "a", "number": 1}, Address(street="a")),
    "nested models": (
        Person,
        {"name": "a", "born": "2026-01-02", "home": {"street": "b"}, "others": [{"name": "c"}]},
        Person(name="a", born=date(2026, 1, 2), home=Address(street="b"), others=[Person(name="c")]),
    ),
    "model with aliases": (Aliased, {"firstName": "a"}, Aliased(firstName="a")),
    "model with a validator": (Checked, {"low": 1, "high": 2}, Checked(low=1, high=2)),
    "strict model": (
        Severe,
        {"at": "2026-01-02T03:04:05Z", "ids": [1]},
        Severe.model_validate_json('{"at": "2026-01-02T03:04:05Z", "ids": [1]}'),
    ),
    "list of models": (list[Address], [{"street": "a", "number": 1}], [Address(street="a")]),
    "dict of models": (dict[str, Address], {"a": {"street": "b", "number": 1}}, {"a": Address(street="b")}),
    "discriminated models": (
        Annotated[Rat | Owl, Field(discriminator="kind")], {"kind": "owl", "wings": 2}, Owl(kind="owl"),
    ),
    "Pydantic dataclass": (Spot, {"x": 1, "inner": {"street": "a"}}, Spot(x=1, inner=Address(street="a"))),
    # Aliases and type variables
    "NewType": (UserId, 5, 5),
    "dataclass with a NewType": (Owned, {"owner": 1, "others": [2]}, Owned(UserId(1), [UserId(2)])),
    "list of a NewType": (list[UserId], [5], [5]),
    "TypeAliasType": (Names, ["a"], ["a"]),
    "generic TypeAliasType": (Pairs[int], [[1, 2]], [(1, 2)]),
    "recursive TypeAliasType": (Json, {"a": [1.5, None]}, {"a": [1.5, None]}),
    "TypeVar": (T, {"a": 1}, {"a": 1}),
    "bound TypeVar": (N, 5, 5),
    "Final": (Final[int], 5, 5),
}  # fmt: skip
"""Types by name, each with an argument and the value that the function gets for it."""

if sys.version_info >= (3, 12):
    _made: dict[str, Any] = {}
    exec("type Numbers = list[int]\ntype Of[T] = dict[str, T]", _made)  # noqa: S102  # Python 3.11 lacks the syntax
    TYPES["type statement"] = (_made["Numbers"], [1], [1])
    TYPES["generic type statement"] = (_made["Of"][int], {"a": 1}, {"a": 1})
