"""Texts about functions that failed: which function it was, where it is, and what to change."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

import msgspec

from mcpspec.support.error_text import format_value
from typedmcp.app.content import OtherRevisionError
from typedmcp.app.results import ReturnTypeError, describe_exception
from typedmcp.transports.concurrency import is_awaitable
from typedmcp_schemas import to_builtins

__all__ = ["describe_failure", "result_failure", "unsendable"]

_AWAIT: Final = "did you forget `await`?"
_ON_COROUTINE: Final = r"'(coroutine|async_generator|_asyncio\.Future|_asyncio\.Task)' object|coroutine was"
_JSON_REMEDY: Final = "return text, content, JSON, or an object of a dataclass, TypedDict, Struct or model"
_MAX_ITEMS: Final = 1000
_MAX_DEPTH: Final = 10
"""Limits of the search in a value that cannot be sent."""


def _describe_function(function: Callable[..., Any]) -> str:
    """Return the name of a function, and the file and the line where it is defined if that is known."""
    plain: Any = inspect.unwrap(getattr(function, "func", function))
    name = getattr(plain, "__qualname__", type(plain).__qualname__).rpartition("<locals>.")[2]
    kind = cast("type[object]", type(plain))
    code = getattr(plain, "__code__", None) or getattr(vars(kind).get("__call__"), "__code__", None)
    return f"{name}()" if code is None else f"{name}() at {code.co_filename}:{code.co_firstlineno}"


def describe_failure(error: BaseException) -> str:
    """Return an exception's class and text, with a question if the function did not await a coroutine."""
    text = describe_exception(error)
    is_about_use = isinstance(error, AttributeError | TypeError)
    return f"{text}; {_AWAIT}" if is_about_use and re.search(_ON_COROUTINE, text) else text


def _find_awaitable(value: object) -> tuple[str, object] | None:
    """Return the first awaitable in a value and its path, such as `[0].name`. None if there is none."""
    for number, (path, item) in enumerate(_items(value, "", 0)):
        if is_awaitable(item) or inspect.isasyncgen(item):
            return path, item
        if number == _MAX_ITEMS:
            break
    return None


def _items(value: object, path: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield a value and what it contains, with paths."""
    yield path, value
    if depth < _MAX_DEPTH:
        for place, item in _members(value, path):
            yield from _items(item, place, depth + 1)


def _members(value: object, path: str) -> list[tuple[str, object]]:
    """Return what a container or a record contains, with paths."""
    if isinstance(value, Mapping):
        return [(f"{path}[{format_value(key)}]", item) for key, item in cast("Mapping[Any, object]", value).items()]
    if isinstance(value, list | tuple):
        return [(f"{path}[{number}]", item) for number, item in enumerate(cast("list[object]", value))]
    names = list[str]()
    if is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in fields(value)]
    elif isinstance(value, msgspec.Struct):
        names = [*value.__struct_fields__]
    return [(f"{path}.{name}", getattr(value, name, None)) for name in names]


def _find_without_json(value: object) -> tuple[str, object]:
    """Return the innermost part of a value that has no JSON form, and its path, which is empty for the value itself."""
    path = ""
    for _ in range(_MAX_DEPTH):
        broken = next((each for each in _members(value, path) if not _has_json_form(each[1])), None)
        if broken is None:
            break
        path, value = broken
    return path, value


def _has_json_form(value: object) -> bool:
    try:
        to_builtins(value)
    except Exception:
        return False
    return True


def _describe_value(value: object) -> str:
    """Return the type of a value, and the beginning of the value if it is JSON."""
    name = type(value).__name__
    if inspect.iscoroutine(value):
        return f"the coroutine of {value.__qualname__.rpartition('<locals>.')[2]}()"
    if value is None or isinstance(value, bool):
        return format_value(value)
    return f"{name} {format_value(value)}" if isinstance(value, str | int | float) else name


def result_failure(function: Callable[..., Any], value: object, error: Exception, remedy: str | None) -> str:
    """Return the text about a value that cannot be the result of a function. `remedy` is for values of a wrong type.

    A coroutine is closed, so that Python does not warn about it elsewhere.
    """
    place = _describe_function(function)
    if (found := _find_awaitable(value)) is not None:
        path, awaitable = found
        text = f"{place} returned {_describe_value(awaitable)}{f' at {path}' if path else ''}, which was not awaited"
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        return f"{text}; {_AWAIT}"
    if isinstance(error, OtherRevisionError):
        return f"{place} returned {error}"
    if remedy is not None:
        return f"{place} returned {_describe_value(value)}: {error}; {remedy}"
    path, item = _find_without_json(value)
    what = f"{_describe_value(value)} with {_describe_value(item)} at {path}" if path else _describe_value(item)
    return f"{place} returned {what}: {describe_exception(error)}; {_JSON_REMEDY}"


def unsendable(function: Callable[..., Any], value: object, error: Exception) -> ReturnTypeError:
    """Return the error for a value that a resource or a prompt returned, and that has no form on the wire."""
    return ReturnTypeError(result_failure(function, value, error, None))
