"""Connection of a client to TARGET: a URL, a file, a command, or an entry of a configuration."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from typedmcp import __version__
from typedmcp.cli.elicitation import TerminalElicitor
from typedmcp.cli.interrupts import run_async
from typedmcp.cli.notifications import NotificationDisplay
from typedmcp.cli.options import CommonOptions, parse_headers
from typedmcp.cli.references import parse_command, parse_reference
from typedmcp.cli.status import (
    ALREADY_REPORTED,
    FAILED,
    UNREACHABLE,
    USAGE,
    CommandExit,
    describe_error,
    suggest_names,
)
from typedmcp.client.client import Client
from typedmcp.client.config import ServerEntry, load_config
from typedmcp.client.options import ConnectOptions
from typedmcp.errors import ConnectionLostError, RemoteError
from typedmcp.transports.process import StdioServerParameters

__all__ = ["parse_target", "run_with_client"]

_EXIT_STATUS = re.compile(r"the connection ended: exit status (\d+)")
"""The error's text is the only place that has the server's exit status."""
_ADDRESSES = ("http://", "https://", "unix:", "tcp://")


def run_with_client(
    target: str, options: CommonOptions, work: Callable[[Client, NotificationDisplay], Awaitable[int]]
) -> int:
    """Connect to a target, run `work`, close the client, and return the exit status that `work` returned."""

    async def main() -> int:
        display = NotificationDisplay(options.log_level)
        client = _make_client(target, options, display)
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


def _make_client(target: str, options: CommonOptions, display: NotificationDisplay) -> Client:
    entry = ServerEntry(target, parse_target(target)) if options.config is None else _find_entry(target, options.config)
    if isinstance(entry.target, StdioServerParameters) and display.is_terminal:
        entry = replace(entry, target=replace(entry.target, stderr=display.show_server_line))
    connect_options: ConnectOptions = {
        "name": "typedmcp",
        "version": __version__,
        "timeout": options.timeout,
        "max_time": None,
        "log_level": options.log_level,
        "on_log": display.show_log,
        "on_diagnostic": display.show_diagnostic,
        "elicit": TerminalElicitor(display),
    }
    if options.revision is not None:
        connect_options["revisions"] = [options.revision]
    if headers := parse_headers(options.header):
        connect_options["headers"] = headers
    return entry.connect(**connect_options)


def _find_entry(name: str, config: str) -> ServerEntry:
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
        raise CommandExit(f"{text} is not a Python file; give the command that starts it after --")
    # Without -P, modules in the current folder would come before the standard library.
    serve_options = json.dumps({"adds_reported": True})
    return _parameters([sys.executable, "-P", "-m", "typedmcp.cli.serve", text, serve_options])


def _parameters(command: Sequence[str]) -> StdioServerParameters:
    """Make the parameters of a server process, which inherits the whole environment, as in a shell."""
    return StdioServerParameters(command[0], command[1:], env=os.environ)
