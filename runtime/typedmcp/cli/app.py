"""The commands, with what `--help` says of them. Each is imported when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO, cast

from cyclopts import App, CycloptsError, Group

from typedmcp import __version__
from typedmcp.cli.interrupts import raised
from typedmcp.cli.placing import placed
from typedmcp.cli.status import OK, USAGE, complain, guarded

__all__ = ["COMMANDS", "Command", "app", "run"]

_HELP = """Run and call servers of the Model Context Protocol, check recorded traffic, compare revisions.

TARGET is a server: a URL, a Python file, a command behind --, or an entry of a configuration (--config FILE NAME)."""

_EXAMPLES = """Examples:
  typedmcp run server.py
  typedmcp list https://example.com/mcp
  typedmcp call server.py greet name=Ada
  typedmcp call greet name=Ada -- npx some-server
  typedmcp inspect --config mcp.json files

Exit status: 0 all is well, 1 what was asked for failed, 2 the command line
makes no sense, 3 the server cannot be talked to, 130 interrupted."""


class Command(NamedTuple):
    """A command: the module of its function, how it is used, what it does, and examples."""

    module: str
    usage: str
    about: str
    examples: str


COMMANDS: dict[str, Command] = {
    "run": Command(
        "running",
        "FILE[:OBJECT]",
        "Serve a file, over standard input and output or HTTP.",
        """Examples:
  typedmcp run server.py
  typedmcp run server.py:tools --transport http --port 9000
  typedmcp run package.module:server --reload""",
    ),
    "list": Command(
        "listing",
        "TARGET [KIND]",
        "Show what a server has: tools, resources, templates, prompts.",
        """Examples:
  typedmcp list server.py
  typedmcp list https://example.com/mcp tools --json
  typedmcp list -- python server.py""",
    ),
    "inspect": Command(
        "listing",
        "TARGET",
        "Show all that a server says of itself, schemas included.",
        """Examples:
  typedmcp inspect server.py
  typedmcp inspect --config mcp.json files --json""",
    ),
    "call": Command(
        "calling",
        "TARGET TOOL [KEY=VALUE...]",
        "Call a tool.",
        """The tool's schema says what a value is: a text stays one, all else is JSON.
key:=json is JSON in any case, key=@file comes from a file, and a key that is
given again adds to an array.

Examples:
  typedmcp call server.py greet name=Ada
  typedmcp call server.py add numbers:='[1, 2]' precise=true
  typedmcp call server.py draw --json-args '{"width": 80}' --output chart.png
  typedmcp call greet name=Ada --json -- python server.py""",
    ),
    "read": Command(
        "calling",
        "TARGET URI",
        "Read a resource.",
        """Examples:
  typedmcp read server.py weather://Bergen/now
  typedmcp read server.py images://logo --output logo.png""",
    ),
    "prompt": Command(
        "calling",
        "TARGET NAME [KEY=VALUE...]",
        "Show a prompt, with its arguments filled in.",
        """Examples:
  typedmcp prompt server.py packing city=Bergen days=3""",
    ),
    "validate": Command(
        "validating",
        "FILE --revision REVISION",
        "Check recorded traffic against a revision of the protocol.",
        """Each line of FILE is a message, or an object with the message as a member:
{"direction": "client", "message": {...}}. Results are checked by the request
with the same id.

Examples:
  typedmcp validate traffic.jsonl --revision 2025-11-25
  zcat traffic.jsonl.gz | typedmcp validate - --revision 2026-07-28 --json""",
    ),
    "diff": Command(
        "comparing",
        "OLD NEW",
        "Tell what changed between two revisions of the protocol.",
        """Examples:
  typedmcp diff 2025-11-25 2026-07-28
  typedmcp diff 2025-06-18 2025-11-25 --format markdown > changes.md""",
    ),
}


def run(arguments: Sequence[str]) -> int:
    """The status of a command line."""
    is_run = [*arguments[:1]] == ["run"]  # which needs no standard output for HTTP, and runs a file of somebody's
    if cast("TextIO | None", sys.stdout) is None and not is_run:
        complain("standard output is closed")
        return USAGE
    return guarded(lambda: _run(arguments), is_ours=not is_run)


def _run(arguments: Sequence[str]) -> int:
    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # not every terminal can show every character
        reconfigure(errors="backslashreplace")  # which first writes what could not be written so far
    try:
        command, bound, _ = app().parse_args(placed(arguments), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        complain(f"{error}{_hint(arguments)}")
        return USAGE
    try:
        with raised():
            status: Any = command(*bound.args, **bound.kwargs)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # with which rich ends, where it writes the help
            return OK
        raise
    return status if isinstance(status, int) else OK if arguments else USAGE


def _hint(arguments: Sequence[str]) -> str:
    name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    return f"\nTry: {' '.join(['typedmcp', *name.split(), '--help'])}"


def app() -> App:
    """All commands."""
    made = App(
        "typedmcp",
        _HELP,
        usage="Usage: typedmcp COMMAND …",
        version=f"typedmcp {__version__}",
        help_format="plaintext",
        help_epilogue=_EXAMPLES,
        group_parameters=Group("Options", sort_key=0),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name, command in COMMANDS.items():
        usage = f"Usage: typedmcp {name} {command.usage} [OPTIONS]"
        more: dict[str, Any] = {"help": command.about, "usage": usage, "help_epilogue": command.examples}
        made.command(f"typedmcp.cli.{command.module}:{name}", name=name, **more)
    return made
