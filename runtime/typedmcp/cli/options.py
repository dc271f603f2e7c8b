"""What the commands that talk to a server have in common: how it is named, and the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from cyclopts import Group, Parameter

from mcpspec import VERSIONS
from typedmcp.cli.status import Stop
from typedmcp.context import LogLevel

__all__ = ["Options", "Target", "headers_of"]

Target: TypeAlias = Annotated[
    str,
    Parameter(
        help="The server: a URL, a Python file (server.py, server.py:object), or, with --config, the name of an entry. "
        "It is left out where a command is given, with --command or at the end behind --."
    ),
]


def _positive(_: object, seconds: float) -> None:
    if not seconds > 0:  # nor is what is not a number
        raise ValueError("It has to be more than 0.")


_CONNECTION = Group("Connection", sort_key=1)


@Parameter(name="*", group=_CONNECTION)
@dataclass(frozen=True)
class Options:
    """Options of every command that talks to a server."""

    json: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Print one JSON document, as the protocol has it.")
    ] = False
    config: Annotated[
        str | None, Parameter(help="A file with mcpServers, as desktop hosts have it: TARGET is a name in it.")
    ] = None
    command: Annotated[str | None, Parameter(help="The command that starts the server, in place of TARGET.")] = None
    """Never set: it has become the target before options are read. Here for the help."""
    timeout: Annotated[
        float, Parameter(validator=_positive, help="Seconds to wait for an answer, or for progress.")
    ] = 60
    header: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="A header for a URL, 'Name: value'. As often as you like."),
    ] = ()
    revision: Annotated[
        str | None, Parameter(choices=VERSIONS, help="Speak this revision of the protocol, and no other.")
    ] = None
    log_level: Annotated[LogLevel, Parameter(help="Show the server's log messages from this level up.")] = "info"


def headers_of(given: Sequence[str]) -> dict[str, str]:
    """The headers that were given. Raises `Stop` for one that is none."""
    found: dict[str, str] = {}
    for header in given:
        name, colon, value = header.partition(":")
        if not colon:
            raise Stop(f"--header {header!r} is no header: 'Name: value'")
        found[name.strip()] = value.strip()
    return found
