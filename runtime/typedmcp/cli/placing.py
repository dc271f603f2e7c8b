"""Commands in place of TARGET: `call TOOL -- python server.py` is `call TARGET TOOL` with the command as target."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from typedmcp.cli.status import Stop

__all__ = ["command_of", "placed"]

_MARK = "\0"
"""What a command begins with as a target. No argument that is typed can hold it."""
_OPTION = "--command"


def placed(arguments: Sequence[str]) -> list[str]:
    """The command line with the command that starts a server where TARGET belongs: behind the name of ours."""
    head, tail = [*arguments], None
    if "--" in head:
        place = head.index("--")
        head, tail = head[:place], head[place + 1 :]
        if not tail:
            raise Stop("there is no command behind --")
    for place, argument in enumerate(head):
        name, equals, value = argument.partition("=")
        if name == _OPTION and (equals or place + 1 < len(head)):
            if tail is not None:
                raise Stop("there are two commands: one is enough")
            tail = _split(value if equals else head[place + 1])
            del head[place : place + (1 if equals else 2)]
            break
    return [*arguments] if tail is None or not head else [head[0], _MARK + shlex.join(tail), *head[1:]]


def _split(text: str) -> list[str]:
    try:
        found = shlex.split(text)
    except ValueError as error:
        raise Stop(f"{_OPTION} {text!r}: {str(error).lower()}") from None
    if not found:
        raise Stop(f"{_OPTION} is empty")
    return found


def command_of(target: str) -> list[str] | None:
    """The command that a target is; None for other targets."""
    return shlex.split(target.removeprefix(_MARK)) if target.startswith(_MARK) else None
