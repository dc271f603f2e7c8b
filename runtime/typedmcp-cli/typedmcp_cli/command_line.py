"""The commands with their help texts. The module of a command is imported when the command is used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO, cast

from cyclopts import App, CycloptsError, Group, MissingArgumentError

from typedmcp import __version__
from typedmcp_cli.interrupts import raise_on_interrupt
from typedmcp_cli.references import place_command
from typedmcp_cli.status import OK, USAGE, print_error, run_with_status

__all__ = ["COMMANDS", "CommandHelp", "make_app", "run_command_line"]

_HELP = """Run and call Model Context Protocol servers, check recorded traffic, compare revisions.

TARGET is a server: a URL, a Python file, a command after --, or an entry of a configuration (--config FILE NAME)."""

_START = """typedmcp runs and calls Model Context Protocol servers. Three things to try:

  typedmcp dev server.py                     try a server on a page in the browser
  typedmcp call server.py greet name=Ada     call one of its tools
  typedmcp list https://example.com/mcp      see what a server offers

typedmcp --help lists all commands."""

_EXAMPLES = """Examples:
  typedmcp run server.py
  typedmcp list https://example.com/mcp
  typedmcp call server.py greet name=Ada
  typedmcp call greet name=Ada -- npx some-server
  typedmcp inspect --config mcp.json files

Exit status: 0 success, 1 the request or the check failed, 2 the command line
is wrong, 3 the server cannot be reached, 130 interrupted."""


class CommandHelp(NamedTuple):
    """Help texts of a command: its arguments, a summary, and notes with examples."""

    usage: str
    summary: str
    epilogue: str


COMMANDS: dict[str, CommandHelp] = {
    "run": CommandHelp(
        "FILE[:OBJECT]",
        "Serve a file over standard input and output, or HTTP.",
        """Examples:
  typedmcp run server.py
  typedmcp run server.py:tools --transport http --port 9000
  typedmcp run package.module:server --reload""",
    ),
    "install": CommandHelp(
        "TARGET --host HOST",
        "Print or write the configuration with which a host starts a server.",
        """Examples:
  typedmcp install server.py --host claude-desktop
  typedmcp install server.py --host cursor --write --env API_KEY=secret
  typedmcp install https://example.com/mcp --host vscode --name example""",
    ),
    "dev": CommandHelp(
        "TARGET",
        "Try a server on a page in the browser.",
        """The page lists what the server offers, calls it, answers its questions, and
shows every message with its faults, on any revision. Only the browser that
opens the printed address has access.

Examples:
  typedmcp dev server.py
  typedmcp dev https://example.com/mcp --revision 2025-11-25
  typedmcp dev -- npx some-server""",
    ),
    "list": CommandHelp(
        "TARGET [KIND]",
        "List a server's tools, resources, templates and prompts.",
        """Examples:
  typedmcp list server.py
  typedmcp list https://example.com/mcp tools --json
  typedmcp list -- python server.py""",
    ),
    "inspect": CommandHelp(
        "TARGET",
        "Show everything a server offers, with schemas.",
        """Examples:
  typedmcp inspect server.py
  typedmcp inspect --config mcp.json files --json""",
    ),
    "call": CommandHelp(
        "TARGET TOOL [KEY=VALUE...]",
        "Call a tool.",
        """The tool's schema decides how a value is read: as text if the argument is
a string, as JSON otherwise. key:=json is always JSON, key=@file reads a file,
and repeating a key adds to an array.

Examples:
  typedmcp call server.py greet name=Ada
  typedmcp call server.py add numbers:='[1, 2]' precise=true
  typedmcp call server.py draw --json-args '{"width": 80}' --output chart.png
  typedmcp call greet name=Ada --json -- python server.py""",
    ),
    "read": CommandHelp(
        "TARGET URI",
        "Read a resource.",
        """Examples:
  typedmcp read server.py weather://Bergen/now
  typedmcp read server.py images://logo --output logo.png""",
    ),
    "prompt": CommandHelp(
        "TARGET NAME [KEY=VALUE...]",
        "Get a prompt with its arguments filled in.",
        """Examples:
  typedmcp prompt server.py packing city=Bergen days=3""",
    ),
    "check": CommandHelp(
        "FILE",
        "Check a server before hosts and models use it.",
        """Examples:
  typedmcp check server.py
  typedmcp check package.module:server --strict --json""",
    ),
    "proxy": CommandHelp(
        "[TARGET]",
        "Offer servers of any revision and transport to clients of any other.",
        """Give this command to a host in place of a server that it cannot use. With --config
and without TARGET all servers of the file are offered as one.

Examples:
  typedmcp proxy https://example.com/mcp
  typedmcp proxy --http 9000 -- npx some-server
  typedmcp proxy --config mcp.json --http 9000 --audit calls.jsonl --reload""",
    ),
    "record": CommandHelp(
        "TARGET",
        "Record the messages between a host and the server that it starts.",
        """Give this command to the host in place of the server's. The recording has one
message in each line, without secrets; `typedmcp validate` reads it.

Examples:
  typedmcp record --out session.jsonl -- npx some-server
  typedmcp record server.py --out session.jsonl --mask email""",
    ),
    "replay": CommandHelp(
        "FILE [TARGET]",
        "Answer a client from a recording, or compare a server with it.",
        """Without TARGET, this is a server over standard input and output (or HTTP) that
answers as in the recording, on any revision. With TARGET, the requests of the
recording are sent to that server; a response that differs is printed with its
place, and the exit status is 1.

Examples:
  typedmcp replay session.jsonl
  typedmcp replay session.jsonl --revision 2025-06-18 --transport http
  typedmcp replay session.jsonl --ignore timestamp -- npx some-server""",
    ),
    "codegen": CommandHelp(
        "TARGET --out FILE",
        "Write a typed client of a server, and say what the server has changed.",
        """The client is a class with a method for each tool, prompt and resource. --lock
keeps what the server offers. --check compares the server with that file, prints
what was added (+), removed (-) and changed (~), and exits with 1 if anything was.

Examples:
  typedmcp codegen https://example.com/mcp --out weather_client.py --lock tools.lock
  typedmcp codegen https://example.com/mcp --check --lock tools.lock
  typedmcp codegen --out files.py --sync -- npx some-server""",
    ),
    "validate": CommandHelp(
        "FILE",
        "Check recorded traffic against a revision of the protocol.",
        """Each line of FILE is a message, or an object that contains one:
{"sender": "client", "message": {...}}. A result is checked against the
request with the same id. Without --revision, each line has its own one.

Examples:
  typedmcp validate session.jsonl
  typedmcp validate traffic.jsonl --revision 2025-11-25
  zcat traffic.jsonl.gz | typedmcp validate - --revision 2026-07-28 --json""",
    ),
    "diff": CommandHelp(
        "OLD NEW",
        "Show what changed between two revisions of the protocol.",
        """Examples:
  typedmcp diff 2025-11-25 2026-07-28
  typedmcp diff 2025-06-18 2025-11-25 --format markdown > changes.md""",
    ),
}
"""By name, which is also the name of the module in `typedmcp_cli.commands` and of the function in it."""


def run_command_line(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status."""
    # `run` needs no standard output for HTTP, and runs code of the user, whose errors get a traceback.
    is_run = [*arguments[:1]] == ["run"]
    if cast("TextIO | None", sys.stdout) is None and not is_run:
        print_error("standard output is closed")
        return USAGE
    return run_with_status(lambda: _run(arguments), has_user_code=is_run)


def _run(arguments: Sequence[str]) -> int:
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # not every terminal can show every character
        reconfigure(errors="backslashreplace")  # this flushes first
    if not arguments:
        sys.stdout.write(f"{_START}\n")
        return USAGE
    try:
        command, bound, _ = make_app().parse_args(place_command(arguments), exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        print_error(f"{_describe_missing(error)}{_hint(arguments)}")
        return USAGE
    except CycloptsError as error:
        print_error(f"{error}{_hint(arguments)}")
        return USAGE
    try:
        with raise_on_interrupt():
            status: object = command(*bound.args, **bound.kwargs)
    except SystemExit as exit:
        if isinstance(exit.__context__, BrokenPipeError):  # rich does this when the reader of the help has gone
            return OK
        raise
    return status if isinstance(status, int) else OK


def _describe_missing(error: MissingArgumentError) -> str:
    """Return which argument or value is missing, and what it can be."""
    assert error.argument is not None
    name, choices = error.argument.name, error.argument.get_choices()
    values = f": {', '.join(choices)}" if choices else ""
    missing = f"{name} has no value" if error.keyword is not None else f"{name} is missing"
    return f"typedmcp {' '.join(error.command_chain or ())}: {missing}{values}"


def _hint(arguments: Sequence[str]) -> str:
    name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    return f"\nTry: {' '.join(['typedmcp', *name.split(), '--help'])}"


def make_app() -> App:
    """Make the cyclopts application with all commands."""
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
    for name, text in COMMANDS.items():
        made.command(
            f"typedmcp_cli.commands.{name}:{name}",
            name=name,
            help=text.summary,
            usage=f"Usage: typedmcp {name} {text.usage} [OPTIONS]",
            help_epilogue=text.epilogue,
        )  # pyright: ignore[reportUnknownMemberType]
    return made
