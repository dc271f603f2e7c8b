"""Sessions: what is known of one client, or of all clients that have no session.

The place where a session is served, such as a connection of lines, is its `SessionHome`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from mcpspec.support.converters import DroppedFields
from typedmcp.errors import UnsupportedVersionError
from typedmcp.frames import OnFrame
from typedmcp.protocol.codec import Codec, Notification, encode_message
from typedmcp.protocol.framing import OversizeMessage, RequestId
from typedmcp.revisions.features import DIALECT
from typedmcp.revisions.notifications import downgrade_notification
from typedmcp.server.calls import ServedCalls
from typedmcp.server.channel import Channel, Outlet
from typedmcp.server.config import ServerConfig
from typedmcp.server.context import Context, StartedCall
from typedmcp.server.engine import Engine
from typedmcp.server.handshake import Handshake
from typedmcp.server.home import EndCallbacks, SessionHome
from typedmcp.server.input_requests import InputRequests
from typedmcp.server.metadata import MetadataCache, RequestMetadata
from typedmcp.server.slow_path import SlowPath
from typedmcp.server.subscriptions import Subscriptions
from typedmcp.transports.concurrency import ThreadLimiter

if TYPE_CHECKING:
    from typedmcp.server.observation import ServerObservation

__all__ = ["Session"]


class Session:
    """Knowledge of one client, or of all that have no session. It is the backend of the contexts of its calls."""

    __slots__ = (
        "__weakref__", "_closing", "_slow_path", "calls", "codec", "config", "end_callbacks", "engine", "handshake",
        "home", "in_flight", "is_closed", "is_shared", "metadata", "outlet", "questions", "subscriptions", "thread_id",
        "threads",
    )  # fmt: skip

    def __init__(self, engine: Engine, home: SessionHome, handshake: Handshake | None) -> None:
        self.engine: Engine = engine
        self.config: ServerConfig = engine.config
        self.threads: ThreadLimiter = engine.threads
        self.thread_id: int = engine.thread_id
        self.home: SessionHome = home
        self.is_shared: bool = home.is_shared
        self.outlet: Outlet | None = None
        """Sends the messages that belong to no request, if there can be any."""
        self.in_flight: dict[Any, Context] = {}
        """The requests whose handlers wait."""
        self.metadata: MetadataCache = MetadataCache(self._check_version)
        self.calls: ServedCalls = ServedCalls(engine, self, self._observation(handshake))
        self.questions: InputRequests = InputRequests(self.calls)
        self.subscriptions: Subscriptions = Subscriptions(self)
        self.handshake: Handshake | None = handshake
        if handshake is not None:
            handshake.on_open = self.open
        self._slow_path = SlowPath(self, self.calls)
        self._closing: asyncio.Event | None = None
        self.end_callbacks: EndCallbacks = EndCallbacks()
        """The functions for the end of the connection or session."""
        self.is_closed: bool = False
        """True once nothing more is sent."""
        modern = engine.config.modern_revisions
        self.use_revision(modern[0] if modern else DIALECT)

    def _observation(self, handshake: Handshake | None) -> ServerObservation | None:
        """Return what observes the session, if the server has telemetry."""
        telemetry = self.config.telemetry
        if telemetry is None:
            return None
        from typedmcp.server.observation import ObservedConnection, ServerObservation  # loaded where it is used

        connection = ObservedConnection(self.engine, self.home, handshake)
        return ServerObservation(self.config, telemetry.observe_server(connection))

    def open_frames(self) -> OnFrame | None:
        """Return the function for the messages on the wire; None without a sink for them."""
        if self.config.record is None:
            return None
        from typedmcp.server.observation import ObservedConnection  # loaded where it is used

        return self.config.record.open(ObservedConnection(self.engine, self.home, self.handshake))

    def use_revision(self, revision: str) -> None:
        """Expect requests of a revision. Others take the slow path, which then expects theirs."""
        self.codec: Codec = self.config.codec_for(revision)

    def _check_version(self, revision: str) -> None:
        if revision not in self.config.modern_revisions:
            raise UnsupportedVersionError(revision, self.config.revisions)

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
        self.home.on_open()

    # Messages of clients

    def dispatch_slow(self, line: bytes | OversizeMessage, channel: Channel) -> StartedCall:
        """Handle a message that the fast path did not decode. Return a call whose handler has to be awaited."""
        return self._slow_path.dispatch(line, channel)

    def cancel(self, id: RequestId) -> bool:
        """Cancel a request of the client. Return False if no request in flight has this id."""
        if (ctx := self.in_flight.get(id)) is None:
            return self.home.cancel_elsewhere(id)
        self.calls.cancel(ctx)
        return True

    def set_log_level(self, level: str) -> None:
        """Change the log level of the client, unless it is a modern one, which repeats it."""
        self.metadata.set_log_level(level)
        if self.metadata.session is not None:
            self.home.save_level(level)

    # Messages to clients

    def ask(self, ctx: Context, requests: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        """Ask the client for input. `Context.ask` describes it."""
        return self.questions.ask(ctx, requests)

    def send(self, ctx: Context | None, message: msgspec.Struct) -> bool:
        """Encode and send a notification or a request. Return False if that is impossible.

        Raises `TypeError` or `ValueError` if it cannot be encoded.
        """
        outlet = self.outlet if ctx is None else ctx.channel
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
        self.config.report_dropped(dropped, method, revision)

    def is_congested(self, ctx: Context | None) -> bool:
        """Return whether the client does not read what is sent to it."""
        outlet = self.outlet if ctx is None else ctx.channel
        return outlet is not None and outlet.is_congested

    def drain_later(self, ctx: Context | None) -> None:
        """Send delayed changes as soon as the client reads again."""
        outlet = self.outlet if ctx is None else ctx.channel
        if outlet is not None:
            outlet.call_when_drained(self.subscriptions.resume)
