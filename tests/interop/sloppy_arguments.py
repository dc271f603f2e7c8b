"""Call tools with given arguments, such as those of `tests/app/sloppy_arguments.toml` and `wrong_calls.toml` there.

    sloppy_arguments.py LIBRARY < cases.json

A case is the parameters of a function and the arguments of a call. Prints the outcomes as JSON: what the function got,
or the text of the error. The library is `MCPServer`, `fastmcp` or `typedmcp`, each with its own client in memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from importlib import import_module
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from typing_extensions import TypedDict

__all__ = ["NAMES", "call_all"]


class Person(BaseModel):
    name: str
    age: int


@dataclass
class Point:
    x: int
    y: int


class Tag(TypedDict):
    key: str
    weight: int


class Pair(NamedTuple):
    left: int
    right: bool


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: Annotated[float, Field(gt=0)]


class Square(BaseModel):
    kind: Literal["square"]
    side: float
    label: str = ""


class Dog(BaseModel):
    breed: str
    barks: bool


class Cat(BaseModel):
    color: Color
    lives: int


class Line(BaseModel):
    sku: Annotated[str, Field(pattern=r"^[A-Z]{3}-[0-9]+$")]
    quantity: Annotated[int, Field(ge=1, le=99)]


class Order(BaseModel):
    id: int
    lines: Annotated[list[Line], Field(min_length=1)]
    due: date | None = None


class Account(BaseModel):
    model_config = ConfigDict(extra="forbid")
    email: str
    level: Level = Level.LOW

    @field_validator("email")
    @classmethod
    def has_an_at(cls, value: str) -> str:
        if "@" not in value:
            raise ValueError("an address has an @")
        return value


class Period(BaseModel):
    start: date
    end: date

    @model_validator(mode="after")
    def is_ordered(self) -> Period:
        if self.end < self.start:
            raise ValueError("the end is before the start")
        return self


class Node(BaseModel):
    name: str
    children: list[Node] = []


_CLASSES: list[type] = [
    Person, Point, Tag, Pair, Level, Color, Circle, Square, Dog, Cat, Line, Order, Account, Period, Node, Decimal, UUID,
    date, datetime, time, timedelta,
]  # fmt: skip
NAMES: dict[str, Any] = {each.__name__: each for each in _CLASSES} | {
    "Annotated": Annotated,
    "Any": Any,
    "Field": Field,
    "Literal": Literal,
    "Email": Annotated[str, Field(pattern="^[^@]+@[^@]+$")],
    "Shape": Annotated[Circle | Square, Field(discriminator="kind")],
}
"""The names that parameters may use."""


def function_taking(parameters: str) -> Any:
    """Return a function that returns its arguments as text."""
    names = dict(NAMES)
    body = "    return ', '.join(map(repr, [*locals().values()]))"
    exec(f"def it({parameters}) -> str:\n{body}", names)  # noqa: S102
    return names["it"]


async def call_all(library: str, cases: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, str]]:
    """Return the outcome of each call: the text of the result, or of the error."""
    return [await _call(library, *case) for case in cases]


async def _call(library: str, parameters: str, arguments: dict[str, Any]) -> dict[str, str]:
    function = function_taking(parameters)
    try:
        is_error, text = await _CALLERS[library](function, arguments)
    except Exception as error:
        is_error, text = True, str(error)
    return {"error" if is_error else "value": text}


async def _call_official(function: Any, arguments: dict[str, Any]) -> tuple[bool, str]:
    library: Any = import_module("mcp")
    server = import_module("mcp.server.mcpserver").MCPServer("s")
    server.add_tool(function, structured_output=False)
    async with library.Client(server) as client:
        result: Any = await client.call_tool("it", arguments)
        return bool(result.is_error), result.content[0].text


async def _call_fastmcp(function: Any, arguments: dict[str, Any]) -> tuple[bool, str]:
    library: Any = import_module("fastmcp")
    server = library.FastMCP("s")
    server.tool(function)
    async with library.Client(server) as client:
        result: Any = await client.call_tool("it", arguments, raise_on_error=False)
        return bool(result.is_error), result.content[0].text


async def _call_ours(function: Any, arguments: dict[str, Any]) -> tuple[bool, str]:
    import typedmcp

    server = typedmcp.Server("s")
    server.add_tool(function)
    async with typedmcp.connect(server) as client:
        result = await client.call_tool("it", arguments)
        return result.is_error is True, typedmcp.text_of(result)


_CALLERS: dict[str, Any] = {"MCPServer": _call_official, "fastmcp": _call_fastmcp, "typedmcp": _call_ours}

if __name__ == "__main__":
    logging.disable()
    outcomes = asyncio.run(call_all(sys.argv[1], json.load(sys.stdin)))
    print(re.sub(r"\\u001b\[[0-9;]*m", "", json.dumps(outcomes)))
