"""Connection of a client to TARGET: a URL, a file, a command, or an entry of a configuration."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from typedmcp import Client, ConnectOptions, StdioServerParameters, __version__
from typedmcp.errors import ConnectionLostError, RemoteError, missing_extra
from typedmcp_cli.elicitation import TerminalElicitor
from typedmcp_cli.frames import show_frame
from typedmcp_cli.interrupts import run_async
from typedmcp_cli.notifications import NotificationDisplay
from typedmcp_cli.options import CommonOptions, ConnectionOptions, parse_headers
from typedmcp_cli.references import parse_command, parse_reference
from typedmcp_cli.status import (
    ALREADY_REPORTED,
    FAILED,
    UNREACHABLE,
    USAGE,
    CommandExit,
    describe_error,
    suggest_names,
)
from typedmcp_hosts import ServerEntry, load_config

__all__ = ["find_entry", "make_connect_options", "parse_target", "run_with_client"]

_EXIT_STATUS = re.compile(r"the connection ended: exit status (\d+)")
"""The error's text is the only place that has the server's exit status."""
_NODE_FILES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Files that Node.js runs: TypeScript from version 22.18 on."""
_ADDRESSES = ("http://", "https://", "unix:", "tcp://")


def run_with_client(
    target: str,
    options: CommonOptions,
    work: Callable[[Client, NotificationDisplay], Awaitable[int]],
    *,
    with_tasks: bool = False,
) -> int:
    """Connect to a target, run `work`, close the client, and return the exit status that `work` returned.

    With `with_tasks`, calls of tools may become tasks, whose state is shown until they have ended.
    """

    async def main() -> int:
        display = NotificationDisplay(options.log_level)
        client = _make_client(target, options, display, with_tasks=with_tasks)
        try:
            await _open(client)
            return await work(client, display)
        finally:
            display.hide_progress()
            await client.close()

    return run_async(main())


async def _open(client: Client) -> None:
    """Connect. An error that the server returns to the handshake means that it cannot be reached."""
    try:
        await client.open()
    except RemoteError as error:
        raise CommandExit(describe_error(error), UNREACHABLE) from error
    except ConnectionLostError as error:
        found = _EXIT_STATUS.match(error.args[0])
        if found and (status := int(found[1]) - ALREADY_REPORTED) in (FAILED, USAGE):
            raise CommandExit("", status) from error
        raise


def _make_client(target: str, options: CommonOptions, display: NotificationDisplay, *, with_tasks: bool) -> Client:
    entry = find_entry(target, options)
    if isinstance(entry.target, StdioServerParameters) and display.is_terminal:
        entry = replace(entry, target=replace(entry.target, stderr=display.show_server_line))
    elicitor = TerminalElicitor(display)
    connect_options = make_connect_options(options)
    connect_options["max_time"] = None
    connect_options["on_log"] = display.show_log
    connect_options["on_diagnostic"] = display.show_diagnostic
    connect_options["elicit"] = elicitor.fill_form
    connect_options["elicit_url"] = elicitor.ask_consent
    if elicitor.has_user:  # without, servers should not count on a model
        connect_options["sample"] = elicitor.write_message
    if with_tasks:
        from typedmcp_extensions.tasks import ClientTasks  # loaded where it is used

        connect_options["extensions"] = [ClientTasks(on_status=display.show_task)]
    return entry.connect(**connect_options)


def make_connect_options(options: ConnectionOptions) -> ConnectOptions:
    """Return the options of `connect` that the command line gives."""
    connect_options: ConnectOptions = {
        "name": "typedmcp",
        "version": __version__,
        "timeout": options.timeout,
        "log_level": options.log_level,
    }
    if options.revision is not None:
        connect_options["revisions"] = [options.revision]
    if headers := parse_headers(options.header):
        connect_options["headers"] = headers
    if options.frames:
        connect_options["on_frame"] = show_frame
    if options.record is not None:
        from typedmcp_cli.recording.recorder import Recorder  # loaded where it is used

        connect_options["record"] = Recorder(options.record, mask=options.mask)
    if options.oauth:
        try:
            from typedmcp_auth import FileStorage, OAuth  # loaded where it is used
        except ImportError:
            raise CommandExit(missing_extra("--oauth", "auth")) from None
        connect_options["auth"] = OAuth(storage=FileStorage())
    return connect_options


def find_entry(target: str, options: ConnectionOptions) -> ServerEntry:
    """Return the server that TARGET is. Raises `CommandExit` if it is none."""
    if options.config is None:
        return ServerEntry(target, parse_target(target))
    return _find_in_config(target, options.config)


def _find_in_config(name: str, config: str) -> ServerEntry:
    if parse_command(name) is not None:
        raise CommandExit("a command and --config both name a server; use one of them")
    entries = load_config(config)
    if name not in entries:
        raise CommandExit(f"{config}: no server {name!r}{suggest_names(name, entries)}")
    return entries[name]


def parse_target(text: str) -> str | StdioServerParameters:
    """Convert TARGET to a target of `connect`. Raises `CommandExit` if it is not a server."""
    if (command := parse_command(text)) is not None:
        return _parameters(command)
    if text.lower().startswith(_ADDRESSES):
        return text
    found = parse_reference(text)
    if found is None:
        raise CommandExit(
            f"{text!r} is not a server; expected a URL (http://…), a file (server.py), a command after --, "
            "or, with --config FILE, the name of an entry"
        )
    if found.is_file and Path(found.source).suffix == ".json":
        raise CommandExit(f"{text} is a configuration; use --config {text} NAME")
    if found.is_file and Path(found.source).suffix != ".py":
        if Path(found.source).suffix.lower() not in _NODE_FILES or not Path(text).is_file():
            raise CommandExit(f"{text} is not a Python file; give the command that starts it after --")
        return _parameters(["node", text])
    # Without -P, modules in the current folder would come before the standard library.
    serve_options = json.dumps({"adds_reported": True})
    return _parameters([sys.executable, "-P", "-m", "typedmcp_cli.serve", text, serve_options])


def _parameters(command: Sequence[str]) -> StdioServerParameters:
    """Make the parameters of a server process, which inherits the whole environment, as in a shell."""
    return StdioServerParameters(command[0], command[1:], env=os.environ)
