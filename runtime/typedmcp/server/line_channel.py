"""The channel of a connection that carries lines. It collects responses that are made soon after one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from typedmcp.observers import RequestInfo
from typedmcp.protocol.budgets import ClientKey
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.server.channel import Channel
from typedmcp.server.principal import Principal
from typedmcp.transports import Transport

__all__ = ["LineChannel"]

_FLUSH_LINES: Final = 32
"""Short lines that are collected before they are sent: the client works on them while others are made."""
_SHORT_BYTES: Final = 2048
"""Bytes of a short line. A longer one is sent at once, with those before it."""
_LARGE_BYTES: Final = 1 << 16
"""A message of more bytes is sent by itself, since copying it to the others would cost more."""


class LineChannel(Channel):
    """Sends lines over a transport.

    `spawn` runs a coroutine in a task, and `on_broken` is called when the transport cannot write. The other arguments
    describe the client.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        principal: Principal | None,
        client: ClientKey,
        request_headers: Mapping[str, str],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        on_broken: Callable[[], None],
        report: Callable[[Diagnostic], None],
    ) -> None:
        self.principal: Principal | None = principal
        self._client, self._request_headers, self._transport = client, request_headers, transport
        self._spawn, self._on_broken, self._report = spawn, on_broken, report
        self.will_flush: bool = False
        """True while somebody is going to call `flush`."""
        self._out: list[bytes] = []
        self._draining: asyncio.Task[None] | None = None
        self._resume: Callable[[], None] | None = None

    @property
    def client(self) -> ClientKey:
        """The client that budgets count for."""
        return self._client

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request that opened the connection, if there was one."""
        return self._request_headers

    def send_fast(self, line: bytes) -> None:
        """Send a line."""
        out, size = self._out, len(line)
        if size > _LARGE_BYTES:
            self._write_out()
            self._write(line)
            self._write(b"\n")
            return
        out.append(line)
        if size > _SHORT_BYTES or len(out) >= _FLUSH_LINES:
            self._write_out()
        elif not self.will_flush:
            self.will_flush = True
            asyncio.get_running_loop().call_soon(self.flush)

    def send_message(self, ctx: RequestInfo | None, line: bytes) -> bool:  # noqa: ARG002  # all share the connection
        """Send a notification or a request."""
        self.send_fast(line)
        return True

    @property
    def is_congested(self) -> bool:
        """True while the client does not read what is sent to it."""
        return self._transport.is_congested

    async def drain(self) -> None:
        """Wait until the client reads again."""
        self.flush()
        await self._transport.drain()
        if self._resume is not None:
            self._resume()

    def call_when_drained(self, resume: Callable[[], None]) -> None:
        """Call a function as soon as the client reads again."""
        self._resume = resume
        if self._draining is None or self._draining.done():
            self._draining = self._spawn(self.drain())

    def flush(self) -> None:
        """Write what was collected."""
        self.will_flush = False
        self._write_out()

    def _write_out(self) -> None:
        out = self._out
        if out:
            out.append(b"")  # ends the last line
            data = b"\n".join(out)
            out.clear()
            self._write(data)

    def _write(self, data: bytes) -> None:
        try:
            self._transport.write(data)
        except OSError as error:
            self.report_broken(error)
            self._on_broken()

    def report_broken(self, error: OSError) -> None:
        """Report that the connection broke."""
        text = f"the connection broke: {error}"
        self._report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text, error=error))
