"""TARGET, and the options that several commands share."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar

from cyclopts import Group, Parameter

from typedmcp.errors import RemoteError
from typedmcp.revisions.features import SUPPORTED
from typedmcp.types import LoggingLevel as LoggingLevel
from typedmcp_cli.output import print_json
from typedmcp_cli.status import CommandExit, suggest_names

__all__ = [
    "CommonOptions", "ConnectionOptions", "Frames", "Mask", "Output", "Pairs", "RecordFile", "Target", "await_result",
    "check_output", "describe_unknown", "parse_headers",
]  # fmt: skip

Target: TypeAlias = Annotated[
    str,
    Parameter(
        help="The server: a URL, a Python file (server.py, server.py:object), or, with --config, the name of an entry. "
        "Leave it out if a command starts the server, given with --command or at the end after --."
    ),
]


RecordFile: TypeAlias = Annotated[
    str | None,
    Parameter(name="--record", help="Record all messages to this file, without secrets. The file is replaced."),
]
Frames: TypeAlias = Annotated[
    bool,
    Parameter(
        name="--frames", negative=(), show_default=False, help="Write each message to standard error, with secrets."
    ),
]
Mask: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--mask",
        negative=(),
        show_default=False,
        help="A member whose values the recording masks, beside those of secrets. Can be repeated.",
    ),
]


def _check_positive(_: object, seconds: float) -> None:
    if not seconds > 0:  # false for NaN, too
        raise ValueError("It must be greater than 0.")


_CONNECTION = Group("Connection", sort_key=1)


@Parameter(name="*", group=_CONNECTION)
@dataclass(frozen=True)
class ConnectionOptions:
    """Options of every command that connects to a server."""

    config: Annotated[
        str | None, Parameter(help="A JSON file with mcpServers, as desktop hosts use it; TARGET is a name in it.")
    ] = None
    command: Annotated[str | None, Parameter(help="The command that starts the server, instead of TARGET.")] = None
    """Only here for the help: `place_command` has turned the option into TARGET before options are parsed."""
    timeout: Annotated[
        float, Parameter(validator=_check_positive, help="Seconds to wait for a response or for progress.")
    ] = 60
    header: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="A header for a URL, 'Name: value'. Can be repeated."),
    ] = ()
    oauth: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Sign in at the server of a URL, in a browser (extra auth)."),
    ] = False
    revision: Annotated[
        str | None, Parameter(choices=SUPPORTED[::-1], help="Speak only this revision of the protocol.")
    ] = None
    log_level: Annotated[LoggingLevel, Parameter(help="Show the server's log messages of this level and above.")] = (
        "info"
    )
    frames: Frames = False
    record: RecordFile = None
    mask: Mask = ()


@Parameter(name="*", group=_CONNECTION)
@dataclass(frozen=True)
class CommonOptions(ConnectionOptions):
    """Options of every command that prints what a server sends."""

    json: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Print one JSON document in the protocol's format.")
    ] = False


def parse_headers(lines: Sequence[str]) -> dict[str, str]:
    """Parse `Name: value` lines. Raises `CommandExit` for a line without a colon."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise CommandExit(f"--header {line!r}: expected 'Name: value'")
        headers[name.strip()] = value.strip()
    return headers


T = TypeVar("T")

Output: TypeAlias = Annotated[
    str | None,
    Parameter(
        alias="-o",
        allow_leading_hyphen=True,
        help="Save images and other data to this file, or the text if there is only text. "
        "Further data goes to FILE-2 and so on; - is standard output.",
    ),
]
Pairs: TypeAlias = Annotated[str, Parameter(name="KEY=VALUE", help="Arguments.")]


def check_output(output: str | None, options: CommonOptions) -> None:
    """Raise `CommandExit` if both `--output` and `--json` are given."""
    if output is not None and options.json:
        raise CommandExit("--output and --json cannot be used together")


def describe_unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the error for an unknown tool or prompt, with similar names."""
    names = [*known]
    return f"no {kind} {name!r}{suggest_names(name, names) if names else f'; the server has no {kind}s'}"


async def await_result(result: Awaitable[T], options: CommonOptions) -> T:
    """Await the result of a request. With `--json`, print an error that the server returns before raising it."""
    try:
        return await result
    except RemoteError as error:
        if options.json:
            data = {} if error.data is None else {"data": error.data}
            print_json({"error": {"code": error.code, "message": error.message, **data}})
        raise
