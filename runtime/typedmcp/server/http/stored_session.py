"""One session of a legacy revision over HTTP, as far as it is on this worker. Its fields are in the store."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from typedmcp.errors import INTERNAL_ERROR, RemoteError
from typedmcp.frames import OnFrame
from typedmcp.observers import RequestInfo
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, RequestId
from typedmcp.protocol.notifications import LEVELS, Change
from typedmcp.server.channel import Channel
from typedmcp.server.handshake import Handshake
from typedmcp.server.home import SessionHome
from typedmcp.server.http.channel import LEGACY_STATUSES, HttpChannel, PostTarget
from typedmcp.server.http.state import AppState
from typedmcp.server.http.streams import EventStream, StreamChannel
from typedmcp.server.metadata import RequestMetadata
from typedmcp.server.session import Session
from typedmcp.server.store import TooManySubscriptionsError
from typedmcp.server.subscriptions import too_many_subscriptions

__all__ = ["StandaloneStream", "StoredSession"]

_MAX_FORWARDED_ID: Final = 256
"""Characters of a request id that is sent to other workers."""
_NUMBER = re.compile("[0-9]{1,15}")
_FORWARDED_ID = re.compile(r"[0-9a-zA-Z]{1,40}-[0-9]{1,15}\.[0-9]{1,15}")


class _StoredClient(msgspec.Struct):
    """The field of a stored session that describes its client."""

    revision: str
    meta: dict[str, Any]


def _stored_metadata(fields: Mapping[str, str], revisions: Sequence[str]) -> RequestMetadata:
    """Return the metadata in the fields of a stored session. Raises `ValueError` if they are not valid."""
    client = msgspec.json.decode(fields.get("client", ""), type=_StoredClient)
    if client.revision not in revisions:
        raise ValueError(f"the revision {client.revision[:40]!r} is not served as a session")
    metadata = RequestMetadata(client.revision, client.meta)
    level = fields.get("level")
    if level and level not in LEVELS:
        raise ValueError("level: an unknown log level")
    metadata.log_level = level or None
    return metadata


class StandaloneStream(StreamChannel):
    """The outlet of a session: the stream for messages that belong to no request, if it is open on this worker."""

    __slots__ = ("_delivering", "last_change", "name", "stream")

    def __init__(self) -> None:
        self.stream: EventStream | None = None
        self.name: str = ""
        """Its name in the ids of its events. A stream that is resumed keeps its name, another one gets a new one."""
        self.last_change: int = 0
        """The number of the last change that was delivered."""
        self._delivering: int | None = None
        """The number of the change that is being delivered."""

    def deliver(self, number: int, publish: Callable[[], None]) -> None:
        """Deliver a change with `publish`, unless it was replayed already.

        The event's id has the number of the change. Changes that are delivered later, after congestion, have no id, so
        a client that disconnects in the meantime gets them again.
        """
        if number > self.last_change:
            self.last_change = self._delivering = number
            try:
                publish()
            finally:
                self._delivering = None

    def send_message(self, ctx: RequestInfo | None, line: bytes) -> bool:  # noqa: ARG002
        """Send a message. False if it is dropped."""
        id = None if self._delivering is None else f"{self.name}.{self._delivering}"
        return self.stream is not None and self.stream.put(line, id)

    def end(self) -> None:
        """End the stream, if it is open."""
        if self.stream is not None:
            self.stream.end()


class StoredSession(SessionHome):
    """The home of a session, and the part of it that outlives its connections.

    The fields that other workers need are in the store; `fields` is a copy of them.
    """

    __slots__ = (
        "_missed_subscriptions", "_name", "_saved_at", "create", "fields", "id", "loop", "on_frame", "outlet",
        "session", "state", "target", "unsaved", "used_at",
    )  # fmt: skip

    is_stored = True

    def __init__(
        self, state: AppState, id: str, create: Callable[[StoredSession, HttpChannel], Awaitable[None]] | None = None
    ) -> None:
        self.state: AppState = state
        self.create: Callable[[StoredSession, HttpChannel], Awaitable[None]] | None = create
        """Stores the session, if it is a new one."""
        self.loop: asyncio.AbstractEventLoop = state.loop
        self.id: str = id
        self.fields: dict[str, str] = {}
        self.outlet: StandaloneStream = StandaloneStream()
        self.used_at: float = state.loop.time()
        """The time at which it was last seen in use."""
        self.unsaved: list[Coroutine[Any, Any, Any]] = []
        """The store operations that must complete before a response is sent."""
        self._missed_subscriptions: list[tuple[str, bool]] | None = None
        """The changes of subscriptions that arrive while these are loaded."""
        self._name = state.unique_name()
        self._saved_at = 0.0
        """The time at which the fields were last stored; infinite while they have unsaved changes."""
        self.session: Session = Session(state.engine, self, Handshake(state.config))
        self.session.outlet = self.outlet
        self.on_frame: OnFrame | None = self.session.open_frames()
        """Called with the messages of the session on the wire, if there is a sink for them."""
        self.target: PostTarget = PostTarget(
            self.session.calls, state, LEGACY_STATUSES, None, lambda: self.on_frame, id
        )

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.id

    @property
    def is_idle(self) -> bool:
        """True if the session can be forgotten here, since the store has all its state."""
        session = self.session
        return not (
            session.in_flight or session.questions.pending.calls or session.calls.tasks or self.outlet.stream
            or self.unsaved
        )  # fmt: skip

    @property
    def client_size(self) -> int:
        """The length of the client's description of itself, as text."""
        return len(self.fields.get("client", ""))

    @property
    def client(self) -> RequestMetadata | None:
        """The client, once `initialize` has succeeded."""
        return None if self.session.handshake is None else self.session.handshake.metadata

    # Fields

    def initial_fields(self) -> dict[str, str]:
        """Return the fields of a session after its handshake."""
        metadata = self.client
        assert metadata is not None
        client = _StoredClient(metadata.revision, metadata.members)
        self.fields = {"client": msgspec.json.encode(client).decode(), "level": metadata.log_level or ""}
        return self.fields

    def refresh(self, fields: dict[str, str], read_at: float) -> None:
        """Apply fields read from the store, unless the session has changed since `read_at`, a time of the loop.

        Raises `ValueError` for fields that no worker of this version writes.
        """
        if fields == self.fields or read_at < self._saved_at:
            return
        session, handshake = self.session, self.session.handshake
        assert handshake is not None
        metadata = _stored_metadata(fields, self.state.config.legacy_revisions)
        self.fields = fields
        handshake.metadata, handshake.is_done = metadata, "ready" in fields
        session.use_revision(metadata.revision)
        session.metadata.open_session(metadata if handshake.is_done else None)

    def on_open(self) -> None:
        """Store that the handshake is complete."""
        self.save_fields({"ready": ""})

    def save_level(self, level: str) -> None:
        """Store the log level."""
        self.save_fields({"level": level})

    def save_fields(self, fields: Mapping[str, str]) -> None:
        """Change fields; the store gets them with the next `save`."""
        self._saved_at = math.inf
        self.fields.update(fields)
        self.unsaved.append(self.state.store.update_session(self.id, fields))
        listening_worker = self.fields.get("stream")
        if listening_worker not in (None, self.state.worker):
            self.unsaved.append(self.state.send_to(str(listening_worker), "session changed", self.id))

    @property
    def is_unsaved(self) -> bool:
        """True while there are changes to store before a response is sent, such as the session itself."""
        return self.create is not None or bool(self.unsaved)

    async def save_for(self, channel: HttpChannel) -> list[tuple[bytes, bytes]] | None:
        """Store the changes that a request has made, and return further headers of its response.

        A new session is stored if its handshake has succeeded. Raises `ConnectionError`, and `HTTPException` at limits.
        """
        headers = None
        if self.create is not None and self.client is not None and channel.code is None:
            await self.create(self, channel)
            self.create, headers = None, [(b"mcp-session-id", self.id.encode())]
        await self.save()
        return headers

    async def save(self) -> None:
        """Run the pending store operations. Raises `ConnectionError`."""
        while self.unsaved:
            await self.unsaved.pop(0)
        if self._saved_at == math.inf:
            self._saved_at = self.loop.time()

    # Subscriptions: only the worker with the standalone stream has them, the others change them in the store

    async def add_subscription(self, channel: Channel, uri: str) -> None:
        """Subscribe the session to a resource. Raises `RemoteError` at a limit."""
        with self._store_errors(channel):
            await self.state.store.subscribe(self.id, uri, self.state.config.limits.resource_subscriptions)
            await self._publish_subscription(uri, is_subscribed=True)

    async def remove_subscription(self, channel: Channel, uri: str) -> None:
        """End a subscription of the session."""
        with self._store_errors(channel):
            await self.state.store.unsubscribe(self.id, uri)
            await self._publish_subscription(uri, is_subscribed=False)

    @contextmanager
    def _store_errors(self, channel: Channel) -> Generator[None]:
        """Raise `RemoteError` for the errors of the store."""
        try:
            yield
        except TooManySubscriptionsError as error:
            self.state.report_full_store(f"subscriptions of a session: {error}")
            raise too_many_subscriptions(f"{error}") from error
        except ConnectionError as error:
            self.state.report_unreachable_store(error)
            channel.refuse_busy()
            raise RemoteError(INTERNAL_ERROR, "the server's store is unreachable: try again later") from error

    async def _publish_subscription(self, uri: str, *, is_subscribed: bool) -> None:
        """Pass a change that is stored to the worker that has the standalone stream."""
        worker, listening_worker = self.state.worker, self.fields.get("stream")
        if self.outlet.stream is not None:
            self.change_subscription(uri, is_subscribed=is_subscribed)
        elif listening_worker is not None and listening_worker != worker:
            await self.state.send_to(listening_worker, "subscription changed", self.id, uri, is_subscribed)

    def change_subscription(self, uri: str, *, is_subscribed: bool) -> None:
        """Add or remove a subscription that the store has added or removed."""
        if self._missed_subscriptions is not None:
            self._missed_subscriptions.append((uri, is_subscribed))
        uris = self.session.subscriptions.uris
        (uris.add if is_subscribed else uris.discard)(uri)

    async def load_subscriptions(self) -> None:
        """Load the subscriptions of the session. Raises `ConnectionError`."""
        missed: list[tuple[str, bool]] = []
        self._missed_subscriptions = missed
        try:
            uris = await self.state.store.load_subscriptions(self.id)
        finally:
            self._missed_subscriptions = None
        self.session.subscriptions.uris.clear()
        self.session.subscriptions.uris.update(uris)
        for uri, is_subscribed in missed:
            self.change_subscription(uri, is_subscribed=is_subscribed)

    # Messages of other workers, and to them

    def request_id(self, number: int) -> RequestId:
        """Return an id that contains the worker that waits for the response."""
        return f"{self.state.worker}.{self._name}.{number}"

    def handle_response(self, frame: Frame) -> bool:
        """Handle a client's response to a request of this worker, or forward it to the worker that waits for it."""
        worker, _, rest = str(frame.id).partition(".")
        name, _, number = rest.partition(".")
        store = self.state.store
        if worker == store.worker and name == self._name and _NUMBER.fullmatch(number):
            self.session.questions.handle_response(int(number), frame)
        elif store.is_shared and worker != store.worker and _FORWARDED_ID.fullmatch(rest):
            self.unsaved.append(self.state.send_to(worker, "response", self.id, frame.id, frame.value))
        else:
            text = "a response to no request"
            self.state.report(Diagnostic(DiagnosticKind.UNEXPECTED_RESPONSE, text, id=frame.id, params=frame.value))
        return True

    def cancel_elsewhere(self, id: RequestId) -> bool:
        """Cancel a request on other workers. Return False if none can have it."""
        if not self.state.store.is_shared or len(str(id)) > _MAX_FORWARDED_ID:
            return False
        self.unsaved.append(self.state.publish("request cancelled", self.id, id))
        return True

    # Changes

    def attach_standalone(self, stream: EventStream, name: str) -> None:
        """Use a stream as the standalone stream, and end the previous one."""
        self.outlet.end()
        self.outlet.stream, self.outlet.name = stream, name
        self.session.subscriptions.close()
        self.session.subscriptions.add_session()

    def detach_standalone(self, stream: EventStream) -> None:
        """Stop using a stream whose client has disconnected."""
        if self.outlet.stream is stream:
            self.outlet.stream = None
            self.session.subscriptions.close()
            self.session.subscriptions.uris.clear()

    def listen(self) -> Callable[[], None]:
        """Listen to changes, which come through the application's store. Return the function that stops it."""
        return self.state.listen(self)

    def on_change(self, number: int, change: Change, uri: str | None) -> None:
        """Deliver a change, unless it was replayed already."""
        self.outlet.deliver(number, lambda: self.session.subscriptions.publish(change, uri))

    def close(self) -> None:
        """Cancel all requests and end the standalone stream, since the session has ended."""
        session = self.session
        session.is_closed = True
        session.end_callbacks.call()
        if session.calls.observer is not None:
            session.calls.observer.on_end()
        for ctx in list(session.in_flight.values()):
            session.calls.cancel(ctx)
        self.outlet.end()
        session.subscriptions.close()
