"""Describe a function and a type, convert values, and with the extras that are named, models and given schemas."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from typedmcp_schemas import (
    ArgumentError,
    Signature,
    ValueConversionError,
    can_validate,
    compile_schema,
    convert,
    explain,
    portable_schema_of,
    schema_of,
    to_msgspec,
)


@dataclass
class Stay:
    hotel: str
    nights: int = 1


def book(stays: list[Stay]) -> int:
    return sum(stay.nights for stay in stays)


def fault_of(function: Callable[..., object], *arguments: object) -> str:
    """Return what is wrong with a value, from the error that a function raises for it."""
    try:
        function(*arguments)
    except ArgumentError as error:
        return str(error)
    except ValueConversionError as error:
        return explain(error)
    raise AssertionError("a wrong value was accepted")


signature = Signature(book)
assert signature.schema()["required"] == ["stays"]
assert signature.call(signature.bind({"stays": [{"hotel": "Ritz", "nights": 2}]}), None) == 2
faults = fault_of(signature.bind, {"stays": [{"hotel": "Ritz", "nights": "two"}], "more": 1})
assert "stays[0].nights: expected integer, got string" in faults, faults
assert "unknown argument 'more'; known: stays" in faults, faults

by_number = to_msgspec(dict[int, Stay])
assert convert({"1": {"hotel": "Ritz"}}, by_number) == {1: Stay("Ritz")}
assert fault_of(convert, {"one": {}}, by_number)
assert portable_schema_of(by_number)["type"] == schema_of(by_number)["type"] == "object"

assert can_validate() is ("jsonschema" in sys.argv)
if "jsonschema" in sys.argv:
    found = compile_schema({"type": "number"}).find_error("warm", "degrees")
    assert found == 'degrees: "warm" is not of type "number"', found
if "pydantic" in sys.argv:
    from pydantic import BaseModel

    class Guest(BaseModel):
        name: str

    model = to_msgspec(Guest)
    assert convert({"name": "Ada"}, model) == Guest(name="Ada")
    assert schema_of(model)["required"] == ["name"]
assert not {"typedmcp", "mcpspec"} & {name.partition(".")[0] for name in sys.modules}
