"""Texts about functions that failed: which function it was, where it is, and what to change."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from mcpspec.support.error_text import format_value
from typedmcp.app.content import OtherRevisionError
from typedmcp.app.results import ReturnTypeError, describe_exception
from typedmcp.errors import DecodeError
from typedmcp_schemas.value_parts import find_awaitable, find_without_json

__all__ = ["describe_failure", "result_failure", "unsendable"]

_AWAIT: Final = "did you forget `await`?"
_ON_COROUTINE: Final = r"'(coroutine|async_generator|_asyncio\.Future|_asyncio\.Task)' object|coroutine was"
_JSON_REMEDY: Final = "return text, content, JSON, or an object of a dataclass, TypedDict, Struct or model"
_TEXT_REMEDY: Final = 'return Unicode, such as text.encode(errors="backslashreplace").decode()'


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


def _describe_value(value: object) -> str:
    """Return the type of a value, and the beginning of the value if it is JSON."""
    name = type(value).__name__
    if isinstance(value, Coroutine):
        return f"the coroutine of {cast(Any, value).__qualname__.rpartition('<locals>.')[2]}()"
    if value is None or isinstance(value, bool):
        return format_value(value)
    return f"{name} {format_value(value)}" if isinstance(value, str | int | float) else name


def result_failure(function: Callable[..., Any], value: object, error: Exception, remedy: str | None) -> str:
    """Return the text about a value that cannot be the result of a function. `remedy` is for values of a wrong type.

    A coroutine is closed, so that Python does not warn about it elsewhere.
    """
    place = _describe_function(function)
    if (found := find_awaitable(value)) is not None:
        path, awaitable = found
        text = f"{place} returned {_describe_value(awaitable)}{f' at {path}' if path else ''}, which was not awaited"
        if isinstance(awaitable, Coroutine):
            awaitable.close()
        return f"{text}; {_AWAIT}"
    if isinstance(error, OtherRevisionError):
        return f"{place} returned {error}"
    if isinstance(error, DecodeError):
        return f"{place} returned {_describe_value(value)}: {error}"
    if remedy is not None:
        return f"{place} returned {_describe_value(value)}: {error}; {remedy}"
    path, item = find_without_json(value)
    what = f"{_describe_value(value)} with {_describe_value(item)} at {path}" if path else _describe_value(item)
    remedy = _TEXT_REMEDY if isinstance(error, UnicodeEncodeError) else _JSON_REMEDY
    return f"{place} returned {what}: {describe_exception(error)}; {remedy}"


def unsendable(function: Callable[..., Any], value: object, error: Exception) -> ReturnTypeError:
    """Return the error for a value that a resource or a prompt returned, and that has no form on the wire."""
    return ReturnTypeError(result_failure(function, value, error, None))
