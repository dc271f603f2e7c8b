"""Typed results: values of Python types from the results of tools.

Data is in the structured content. A value that is not an object may be wrapped in one, `{"result": …}`, which all
revisions but the newest require. Servers of the two oldest revisions have text only: JSON for data, or plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mcpspec.support.objects import is_array, is_object
from typedmcp import dialect
from typedmcp.client.results.text import text_of
from typedmcp.errors import ProtocolError, ToolError, UsageError
from typedmcp.protocol.nulls import from_null
from typedmcp.protocol.text import escape_controls
from typedmcp_schemas import cached_by_type, convert, explain, schema_of, to_msgspec, type_name
from typedmcp_schemas.nesting import decode_json

__all__ = ["make_finish"]

D = dialect.structs

_WRAPPER: Final = "result"


def make_finish(tool: str, result_type: Any) -> Callable[[Any, int], Any]:
    """Return a function that converts a result, and the id of its call, to a value of the type.

    With None as the type it returns the result. It raises `ToolError` for a tool that failed, and `ProtocolError` for a
    result that does not fit. Raises `UsageError` for a type without a JSON form.
    """
    reader = None if result_type is None else _reader_of(result_type)

    def finish(result: Any, id: int) -> Any:
        if not isinstance(result, D.CallToolResult):  # an `InputRequiredResult`, which the caller wants as it is
            return result
        if result.is_error is True:
            text = text_of(result) or f"{tool} failed without a reason"
            raise ToolError(escape_controls(text, keep_lines=True), content=result.content, result=result)
        try:
            return result if reader is None else reader.read(result)
        except ValueError as error:
            text = f"{error}; the result does not fit the result_type {type_name(result_type)}"
            raise ProtocolError(text).attach_call("tools/call", id) from error

    return finish


@cached_by_type
def _reader_of(hint: Any) -> _TypeReader:
    return _TypeReader(hint)


class _Candidate(NamedTuple):
    """A part of a result that may be the value, and its place. It is plain JSON, or a string that contains JSON."""

    value: Any
    place: str
    is_json_text: bool = False


class _TypeReader:
    """Reads results of tools as values of one type."""

    def __init__(self, hint: Any) -> None:
        try:
            self._hint: Any = to_msgspec(hint)
            schema = _schema(self._hint)
        except (TypeError, NameError) as error:
            raise UsageError(f"result_type: {error}") from error
        self._is_text = _is_text(schema)
        self._is_optional = _fits(None, self._hint)
        members = schema.get("properties", {})
        self._may_be_wrapper: bool = schema.get("type") == "object" and (_WRAPPER in members or not members)
        """True if an object whose only member is `result` may be the value itself, and not its wrapper."""

    def read(self, result: D.CallToolResult) -> Any:
        """Return the value in a result. Raises `ValueError`, with the place, if it does not fit."""
        if result.structured_content is not None:
            return self._unwrap(from_null(result.structured_content), "structuredContent")
        texts = [
            _Candidate(block.text, f"content[{i}].text")
            for i, block in enumerate(result.content)
            if isinstance(block, D.TextContent)
        ]
        if len(texts) > 1 and self._is_text:
            texts = [_Candidate("\n".join(text.value for text in texts), "content")]
        if len(texts) == 1:
            (text,) = texts
            candidates = [text, text._replace(is_json_text=True)]
            return self._first(candidates if self._is_text else candidates[::-1])
        if not result.content and self._is_optional:
            return None
        raise ValueError(f"content: expected structured content or one text block, got {len(texts)}")

    def _first(self, candidates: list[_Candidate]) -> Any:
        """Return the first candidate that fits. If none fits, raise the fault of the first, the most likely one."""
        first_fault: ValueError | None = None
        for candidate in candidates:
            try:
                if candidate.is_json_text:
                    return self._unwrap(_parse(candidate), candidate.place)
                return convert(candidate.value, self._hint)
            except (ValueError, RecursionError) as error:
                fault = error if isinstance(error, _PlacedError) else _PlacedError(explain(error, candidate.place))
                first_fault = first_fault or fault
        assert first_fault is not None
        raise first_fault

    def _unwrap(self, value: Any, place: str) -> Any:
        candidates = [_Candidate(value, place)]
        if is_object(value) and len(value) == 1 and _WRAPPER in value:
            inner = _Candidate(value[_WRAPPER], f"{place}.{_WRAPPER}")
            candidates.insert(1 if self._may_be_wrapper else 0, inner)
        return self._first(candidates)


class _PlacedError(ValueError):
    """The fault of a value. Its text begins with the place."""


def _fits(value: Any, hint: Any) -> bool:
    try:
        convert(value, hint)
    except ValueError:
        return False
    return True


def _parse(text: _Candidate) -> Any:
    try:
        return decode_json(text.value)
    except ValueError as error:
        raise _PlacedError(f"{text.place}: {error}") from error


def _schema(hint: Any) -> Mapping[str, Any]:
    """Return the root of a type's schema, or nothing if it is not known."""
    try:
        schema = schema_of(hint)
    except RuntimeError:  # a type that Pydantic can read but not describe
        return {}
    reference = schema.get("$ref")
    return schema["$defs"][reference.removeprefix("#/$defs/")] if isinstance(reference, str) else schema


def _is_text(schema: Mapping[str, Any]) -> bool:
    """Return whether a value is always a string, or null."""
    options = schema.get("anyOf")
    if is_array(options):
        return all(option.get("type") in ("string", "null") for option in options)
    values: Any = schema.get("enum")
    return schema.get("type") == "string" or (is_array(values) and all(isinstance(value, str) for value in values))
