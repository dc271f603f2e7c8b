"""Keeps the client's connection over standard input and output while `reloader` restarts the server.

Messages pass through this process as whole lines. The old server responds to the requests that it has received
before it ends; further lines wait for the new server. A client of a revision with a handshake is not asked to repeat
it: the new server receives the recorded one, and nothing else. Requests that a server leaves without a response get an
error.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from typedmcp.building import decode_json, is_object
from typedmcp.errors import INTERNAL_ERROR
from typedmcp.protocol.framing import Framer
from typedmcp.transports import Transport
from typedmcp_cli.server_process import ServerProcess

__all__ = ["RelayedServer"]

_READ_SIZE = 1 << 16
_LIST_FEATURES = ("tools", "resources", "prompts")


class _RelayedMessage(msgspec.Struct):
    """The members of a message that the relay uses."""

    id: int | str | None = None
    method: str | None = None
    result: msgspec.Raw = msgspec.Raw()


class RelayedServer(ServerProcess):
    """A server whose messages to and from the client pass through this process."""

    def __init__(self, command: Sequence[str], lifeline: int, client: Transport) -> None:
        super().__init__(command, lifeline)
        self._client = client
        self._ready = asyncio.Event()
        self._forwarding: asyncio.Task[None] | None = None
        self._handshake: dict[str, bytes] = {}
        """The lines of the client's handshake, by method."""
        self._open: dict[int | str, None] = {}
        """Requests of the client that have no response yet."""
        self._replayed_id: int | str | None = None
        """The id of the replayed `initialize`: the client has had its response from an earlier server."""

    async def start(self) -> None:
        """Start the server, and replay the client's handshake if there was one."""
        process = await self._start_process(PIPE)
        self._forwarding = asyncio.create_task(self._forward_server(process))
        if "notifications/initialized" in self._handshake:
            self._replayed_id = _decode_line(self._handshake["initialize"]).id
            await self._write_to_server(b"".join(self._handshake.values()))
        self._ready.set()

    async def stop(self) -> None:
        """End the server by closing its input, so that it responds to the requests that it has received."""
        self._ready.clear()
        await super().stop()
        if self._forwarding is not None:
            await self._forwarding

    def _request_end(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def forward_client(self, ended: asyncio.Event) -> None:
        """Forward the client's lines to the server; set `ended` when the client closes its output."""
        await _for_each_line(self._client.read, self._on_client_line)
        ended.set()

    async def _on_client_line(self, line: bytes) -> None:
        message = _decode_line(line)
        await self._ready.wait()
        if message.method in ("initialize", "notifications/initialized"):
            self._handshake[message.method] = line
        if message.method is not None and message.id is not None:
            self._open[message.id] = None
        await self._write_to_server(line)

    async def _write_to_server(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):  # the server has exited; `_forward_server` answers the open requests
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def _forward_server(self, process: Process) -> None:
        """Forward the server's lines to the client; answer open requests with an error when the server has exited."""
        assert process.stdout is not None
        stdout = process.stdout
        await _for_each_line(lambda: stdout.read(_READ_SIZE), self._on_server_line)
        self._ready.clear()  # further lines wait for the next server
        for id in [*self._open]:
            error = {"code": INTERNAL_ERROR, "message": "the server ended before it responded"}
            await self._send_to_client({"jsonrpc": "2.0", "id": id, "error": error})
        self._open.clear()

    async def _on_server_line(self, line: bytes) -> None:
        message = _decode_line(line)
        if message.method is None and message.id is not None:
            if message.id == self._replayed_id:
                self._replayed_id = None
                await self._notify_list_changes(message)
                return
            self._open.pop(message.id, None)
        await self._write_to_client(line)

    async def _notify_list_changes(self, response: _RelayedMessage) -> None:
        """Notify the client that its lists may be out of date, as far as the new server declares such notifications."""
        result: object = msgspec.json.decode(response.result) if response.result else {}
        capabilities: object = result.get("capabilities", {}) if is_object(result) else {}
        for name in _LIST_FEATURES:
            feature: object = capabilities.get(name) if is_object(capabilities) else None
            if is_object(feature) and feature.get("listChanged"):
                await self._send_to_client({"jsonrpc": "2.0", "method": f"notifications/{name}/list_changed"})

    async def _send_to_client(self, message: dict[str, Any]) -> None:
        await self._write_to_client(msgspec.json.encode(message) + b"\n")

    async def _write_to_client(self, line: bytes) -> None:
        self._client.write(line)
        await self._client.drain()


async def _for_each_line(read: Callable[[], Awaitable[bytes]], use: Callable[[bytes], Awaitable[None]]) -> None:
    framer = Framer(depth=sys.maxsize)  # the other side rejects what is too deep
    while data := await read():
        for line in framer.feed(data):
            if isinstance(line, bytes):
                await use(line + b"\n")


def _decode_line(line: bytes) -> _RelayedMessage:
    """Decode the members that the relay uses; return an empty message for anything but a single message."""
    try:
        message: _RelayedMessage = decode_json(line, _RelayedMessage)
    except ValueError:
        return _RelayedMessage()
    return message
