"""`typedmcp install`: print or write the configuration with which a host starts a server."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

import typedmcp
from typedmcp_cli.host_files import render, write_entry
from typedmcp_cli.hosts import HOSTS, Host
from typedmcp_cli.options import parse_headers
from typedmcp_cli.output import print_text
from typedmcp_cli.references import ServerReference, require_reference
from typedmcp_cli.status import FAILED, OK, CommandExit, describe_error

__all__ = ["install"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that all hosts accept."""

HostName: TypeAlias = Literal[
    "claude-desktop",
    "claude-code",
    "cursor",
    "vscode",
    "windsurf",
    "cline",
    "roo",
    "cherry-studio",
    "inspector",
    "gemini-cli",
]


def install(
    target: Annotated[
        str, Parameter(name="TARGET", help="server.py, server.py:object, package.module:object, or a URL.")
    ],
    /,
    *,
    host: Annotated[HostName, Parameter(help="The host.")],
    write: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Write the file of the host, and keep a copy of the old one."),
    ] = False,
    unchecked: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="With --write, do not start the server to see that it can."),
    ] = False,
    project: Annotated[
        bool,
        Parameter(negative=(), show_default=False, help="Use the file of the project in the current folder."),
    ] = False,
    name: Annotated[str | None, Parameter(help="The name of the server; the default is that of the file.")] = None,
    env: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="A variable for the server, NAME=VALUE. Can be repeated."),
    ] = (),
    header: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="A header for a URL, 'Name: value'. Can be repeated."),
    ] = (),
    python: Annotated[str | None, Parameter(help="The Python that runs the file; the default is this one.")] = None,
    directory: Annotated[str | None, Parameter(help="The folder in which the server runs.")] = None,
) -> int:
    """Print the entry of a server for a host, or write it into the file of the host."""
    chosen = HOSTS[host]
    is_url = target.lower().startswith(("http://", "https://"))
    if is_url and (env or python or directory):
        raise CommandExit("--env, --python and --directory are for files, not for URLs")
    if header and not is_url:
        raise CommandExit("--header is for URLs, not for files")
    if is_url:
        entry, default_name = chosen.make_url_entry(target, parse_headers(header)), _name_of_url(target)
    else:
        reference = require_reference(target)
        command, variables = _make_command(reference, python, directory), _parse_env(env)
        entry, default_name = chosen.make_command_entry(command, variables), _name_of(reference)
        if write and not unchecked:
            _check_start(command, variables)
    _deliver(chosen, _check_name(name, default_name), entry, is_project=project, is_written=write)
    return OK


def _check_start(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Start a server as the host would, and end it. Raises `CommandExit` if it cannot be used."""

    async def start() -> None:
        async with typedmcp.connect(typedmcp.StdioServerParameters(command[0], command[1:], env=env)):
            pass

    try:
        asyncio.run(start())
    except typedmcp.Error as error:
        text = f"{describe_error(error)}\nNothing was written; --unchecked writes the entry all the same."
        raise CommandExit(text, FAILED) from None


def _deliver(host: Host, name: str, entry: dict[str, Any], *, is_project: bool, is_written: bool) -> None:
    if host.file is None and not (is_written or is_project):
        print_text(f"{host.title}: {host.next_step}", stderr=True)
        print_text(render({host.member: {name: entry}}))
        return
    file = host.find_project_file(Path.cwd()) if is_project else host.find_file(Path.home())
    if not is_written:
        print_text(f"{host.title}: add this to {file}, or use --write", stderr=True)
        print_text(render({host.member: {name: entry}}))
        return
    copy = write_entry(file, host.member, name, entry)
    kept = f"; the old file is {copy.name}" if copy is not None else ""
    print_text(f"{host.title}: {name!r} is in {file}{kept}. {host.next_step}")


def _make_command(reference: ServerReference, python: str | None, directory: str | None) -> Sequence[str]:
    """Return a command that does not depend on the folder or the environment in which the host runs."""
    source = os.path.abspath(reference.source) if reference.is_file else reference.source
    if directory is None and not reference.is_file:
        directory = "."
    if directory is not None and not os.path.isdir(directory):
        raise CommandExit(f"--directory {directory!r} is not a folder")
    folder = [] if directory is None else ["--directory", os.path.abspath(directory)]
    text = source if reference.name is None else f"{source}:{reference.name}"
    return [_find_python(python), "-P", "-m", "typedmcp", "run", text, *folder]


def _find_python(python: str | None) -> str:
    if python is None:
        return sys.executable
    return os.path.abspath(python) if os.path.dirname(python) else python


def _parse_env(pairs: Sequence[str]) -> dict[str, str]:
    env: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandExit(f"--env {name!r}: expected NAME=VALUE")  # the value may be secret
        env[name] = value
    return env


def _name_of(reference: ServerReference) -> str:
    return Path(reference.source).stem if reference.is_file else reference.source.rpartition(".")[2]


def _name_of_url(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]


def _check_name(name: str | None, default: str) -> str:
    if name is None:
        return re.sub(r"[^A-Za-z0-9_-]+", "-", default)[:64].strip("-") or "server"
    if not _NAME.fullmatch(name):
        raise CommandExit(f"--name {name!r}: expected at most 64 letters, digits, - and _, which all hosts accept")
    return name
