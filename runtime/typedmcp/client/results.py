"""What tools give, as types of Python.

Data comes as structured content. Where that is no object, servers put it in one, `{"result": …}`, which all revisions
but the newest want. Servers of the two oldest revisions have text alone: then data is JSON in it, and text is itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import is_array, is_object
from typedmcp import dialect
from typedmcp.client.texts import text_of
from typedmcp.errors import ProtocolError, ToolError, UsageError
from typedmcp.jsontypes import adapted, convert, fault, schema_of

__all__ = ["finisher"]

D = dialect.structs

_WRAPPED: Final = "result"
_READ: Final = 256
"""Of how many types it is remembered how they are read."""


def finisher(tool: str, result_type: Any) -> Callable[[Any, int], Any]:
    """What makes the value of a type out of the result of a call with an id; or gives the result, for None.

    That raises `ToolError` for a tool that failed, and `ProtocolError` for a result that does not fit. Raises
    `UsageError` for a type that has no JSON form.
    """
    reading = None if result_type is None else _reading(result_type)

    def finish(result: Any, id: int) -> Any:
        if not isinstance(result, D.CallToolResult):  # it asks for input, and the caller wants to see that
            return result
        if result.is_error is True:
            text = text_of(result) or f"{tool} failed, and did not say why"
            raise ToolError(text, content=result.content, result=result)
        try:
            return result if reading is None else reading.value(result)
        except ValueError as error:
            raise ProtocolError(str(error)).of_call("tools/call", id) from error

    return finish


def _reading(hint: Any) -> _Reading:
    try:
        return _remembered(hint)
    except TypeError:  # it cannot be a key, as with a list in an annotation
        return _Reading(hint)


@lru_cache(_READ)
def _remembered(hint: Any) -> _Reading:
    return _Reading(hint)


class _Part(NamedTuple):
    """A part of a result that may be the value, as parsed JSON or as JSON text, and its place."""

    value: Any
    place: str
    is_json: bool = False


class _Reading:
    """How results are read as a type."""

    def __init__(self, hint: Any) -> None:
        try:
            self._hint: Any = adapted(hint)
            schema = _schema(self._hint)
        except (TypeError, NameError) as error:
            raise UsageError(f"result_type: {error}") from error
        self._is_text = _is_text(schema)
        self._is_optional = _fits(None, self._hint)
        members = schema.get("properties", {})
        self._may_be_wrapper: bool = schema.get("type") == "object" and (_WRAPPED in members or not members)
        """Whether an object whose only member is `result` may be the value itself, rather than what it is put in."""

    def value(self, result: D.CallToolResult) -> Any:
        """The value in a result. Raises `ValueError`, with the place, where there is none."""
        if result.structured_content is not UNSET:
            return self._unwrapped(result.structured_content, "structuredContent")
        texts = [
            _Part(block.text, f"content[{i}].text")
            for i, block in enumerate(result.content)
            if isinstance(block, D.TextContent)
        ]
        if len(texts) > 1 and self._is_text:
            texts = [_Part("\n".join(part.value for part in texts), "content")]
        if len(texts) == 1:
            (text,) = texts
            parts = [text, text._replace(is_json=True)]
            return self._first(parts if self._is_text else parts[::-1])
        if not result.content and self._is_optional:
            return None
        raise ValueError(f"content: expected structured content or one text, got {len(texts) or 'no'} texts")

    def _first(self, parts: list[_Part]) -> Any:
        """The first part that fits. Raises what is wrong with the most likely one."""
        found: ValueError | None = None
        for part in parts:
            try:
                if part.is_json:
                    return self._unwrapped(_parsed(part), part.place)
                return convert(part.value, self._hint)
            except (ValueError, RecursionError) as error:
                found = found or (error if isinstance(error, _Misfit) else _Misfit(fault(error, part.place)))
        assert found is not None
        raise found

    def _unwrapped(self, value: Any, place: str) -> Any:
        parts = [_Part(value, place)]
        if is_object(value) and len(value) == 1 and _WRAPPED in value:
            inner = _Part(value[_WRAPPED], f"{place}.{_WRAPPED}")
            parts.insert(1 if self._may_be_wrapper else 0, inner)
        return self._first(parts)


class _Misfit(ValueError):  # noqa: N818
    """What is wrong with a value, after its place."""


def _fits(value: Any, hint: Any) -> bool:
    try:
        convert(value, hint)
    except ValueError:
        return False
    return True


def _parsed(text: _Part) -> Any:
    try:
        return msgspec.json.decode(text.value)
    except (ValueError, RecursionError) as error:
        raise _Misfit(f"{text.place}: {error}") from error


def _schema(hint: Any) -> Mapping[str, Any]:
    """The root of a type's schema; empty where nothing is known."""
    try:
        schema = schema_of(hint)
    except RuntimeError:  # Pydantic reads more than it can describe
        return {}
    reference = schema.get("$ref")
    return schema["$defs"][reference.removeprefix("#/$defs/")] if isinstance(reference, str) else schema


def _is_text(schema: Mapping[str, Any]) -> bool:
    """Whether a value is always a string, or nothing at all."""
    options = schema.get("anyOf")
    if is_array(options):
        return all(option.get("type") in ("string", "null") for option in options)
    return schema.get("type") == "string" or _are_strings(schema.get("enum"))


def _are_strings(values: Any) -> bool:
    return is_array(values) and all(isinstance(value, str) for value in values)
