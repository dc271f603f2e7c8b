"""The targets of `connect`, and the transports to them."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from typedmcp.errors import ConnectionLostError, UsageError
from typedmcp.transports import Transport
from typedmcp.transports.process import ProcessTransport, StdioServerParameters
from typedmcp.transports.streams import StreamTransport

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["Target", "can_reopen", "describe_target", "is_url", "open_target", "target_key"]

Target: TypeAlias = "Sequence[str] | StdioServerParameters | str | Transport | object"
"""A command, a URL, the address of a socket, a transport, or a handler or `ServerConfig` in this process."""

_TCP_ADDRESS = re.compile(r"(?:tcp://)(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:/]+)):(?P<port>\d+)/?\Z")

_TRANSPORT_MEMBERS = ("read", "write", "is_congested", "drain", "close")


async def open_target(target: Target) -> Transport:
    """Open a transport to any target but a URL.

    Raises `UsageError` for an invalid target, and `ConnectionLostError` if it cannot be reached.
    """
    if isinstance(target, StdioServerParameters):
        return await ProcessTransport.start(target)
    if isinstance(target, str):
        return await _open_address(target)
    if isinstance(target, Sequence):
        return await ProcessTransport.start(_to_parameters(cast("Sequence[Any]", target)))
    if isinstance(target, os.PathLike):
        path = os.fspath(cast("os.PathLike[str]", target))
        raise UsageError(f"{path} is a path; expected a command as a list, such as [sys.executable, {path!r}]")
    if _is_transport(target):
        return cast(Transport, target)
    from typedmcp.client.in_process import InProcessTransport  # loads the server, which other targets do not need

    return InProcessTransport(target)


def is_url(target: Target) -> TypeIs[str]:
    """Return whether a target is reached over HTTP."""
    return isinstance(target, str) and target.lower().startswith(("http:", "https:"))


def can_reopen(target: Target) -> bool:
    """Return whether a target can be connected to more than once. A transport cannot."""
    return not _is_transport(target)


def target_key(target: Target) -> str | None:
    """Return the key under which to remember the revision of a server, or None if it cannot be remembered."""
    if isinstance(target, StdioServerParameters):
        env = () if target.env is None else sorted(target.env.items())
        return repr((target.command, tuple(target.args), hash(tuple(env)), target.cwd))  # values may be secrets
    if isinstance(target, str):
        return target
    return repr(tuple(cast("Sequence[Any]", target))) if isinstance(target, Sequence) else None


def describe_target(target: Target) -> str:
    """Return a target as text for messages: its address, or its command as in a shell."""
    if isinstance(target, str):
        return target
    if isinstance(target, StdioServerParameters):
        return shlex.join([target.command, *target.args])
    if isinstance(target, Sequence):
        return shlex.join(map(str, cast("Sequence[Any]", target)))
    return type(target).__name__


def _is_transport(target: object) -> bool:
    return all(hasattr(target, name) for name in _TRANSPORT_MEMBERS)


def _to_parameters(command: Sequence[Any]) -> StdioServerParameters:
    if not command or not all(isinstance(part, str) for part in command):
        raise UsageError(f"expected a command as a list of strings, got {list(command)!r}")
    return StdioServerParameters(command=command[0], args=tuple(command[1:]))


async def _open_address(address: str) -> Transport:
    if address.startswith("unix:"):
        path = address.removeprefix("unix:").removeprefix("//")
        return await _open_socket(address, socket.AF_UNIX, path)
    if match := _TCP_ADDRESS.match(address):
        family = socket.AF_INET6 if match["v6"] else socket.AF_INET
        return await _open_socket(address, family, (match["v6"] or match["host"], int(match["port"])))
    known = "expected https://host/path, unix:/path or tcp://host:port"
    hint = "" if "://" in address else f"; a command is a list, such as {_suggest_command(address)}"
    raise UsageError(f"invalid address {address!r}; {known}{hint}")


def _suggest_command(text: str) -> list[str]:
    words = text.split()
    return ["python", *words] if words and words[0].endswith(".py") else words


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
