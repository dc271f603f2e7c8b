"""The sessions of legacy revisions on this worker: their requests and their streams."""

from __future__ import annotations

import itertools
import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import msgspec

from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, RequestId, classify
from typedmcp.protocol.headers import to_text
from typedmcp.server.http.clients import client_of
from typedmcp.server.http.dispatchers import STANDALONE, SessionDispatcher
from typedmcp.server.http.exchange import SessionExchange
from typedmcp.server.http.messages import (
    NOT_A_SESSION,
    TOO_MANY_STREAMS,
    Headers,
    HTTPException,
    Receive,
    Send,
    check_accept,
    respond,
    respond_unavailable,
)  # fmt: skip
from typedmcp.server.http.state import AppState, WorkerMessage
from typedmcp.server.http.streams import EventStream
from typedmcp.server.principal import Principal
from typedmcp.server.store import StoredEvent, StreamNotFoundError, TooManySessionsError

__all__ = ["Sessions"]

_CACHED_SESSIONS = 1024
"""Idle sessions whose dispatchers are kept. The store has all sessions."""
_CACHED_CLIENT_BYTES = 4 << 20
"""Bytes of the clients' descriptions of themselves in these dispatchers, as text. Decoded they are several times as
long."""
_IDLE_SECONDS = 300.0
"""A dispatcher that has been idle for longer is dropped: perhaps its session has expired."""
_EXAMINED = 64
"""Dispatchers that are examined when one more comes: enough to find the idle ones among many busy ones."""
_EVENT_ID = re.compile(r"([0-9a-zA-Z-]{1,64})\.([0-9]{1,18})")


class Sessions:
    """The sessions of an application."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self.dispatchers: OrderedDict[str, SessionDispatcher] = OrderedDict()
        """The dispatchers of the most recently used sessions on this worker, by session."""
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
        dispatcher = await self.find(headers, principal)
        await SessionExchange(dispatcher, headers, principal, send).run(body, receive)

    async def _begin(
        self, headers: Headers, principal: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        frame = classify(body)
        if isinstance(frame, Frame) and frame.method != "initialize":
            raise HTTPException(
                400, "Mcp-Session-Id: required, but missing; the response to initialize has it as a header"
            )
        dispatcher = SessionDispatcher(self._state, secrets.token_urlsafe(24))
        exchange = SessionExchange(dispatcher, headers, principal, send)
        exchange.create_session = self._create
        await exchange.run(body, receive)

    async def _create(self, exchange: SessionExchange) -> None:
        """Store the session that a handshake begins. Raises `HTTPException` if a limit is reached."""
        dispatcher = exchange.session
        fields = dispatcher.initial_fields()
        limit = self._state.config.limits.session_client_bytes
        if len(fields["client"]) > limit:
            raise HTTPException(413, f"the client's description of itself is too long: at most {limit} bytes")
        if exchange.principal is not None:
            fields["principal"] = exchange.principal.key
        try:
            await self._state.store.create_session(dispatcher.id, fields, exchange.client)
        except TooManySessionsError as error:
            self._state.report_full_store(f"sessions: {error}")
            raise HTTPException(503, f"{error}", [(b"retry-after", b"60")]) from error
        self.dispatchers[dispatcher.id] = dispatcher
        self._count_client(dispatcher)
        self._forget_idle()

    async def find(self, headers: Headers, principal: Principal | None) -> SessionDispatcher:
        """Return the session of a request. Raises `HTTPException`."""
        id = headers.get(b"mcp-session-id")
        if id is None:
            raise HTTPException(400, "Mcp-Session-Id: required, but missing")
        version = headers.get(b"mcp-protocol-version")
        if version is not None and version.decode("latin-1") not in self._state.config.legacy_revisions:
            raise HTTPException(400, f"MCP-Protocol-Version: {version.decode('latin-1')[:50]!a} has no sessions here")
        return await self.load(id, principal)

    async def load(self, header: bytes, principal: Principal | None) -> SessionDispatcher:
        """Return the session with an id. Raises `HTTPException` if it does not exist or is another principal's."""
        id, now = to_text(header), self._state.loop.time()
        fields = await self._state.store.load_session(id)
        if fields is None:
            self.drop(id)
        if fields is None or fields.get("principal") != (None if principal is None else principal.key):
            raise HTTPException(404, NOT_A_SESSION)
        dispatcher = self.dispatchers.get(id)
        if dispatcher is None:
            dispatcher = self.dispatchers[id] = SessionDispatcher(self._state, id)
            self._forget_idle()
        else:
            self.dispatchers.move_to_end(id)
        dispatcher.used_at = now
        if fields != dispatcher.fields and not self._refresh_fields(dispatcher, fields, now):
            raise HTTPException(404, NOT_A_SESSION)
        return dispatcher

    def _refresh_fields(self, dispatcher: SessionDispatcher, fields: dict[str, str], read_at: float) -> bool:
        """Apply fields from the store. If they are not valid, report it, drop the session, and return False."""
        try:
            dispatcher.refresh(fields, read_at)
            self._count_client(dispatcher)
        except ValueError as error:
            text = f"a stored session is damaged, or of another version: {error}"
            self._state.report(Diagnostic(DiagnosticKind.INVALID_DATA, text, error=error))
            self.drop(dispatcher.id)
            return False
        return True

    def drop(self, id: str) -> None:
        """Close the dispatcher of a session that has ended."""
        dispatcher = self._forget(id)
        if dispatcher is not None:
            dispatcher.close()

    def forget_all(self) -> None:
        """Forget the dispatchers of all sessions, which the store still has."""
        for id in list(self.dispatchers):
            self._forget(id)

    def _forget(self, id: str) -> SessionDispatcher | None:
        self._client_bytes -= self._client_sizes.pop(id, 0)
        return self.dispatchers.pop(id, None)

    def _count_client(self, dispatcher: SessionDispatcher) -> None:
        if dispatcher.id in self.dispatchers:
            size = dispatcher.client_size
            self._client_bytes += size - self._client_sizes.get(dispatcher.id, 0)
            self._client_sizes[dispatcher.id] = size

    def _forget_idle(self) -> None:
        """Forget dispatchers that have been idle for long, and more of them if there are too many.

        The newest is kept, since its request has not begun.
        """
        long_ago = self._state.loop.time() - _IDLE_SECONDS
        others = min(_EXAMINED, len(self.dispatchers) - 1)
        for id, dispatcher in list(itertools.islice(self.dispatchers.items(), others)):
            has_room = len(self.dispatchers) <= _CACHED_SESSIONS and self._client_bytes <= _CACHED_CLIENT_BYTES
            if has_room and dispatcher.used_at > long_ago:
                return
            if dispatcher.is_idle:
                self._forget(id)
                dispatcher.end_callbacks.call()
            else:
                self.dispatchers.move_to_end(id)  # it is in use: the idle ones come after it
                dispatcher.used_at = self._state.loop.time()

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

    async def _open_standalone(
        self,
        session: SessionDispatcher,
        name: str,
        after: int | None,
        expires: float | None,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a stream for messages outside of requests, starting with the messages missed since `after`."""
        client = client_of(session.fields.get("principal"))
        missed = None if after is None else await self._state.store.messages_after(after)
        await session.load_subscriptions()
        stream = self._state.open_stream(send, client, None, session.id)
        if stream is None:
            await respond_unavailable(send, TOO_MANY_STREAMS)
            return
        stream.on_frame = session.open_frames()
        previous_worker = session.fields.get("stream")
        session.attach_standalone(stream, name)
        session.last_change = self._state.last_number if after is None else after
        first = b""  # a stream that is resumed has its first event already
        if after is None:
            first = self._state.first_event(session.revision, f"{name}.{session.last_change}")
        else:
            self._replay(session, missed)
        try:
            await self._claim_standalone(session, previous_worker)
            if self._state.store.is_shared:
                await session.load_subscriptions()  # another worker may have changed them before the claim
            await self._state.pump(stream, first, receive, expires)
        finally:
            session.detach_standalone(stream)
            self._state.forget_stream(stream)

    async def _claim_standalone(self, session: SessionDispatcher, previous_worker: str | None) -> None:
        """Notify all workers that this one now has the session's standalone stream."""
        worker = self._state.store.worker
        if previous_worker != worker:
            session.save_fields({"stream": worker})
            await session.save()
        if previous_worker not in (None, worker):
            await self._state.send_to(str(previous_worker), "stream replaced", session.id)

    def _replay(self, session: SessionDispatcher, missed: Sequence[tuple[int, bytes]] | None) -> None:
        """Deliver the missed changes, or every possible change if the missed ones are unknown."""
        if missed is None:
            session.last_change = self._state.last_number
            session.subscriptions.publish_all()
            return
        for number, data in missed:
            message = msgspec.json.decode(data, type=WorkerMessage)
            if message.kind == "change":
                session.on_change(number, *message.arguments)

    async def _resume(
        self,
        session: SessionDispatcher,
        name: str,
        after: int,
        expires: float | None,
        receive: Receive,
        send: Send,
    ) -> None:
        """Send the rest of a stored stream."""
        client = client_of(session.fields.get("principal"))
        following = self._state.store.follow_stream(session.id, name, after)
        first: Sequence[StoredEvent] = ()
        try:
            first = await anext(following)
        except StopAsyncIteration:
            pass
        except StreamNotFoundError as error:
            raise HTTPException(400, f"Last-Event-ID: {error}") from error
        stream = self._state.open_stream(send, client, None, session.id)
        if stream is None:
            await respond_unavailable(send, TOO_MANY_STREAMS)
            return
        stream.on_frame = session.open_frames()
        await self._detach_original(name)
        feeding = self._state.spawn(_feed(stream, name, first, following))
        try:
            await self._state.pump(stream, b"", receive, expires)
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

    def _on_request_cancelled(self, session: str, id: RequestId) -> None:
        """Cancel a request, if it is handled on this worker."""
        dispatcher = self.dispatchers.get(session)
        if dispatcher is not None and id in dispatcher.in_flight:
            dispatcher.cancel(id)

    def _on_response(self, session: str, id: str, value: dict[str, Any]) -> None:
        """Handle a client's response to a request of this worker."""
        dispatcher = self.dispatchers.get(session)
        if dispatcher is not None:
            dispatcher.handle_response(Frame(None, id, value), None)

    def _on_subscription_changed(self, session: str, uri: str, is_subscribed: bool) -> None:
        """Apply a subscription that the client has changed on another worker."""
        dispatcher = self.dispatchers.get(session)
        if dispatcher is not None and dispatcher.standalone is not None:
            dispatcher.change_subscription(uri, is_subscribed=is_subscribed)

    def _on_stream_replaced(self, session: str) -> None:
        """End a standalone stream, since the client has opened another one on another worker."""
        dispatcher = self.dispatchers.get(session)
        if dispatcher is not None and dispatcher.standalone is not None:
            dispatcher.standalone.end()

    def _on_session_changed(self, session: str) -> None:
        """Read the fields of a session that another worker has changed."""
        self._state.spawn(self._refresh(session))

    async def _refresh(self, session: str) -> None:
        now, fields = self._state.loop.time(), await self._state.store.load_session(session)
        dispatcher = self.dispatchers.get(session)
        if dispatcher is not None and fields is not None:
            self._refresh_fields(dispatcher, fields, now)


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
