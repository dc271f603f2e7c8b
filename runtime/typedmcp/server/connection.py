"""A connection that carries lines, such as standard input and output: its session, its channel, and their life."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import os
from collections.abc import Callable, Mapping

from typedmcp.frames import ObservedTransport
from typedmcp.observers import Network
from typedmcp.protocol.budgets import ClientKey
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame
from typedmcp.server.batches import BatchChannel
from typedmcp.server.channel import Channel
from typedmcp.server.config import CANCELLATION_SHARE, ServerConfig
from typedmcp.server.engine import Engine
from typedmcp.server.handshake import Handshake
from typedmcp.server.home import SessionHome
from typedmcp.server.line_channel import LineChannel
from typedmcp.server.line_workers import LineWorkers
from typedmcp.server.principal import Principal
from typedmcp.server.session import Session
from typedmcp.transports import Transport, network_of

__all__ = ["ServerConnection"]

_numbers = itertools.count(1)


class ServerConnection(SessionHome):
    """Serves one connection until it ends, as the home of its session.

    `principal` is who the client authenticated as, if it did. `client` is the client that budgets count for, by default
    the principal or the connection. `engine` serves the functions, by default one of its own. `request_headers` are
    those of the HTTP request that opened the connection, if there was one: then the client is not local.
    """

    def __init__(
        self,
        config: ServerConfig,
        transport: Transport,
        *,
        principal: Principal | None = None,
        client: ClientKey = None,
        engine: Engine | None = None,
        request_headers: Mapping[str, str] | None = None,
    ) -> None:
        if client is None:
            client = f"connection {next(_numbers)}" if principal is None else f"principal {principal.key}"
        self.is_local: bool = request_headers is None
        self.has_begun: bool = False
        """True once the lifespan has been entered."""
        self._config = config
        self._transport = transport
        handshake = Handshake(config, None if config.strict else self._on_restart)
        self.session: Session = Session(engine or Engine(config), self, handshake)
        """What is known of the client."""
        if (on_frame := self.session.open_frames()) is not None:
            self._transport = ObservedTransport(transport, on_frame, config.limits.message_bytes, peer="client")
        self.outlet: LineChannel = LineChannel(
            self._transport,
            principal=principal,
            client=client,
            request_headers=request_headers or {},
            spawn=self.session.calls.create_task,
            on_broken=self.stop,
            report=config.report,
        )
        """The channel of all messages."""
        self.session.outlet = self.outlet
        self._workers = LineWorkers(self.session, self.outlet, self._transport)
        self._finished: asyncio.Future[None] | None = None
        self._session_id: str | None = None

    # Running

    async def run(self) -> None:
        """Serve until the client closes the connection or `stop` is called.

        Then give open requests `grace` seconds, cancel them, and send nothing more. If the client has left its session,
        they are cancelled at once.
        """
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        finished = self._finished = self.loop.create_future()
        session, tasks = self.session, self.session.calls.tasks
        if session.closing.is_set():
            finished.set_result(None)
        if not await self._begin(finished):
            return
        self._workers.run(contextvars.copy_context(), finished)
        try:
            await finished
            session.closing.set()
            self._fail_questions()
            if tasks:
                grace = 0 if self._workers.has_client_left else self._config.connection_grace
                await asyncio.wait(set(tasks), timeout=grace)
        finally:
            if session.calls.observer is not None:
                session.calls.observer.on_end()
            await self._end()

    async def _begin(self, finished: asyncio.Future[None]) -> bool:
        """Enter the lifespan. Return False if the connection is stopped first."""
        entering = self.loop.create_task(self._config.lifespans.enter())
        try:
            await asyncio.wait([entering, finished], return_when=asyncio.FIRST_COMPLETED)
            self.has_begun = entering.done()
            if self.has_begun:
                await entering
        finally:
            if not entering.done():
                entering.cancel()
                await asyncio.wait([entering])
            if not self.has_begun or entering.exception() is not None:  # the client cannot be served
                await self._transport.close()
        return self.has_begun

    @property
    def is_stopping(self) -> bool:
        """True once nothing more is read."""
        return self.session.closing.is_set()

    def stop(self) -> None:
        """End the connection from this side: nothing more is read, open requests may finish.

        A connection that does not run yet ends as soon as `run` is called.
        """
        self.session.closing.set()
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)
        self._workers.stop()

    async def _end(self) -> None:
        """Cancel the open requests, and leave the lifespan while the client reads what was written before."""
        config, tasks = self._config, self.session.calls.tasks
        self._cancel_requests()
        if not tasks and not config.lifespans.is_open:
            await self._close_transport()
            return
        closing = self.loop.create_task(self._close_transport())
        try:
            if tasks:
                seconds = config.connection_grace * CANCELLATION_SHARE
                _, unended = await asyncio.wait(set(tasks), timeout=seconds)
                config.report_unended(unended, seconds)
        finally:
            try:
                await config.lifespans.leave()
            finally:
                await asyncio.wait([closing])
        closing.result()

    def _cancel_requests(self) -> None:
        """Cancel the open requests, and send nothing more."""
        session = self.session
        self.outlet.flush()
        session.is_closed = True
        session.closing.set()
        session.end_callbacks.call()
        session.subscriptions.close()
        self._discard_batches()
        self._fail_questions()
        session.calls.end()

    async def _close_transport(self) -> None:
        """Send what was written, as far as the client reads it, and end the connection."""
        try:
            async with asyncio.timeout(self._config.connection_grace):
                await self._transport.close()
        except TimeoutError:
            text = "the connection ended before the client had read everything"
            self._config.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text))

    def _fail_questions(self) -> None:
        """Fail the open requests to the client, since no more responses are read."""
        self.session.questions.fail_all("the connection ended")

    def _discard_batches(self) -> None:
        """Send no response to the batches of the open requests, not even for their other requests."""
        for ctx in self.session.in_flight.values():
            if isinstance(ctx.channel, BatchChannel):
                ctx.channel.discard()

    # The home of the session

    @property
    def session_id(self) -> str:
        """A text that identifies the connection."""
        if self._session_id is None:
            self._session_id = os.urandom(32).hex()
        return self._session_id

    @property
    def network(self) -> Network | None:
        """The carrier of the messages. None if the transport does not say it."""
        return network_of(self._transport) if self.is_local else "http"

    def listen(self) -> Callable[[], None]:
        """Publish the changes of the server to the client, until the returned function is called."""
        return self._config.changes.listen(self.session.subscriptions.publish, asyncio.get_running_loop())

    def handle_response(self, frame: Frame) -> bool:
        """Handle the client's response to a request of this server."""
        self.session.questions.handle_response(frame.id, frame)
        return True

    async def add_subscription(self, channel: Channel, uri: str) -> None:
        """Subscribe the client to a resource. Raises `RemoteError` at a limit."""
        self.session.subscriptions.add(channel, uri)

    async def remove_subscription(self, channel: Channel, uri: str) -> None:  # noqa: ARG002
        """End a subscription."""
        self.session.subscriptions.remove(uri)

    def on_open(self) -> None:
        """Notify the client of changes: its handshake is complete."""
        self.session.subscriptions.add_session()

    def _on_restart(self, frame: Frame) -> None:
        """Begin a new session on this connection. Its client has left it, such as the earlier user of a proxy.

        The open requests are cancelled without a response: the new client uses their ids again.
        """
        session = self.session
        text = "initialize: a new session begins on this connection, in place of the one that was open"
        session.config.report(Diagnostic(DiagnosticKind.TOLERATED, text, frame.method, frame.id))
        self._discard_batches()
        for ctx in list(session.in_flight.values()):
            session.calls.cancel(ctx)
        self._fail_questions()
        session.subscriptions.close()
        session.subscriptions.uris.clear()
        session.metadata.open_session(None)
