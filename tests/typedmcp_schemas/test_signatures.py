"""The library by itself: signatures without the core, and its independence. `tests/app` has the cases of types."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mcpspec.support.error_text
import typedmcp_schemas.error_text
from tests.cases import each
from typedmcp_schemas import ArgumentError, Signature, SignatureError, compile_schema
from typedmcp_schemas.signatures import UnboundMethodError, is_context_parameter


class Request:
    """An object that callers pass beside the arguments."""


class Counter:
    def add(self, number: int) -> int:
        return number


def add(a: int, b: int = 2) -> int:
    return a + b


def test_a_function_is_described_and_called_without_the_core() -> None:
    signature = Signature(add)
    properties = {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}}
    expected = {"type": "object", "properties": properties, "additionalProperties": False, "required": ["a"]}
    assert signature.schema() == expected
    assert signature.return_hint is int
    assert signature.call(signature.bind({"a": 1}), None) == 3


def test_an_error_names_every_fault_with_its_place() -> None:
    with pytest.raises(ArgumentError) as caught:
        Signature(add).bind({"b": "2", "c": 3})
    missing, wrong, unknown = str(caught.value).splitlines()
    assert missing == "a: required, but missing"
    assert wrong == "b: expected integer, got string"
    assert unknown == "unknown argument 'c'; known: a, b"


def test_values_are_repaired_only_if_somebody_is_told() -> None:
    repairs: list[str] = []
    bound = Signature(add).bind({"a": "1"}, repairs.append)
    assert Signature(add).call(bound, None) == 3
    assert len(repairs) == 1


def _by_type(a: int, request: Request) -> object:
    return request, a


def _by_subclass_or_none(a: int, it: Request | None = None) -> object:
    return it, a


def _by_name(a: int, ctx: object) -> object:
    return ctx, a


del _by_name.__annotations__["ctx"]


@each("function", [_by_type, _by_subclass_or_none, _by_name], ids=["type", "optional", "name"])
def test_a_parameter_may_take_an_object_beside_the_arguments(function: Callable[..., Any]) -> None:
    request, signature = Request(), Signature(function, context=Request)
    assert [*signature.schema()["properties"]] == ["a"]
    assert signature.call(signature.bind({"a": 1}), request) == (request, 1)


def test_a_parameter_without_an_annotation_is_an_argument_if_there_is_no_context() -> None:
    assert [*Signature(_by_name).schema()["properties"]] == ["a", "ctx"]


def _spread(*numbers: int) -> object:
    return numbers


def test_the_context_may_be_of_any_class() -> None:
    parameter = inspect.Parameter("it", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert is_context_parameter(parameter, {"it": Request}, Request)
    assert not is_context_parameter(parameter, {"it": int}, Request)


@each(
    "function, kind, text",
    [
        (_spread, SignatureError, "_spread(), parameter 'numbers': a client cannot pass `*` arguments"),
        (Counter.add, UnboundMethodError, "add(), parameter 'self': a method needs its object: pass object.method"),
    ],
    ids=["positional", "method"],
)
def test_a_function_that_cannot_be_called_with_json_is_an_error(
    function: Callable[..., Any], kind: type[SignatureError], text: str
) -> None:
    with pytest.raises(kind) as caught:
        Signature(function)
    assert str(caught.value).startswith(text)
    with pytest.raises(kind) as caught:
        Signature(function, "route 'it'")
    assert str(caught.value).startswith(f"route 'it': {text}")


def test_the_error_about_a_missing_validator_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typedmcp_schemas.validate.can_validate", lambda: False)
    with pytest.raises(ValueError, match=r"pip install 'typedmcp-schemas\[jsonschema\]'"):
        compile_schema({})


def test_values_and_places_in_errors_have_one_notation_in_both_packages() -> None:
    ours, theirs = (Path(str(each.__file__)) for each in (typedmcp_schemas.error_text, mcpspec.support.error_text))
    assert ours.read_text(encoding="utf-8") == theirs.read_text(encoding="utf-8")


def test_the_library_loads_nothing_of_the_protocol() -> None:
    code = "import sys, typedmcp_schemas as s; [getattr(s, name) for name in s.__all__]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    assert "typedmcp_schemas" in packages
    assert not packages & {"typedmcp", "mcpspec", "pydantic", "jsonschema_rs", "asyncio"}


# Partials


def query(sql: str, tenant: str, limit: int = 5, **rest: str) -> str:
    """Query the database."""
    return f"{sql}@{tenant}:{limit}" + "".join(rest)


def wrapped(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    return wrapper


class Database:
    def read(self, sql: str, tenant: str) -> str:
        return f"{sql}@{tenant}"

    of_acme = functools.partialmethod(read, tenant="acme")


_by_keyword = functools.partial(query, tenant="acme")
_as_query = functools.update_wrapper(functools.partial(query, tenant="acme"), query)
PARTIALS: dict[str, tuple[Any, list[str], dict[str, Any], str]] = {
    "by keyword": (_by_keyword, ["sql", "limit"], {"sql": "a"}, "a@acme:5"),
    "by position": (functools.partial(query, "a"), ["tenant", "limit"], {"tenant": "t"}, "a@t:5"),
    "updated, by keyword": (_as_query, ["sql", "limit"], {"sql": "a", "limit": 1}, "a@acme:1"),
    "updated, by position": (
        functools.update_wrapper(functools.partial(query, "a"), query), ["tenant", "limit"], {"tenant": "t"}, "a@t:5",
    ),
    "wrapped": (wrapped(_as_query), ["sql", "limit"], {"sql": "a"}, "a@acme:5"),
    "of a wrapped function": (
        functools.partial(wrapped(query), tenant="acme"), ["sql", "limit"], {"sql": "a"}, "a@acme:5",
    ),
    "of a partial": (functools.partial(_as_query, limit=1), ["sql"], {"sql": "a"}, "a@acme:1"),
    "both": (functools.partial(query, "a", limit=2), ["tenant"], {"tenant": "t"}, "a@t:2"),
    "of a method": (Database().of_acme, ["sql"], {"sql": "a"}, "a@acme"),
    "without parameters": (functools.partial(query, "a", "t", 3), [], {"more": "m"}, "a@t:3more"),
}  # fmt: skip


@each("name", PARTIALS)
def test_arguments_that_a_partial_has_bound_are_none_any_more(name: str) -> None:
    function, names, arguments, returned = PARTIALS[name]
    signature = Signature(function)
    assert [parameter.wire for parameter in signature.parameters] == names
    assert {*signature.schema()["properties"]} == {*names}
    assert signature.call(signature.bind(arguments), None) == returned
    bound = {"sql", "tenant", "limit"} - {*names} - ({"limit"} if name == "of a method" else set())
    for each_bound in bound:
        with pytest.raises(ArgumentError, match=f"unknown argument '{each_bound}'"):
            signature.bind({**arguments, each_bound: "x"})


_add: Any = add


@each("function", [functools.partial(_add, 1, 2, 3), functools.partial(_add, c=1)])
def test_a_partial_that_cannot_be_called_is_rejected(function: Any) -> None:
    with pytest.raises(SignatureError, match="add has no readable signature"):
        Signature(function)


def test_the_docstring_of_a_partial_is_the_one_that_it_was_given() -> None:
    assert Signature(_as_query).docstring.text == "Query the database."
    assert Signature(_by_keyword).docstring.text == ""
