"""Functions and classes with type parameters in brackets, which their string annotations name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from tests.cases import each
from typedmcp import Server
from typedmcp.app.functions import read_signature
from typedmcp_schemas.adapt import to_msgspec
from typedmcp_schemas.values import ValueConversionError, convert

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has the syntax since 3.12")

SOURCE = """
from __future__ import annotations
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypedDict

def function[T: int, U](x: T, y: list[U]) -> list[T]:
    return [x]

@dataclass
class Box[T]:
    content: T

@dataclass
class Kept[T]:
    content: T
    folder: Path

class Pair[T](NamedTuple):
    first: T
    second: T

class Words[T](TypedDict):
    word: T

class Deeper[T](Box[T]):
    pass

class Tools[T]:
    def __init__(self, first: T) -> None:
        self.first = first

    def method(self, x: T) -> list[T]:
        return [self.first, x]

    @classmethod
    def of_class(cls, x: T) -> T:
        return x

type Nested[T] = dict[str, T | Nested[T]]
"""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = ModuleType("made_for_generics")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(SOURCE, made.__dict__)  # noqa: S102  # Python 3.11 lacks the syntax
    return made


def test_a_function_may_declare_type_parameters(module: Any) -> None:
    signature = read_signature(module.function, "tool 'it'")
    assert signature.call(signature.bind({"x": 1, "y": ["a"]}), None) == [1]
    assert signature.schema()["properties"] == {"x": {"type": "integer"}, "y": {"type": "array", "items": {}}}
    Server().add_tool(module.function)


def test_a_method_may_use_the_type_parameters_of_its_class(module: Any) -> None:
    for function in (module.Tools, module.Tools(1).method, module.Tools.of_class):
        Server().add_tool(function, name="it", structured=False)


@each(
    "name, given, wrong",
    [
        ("Box", {"content": 1}, {"content": "a"}),
        ("Kept", {"content": 1, "folder": "a"}, {"content": "a", "folder": "a"}),
        ("Pair", [1, 2], [1, "a"]),
        ("Words", {"word": 1}, {"word": "a"}),
        ("Nested", {"a": {"b": 1}}, {"a": {"b": "c"}}),
    ],
)
def test_a_class_may_declare_type_parameters(module: Any, name: str, given: Any, wrong: Any) -> None:
    hint = to_msgspec(getattr(module, name)[int])
    convert(given, hint)
    with pytest.raises(ValueConversionError):
        convert(wrong, hint)


def test_type_parameters_without_arguments_accept_everything(module: Any) -> None:
    assert convert({"content": "a"}, to_msgspec(module.Deeper)).content == "a"
