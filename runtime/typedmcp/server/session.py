"""Sessions: what is known of one client, or of all clients that have no session.

`ServerSession` is for one client: of a connection of lines, or of a session over HTTP, which is its `SessionHome`.
`StatelessSession` of `typedmcp.server.http` is for requests that belong to no session. `SessionCore` is what both have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from mcpspec.support.converters import DroppedFields
from typedmcp.errors import INVALID_REQUEST, UnsupportedVersionError
from typedmcp.frames import OnFrame
from typedmcp.observers import Network
from typedmcp.protocol.codec import Codec, Notification, encode_message
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, OversizeMessage, RequestId
from typedmcp.revisions.features import DIALECT
from typedmcp.revisions.notifications import downgrade_notification
from typedmcp.server.calls import ServedCalls, StartedCall
from typedmcp.server.channel import Channel, Outlet
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context
from typedmcp.server.ending import EndCallbacks
from typedmcp.server.engine import Engine
from typedmcp.server.handshake import Handshake
from typedmcp.server.input_requests import InputRequests
from typedmcp.server.metadata import MetadataCache, RequestMetadata
from typedmcp.server.slow_path import SlowPath
from typedmcp.server.subscriptions import Subscriptions

if TYPE_CHECKING:
    from typedmcp.server.observation import ServerObservation

__all__ = ["ServerSession", "SessionCore", "SessionHome", "SessionPlace", "StoredSide"]

T = TypeVar("T")


class SessionPlace(Protocol):
    """The place where a session is served: by a connection of lines, or by an application over HTTP."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def is_local(self) -> bool: ...
    @property
    def network(self) -> Network | None: ...
    @property
    def stored_session_id(self) -> str | None: ...


class SessionHome(SessionPlace, Protocol):
    """The place where the session of one client is served.

    `outlet` sends the messages that belong to no request. `listen` publishes changes to the subscriptions, until the
    returned function is called. `on_open` is called at the end of the handshake.
    """

    @property
    def session_id(self) -> str: ...
    @property
    def outlet(self) -> Outlet: ...
    def listen(self) -> Callable[[], None]: ...
    def on_open(self) -> None: ...


class StoredSide(Protocol):
    """The part of a session that outlives its connections, and may be used on several workers.

    `request_id` makes the JSON-RPC ids of requests to the client. `cancel_elsewhere` cancels a request on other
    workers, and returns False if none can have it.
    """

    def save_level(self, level: str) -> None: ...
    def request_id(self, number: int) -> RequestId: ...
    def handle_response(self, frame: Frame) -> None: ...
    def cancel_elsewhere(self, id: RequestId) -> bool: ...
    async def add_subscription(self, ctx: Context, uri: str) -> None: ...
    async def remove_subscription(self, ctx: Context, uri: str) -> None: ...


class SessionCore:
    """The core of every session. It is the `ContextBackend` of its calls.

    `listen` begins to publish changes to the subscriptions. `request_id` makes the ids of requests to the client; None
    if it cannot be asked.
    """

    __slots__ = (
        "__weakref__", "_closing", "_slow_path", "calls", "codec", "end_callbacks", "engine", "handshake", "in_flight",
        "is_closed", "metadata", "place", "questions", "subscriptions",
    )  # fmt: skip

    is_shared: bool = False
    """True if the requests are of several clients, so that their ids may be equal."""

    def __init__(
        self,
        engine: Engine,
        place: SessionPlace,
        handshake: Handshake | None,
        listen: Callable[[], Callable[[], None]],
        request_id: Callable[[int], RequestId] | None,
    ) -> None:
        self.engine: Engine = engine
        self.place: SessionPlace = place
        self.handshake: Handshake | None = handshake
        self.in_flight: dict[Any, Context] = {}
        """The requests whose handlers wait."""
        self.metadata: MetadataCache = MetadataCache(self._check_version)
        self.calls: ServedCalls = ServedCalls(engine, self, _observation_of(self))
        self.questions: InputRequests = InputRequests(self.calls, self.send, request_id)
        self.subscriptions: Subscriptions = Subscriptions(self, listen)
        self._slow_path = SlowPath(self, self.calls)
        self._closing: asyncio.Event | None = None
        self.end_callbacks: EndCallbacks = EndCallbacks()
        """The functions for the end of the connection or session."""
        self.is_closed: bool = False
        """True once nothing more is sent."""
        modern = engine.config.modern_revisions
        self.use_revision(modern[0] if modern else DIALECT)

    def use_revision(self, revision: str) -> None:
        """Expect requests of a revision. Others take the slow path, which then expects theirs."""
        self.codec: Codec = self.engine.codec_for(revision)

    def _check_version(self, revision: str) -> None:
        config = self.engine.config
        if revision not in config.modern_revisions:
            raise UnsupportedVersionError(revision, config.revisions)

    # For contexts

    @property
    def config(self) -> ServerConfig:
        """The configuration of the server."""
        return self.engine.config

    @property
    def thread_id(self) -> int:
        """The thread of the event loop."""
        return self.engine.thread_id

    @property
    def is_local(self) -> bool:
        """False for clients over HTTP."""
        return self.place.is_local

    @property
    def session_id(self) -> str | None:
        """A text that identifies the connection or session. None for clients without a session."""
        return None

    @property
    def stored_session_id(self) -> str | None:
        """The id of a session that may outlive its connections. None for others."""
        return self.place.stored_session_id

    def ask(self, ctx: Context, requests: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        """Ask the client for input. `Context.ask` describes it."""
        return self.questions.ask(ctx, requests)

    def run_in_thread(self, ctx: Context, function: Callable[..., T], *args: Any) -> Coroutine[Any, Any, T]:
        """Run a function that blocks in one of the server's threads, and return its result."""
        return self.engine.run_in_thread(ctx, function, *args)

    def call_in_loop(self, ctx: Context, send: Callable[[], None]) -> None:
        """Call a function in the event loop, and wait in the calling thread until the client keeps up."""

        async def send_and_drain() -> None:
            send()
            if ctx.channel.is_congested:
                await ctx.channel.drain()

        asyncio.run_coroutine_threadsafe(send_and_drain(), self.place.loop).result()

    def report(self, diagnostic: Diagnostic) -> None:
        """Pass a diagnostic to `on_diagnostic`. Errors that it raises are logged."""
        self.engine.report(diagnostic)

    # The client

    @property
    def closing(self) -> asyncio.Event:
        """Set when nothing more is read. Few sessions over HTTP need one."""
        if self._closing is None:
            self._closing = asyncio.Event()
        return self._closing

    def open(self, metadata: RequestMetadata) -> None:
        """Serve a client of a legacy revision, after its handshake."""
        self.metadata.open_session(metadata)
        self.use_revision(metadata.revision)

    def open_frames(self) -> OnFrame | None:
        """Return the function for the messages on the wire; None without a sink for them."""
        sink = self.config.record
        if sink is None:
            return None
        from typedmcp.server.observation import ObservedConnection  # loaded where it is used

        return sink.open(ObservedConnection(self))

    # Messages of clients

    def dispatch_slow(self, line: bytes | OversizeMessage, channel: Channel) -> StartedCall:
        """Handle a message that the fast path did not decode. Return a call whose handler has to be awaited."""
        return self._slow_path.dispatch(line, channel)

    def handle_response(self, frame: Frame, channel: Channel) -> None:
        """Reject a response: nothing was asked."""
        text = "a response to no request: servers send no requests on this revision"
        self.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, id=frame.id, params=frame.value))
        channel.refuse_unanswerable(INVALID_REQUEST, text)

    def cancel(self, id: RequestId) -> bool:
        """Cancel a request of the client. Return False if no request in flight has this id."""
        ctx = self.in_flight.get(id)
        if ctx is None:
            return False
        self.calls.cancel(ctx)
        return True

    def set_log_level(self, level: str) -> None:
        """Change the log level of the client, if it is remembered."""
        self.metadata.set_log_level(level)

    async def add_subscription(self, ctx: Context, uri: str) -> None:
        """Subscribe the client to a resource. Raises `RemoteError` at a limit."""
        self.subscriptions.add(ctx, uri)

    async def remove_subscription(self, ctx: Context, uri: str) -> None:  # noqa: ARG002  # a session needs it
        """End a subscription."""
        self.subscriptions.remove(uri)

    # Messages to clients

    def _outlet(self, ctx: Context | None) -> Outlet | None:
        """Return what sends the messages of a request; None if there is none for those that belong to no request."""
        return None if ctx is None else ctx.channel

    def send(self, ctx: Context | None, message: msgspec.Struct) -> bool:
        """Encode and send a notification or a request. Return False if that is impossible.

        Raises `TypeError` or `ValueError` if it cannot be encoded.
        """
        outlet = self._outlet(ctx)
        if self.is_closed or outlet is None:
            return False
        if self.calls.observer is not None:
            message = self.calls.observer.on_send(ctx, message)
        return outlet.send_message(ctx, encode_message(message))

    def notify(self, ctx: Context | None, method: str, params: msgspec.Struct) -> None:
        """Send a notification in the revision of its request, or in that of the session."""
        if ctx is not None and (ctx.cancelled or ctx.is_answered):
            return
        revision = self.codec.revision if ctx is None else ctx.revision
        dropped: DroppedFields = []
        sent = downgrade_notification(method, params, revision, dropped)
        if sent is not None:
            self.send(ctx, Notification("2.0", method, sent))
        self.engine.report_dropped(dropped, method, revision)

    def is_congested(self, ctx: Context | None) -> bool:
        """Return whether the client does not read what is sent to it."""
        outlet = self._outlet(ctx)
        return outlet is not None and outlet.is_congested

    def drain_later(self, ctx: Context | None) -> None:
        """Send delayed changes as soon as the client reads again."""
        outlet = self._outlet(ctx)
        if outlet is not None:
            outlet.call_when_drained(self.subscriptions.resume)


def _observation_of(session: SessionCore) -> ServerObservation | None:
    """Return what observes a session, if the server has telemetry."""
    telemetry = session.engine.config.telemetry
    if telemetry is None:
        return None
    from typedmcp.server.observation import ServerObservation  # loaded where it is used

    return ServerObservation(session, telemetry)


class ServerSession(SessionCore):
    """The session of one client.

    `on_restart` is called when a new one begins in its place, if that is possible. `stored` is the part of it that
    outlives its connections, if there is one.
    """

    __slots__ = ("home", "stored")

    def __init__(
        self,
        engine: Engine,
        home: SessionHome,
        *,
        on_restart: Callable[[Frame], None] | None = None,
        stored: StoredSide | None = None,
    ) -> None:
        self.home: SessionHome = home
        self.stored: StoredSide | None = stored
        request_id = _use_number if stored is None else stored.request_id
        super().__init__(engine, home, Handshake(engine.config, self.open, on_restart), home.listen, request_id)

    def open(self, metadata: RequestMetadata) -> None:
        """Serve the client, after its handshake."""
        super().open(metadata)
        self.home.on_open()

    @property
    def session_id(self) -> str:
        """A text that identifies the connection or session."""
        return self.home.session_id

    def handle_response(self, frame: Frame, channel: Channel) -> None:  # noqa: ARG002
        """Handle the client's response to a request of this server."""
        if self.stored is None:
            self.questions.handle_response(frame.id, frame)
        else:
            self.stored.handle_response(frame)

    def cancel(self, id: RequestId) -> bool:
        """Cancel a request of the client. Return False if no request in flight has this id."""
        return super().cancel(id) or (self.stored is not None and self.stored.cancel_elsewhere(id))

    def set_log_level(self, level: str) -> None:
        """Change the log level of the client, unless it is a modern one, which repeats it."""
        super().set_log_level(level)
        if self.metadata.session is not None and self.stored is not None:
            self.stored.save_level(level)

    async def add_subscription(self, ctx: Context, uri: str) -> None:
        """Subscribe the client to a resource. Raises `RemoteError` at a limit."""
        if self.stored is None:
            await super().add_subscription(ctx, uri)
        else:
            await self.stored.add_subscription(ctx, uri)

    async def remove_subscription(self, ctx: Context, uri: str) -> None:
        """End a subscription of the client."""
        if self.stored is None:
            await super().remove_subscription(ctx, uri)
        else:
            await self.stored.remove_subscription(ctx, uri)

    def _outlet(self, ctx: Context | None) -> Outlet | None:
        return self.home.outlet if ctx is None else ctx.channel


def _use_number(number: int) -> RequestId:
    """Return the id of a request to the only client of a session."""
    return number
