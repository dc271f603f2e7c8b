"""The sessions of legacy revisions on this worker: their requests and their streams."""

from __future__ import annotations

import itertools
import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, RequestId, classify
from typedmcp.protocol.headers import to_text
from typedmcp.server.http.channel import HttpChannel
from typedmcp.server.http.messages import (
    NOT_A_SESSION,
    RETRY_LATER,
    TOO_MANY_STREAMS,
    Headers,
    HTTPException,
    Receive,
    Send,
    check_accept,
    client_of,
    respond,
)  # fmt: skip
from typedmcp.server.http.post import Post
from typedmcp.server.http.state import AppState, WorkerMessage
from typedmcp.server.http.stored_session import StoredSession
from typedmcp.server.http.streams import EventStream
from typedmcp.server.principal import Principal
from typedmcp.server.store import StoredEvent, StreamNotFoundError, TooManySessionsError

__all__ = ["Sessions"]

_CACHED_SESSIONS = 1024
"""Idle sessions that are kept. The store has all of them."""
_CACHED_CLIENT_BYTES = 4 << 20
"""Bytes of the clients' descriptions of themselves in these sessions, as text. Decoded they are several times as
long."""
_IDLE_SECONDS = 300.0
"""A session that has been idle for longer is forgotten here: perhaps it has expired."""
_EXAMINED = 64
"""Sessions that are examined when one more comes: enough to find the idle ones among many busy ones."""
_EVENT_ID = re.compile(r"([0-9a-zA-Z-]{1,64})\.([0-9]{1,18})")


STANDALONE: Final = "all-"
"""The beginning of the names of standalone streams in the ids of their events."""


class Sessions:
    """The sessions of an application."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self.loaded: OrderedDict[str, StoredSession] = OrderedDict()
        """The most recently used sessions on this worker, by id."""
        self._client_sizes: dict[str, int] = {}
        self._client_bytes = 0
        """The sum of these sizes."""

    async def post(
        self, headers: Headers, principal: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        """Serve a POST in a session, or the one that begins a session. Raises `HTTPException`."""
        if b"mcp-session-id" not in headers:
            await self._begin(headers, principal, body, receive, send)
            return
        session = await self.find(headers, principal)
        await Post(HttpChannel(session.target, headers, principal, send), receive, session).run(body)

    async def _begin(
        self, headers: Headers, principal: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        frame = classify(body)
        if isinstance(frame, Frame) and frame.method != "initialize":
            raise HTTPException(
                400, "Mcp-Session-Id: required, but missing; the response to initialize has it as a header"
            )
        session = StoredSession(self._state, secrets.token_urlsafe(24), self.create)
        channel = HttpChannel(session.target, headers, principal, send)
        await Post(channel, receive, session).run(body)

    async def create(self, session: StoredSession, channel: HttpChannel) -> None:
        """Store the session that a handshake begins. Raises `HTTPException` if a limit is reached."""
        fields = session.initial_fields()
        limit = self._state.config.limits.session_client_bytes
        if len(fields["client"]) > limit:
            raise HTTPException(413, f"the client's description of itself is too long: at most {limit} bytes")
        if channel.principal is not None:
            fields["principal"] = channel.principal.key
        try:
            await self._state.store.create_session(session.id, fields, channel.client)
        except TooManySessionsError as error:
            self._state.report_full_store(f"sessions: {error}")
            raise HTTPException(503, f"{error}", [(b"retry-after", b"60")]) from error
        self.loaded[session.id] = session
        self._count_client(session)
        self._forget_idle()

    async def find(self, headers: Headers, principal: Principal | None) -> StoredSession:
        """Return the session of a request. Raises `HTTPException`."""
        id = headers.get(b"mcp-session-id")
        if id is None:
            raise HTTPException(400, "Mcp-Session-Id: required, but missing")
        version = headers.get(b"mcp-protocol-version")
        if version is not None and version.decode("latin-1") not in self._state.config.legacy_revisions:
            raise HTTPException(400, f"MCP-Protocol-Version: {version.decode('latin-1')[:50]!a} has no sessions here")
        return await self.load(id, principal)

    async def load(self, header: bytes, principal: Principal | None) -> StoredSession:
        """Return the session with an id. Raises `HTTPException` if it does not exist or is another principal's."""
        id, now = to_text(header), self._state.loop.time()
        if (fields := await self._state.store.load_session(id)) is None:
            self.drop(id)
        if fields is None or fields.get("principal") != (None if principal is None else principal.key):
            raise HTTPException(404, NOT_A_SESSION)
        session = self.loaded.get(id)
        if session is None:
            session = self.loaded[id] = StoredSession(self._state, id)
            self._forget_idle()
        else:
            self.loaded.move_to_end(id)
        session.used_at = now
        if fields != session.fields and not self._refresh_fields(session, fields, now):
            raise HTTPException(404, NOT_A_SESSION)
        return session

    def _refresh_fields(self, session: StoredSession, fields: dict[str, str], read_at: float) -> bool:
        """Apply fields from the store. If they are not valid, report it, drop the session, and return False."""
        try:
            session.refresh(fields, read_at)
            self._count_client(session)
        except ValueError as error:
            text = f"a stored session is damaged, or of another version: {error}"
            self._state.report(Diagnostic(DiagnosticKind.INVALID_DATA, text, error=error))
            self.drop(session.id)
            return False
        return True

    def drop(self, id: str) -> None:
        """Close the session of a session that has ended."""
        if (session := self._forget(id)) is not None:
            session.close()

    def forget_all(self) -> None:
        """Forget the sessions of all sessions, which the store still has."""
        for id in list(self.loaded):
            self._forget(id)

    def _forget(self, id: str) -> StoredSession | None:
        self._client_bytes -= self._client_sizes.pop(id, 0)
        return self.loaded.pop(id, None)

    def _count_client(self, session: StoredSession) -> None:
        if session.id in self.loaded:
            size = session.client_size
            self._client_bytes += size - self._client_sizes.get(session.id, 0)
            self._client_sizes[session.id] = size

    def _forget_idle(self) -> None:
        """Forget sessions that have been idle for long, and more of them if there are too many.

        The newest is kept, since its request has not begun.
        """
        long_ago = self._state.loop.time() - _IDLE_SECONDS
        others = min(_EXAMINED, len(self.loaded) - 1)
        for id, session in list(itertools.islice(self.loaded.items(), others)):
            has_room = len(self.loaded) <= _CACHED_SESSIONS and self._client_bytes <= _CACHED_CLIENT_BYTES
            if has_room and session.used_at > long_ago:
                return
            if session.is_idle:
                self._forget(id)
                session.session.end_callbacks.call()
            else:
                self.loaded.move_to_end(id)  # it is in use: the idle ones come after it
                session.used_at = self._state.loop.time()

    async def delete(self, headers: Headers, principal: Principal | None, _receive: Receive, send: Send) -> None:
        """End a session. Raises `HTTPException`."""
        session = await self.find(headers, principal)
        await self._state.store.delete_session(session.id)
        self.drop(session.id)
        if self._state.store.is_shared:
            await self._state.publish("session ended", session.id)
        await respond(send, 204)

    # Streams

    async def get(self, headers: Headers, principal: Principal | None, receive: Receive, send: Send) -> None:
        """Open a session's standalone stream, or resume a stream that has broken. Raises `HTTPException`."""
        session = await self.find(headers, principal)
        check_accept(headers, b"text/event-stream")
        header = headers.get(b"last-event-id")
        event_id = None if header is None else _EVENT_ID.fullmatch(header.decode("latin-1"))
        if header is not None and event_id is None:
            raise HTTPException(400, "Last-Event-ID: no event has this id")
        expires = None if principal is None else principal.expires
        if event_id is None:
            name = f"{STANDALONE}{self._state.unique_name()}"
            await self._open_standalone(session, name, None, expires, receive, send)
        elif event_id[1].startswith(STANDALONE):
            await self._open_standalone(session, event_id[1], int(event_id[2]), expires, receive, send)
        else:
            await self._resume(session, event_id[1], int(event_id[2]), expires, receive, send)

    def _open_stream(self, session: StoredSession, send: Send) -> EventStream:
        """Open an event stream that keeps a session alive. Raises `HTTPException` if a limit is reached."""
        stream = self._state.open_stream(send, client_of(session.fields.get("principal")), None, session.id)
        if stream is None:
            raise HTTPException(503, TOO_MANY_STREAMS, RETRY_LATER)
        stream.on_frame = session.on_frame
        return stream

    async def _open_standalone(
        self, session: StoredSession, name: str, after: int | None, expires: float | None, receive: Receive, send: Send
    ) -> None:
        """Serve a stream for messages outside of requests, starting with the messages missed since `after`."""
        missed = None if after is None else await self._state.store.messages_after(after)
        await session.load_subscriptions()
        stream = self._open_stream(session, send)
        previous_worker = session.fields.get("stream")
        session.attach_standalone(stream, name)
        session.outlet.last_change = self._state.last_number if after is None else after
        if after is not None:  # a stream that is resumed has its first event already
            self._replay(session, missed)
        elif session.client is not None:
            stream.first = self._state.first_event(session.client.revision, f"{name}.{session.outlet.last_change}")
        try:
            await self._claim_standalone(session, previous_worker)
            if self._state.store.is_shared:
                await session.load_subscriptions()  # another worker may have changed them before the claim
            await self._state.pump(stream, receive, expires)
        finally:
            session.detach_standalone(stream)
            self._state.forget_stream(stream)

    async def _claim_standalone(self, session: StoredSession, previous_worker: str | None) -> None:
        """Notify all workers that this one now has the session's standalone stream."""
        worker = self._state.store.worker
        if previous_worker != worker:
            session.save_fields({"stream": worker})
            await session.save()
        if previous_worker not in (None, worker):
            await self._state.send_to(str(previous_worker), "stream replaced", session.id)

    def _replay(self, session: StoredSession, missed: Sequence[tuple[int, bytes]] | None) -> None:
        """Deliver the missed changes, or every possible change if the missed ones are unknown."""
        if missed is None:
            session.outlet.last_change = self._state.last_number
            session.session.subscriptions.publish_all()
            return
        for number, data in missed:
            message = msgspec.json.decode(data, type=WorkerMessage)
            if message.kind == "change":
                session.on_change(number, *message.arguments)

    async def _resume(
        self, session: StoredSession, name: str, after: int, expires: float | None, receive: Receive, send: Send
    ) -> None:
        """Send the rest of a stored stream."""
        following = self._state.store.follow_stream(session.id, name, after)
        try:
            first = await anext(following, ())
        except StreamNotFoundError as error:
            raise HTTPException(400, f"Last-Event-ID: {error}") from error
        stream = self._open_stream(session, send)
        await self._detach_original(name)
        feeding = self._state.spawn(_feed(stream, name, first, following))
        try:
            await self._state.pump(stream, receive, expires)
        finally:
            feeding.cancel()

    async def _detach_original(self, name: str) -> None:
        """Close the connection on which a stream began: each message must go out on one connection only."""
        worker = name.partition("-")[0]
        if worker == self._state.store.worker:
            self._state.detach_stream(name)
        elif self._state.store.is_shared:
            await self._state.send_to(worker, "stream resumed", name)

    # Messages of other workers

    def message_handlers(self) -> Mapping[str, Callable[..., None]]:
        """Return the handlers of worker messages about sessions, by kind."""
        return {
            "request cancelled": self._on_request_cancelled,
            "response": self._on_response,
            "session changed": self._on_session_changed,
            "session ended": self.drop,
            "stream replaced": self._on_stream_replaced,
            "subscription changed": self._on_subscription_changed,
        }

    def _on_request_cancelled(self, id: str, request: RequestId) -> None:
        """Cancel a request, if it is handled on this worker."""
        stored = self.loaded.get(id)
        if stored is not None and (ctx := stored.session.in_flight.get(request)) is not None:
            stored.session.calls.cancel(ctx)

    def _on_response(self, id: str, request: str, value: dict[str, Any]) -> None:
        """Handle a client's response to a request of this worker."""
        stored = self.loaded.get(id)
        if stored is not None:
            stored.handle_response(Frame(None, request, value))

    def _on_subscription_changed(self, id: str, uri: str, is_subscribed: bool) -> None:
        """Apply a subscription that the client has changed on another worker."""
        stored = self.loaded.get(id)
        if stored is not None and stored.outlet.stream is not None:
            stored.change_subscription(uri, is_subscribed=is_subscribed)

    def _on_stream_replaced(self, id: str) -> None:
        """End a standalone stream, since the client has opened another one on another worker."""
        if (stored := self.loaded.get(id)) is not None:
            stored.outlet.end()

    def _on_session_changed(self, id: str) -> None:
        """Read the fields of a session that another worker has changed."""
        self._state.spawn(self._refresh(id))

    async def _refresh(self, id: str) -> None:
        now, fields = self._state.loop.time(), await self._state.store.load_session(id)
        stored = self.loaded.get(id)
        if stored is not None and fields is not None:
            self._refresh_fields(stored, fields, now)


async def _feed(
    stream: EventStream, name: str, first: Sequence[StoredEvent], following: AsyncIterator[Sequence[StoredEvent]]
) -> None:
    """Copy the events of a stored stream into another stream until it ends."""
    try:
        for number, data in first:
            stream.put(data, f"{name}.{number}")
        async for events in following:
            for number, data in events:
                stream.put(data, f"{name}.{number}")
            await stream.drain()
    except (StreamNotFoundError, ConnectionError):
        pass  # the client can resume it again, and then gets the error
    finally:
        stream.end()
