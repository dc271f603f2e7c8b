"""What a client can be connected to, and how bytes get there."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from typedmcp.errors import ConnectionLost, UsageError
from typedmcp.service import Service
from typedmcp.session import ServerSession
from typedmcp.transports import Transport
from typedmcp.transports.memory import memory_pair
from typedmcp.transports.process import ProcessTransport, StdioServerParameters
from typedmcp.transports.streams import StreamTransport

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["Target", "can_restart", "is_url", "name_of", "open_target", "shown"]

Target: TypeAlias = "Sequence[str] | StdioServerParameters | str | Transport | Service | object"
"""A command, a URL, the address of a socket, a transport, or a server in this process."""

_ADDRESS = re.compile(r"(?:tcp://)(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:/]+)):(?P<port>\d+)/?\Z")


async def open_target(target: Target) -> Transport:
    """A transport to what is meant.

    Raises `UsageError` for what is no target, and `ConnectionLost` for one that is not there.
    """
    if isinstance(target, StdioServerParameters):
        return await ProcessTransport.start(target)
    if isinstance(target, str):
        return await _open_address(target)
    if isinstance(target, Sequence):
        return await ProcessTransport.start(_command(cast("Sequence[Any]", target)))
    if isinstance(target, os.PathLike):
        path = os.fspath(cast("os.PathLike[str]", target))
        raise UsageError(f"{path} is a path; a command is a list, such as [sys.executable, {path!r}]")
    if _is_transport(target):
        return cast(Transport, target)
    return _Inside(target if isinstance(target, Service) else Service(target))


def is_url(target: Target) -> TypeIs[str]:
    """Whether the server is reached over HTTP."""
    return isinstance(target, str) and target.lower().startswith(("http:", "https:"))


def can_restart(target: Target) -> bool:
    """Whether a connection can be made anew: a transport can be used up only once."""
    return not _is_transport(target)


def name_of(target: Target) -> str | None:
    """What the era of a server is remembered by; None where that makes no sense."""
    if isinstance(target, StdioServerParameters):
        env = () if target.env is None else sorted(target.env.items())
        return repr((target.command, tuple(target.args), hash(tuple(env)), target.cwd))  # values may be secrets
    if isinstance(target, str):
        return target
    return repr(tuple(cast("Sequence[Any]", target))) if isinstance(target, Sequence) else None


def shown(target: Target) -> str:
    """A target as people know it: its address, or its command as a shell takes it."""
    if isinstance(target, str):
        return target
    if isinstance(target, StdioServerParameters):
        return shlex.join([target.command, *target.args])
    return (
        shlex.join(map(str, cast("Sequence[Any]", target))) if isinstance(target, Sequence) else type(target).__name__
    )


def _is_transport(target: object) -> bool:
    return all(hasattr(target, name) for name in ("read", "write", "congested", "drain", "close"))


def _command(parts: Sequence[Any]) -> StdioServerParameters:
    if not parts or not all(isinstance(part, str) for part in parts):
        raise UsageError(f"a command is a list of strings, got {list(parts)!r}")
    return StdioServerParameters(command=parts[0], args=tuple(parts[1:]))


async def _open_address(target: str) -> Transport:
    if target.startswith("unix:"):
        path = target.removeprefix("unix:").removeprefix("//")
        return await _dial(target, socket.AF_UNIX, path)
    if found := _ADDRESS.match(target):
        family = socket.AF_INET6 if found["v6"] else socket.AF_INET
        return await _dial(target, family, (found["v6"] or found["host"], int(found["port"])))
    raise UsageError(
        f"{target!r} is no address: https://host/path, unix:/path, tcp://host:port; "
        f"a command is a list, such as [{target!r}]"
    )


async def _dial(target: str, family: int, address: Any) -> Transport:
    connection = socket.socket(family, socket.SOCK_STREAM)
    with connection:
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, address)
        except OSError as error:
            known = error.errno is not None and error.errno > 0
            reason = os.strerror(cast(int, error.errno)) if known else error.strerror or str(error)
            raise ConnectionLost(f"{target}: {reason}") from error
        if family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return StreamTransport(connection.fileno(), connection.fileno())


class _Inside:
    """A server in this process, and the transport to it."""

    def __init__(self, service: Service) -> None:
        self._near, far = memory_pair()
        self._session = ServerSession(service, far)
        self._serving = asyncio.get_running_loop().create_task(self._session.run())

    async def read(self) -> bytes:
        return await self._near.read()

    def write(self, data: bytes) -> None:
        self._near.write(data)

    @property
    def congested(self) -> bool:
        return self._near.congested

    async def drain(self) -> None:
        await self._near.drain()

    async def close(self) -> None:
        """End the connection, and wait until the server has ended its side."""
        await self._near.close()
        if not self._session.begun:  # it does not see yet that the connection has ended
            self._session.stop()
        await asyncio.wait([self._serving])
        if not self._serving.cancelled() and (error := self._serving.exception()) is not None:
            raise error
