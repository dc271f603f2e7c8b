"""Questions of servers', answered at the terminal: forms field by field, and addresses to be visited.

Without a terminal they are declined. The end of input (Ctrl-D) declines, Ctrl-C ends the command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mcpspec._support.objects import is_array
from typedmcp import dialect
from typedmcp.cli.messages import Messages
from typedmcp.cli.output import visible
from typedmcp.cli.status import complain
from typedmcp.threads import in_daemon

__all__ = ["Asker"]

D = dialect.structs

_LONGEST = 1 << 16
_SKIPPED = object()


class Declined(Exception):  # noqa: N818
    """Whoever was asked has ended the input."""


class Asker:
    """Asks whoever sits at the terminal."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    async def __call__(self, params: D.ElicitRequestFormParams | D.ElicitRequestURLParams) -> Mapping[str, Any] | None:
        """The answers, or None for none."""
        if not (self._messages.is_terminal and os.isatty(0)):
            complain(f"declined, since there is no terminal: {params.message}", "question")
            return None
        self._messages.pause()
        try:
            # In a thread, so that the connection stays alive while somebody thinks.
            return await in_daemon(_visit if isinstance(params, D.ElicitRequestURLParams) else _fill, params)
        except Declined:
            sys.stderr.write("\n")
            return None


def _visit(params: D.ElicitRequestURLParams) -> dict[str, Any]:
    _tell(f"The server asks: {params.message}\nVisit {params.url}")
    _line("Enter when it is done, Ctrl-D to decline: ")
    return {}


def _fill(params: D.ElicitRequestFormParams) -> dict[str, Any]:
    schema: dict[str, Any] = D.to_builtins(params.requested_schema)
    _tell(f"The server asks: {params.message} (Ctrl-D declines)")
    answers: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        answer = _field(name, field, is_required=name in schema.get("required", []))
        if answer is not _SKIPPED:
            answers[name] = answer
    return answers


def _field(name: str, field: Mapping[str, Any], *, is_required: bool) -> Any:
    """One answer, asked for until it fits."""
    if about := field.get("description"):
        _tell(f"  {about}")
    choices = _choices(field)
    for value, title in choices.items():
        _tell(f"  {value}" if title == value else f"  {value}: {title}")
    has_default = "default" in field
    shown = f" [{_shown(field['default'])}]" if has_default else "" if is_required else " (may be left empty)"
    while True:
        text = _line(f"  {field.get('title', name)}, {_kind(field)}{shown}: ")
        if not text and has_default:
            return field["default"]
        if not text and not is_required:
            return _SKIPPED
        try:
            return _read(text, field, choices)
        except ValueError as error:
            _tell(f"  {error}")


def _choices(field: Mapping[str, Any]) -> dict[str, str]:
    """What may be chosen, with titles."""
    inner: Mapping[str, Any] = field.get("items", field)
    if is_array(options := inner.get("oneOf", inner.get("anyOf"))):
        return {option["const"]: option.get("title", option["const"]) for option in options}
    values: list[str] = inner.get("enum", [])
    return dict(zip(values, inner.get("enumNames", values), strict=False))


def _kind(field: Mapping[str, Any]) -> str:
    kind = field.get("type", "string")
    return {"array": "several, with commas between", "boolean": "yes or no", "string": "text"}.get(kind, str(kind))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if is_array(value) else str(value)


def _read(text: str, field: Mapping[str, Any], choices: Mapping[str, str]) -> Any:
    """An answer as the field has it. Raises `ValueError`, which says what is wrong with it."""
    readers: dict[str, Callable[[str], Any]] = {"boolean": _boolean, "integer": _number(int), "number": _number(float)}
    kind = field.get("type", "string")
    if kind == "array":
        values = [part.strip() for part in text.split(",") if part.strip()]
        return _bounded([_chosen(value, choices) for value in values], len(values), field, "Items")
    if kind == "string":
        return _bounded(_chosen(text, choices), len(text), field, "Length")
    value = readers.get(kind, str)(text)
    return _bounded(value, value, field, "imum")


def _chosen(text: str, choices: Mapping[str, str]) -> str:
    if choices and text not in choices:
        found = next((value for value, title in choices.items() if title.lower() == text.lower()), None)
        if found is None:
            raise ValueError(f"one of: {', '.join(choices)}")
        return found
    return text


def _boolean(text: str) -> bool:
    answers = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
    if text.lower() not in answers:
        raise ValueError("yes or no")
    return answers[text.lower()]


def _number(kind: type[int] | type[float]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = msgspec.json.decode(text, type=kind)
        except msgspec.DecodeError:
            raise ValueError("a whole number" if kind is int else "a number") from None
        return value

    return read


def _bounded(value: Any, size: float, field: Mapping[str, Any], what: str) -> Any:
    if isinstance(value, bool):
        return value
    least, most = field.get(f"min{what}"), field.get(f"max{what}")
    if least is not None and size < least:
        raise ValueError(f"at least {least}")
    if most is not None and size > most:
        raise ValueError(f"at most {most}")
    return value


def _tell(text: str) -> None:
    sys.stderr.write(f"{visible(text)}\n")
    sys.stderr.flush()


def _line(prompt: str) -> str:
    """A line that is typed. Raises `Declined` at the end of input."""
    sys.stderr.write(visible(prompt))
    sys.stderr.flush()
    # Not by `input`: a thread that waits in there would hold up the end of the interpreter.
    data = os.read(0, _LONGEST)
    if not data:
        raise Declined
    return data.decode(errors="replace").strip()
