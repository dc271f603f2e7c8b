"""Which server is meant: a URL, a file, a command, an entry of a configuration."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typedmcp import __version__
from typedmcp.cli.asking import Asker
from typedmcp.cli.interrupts import run
from typedmcp.cli.messages import Messages
from typedmcp.cli.options import Options, headers_of
from typedmcp.cli.placing import command_of
from typedmcp.cli.references import reference_of
from typedmcp.cli.status import FAILED, TOLD, UNREACHABLE, USAGE, Stop, near, said
from typedmcp.client.client import Client
from typedmcp.client.config import ServerEntry, load_config
from typedmcp.errors import ConnectionLost, RemoteError
from typedmcp.transports.process import StdioServerParameters

__all__ = ["talk", "target_of"]

_EXIT_STATUS = re.compile(r"the connection ended: exit status (\d+)")
"""What a server ended with stands in the error alone."""
_ADDRESSES = ("http://", "https://", "unix:", "tcp://")


def talk(target: str, options: Options, work: Callable[[Client, Messages], Awaitable[int]]) -> int:
    """The status of some work with a client that is connected to a target."""

    async def main() -> int:
        messages = Messages(options.log_level)
        client = _client(target, options, messages)
        try:
            await _open(client)
            return await work(client, messages)
        finally:
            messages.pause()
            await client.close()

    return run(main())


async def _open(client: Client) -> None:
    """Connect. Whoever answers that with an error is not there to be talked to."""
    try:
        await client.open()
    except RemoteError as error:
        raise Stop(said(error), UNREACHABLE) from error
    except ConnectionLost as error:
        if (found := _EXIT_STATUS.match(error.args[0])) and (status := int(found[1]) - TOLD) in (FAILED, USAGE):
            raise Stop("", status) from error
        raise


def _client(target: str, options: Options, messages: Messages) -> Client:
    entry = ServerEntry(target, target_of(target)) if options.config is None else _entry(target, options.config)
    if isinstance(entry.target, StdioServerParameters) and messages.is_terminal:
        entry = replace(entry, target=replace(entry.target, stderr=messages.line))
    made: dict[str, Any] = {
        "name": "typedmcp",
        "version": __version__,
        "timeout": options.timeout,
        "max_time": None,
        "log_level": options.log_level,
        "on_log": messages.log,
        "on_report": messages.report,
        "elicit": Asker(messages),
    }
    if options.revision is not None:
        made["revisions"] = [options.revision]
    if headers := headers_of(options.header):
        made["headers"] = headers
    return entry.connect(**made)


def _entry(name: str, config: str) -> ServerEntry:
    if command_of(name) is not None:
        raise Stop("a command and --config: one of the two says which server is meant")
    entries = load_config(config)
    if name not in entries:
        raise Stop(f"{config}: no server {name!r}{near(name, entries)}")
    return entries[name]


def target_of(text: str) -> str | StdioServerParameters:
    """What `connect` takes for what was typed. Raises `Stop` for what is no target."""
    if (command := command_of(text)) is not None:
        return _started(command)
    if text.lower().startswith(_ADDRESSES):
        return text
    found = reference_of(text)
    if found is None:
        raise Stop(
            f"{text!r} is no server: a URL is (http://…), a file (server.py), a command behind --, "
            "or, with --config FILE, the name of an entry"
        )
    if found.is_file and Path(found.source).suffix == ".json":
        raise Stop(f"{text} is a configuration: --config {text} NAME")
    if found.is_file and Path(found.source).suffix != ".py":
        raise Stop(f"{text} is no Python file: give the command that starts it, behind --")
    # Without -P the folder that somebody happens to be in would come before the standard library.
    return _started([sys.executable, "-P", "-m", "typedmcp.cli.serving", text, json.dumps({"told": True})])


def _started(command: Sequence[str]) -> StdioServerParameters:
    """A command as in a shell: with all of the environment, which whoever typed it has in mind."""
    return StdioServerParameters(command[0], command[1:], env=os.environ)
