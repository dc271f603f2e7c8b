"""Annotations that are evaluated when they are read: strings, and since Python 3.14 all of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest

import typedmcp
from tests.cases import each
from typedmcp.app.functions import read_return_hint, read_signature

STRINGS = "from __future__ import annotations\n"
EVALUATED = [STRINGS, ""] if sys.version_info >= (3, 14) else [STRINGS]
"""The beginnings of modules whose annotations are not evaluated before they are read."""

SOURCE = """
from dataclasses import dataclass
from typing import TypedDict

def unknown_parameter(a: int, b: list[Missing]): ...
def unknown_return(a: int) -> list[Missing]: ...
def broken(a: int, b: int[1 / 0]): ...
def later(a: Later, b: "list[Later]") -> Later: return a

def local():
    def function(a: Here, b: list[There]): return a, b
    @dataclass
    class Here:
        x: int
    class There(TypedDict):
        x: int
    return read_signature(function, "tool 'it'")

class Later(TypedDict):
    next: Later | None
"""


def module(beginning: str) -> Any:
    names: dict[str, Any] = {"__name__": __name__, "read_signature": read_signature}
    exec(compile(beginning + SOURCE, "made.py", "exec", dont_inherit=True), names)  # noqa: S102
    return names


@each("beginning", EVALUATED)
def test_names_may_be_defined_after_the_function(beginning: str) -> None:
    later = read_signature(module(beginning)["later"], "tool 'it'")
    assert later.bind({"a": {"next": None}, "b": [{"next": {"next": None}}]}) is not None


@each("beginning", EVALUATED)
def test_names_of_the_enclosing_function_are_known(beginning: str) -> None:
    signature = module(beginning)["local"]()
    here, there = signature.call(signature.bind({"a": {"x": 1}, "b": [{"x": 2}]}), None)
    assert (type(here).__name__, here.x, there) == ("Here", 1, [{"x": 2}])


@each("beginning", EVALUATED)
def test_an_unknown_name_in_the_return_type_matters_only_where_that_is_needed(beginning: str) -> None:
    signature = read_signature(module(beginning)["unknown_return"], "tool 'it'")
    assert [parameter.hint for parameter in signature.parameters] == [int]
    with pytest.raises(typedmcp.UsageError, match=r"^tool 'it': unknown_return\(\), return type: name 'Missing'"):
        read_return_hint(signature)


REJECTED = {
    "unknown_parameter": r"unknown_parameter\(\), parameter 'b': name 'Missing' is not defined",
    "broken": r"broken\(\).*: an annotation cannot be evaluated: ZeroDivisionError: division by zero",
}


@each("beginning", EVALUATED)
@each(("name", "text"), REJECTED.items())
def test_an_annotation_that_cannot_be_evaluated_is_named(beginning: str, name: str, text: str) -> None:
    server = typedmcp.Server()
    with pytest.raises(typedmcp.UsageError, match=f"^tool {name!r}: {text}"):
        server.add_tool(module(beginning)[name])


@dataclass
class Adder:
    """A callable object whose class has annotations, too."""

    amount: int

    def __call__(self, amount: list[int], other: str) -> list[int]:
        return [self.amount + each for each in amount]


def test_the_annotations_of_a_callable_object_are_those_of_its_call() -> None:
    signature = read_signature(Adder(1), "tool 'it'")
    assert [(parameter.name, parameter.hint) for parameter in signature.parameters] == [
        ("amount", list[int]),
        ("other", str),
    ]
    assert signature.return_hint == list[int]
