"""`help` and `inspect.signature` work for everything public, as editors and notebooks use them."""

from __future__ import annotations

import inspect
import pydoc
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import typedmcp
from tests.architecture.public import PUBLIC
from tests.cases import each
from typedmcp.client import CallOptions, ConnectOptions
from typedmcp.server.http.asgi import AsgiOptions

FOR_CHECKERS = {"from_builtins", "is_array", "is_awaitable", "is_object", "is_url"}
"""Functions with a `TypeIs` or a `TypeForm`, for which only type checkers need typing-extensions."""


def _public(module: str) -> Iterator[tuple[str, Any]]:
    found = import_module(module)
    for name in getattr(found, "__all__", ()):
        yield name, getattr(found, name)


def _functions(value: Any) -> Iterator[Callable[..., Any]]:
    """Yield a function, or the public methods of a class and its constructor if it has one in Python."""
    if inspect.isclass(value):
        yield from (method for name, method in vars(value).items() if name[0] != "_" and inspect.isfunction(method))
        if inspect.isfunction(value.__init__):
            yield value
    elif inspect.isfunction(value):
        yield value


@each("module", PUBLIC)
def test_help_of_every_public_name_works(module: str) -> None:
    for _, value in _public(module):
        if callable(value) or inspect.ismodule(value):
            assert pydoc.render_doc(value)


@each("module", PUBLIC)
def test_the_signature_of_every_public_function_can_be_evaluated(module: str) -> None:
    failed: list[str] = []
    for name, value in _public(module):
        if name in FOR_CHECKERS:
            continue
        for function in _functions(value):
            try:
                inspect.signature(function, eval_str=True)
            except (NameError, TypeError) as error:
                failed.append(f"{name}: {function.__qualname__}: {error}")
    assert failed == []


@each(
    "function, options",
    [
        (typedmcp.serve, AsgiOptions),
        (typedmcp.serve_async, AsgiOptions),
        (typedmcp.asgi, AsgiOptions),
        (typedmcp.connect, ConnectOptions),
        (typedmcp.sync.connect, ConnectOptions),
        (typedmcp.Client.call_tool, CallOptions),
    ],
)
def test_the_options_of_a_function_are_a_class_that_completion_can_read(
    function: Callable[..., Any], options: type
) -> None:
    hint = inspect.signature(function, eval_str=True).parameters["options"].annotation
    (found,) = typing.get_args(hint)
    if isinstance(found, typing.ForwardRef):  # a class that is imported when it is needed
        found = getattr(import_module(str(found.__forward_module__)), found.__forward_arg__)
    assert found is options


def test_an_unknown_option_is_an_error_that_names_the_one_that_may_be_meant() -> None:
    server: Any = typedmcp.Server("s")
    calls: list[tuple[Callable[..., Any], str]] = [
        (typedmcp.asgi, "hosts"),
        (typedmcp.ServerConfig, "on_diagnostic"),
        (typedmcp.serve, "strict"),
        (typedmcp.connect, "timeout"),
    ]
    for call, name in calls:
        options: dict[str, Any] = {f"{name}s": 1}
        with pytest.raises(
            (typedmcp.UsageError, TypeError), match=rf"unknown option '{name}s'.*; known: .*did you mean '{name}'\?$"
        ):
            call(server, **options)
    with pytest.raises(typedmcp.UsageError, match=r"unknown option 'titel' of a tool; .*did you mean 'title'\?$"):
        server.tool(titel="T")(len)
