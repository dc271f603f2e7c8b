"""Checks of input requests, and of the answers to forms, that the schema does not express. Both ends make them.

Forms are flat objects of simple fields, so they need no validator of JSON Schema.
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema
https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#message-content-constraints
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from mcpspec.support.error_text import describe_mismatch, format_path_part, format_value
from mcpspec.support.objects import is_array, is_object

__all__ = ["find_answer_fault", "find_field_fault", "find_request_fault", "is_url"]

_URL: Final = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]+')
_SCHEMES_WITH_HOST: Final = frozenset({"http", "https", "ws", "wss", "ftp"})


def find_request_fault(request: Any) -> str | None:
    """Return what is wrong with an input request: `params.url: expected …`. None if the specification allows it."""
    if request.method == "sampling/createMessage":
        return _find_messages_fault(request.params.messages)
    if request.method == "elicitation/create" and request.params.mode == "url" and not is_url(request.params.url):
        return f"params.url: expected an absolute URL, got {format_value(request.params.url)}"
    return None


def is_url(text: str) -> bool:
    """Return whether a text is an absolute URL, with a host if its scheme needs one."""
    if not text.isprintable() or not _URL.fullmatch(text):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme not in _SCHEMES_WITH_HOST or bool(parts.hostname)


def _find_messages_fault(messages: Sequence[Any]) -> str | None:
    """Check that the results of tools follow their calls: all of them, in one message, without anything else."""
    calls: Counter[str] = Counter()
    for number, message in enumerate(messages):
        content: list[Any] = message.content if is_array(message.content) else [message.content]
        results = Counter[str](block.tool_use_id for block in content if block.type == "tool_result")
        place = f"params.messages[{number}]"
        if results and (message.role != "user" or results.total() < len(content)):
            return f"{place}: results of tools must be the whole content of a message of the user"
        if missing := calls - results:
            return f"{place}: no result for the tool call {format_value(next(iter(missing)))} in the message before"
        if surplus := results - calls:
            return f"{place}: a result for {format_value(next(iter(surplus)))}, which the message before does not call"
        calls = Counter(block.id for block in content if block.type == "tool_use" and message.role == "assistant")
    if calls:
        return f"params.messages: no result for the tool call {format_value(next(iter(calls)))} in the last message"
    return None


_NO_FIELDS: Final[Mapping[str, Any]] = {}


def find_answer_fault(schema: Mapping[str, Any], answer: Any) -> str | None:
    """Return what is wrong with an `ElicitResult`: `days: expected integer, got "two"`. None if it fits the form.

    Only what the person accepts has to fit. Values of fields that the form does not have are ignored.
    """
    if answer.action != "accept":
        return None
    content: Mapping[str, Any] = answer.content or _NO_FIELDS
    for name in schema.get("required") or ():
        if name not in content:
            return f"{_place(name)}: required, but missing"
    fields = schema.get("properties") or _NO_FIELDS
    for name, value in content.items():
        field = fields.get(name)
        fault = find_field_fault(field, value) if is_object(field) else None
        if fault is not None:
            return f"{_place(name)}: {fault}"
    return None


def find_field_fault(field: Mapping[str, Any], value: object) -> str | None:
    """Return what is wrong with the value of one field; None if it fits the field's schema."""
    kind = field.get("type", "string")
    if kind == "array":
        return _find_list_fault(field, value)
    has_kind = _KINDS.get(kind)
    if has_kind is not None and not has_kind(value):
        return describe_mismatch([str(kind)], value)
    if isinstance(value, str):
        return (
            _find_choice_fault(field, value)
            or _find_bound_fault(len(value), field, "Length", " characters")
            or _find_format_fault(field, value)
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _find_bound_fault(value, field, "imum", "")
    return None


def _place(name: str) -> str:
    return format_path_part(name).removeprefix(".")


def _find_list_fault(field: Mapping[str, Any], value: object) -> str | None:
    if not is_array(value):
        return describe_mismatch(["array"], value)
    items: Any = field.get("items")
    for item in value:
        if not isinstance(item, str):
            return describe_mismatch(["string"], item)
        if is_object(items) and (fault := _find_choice_fault(items, item)) is not None:
            return fault
    return _find_bound_fault(len(value), field, "Items", " values")


def _find_choice_fault(field: Mapping[str, Any], value: str) -> str | None:
    options: Any = field.get("oneOf", field.get("anyOf"))
    choices: Any = [option.get("const") for option in options] if is_array(options) else field.get("enum")
    if not is_array(choices) or value in choices:
        return None
    return describe_mismatch([format_value(choice) for choice in choices], value)


def _find_bound_fault(size: float, field: Mapping[str, Any], bound: str, unit: str) -> str | None:
    """Check `minItems` and `maxItems`, `minLength` and `maxLength`, or `minimum` and `maximum`."""
    least, most = field.get(f"min{bound}"), field.get(f"max{bound}")
    if least is not None and size < least:
        return f"expected at least {least}{unit}"
    if most is not None and size > most:
        return f"expected at most {most}{unit}"
    return None


def _find_format_fault(field: Mapping[str, Any], value: str) -> str | None:
    has_format = _FORMATS.get(field.get("format", ""))
    if has_format is None or has_format(value):
        return None
    return f"expected a text of the format {field['format']}, got {format_value(value)}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    """Return whether JSON Schema counts a value as an integer: 1.0 is one."""
    return _is_number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

_KINDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
}
_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": lambda text: _DATE.fullmatch(text) is not None and _parses(date.fromisoformat, text),
    # Browsers give no offset in forms, so it may be missing.
    "date-time": lambda text: _DATE_TIME.match(text) is not None and _parses(datetime.fromisoformat, text),
    "email": _EMAIL.fullmatch,
    "uri": _URI.fullmatch,
}
