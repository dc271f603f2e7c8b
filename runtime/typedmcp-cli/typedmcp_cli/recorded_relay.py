"""Passes messages between a client and a server process, and records them.

Bytes are passed on as they arrive, so that the two sides see the connection that they would have without a recording.
"""

from __future__ import annotations

import asyncio
from typing import Final

from typedmcp import StdioServerParameters
from typedmcp.building import decode_json, is_object, limit_time
from typedmcp.frames import ObservedTransport, Sender
from typedmcp.limits import DEFAULT_LIMITS
from typedmcp.transports import Transport
from typedmcp.transports.process import ProcessTransport
from typedmcp.transports.stdio import stdio
from typedmcp_cli.recording.recorder import RecordedConnection, Recorder

__all__ = ["relay"]

_ANSWER_SECONDS: Final = 2.0
"""Time for responses once the client has closed its side: a pipeline waits for them, a host that leaves does not."""
_SIGNAL_STATUS: Final = 128
"""Added to the number of a signal, as shells do."""


async def relay(parameters: StdioServerParameters, recorder: Recorder) -> int:
    """Start a server for the client at standard input and output, until one of them ends; return an exit status."""
    async with stdio() as host:
        server = await ProcessTransport.start(parameters)
        try:
            await _RecordedRelay(host, server, recorder.open()).run()
        finally:
            await server.close()
            recorder.close()
        status = server.exit_status
        return 0 if status is None else status if status >= 0 else _SIGNAL_STATUS - status


class _RecordedRelay:
    """Passes the messages of one client and one server to each other."""

    def __init__(self, host: Transport, server: Transport, recorded: RecordedConnection) -> None:
        self._host = host
        self._server = ObservedTransport(server, self._observe, DEFAULT_LIMITS.message_bytes)
        self._recorded = recorded
        self._open: set[int | str] = set()
        """The client's requests without a response."""
        self._has_answered = asyncio.Event()
        self._pending = bytearray()

    async def run(self) -> None:
        """Pass messages until a side ends. Responses may follow for a moment after the end of the client."""
        from_host = asyncio.create_task(self._forward_host())
        from_server = asyncio.create_task(_forward(self._server, self._host))
        try:
            await asyncio.wait([from_host, from_server], return_when=asyncio.FIRST_COMPLETED)
            if not from_server.done():
                await limit_time(_ANSWER_SECONDS, self._wait_for_answers(from_server))
        finally:
            for task in (from_host, from_server):
                task.cancel()
            await asyncio.wait([from_host, from_server])

    async def _forward_host(self) -> None:
        """Pass whole lines of the client on, since a transport reports what is written to it line by line."""
        while data := await self._host.read():
            self._pending += data
            whole, newline, rest = bytes(self._pending).rpartition(b"\n")
            self._pending[:] = rest
            if newline:
                self._server.write(whole + newline)
                await self._server.drain()

    def _observe(self, sender: Sender, data: bytes) -> None:
        self._recorded(sender, data)
        try:
            message: object = decode_json(data)
        except ValueError:
            return
        if not is_object(message) or not isinstance(id := message.get("id"), int | str):
            return
        if sender == "client" and "method" in message:
            self._open.add(id)
        elif sender == "server" and "method" not in message:
            self._open.discard(id)
            self._has_answered.set()

    async def _wait_for_answers(self, from_server: asyncio.Task[None]) -> None:
        while self._open and not from_server.done():
            self._has_answered.clear()
            answered = asyncio.create_task(self._has_answered.wait())
            await asyncio.wait([answered, from_server], return_when=asyncio.FIRST_COMPLETED)
            answered.cancel()


async def _forward(source: Transport, sink: Transport) -> None:
    while data := await source.read():
        sink.write(data)
        await sink.drain()
