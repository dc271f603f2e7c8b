"""The sessions of older revisions, as far as they come to this worker: their requests, and their streams."""

from __future__ import annotations

import itertools
import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from typedmcp.http.access import Principal, Refused
from typedmcp.http.engines import STANDALONE, SessionEngine
from typedmcp.http.exchange import TOO_MANY_STREAMS, Receive, SessionExchange, respond
from typedmcp.http.headers import text_of
from typedmcp.http.requests import check_accept
from typedmcp.http.streams import EventStream, Send
from typedmcp.state import Event, Gone, TooMany
from typedmcp.wire import Frame, RequestId, examine

if TYPE_CHECKING:
    from typedmcp.http.asgi import App

__all__ = ["News", "Sessions"]

_REMEMBERED = 1024
"""How many sessions that nothing goes on in are remembered here; the store has them all."""
_LONGEST = 1 << 16
"""How much a client may say of itself: it is kept as long as its session."""
_EVENT_ID = re.compile(r"([0-9a-zA-Z-]{1,64})\.([0-9]{1,18})")


class News(msgspec.Struct, array_like=True):
    """What workers tell each other."""

    kind: str
    what: list[Any]


class Sessions:
    """The sessions of an application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.engines: OrderedDict[str, SessionEngine] = OrderedDict()
        """Those that were used last, by their ids."""

    async def post(
        self, headers: Mapping[bytes, bytes], who: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        """A message of a session, or one that begins it. Raises `Refused`."""
        if b"mcp-session-id" not in headers:
            await self._begin(headers, who, body, receive, send)
            return
        engine = await self.find(headers, who)
        exchange = SessionExchange(engine, headers, who, send)
        await exchange.run(body, receive)

    async def _begin(
        self, headers: Mapping[bytes, bytes], who: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        frame = examine(body)
        if isinstance(frame, Frame) and frame.method != "initialize":
            raise Refused(400, "Mcp-Session-Id: required, but missing; it is given with the answer to initialize")
        engine = SessionEngine(self._app, secrets.token_urlsafe(24))
        exchange = SessionExchange(engine, headers, who, send)
        exchange.begins = self._create
        await exchange.run(body, receive)

    async def _create(self, exchange: SessionExchange) -> None:
        """The handshake has begun: the session is there. Raises `Refused` where there are too many."""
        engine = exchange.session
        fields = engine.opening()
        if len(fields["client"]) > _LONGEST:
            raise Refused(413, f"what the client says of itself is longer than {_LONGEST} bytes")
        if exchange.principal is not None:
            fields["principal"] = exchange.principal
        try:
            await self._app.store.create(engine.id, fields)
        except TooMany as error:
            raise Refused(503, f"{error}", [(b"retry-after", b"60")]) from error
        self.engines[engine.id] = engine
        self._forget_idle()

    async def find(self, headers: Mapping[bytes, bytes], who: Principal | None) -> SessionEngine:
        """The session of a request. Raises `Refused` for one that is not there, or is somebody else's."""
        said = headers.get(b"mcp-session-id")
        if said is None:
            raise Refused(400, "Mcp-Session-Id: required, but missing")
        version = headers.get(b"mcp-protocol-version")
        if version is not None and version.decode("latin-1") not in self._app.service.legacy:
            raise Refused(400, f"MCP-Protocol-Version: {version.decode('latin-1')[:50]!a} has no sessions here")
        return await self.known(said, who)

    async def known(self, said: bytes, who: Principal | None) -> SessionEngine:
        """The session of an id. Raises `Refused` for one that is not there, or is somebody else's."""
        id, now = text_of(said), self._app.loop.time()
        fields = await self._app.store.load(id)
        if fields is None:
            self.drop(id)
        if fields is None or fields.get("principal") != (None if who is None else who.name):
            raise Refused(404, "the session is not there, or not any more")
        return self._refreshed(id, fields, now)

    def _refreshed(self, id: str, fields: dict[str, str], read_at: float) -> SessionEngine:
        engine = self.engines.get(id)
        if engine is None:
            engine = self.engines[id] = SessionEngine(self._app, id)
            self._forget_idle()
        else:
            self.engines.move_to_end(id)
        engine.refresh(fields, read_at)
        return engine

    def drop(self, id: str) -> None:
        """A session is over."""
        engine = self.engines.pop(id, None)
        if engine is not None:
            engine.close()

    def _forget_idle(self) -> None:
        while len(self.engines) > _REMEMBERED:
            idle = next((id for id, engine in itertools.islice(self.engines.items(), 8) if engine.is_idle), None)
            if idle is None:
                return
            del self.engines[idle]

    async def delete(
        self, headers: Mapping[bytes, bytes], who: Principal | None, _receive: Receive, send: Send
    ) -> None:
        """End a session. Raises `Refused`."""
        session = await self.find(headers, who)
        await self._app.store.delete(session.id)
        self.drop(session.id)
        if self._app.store.is_shared:
            await self._app.publish("ended", session.id)
        await respond(send, 204)

    # Streams

    async def get(self, headers: Mapping[bytes, bytes], who: Principal | None, receive: Receive, send: Send) -> None:
        """Open the stream for changes, or go on with one that has broken. Raises `Refused`."""
        session = await self.find(headers, who)
        check_accept(headers, b"text/event-stream")
        said = headers.get(b"last-event-id")
        found = None if said is None else _EVENT_ID.fullmatch(said.decode("latin-1"))
        if said is not None and found is None:
            raise Refused(400, "Last-Event-ID: there is no such event")
        if found is None or found[1] == STANDALONE:
            await self._listen(session, None if found is None else int(found[2]), receive, send)
        else:
            await self._resume(session, found[1], int(found[2]), receive, send)

    async def _listen(self, session: SessionEngine, after: int | None, receive: Receive, send: Send) -> None:
        """The stream for what belongs to no request."""
        if not session.handshake.done:
            raise Refused(400, "the stream for changes begins after notifications/initialized")
        missed = None if after is None else await self._app.store.published(after)
        stream = self._app.stream(send, None, session.id)
        if stream is None:
            await self._app.unavailable(send, TOO_MANY_STREAMS)
            return
        before = session.fields.get("stream")
        session.begin_standalone(stream)
        if after is None:
            session.heard = self._app.number
        else:
            session.heard = after
            self._replay(session, missed)
        try:
            if before != self._app.store.worker:
                session.keep({"stream": self._app.store.worker})
                await session.settle()
            if before not in (None, self._app.store.worker):
                await self._app.tell(str(before), "taken", session.id)
            begin = self._app.number if after is None else after
            first = self._app.first_event(session.revision, f"{STANDALONE}.{begin}")
            await self._app.pump(stream, first, receive)
        finally:
            session.end_standalone(stream)
            self._app.stream_ended(stream)

    def _replay(self, session: SessionEngine, missed: Sequence[tuple[int, bytes]] | None) -> None:
        """Tell of what happened while nobody listened; of everything that may have, where that is not known."""
        if missed is None:
            session.heard = self._app.number
            session.subscriptions.publish_all()
            return
        for number, data in missed:
            news = msgspec.json.decode(data, type=News)
            if news.kind == "change":
                session.hear_news(number, *news.what)

    async def _resume(self, session: SessionEngine, name: str, after: int, receive: Receive, send: Send) -> None:
        """Go on with a stream that was broken."""
        following = self._app.store.follow(session.id, name, after)
        first: Sequence[Event] = ()
        try:
            first = await anext(following)
        except StopAsyncIteration:
            pass
        except Gone as error:
            raise Refused(400, f"Last-Event-ID: {error}") from error
        stream = self._app.stream(send, None, session.id)
        if stream is None:
            await self._app.unavailable(send, TOO_MANY_STREAMS)
            return
        await self._leave_to_another(name)
        feeding = self._app.later(_feed(stream, name, first, following))
        try:
            await self._app.pump(stream, b"", receive)
        finally:
            feeding.cancel()

    async def _leave_to_another(self, name: str) -> None:
        """Each message goes out on one connection: the one that a stream began with is not used any more."""
        worker = name.partition("-")[0]
        if worker == self._app.store.worker:
            self._app.resumed(name)
        elif self._app.store.is_shared:
            await self._app.tell(worker, "resumed", name)

    # News

    def hear_cancel(self, session: str, id: RequestId) -> None:
        """A client gave up a request that may be this worker's."""
        engine = self.engines.get(session)
        if engine is not None and id in engine.in_flight:
            engine.cancel(id)

    def hear_answer(self, session: str, id: str, value: dict[str, Any]) -> None:
        """A client has answered a request of this worker's."""
        engine = self.engines.get(session)
        if engine is not None:
            engine.answered(Frame(None, id, value), None)

    def hear_taken(self, session: str) -> None:
        """A client listens on another worker now."""
        engine = self.engines.get(session)
        if engine is not None and engine.standalone is not None:
            engine.standalone.end()

    def hear_refresh(self, session: str) -> None:
        """A session that listens here was changed."""
        self._app.later(self._refresh(session))

    async def _refresh(self, session: str) -> None:
        now, fields = self._app.loop.time(), await self._app.store.load(session)
        engine = self.engines.get(session)
        if engine is not None and fields is not None:
            engine.refresh(fields, now)


async def _feed(
    stream: EventStream, name: str, first: Sequence[Event], following: AsyncIterator[Sequence[Event]]
) -> None:
    """Put the events of a kept stream on another, up to the last one."""
    try:
        for number, data in first:
            stream.put(data, f"{name}.{number}")
        async for events in following:
            for number, data in events:
                stream.put(data, f"{name}.{number}")
            await stream.drain()
    except (Gone, ConnectionError):
        pass  # the client may come back and learn more
    finally:
        stream.end()
