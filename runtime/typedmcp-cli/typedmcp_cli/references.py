"""Servers on the command line: references to Python code such as `server.py:object`, and commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from typedmcp_cli.status import CommandExit

__all__ = ["ServerReference", "parse_command", "parse_reference", "place_command", "require_reference"]

_IN_MODULE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*\Z")


class ServerReference(NamedTuple):
    """A file or a module, and the name of an object in it, or None."""

    source: str
    name: str | None
    is_file: bool = True


def parse_reference(text: str) -> ServerReference | None:
    """Parse a reference; return None for other text. Raises `CommandExit` for a directory or a missing file."""
    head, colon, name = text.rpartition(":")
    source, name = (head, name) if colon and not Path(text).exists() else (text, "")
    path = Path(source)
    if path.is_dir():
        raise CommandExit(f"{source} is a directory; name a file in it")
    if path.is_file():
        return ServerReference(source, name or None)
    if path.suffix == ".py":
        raise CommandExit(f"no such file: {source}")
    if _IN_MODULE.match(text):
        return ServerReference(source, name, is_file=False)
    return None


def require_reference(text: str) -> ServerReference:
    """Parse the argument of `typedmcp run`. Raises `CommandExit` for anything but Python code."""
    reference = parse_reference(text)
    if reference is None:
        raise CommandExit(f"{text!r} is neither a file nor module:object")
    if reference.is_file and Path(reference.source).suffix != ".py":
        raise CommandExit(f"{reference.source} is not a Python file")
    return reference


_MARK = "\0"
"""Prefix of a target that is a command. No argument of a process can contain it."""
_OPTION = "--command"


def place_command(arguments: Sequence[str]) -> list[str]:
    """Move the command that starts a server to the position of TARGET, right after the name of the subcommand.

    Raises `CommandExit` if the command is empty, given twice, or has an unclosed quotation.
    """
    rest, command = [*arguments], None
    if "--" in rest:
        place = rest.index("--")
        rest, command = rest[:place], rest[place + 1 :]
        if not command:
            raise CommandExit("no command after --")
    for place, argument in enumerate(rest):
        name, equals, value = argument.partition("=")
        if name == _OPTION and (equals or place + 1 < len(rest)):
            if command is not None:
                raise CommandExit(f"{_OPTION} and -- both give a command; use one of them")
            command = _split(value if equals else rest[place + 1])
            del rest[place : place + (1 if equals else 2)]
            break
    return [*arguments] if command is None or not rest else [rest[0], _MARK + shlex.join(command), *rest[1:]]


def _split(text: str) -> list[str]:
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise CommandExit(f"{_OPTION} {text!r}: {str(error).lower()}") from None
    if not command:
        raise CommandExit(f"{_OPTION} is empty")
    return command


def parse_command(target: str) -> list[str] | None:
    """Return the command that a target stands for, or None for other targets."""
    return shlex.split(target.removeprefix(_MARK)) if target.startswith(_MARK) else None
