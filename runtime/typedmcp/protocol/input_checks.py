"""Checks of input requests, and of the answers to forms, that the schema does not express. Both ends make them.

Forms are flat objects of simple fields, so they need no validator of JSON Schema: `typedmcp_schemas.flat` checks each.
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema
https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#message-content-constraints
https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#url-mode-elicitation-requests
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from mcpspec.support.error_text import format_path_part, format_value
from mcpspec.support.objects import is_array, is_object
from typedmcp_schemas.flat import find_field_fault

__all__ = ["find_answer_fault", "find_request_fault", "is_url"]

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


def _place(name: str) -> str:
    return format_path_part(name).removeprefix(".")
