"""Requests of a server at the terminal.

Forms are filled in field by field, URLs are shown for the user to open, and the user answers in place of a model.
Without a terminal every request is declined. The end of input (Ctrl-D) declines; Ctrl-C ends the command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from typedmcp import text_of, types
from typedmcp.building import escape_controls, find_field_fault, is_array, run_in_daemon_thread
from typedmcp.errors import RemoteError
from typedmcp_cli.notifications import NotificationDisplay
from typedmcp_cli.status import print_error

__all__ = ["USER_REJECTED", "TerminalElicitor"]


USER_REJECTED = -1
"""The code with which the specification's examples reject a sampling request."""

_READ_SIZE = 1 << 16
_SKIPPED = object()


class EndOfInput(Exception):  # noqa: N818  # control flow
    """Raised when the user ends the input with Ctrl-types."""


class TerminalElicitor:
    """Answers requests for input by asking the user at the terminal."""

    def __init__(self, display: NotificationDisplay) -> None:
        self._display = display

    async def fill_form(self, params: types.ElicitRequestFormParams) -> Mapping[str, Any] | None:
        """Return the user's answers, or None if the user declines or there is no terminal."""
        return await self._ask(_fill_form, params)

    async def ask_consent(self, params: types.ElicitRequestURLParams) -> bool:
        """Return whether the user agrees to open a URL."""
        return await self._ask(_show_url, params) is not None

    async def write_message(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Return the message that the user writes in place of a model. Raises `RemoteError` if the user declines."""
        answer = await self._ask(_show_messages, params)
        if answer is None:
            raise RemoteError(USER_REJECTED, "the user rejected the sampling request")
        content = types.TextContent(text=answer["text"])
        return types.CreateMessageResult(role="assistant", model="a person", content=content, stop_reason="endTurn")

    @property
    def has_user(self) -> bool:
        """True if there is a terminal at which a user can be asked."""
        return self._display.is_terminal and os.isatty(0)

    async def _ask(self, ask: Callable[[Any], dict[str, Any]], params: Any) -> dict[str, Any] | None:
        if not self.has_user:
            print_error(f"declined, because there is no terminal: {params.message}", "question")
            return None
        self._display.hide_progress()
        try:
            # In a thread, so that the connection stays alive while the user types.
            return await run_in_daemon_thread(ask, params)
        except EndOfInput:
            sys.stderr.write("\n")
            return None


def _show_url(params: types.ElicitRequestURLParams) -> dict[str, Any]:
    _write_line(f"The server asks: {params.message}\nVisit {params.url}")
    _read_line("Press Enter when done, Ctrl-D to decline: ")
    return {}


def _show_messages(params: types.CreateMessageRequestParams) -> dict[str, Any]:
    _write_line("The server asks for the message of a model (Ctrl-D declines)")
    if params.system_prompt:
        _write_line(f"  system: {params.system_prompt}")
    for message in params.messages:
        _write_line(f"  {message.role}: {text_of(message) or '[no text]'}")
    return {"text": _read_line("  assistant: ")}


def _fill_form(params: types.ElicitRequestFormParams) -> dict[str, Any]:
    schema: dict[str, Any] = types.to_builtins(params.requested_schema)
    _write_line(f"The server asks: {params.message} (Ctrl-D declines)")
    answers: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        answer = _ask_field(name, field, is_required=name in schema.get("required", []))
        if answer is not _SKIPPED:
            answers[name] = answer
    return answers


def _ask_field(name: str, field: Mapping[str, Any], *, is_required: bool) -> Any:
    """Ask for the value of a field until it is valid."""
    if description := field.get("description"):
        _write_line(f"  {description}")
    choices = _choices(field)
    for value, title in choices.items():
        _write_line(f"  {value}" if title == value else f"  {value}: {title}")
    has_default = "default" in field
    hint = f" [{_format_default(field['default'])}]" if has_default else "" if is_required else " (optional)"
    while True:
        text = _read_line(f"  {field.get('title', name)}, {_describe_kind(field)}{hint}: ")
        if not text and has_default:
            return field["default"]
        if not text and not is_required:
            return _SKIPPED
        try:
            answer = _parse_answer(text, field, choices)
        except ValueError as error:
            _write_line(f"  {error}")
            continue
        fault = find_field_fault(field, answer)
        if fault is None:
            return answer
        _write_line(f"  {fault}")


def _choices(field: Mapping[str, Any]) -> dict[str, str]:
    """Return the choices of a field with their titles."""
    inner: Mapping[str, Any] = field.get("items", field)
    if is_array(options := inner.get("oneOf", inner.get("anyOf"))):
        return {option["const"]: option.get("title", option["const"]) for option in options}
    values: list[str] = inner.get("enum", [])
    return dict(zip(values, inner.get("enumNames", values), strict=False))


def _describe_kind(field: Mapping[str, Any]) -> str:
    kind = str(field.get("type", "string"))
    return {"array": "separated by commas", "boolean": "yes or no", "string": "text"}.get(kind, kind)


def _format_default(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if is_array(value) else str(value)


def _parse_answer(text: str, field: Mapping[str, Any], choices: Mapping[str, str]) -> Any:
    """Parse the user's input. Raises `ValueError` with the reason if it has no such value."""
    parsers: dict[str, Callable[[str], Any]] = {
        "boolean": _parse_boolean,
        "integer": _parse_integer,
        "number": _parse_number,
    }
    kind = field.get("type", "string")
    if kind == "array":
        values = [part.strip() for part in text.split(",") if part.strip()]
        return [_find_choice(value, choices) for value in values]
    return _find_choice(text, choices) if kind == "string" else parsers.get(kind, str)(text)


def _find_choice(text: str, choices: Mapping[str, str]) -> str:
    if choices and text not in choices:
        found = next((value for value, title in choices.items() if title.lower() == text.lower()), None)
        if found is None:
            raise ValueError(f"expected one of: {', '.join(choices)}")
        return found
    return text


def _parse_boolean(text: str) -> bool:
    answers = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
    if text.lower() not in answers:
        raise ValueError("expected yes or no")
    return answers[text.lower()]


def _parse_integer(text: str) -> int:
    try:
        return msgspec.json.decode(text, type=int)
    except msgspec.DecodeError:
        raise ValueError("expected a whole number") from None


def _parse_number(text: str) -> float:
    try:
        return msgspec.json.decode(text, type=float)
    except msgspec.DecodeError:
        raise ValueError("expected a number") from None


def _write_line(text: str) -> None:
    sys.stderr.write(f"{escape_controls(text, keep_lines=True)}\n")
    sys.stderr.flush()


def _read_line(prompt: str) -> str:
    """Read a line from the terminal. Raises `EndOfInput`."""
    sys.stderr.write(escape_controls(prompt, keep_lines=True))
    sys.stderr.flush()
    # Not `input`: a thread that waits in there would block the exit of the interpreter.
    data = os.read(0, _READ_SIZE)
    if not data:
        raise EndOfInput
    return data.decode(errors="replace").strip()
