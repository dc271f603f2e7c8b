"""The targets of `connect`, and the transports to them."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from typedmcp.errors import ConnectionLostError, UsageError
from typedmcp.transports import Transport, missing_members
from typedmcp.transports.process import ProcessTransport
from typedmcp.transports.process_parameters import StdioServerParameters
from typedmcp.transports.redaction import redact_url
from typedmcp.transports.stderr_text import ProbeNoise
from typedmcp.transports.streams import StreamTransport

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "Target",
    "can_reopen",
    "describe_target",
    "is_process",
    "is_url",
    "open_target",
    "resolve_target",
    "target_key",
]

Target: TypeAlias = "Sequence[str] | StdioServerParameters | str | os.PathLike[str] | Transport | object"
"""A command, a file, a URL, the address of a socket, a transport, or a handler or `ServerConfig` in this process."""

_HOST_AND_PORT = re.compile(r"[\w.-]+:\d+(/\S*)?\Z")
_TCP_ADDRESS = re.compile(r"(?:tcp://)(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:/]+)):(?P<port>\d+)/?\Z")

_RUNNERS: Final = {".py": sys.executable, **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"), "node")}
"""The program that runs a file, by the end of its name. Node.js runs TypeScript from version 22.18 on."""
_SCHEMES: Final = ("https", "http", "unix", "tcp")


def resolve_target(target: Target) -> Target:
    """Return the command that runs a file: a Python file with this Python, a JavaScript or TypeScript file with node.

    Other targets are returned as they are. Raises `UsageError` for a file that is missing or cannot be run.
    """
    if isinstance(target, os.PathLike):
        return _run_file(os.fspath(cast("os.PathLike[str]", target)))
    if not isinstance(target, str) or "://" in target or target.startswith("unix:"):
        return target
    if os.path.exists(os.path.expanduser(target)) or (len(target.split()) == 1 and _runner_of(target)):
        return _run_file(target)
    return target


def _runner_of(path: str) -> str | None:
    return _RUNNERS.get(os.path.splitext(path)[1].lower())


def _run_file(text: str) -> StdioServerParameters:
    path = os.path.expanduser(text)
    if os.path.isdir(path):
        raise UsageError(f"{text} is a directory; expected a file in it, such as {os.path.join(text, 'server.py')}")
    if not os.path.exists(path):
        raise UsageError(f"no such file: {text}")
    if (runner := _runner_of(path)) is None:
        known = ", ".join(sorted(_RUNNERS))
        raise UsageError(f"{text} is not a file that connect can run ({known}); pass its command as a list: [{text!r}]")
    return StdioServerParameters(runner, (path,))


async def open_target(target: Target, noise: ProbeNoise | None = None) -> Transport:
    """Open a transport to any target but a URL. `noise` passes on what a process writes to standard error.

    Raises `UsageError` for an invalid target, and `ConnectionLostError` if it cannot be reached.
    """
    if isinstance(target, StdioServerParameters):
        return await ProcessTransport.start(target, noise)
    if isinstance(target, str):
        return await _open_address(target)
    if isinstance(target, Sequence):
        return await ProcessTransport.start(_to_parameters(cast("Sequence[Any]", target)), noise)
    if not missing_members(target):
        return cast(Transport, target)
    if type(target) in (int, float, dict):  # a type checker rejects these
        kind = type(target).__name__
        raise UsageError(f"cannot connect to {kind}; expected a URL, a file, a command, a transport, or a server")
    from typedmcp.client.connection.in_process import (
        InProcessTransport,  # loads the server, which other targets do not need
    )

    return InProcessTransport(target)


def is_url(target: Target) -> TypeIs[str]:
    """Return whether a target is reached over HTTP."""
    return isinstance(target, str) and target.lower().startswith(("http:", "https:"))


def is_process(target: Target) -> bool:
    """Return whether a target is a command, whose process the client starts."""
    return isinstance(target, StdioServerParameters | Sequence) and not isinstance(target, str)


def can_reopen(target: Target) -> bool:
    """Return whether a target can be connected to more than once. A transport cannot."""
    return bool(missing_members(target))


def target_key(target: Target) -> str | None:
    """Return the key under which to remember the revision of a server, or None if it cannot be remembered."""
    if isinstance(target, StdioServerParameters):
        env = () if target.env is None else sorted(target.env.items())
        return repr((target.command, tuple(target.args), hash(tuple(env)), target.cwd))  # values may be secrets
    if isinstance(target, str):
        return target
    return repr(tuple(cast("Sequence[Any]", target))) if isinstance(target, Sequence) else None


def describe_target(target: Target) -> str:
    """Return a target as text for messages: its address, or its command without arguments, which may be secret."""
    if isinstance(target, str):
        return redact_url(target)
    if isinstance(target, StdioServerParameters):
        return shlex.quote(target.command)
    if isinstance(target, Sequence):
        return shlex.quote(str(cast("Sequence[Any]", target)[0]))
    return type(target).__name__


def _to_parameters(command: Sequence[Any]) -> StdioServerParameters:
    if not command or not all(isinstance(part, str) for part in command):
        kinds = ", ".join([type(part).__name__ for part in command]) or "nothing"
        raise UsageError(f"expected a command as a list of strings, got a list of {kinds}")
    return StdioServerParameters(command=command[0], args=tuple(command[1:]))


async def _open_address(address: str) -> Transport:
    if address.startswith("unix:"):
        path = address.removeprefix("unix:").removeprefix("//")
        return await _open_socket(address, socket.AF_UNIX, path)
    if match := _TCP_ADDRESS.match(address):
        family = socket.AF_INET6 if match["v6"] else socket.AF_INET
        return await _open_socket(address, family, (match["v6"] or match["host"], int(match["port"])))
    known = "expected https://host/path, unix:/path or tcp://host:port"
    shown = redact_url(address)
    raise UsageError(f"invalid address {shown!r}; {known}{'' if shown != address else _suggest_target(address)}")


def _suggest_target(text: str) -> str:
    """Return the end of an error for an address: the scheme or the command that was meant, perhaps."""
    scheme, separator, _ = text.partition("://")
    if separator:
        similar = get_close_matches(scheme.lower(), _SCHEMES, 1)
        return f"; did you mean {similar[0]}://…?" if similar else ""
    words = text.split()
    if len(words) == 1 and _HOST_AND_PORT.match(text):
        return f"; did you mean http://{text}?"
    shown = [*words[:2], *["…"] * (len(words) > 2)]  # later arguments may be secret
    return f"; a command is a list, such as {['python', *shown] if words and words[0].endswith('.py') else shown}"


async def _open_socket(name: str, family: int, address: Any) -> Transport:
    connection = socket.socket(family, socket.SOCK_STREAM)
    with connection:
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, address)
        except OSError as error:
            is_known = error.errno is not None and error.errno > 0
            reason = os.strerror(cast(int, error.errno)) if is_known else error.strerror or str(error)
            raise ConnectionLostError(f"{name}: {reason}") from error
        if family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return StreamTransport(connection.fileno(), connection.fileno())
