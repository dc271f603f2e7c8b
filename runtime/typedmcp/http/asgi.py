"""The server over HTTP, as an ASGI application.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from typedmcp.changes import Change
from typedmcp.codec import error_bytes
from typedmcp.edge.revisions import DIALECT, UNSAID, is_modern, takes_empty_events
from typedmcp.errors import INVALID_REQUEST, UsageError
from typedmcp.http.access import LOOPBACK, Access, Auth, Principal, Refused
from typedmcp.http.engines import HttpEngine, OlderStateless, SessionEngine, Stateless
from typedmcp.http.exchange import (
    JSON,
    RETRY_SOON,
    Exchange,
    OlderStatelessExchange,
    Receive,
    SessionExchange,
    StatelessExchange,
    respond,
)
from typedmcp.http.requests import (
    Left,
    check_accept,
    check_length,
    has_version,
    is_json,
    is_single,
    path_of,
    read_body,
    read_on,
)  # fmt: skip
from typedmcp.http.sessions import News, Sessions
from typedmcp.http.sse import event_bytes
from typedmcp.http.streams import EventStream, Kept, KeptStream, Send
from typedmcp.http.tools import ToolHeaders
from typedmcp.http.two_endpoints import TwoEndpoints
from typedmcp.http.usual import Usual
from typedmcp.meta import VERSION
from typedmcp.peer import Kind, Report
from typedmcp.sealer import Sealer
from typedmcp.service import Service
from typedmcp.state import Store
from typedmcp.state.memory import MemoryStore
from typedmcp.threads import Threads
from typedmcp.wire import Frame, examine

__all__ = ["App", "asgi"]

_log = logging.getLogger("typedmcp")

_BODY_LIMIT = 4 << 20
_HEADER_LIMIT = 64 << 10
_HEADERS = 128
_CLOSE = [(b"connection", b"close")]
_USUAL = 8
"""How many looks of requests are remembered: each client software has one or two."""
_DIALECT = DIALECT.encode()


def asgi(handler: object, **options: Any) -> App:
    """An ASGI application that serves a handler over HTTP, to clients of all revisions.

    `handler` is a `Service`, or an object that becomes one with its options (`name`, `version`, …). All other options
    are those of `App`.
    """
    own = {name: options.pop(name) for name in App.OPTIONS if name in options}
    if isinstance(handler, Service):
        if options:
            raise TypeError(f"a Service has its options already: {', '.join(options)}")
        return App(handler, **own)
    return App(Service(handler, **options), **own)


class App:
    """An ASGI application. Raises `UsageError` for options that do not go together.

    `path` is the endpoint. With `sse_path`, clients of 2024-11-05 are served there too, by two endpoints: it, and
    `messages_path`. `hosts` and `origins` are those that are taken; loopback alone by default. `auth` has requests
    bring a bearer token. `sessions=False` does without sessions, which older clients need to be asked anything and to
    hear of changes. `store` is where sessions are; without one, in memory.

    Limits: `body_limit` bytes of a request, `header_limit` bytes of its headers, `streams` that are open at once,
    `high_water` bytes that may wait for a slow reader of one. `keep_alive` is after how many seconds a quiet stream
    shows a sign of life, `retry` after how many milliseconds clients should come back to one that has broken.
    """

    OPTIONS = (
        "path", "sse_path", "messages_path", "hosts", "origins", "auth", "sessions", "store", "body_limit",
        "header_limit", "streams", "high_water", "keep_alive", "retry",
    )  # fmt: skip

    def __init__(
        self,
        service: Service,
        *,
        path: str = "/mcp",
        sse_path: str | None = None,
        messages_path: str = "/messages",
        hosts: Iterable[str] = LOOPBACK,
        origins: Iterable[str] = (),
        auth: Auth | None = None,
        sessions: bool = True,
        store: Store | None = None,
        body_limit: int = _BODY_LIMIT,
        header_limit: int = _HEADER_LIMIT,
        streams: int = 10_000,
        high_water: int = 256 << 10,
        keep_alive: float = 15.0,
        retry: int = 1000,
    ) -> None:
        self.service: Service = service
        self.store: Store = MemoryStore() if store is None else store
        self.auth: Auth | None = auth
        self.retry: int = retry
        self.number: int = 0
        """The number of the last news."""
        self.tools: ToolHeaders = ToolHeaders(service)
        for each in (path, sse_path or "/", messages_path):
            if not each.startswith("/"):
                raise UsageError(f"a path begins with a slash: /{each}")
        self._path = path.rstrip("/") or "/"
        self._access = Access(hosts, origins)
        self._has_sessions = sessions
        self._body_limit, self._head_limit = body_limit, header_limit
        self._many_digits = len(str(body_limit))
        """How many digits a length has that may be beyond the limit."""
        self._most_streams, self._high_water = streams, high_water
        self._keep_alive = keep_alive
        self._streams: dict[EventStream, str | None] = {}
        """Those that are open, each with the session that it keeps alive."""
        self._kept: dict[str, KeptStream] = {}
        """Those that this worker keeps, by their names."""
        self.sessions: Sessions = Sessions(self)
        self._listening: dict[HttpEngine, None] = {}
        self._numbers = itertools.count(1)
        self._hearing: dict[str, Callable[..., None]] = {
            "change": self._hear_change,
            "cancel": self.sessions.hear_cancel,
            "answer": self.sessions.hear_answer,
            "ended": self.sessions.drop,
            "taken": self.sessions.hear_taken,
            "refresh": self.sessions.hear_refresh,
            "resumed": self.resumed,
            "post": self._hear_post,
        }
        """What is done about news, by their kind."""
        self._usual: list[Usual] = []
        """What requests look like that passed all checks before their bodies, the newest first."""
        self._is_open = False
        self._opening: asyncio.Lock | None = None
        self._background: set[asyncio.Task[Any]] = set()
        self._two_endpoints = None if sse_path is None else TwoEndpoints(self, sse_path, messages_path)
        if self._two_endpoints is not None and self._path in self._two_endpoints.paths:
            raise UsageError(f"path, sse_path and messages_path must differ: {self._path}")
        _check_limits(
            body_limit=body_limit, header_limit=header_limit, streams=streams, high_water=high_water,
            keep_alive=keep_alive,
        )  # fmt: skip
        _check_workers(service.sealer, self.store, has_sessions=sessions and bool(service.legacy))

    # Beginning and ending

    async def open(self) -> None:
        """Begin. It happens by itself with the first request, where the server has no lifespan."""
        loop = asyncio.get_running_loop()
        if self._opening is None or self.loop is not loop:  # another one has ended without a word
            self._is_open, self._opening = False, asyncio.Lock()
            self._streams.clear()
            self.sessions.engines.clear()
        self.loop: asyncio.AbstractEventLoop = loop
        async with self._opening:
            if self._is_open:
                return
            self.threads: Threads = Threads(self.service.threads)
            self._quiet = asyncio.Event()
            """Set while no stream is open."""
            self._quiet.set()
            await self.service.running.enter()
            await self.store.open(self._hear)
            self._leave = self.service.changes.listen(self._changed)
            self.later(self._tick())
            self.modern: Stateless = Stateless(self)
            self._is_open = True

    async def close(self) -> None:
        """End: listeners are told, sessions end with what waits."""
        if not self._is_open:
            return
        self._is_open = False
        self._leave()
        self.modern.ending.set()
        self.end_streams()
        for engine in [*self.sessions.engines.values()]:
            engine.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), self.service.grace)
        background = set(self._background)
        for task in background:
            task.cancel()
        if background:
            await asyncio.wait(background, timeout=self.service.grace)
        await self.store.close()
        await self.service.running.leave()

    def end_streams(self) -> None:
        """Have all streams that wait for nothing but changes end. A server that waits for its connections needs it."""
        if self._is_open:
            self.modern.ending.set()
        for engine in self.sessions.engines.values():
            if engine.standalone is not None:
                engine.standalone.end()
        if self._two_endpoints is not None:
            self._two_endpoints.end()

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncGenerator[None]:
        """The lifespan, for a framework that this is mounted in."""
        await self.open()
        try:
            yield
        finally:
            await self.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:
            text = f"the server cannot begin: {type(error).__name__}: {error}"
            self.report(Report(Kind.FAILED, text, error=error))
            await send({"type": "lifespan.startup.failed", "message": text})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    # Requests

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        try:
            if not self._is_open or self.loop is not asyncio.get_running_loop():
                await self.open()
            given = scope["headers"]
            if scope["method"] == "POST":
                for usual in self._usual:
                    if usual.fits(scope, given):
                        await self._post_again(usual, given, receive, send)
                        return
            await self._serve(scope, self._read(given), receive, send)
        except Left:
            pass
        except Refused as refused:
            body = error_bytes(None, INVALID_REQUEST, refused.text)[:-1]
            last = refused.status == 413 and scope.get("http_version", "1.1") < "2"  # else the body would be read on
            await respond(send, refused.status, body, [*refused.headers, *(_CLOSE if last else ())])
        except ConnectionError as error:
            self.report(Report(Kind.BROKEN, f"the store cannot be reached: {error}", error=error))
            await self.unavailable(send, "try again later")

    async def _post_again(
        self, usual: Usual, given: Sequence[tuple[bytes, bytes]], receive: Receive, send: Send
    ) -> None:
        """A POST like one before: the hot path. In one piece, since every further coroutine would cost."""
        who = None if self.auth is None else await self._who(dict(given))
        if usual.length_at >= 0 and len(given[usual.length_at][1]) >= self._many_digits:
            check_length(given[usual.length_at][1], self._body_limit)
        message = await receive()
        body = message.get("body", b"")
        if message["type"] != "http.request" or message.get("more_body") or len(body) > self._body_limit:
            body = await read_on(message, receive, self._body_limit)
        exchange: Exchange
        if usual.session_at >= 0 and self._has_sessions:
            session = await self.sessions.known(given[usual.session_at][1], who)
            exchange = SessionExchange(session, given, who, send)
            line = session.at_once(body, exchange, None)
            if session.todo:
                line = None
        elif usual.method_at >= 0 and (tools := self.tools.of(None if who is None else who.name)) is not None:
            exchange = StatelessExchange(self.modern, given, who, send, tools)
            name = b"" if usual.name_at < 0 else given[usual.name_at][1]
            line = self.modern.at_once(body, exchange, given[usual.method_at][1], name)
        else:
            await (self._post_stateless if usual.is_modern else self._post_older)(dict(given), who, body, receive, send)
            return
        if line is None:
            await exchange.finish(receive)
            return
        head = [JSON, (b"content-length", b"%d" % len(line))]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": line})
        except OSError:  # the client has left meanwhile
            pass

    async def _other(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})

    async def _serve(self, scope: dict[str, Any], headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Look at a request whose likes have not been seen lately."""
        self._access.check(headers)
        path = path_of(scope)
        if path != self._path:
            await self._elsewhere(path, scope, headers, receive, send)
            return
        who = None if self.auth is None else await self._who(headers)
        method = scope["method"]
        if method == "POST":
            check_accept(headers, b"application/json", b"text/event-stream")
            await self._post(scope, headers, who, receive, send)
        elif method in ("GET", "DELETE") and self.service.legacy and self._has_sessions:
            await (self.sessions.get if method == "GET" else self.sessions.delete)(headers, who, receive, send)
        else:
            raise self._not_allowed(method)

    def _note_usual(self, scope: Mapping[str, Any], *, is_modern: bool) -> None:
        given = scope["headers"]
        if len({name for name, _ in given}) == len(given) and not any(value != value.strip() for _, value in given):
            self._usual.insert(0, Usual(scope, [*given], self._head_limit, is_modern=is_modern))
            del self._usual[_USUAL:]

    async def _who(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        """Who makes a request. Raises `Refused` for one without credentials."""
        assert self.auth is not None
        try:
            return await self.auth.principal(headers)
        except Refused:
            raise
        except Exception as error:
            self.report(Report(Kind.FAILED, f"credentials cannot be checked: {error!r}", error=error))
            raise Refused(503, "credentials cannot be checked now", RETRY_SOON) from error

    def _not_allowed(self, method: str) -> Refused:
        allowed = "GET, POST, DELETE" if self.service.legacy and self._has_sessions else "POST"
        return Refused(405, f"{method} is not for this; {allowed} is", [(b"allow", allowed.encode())])

    async def _elsewhere(
        self, path: str, scope: dict[str, Any], headers: Mapping[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        if self.auth is not None and path in self.auth.metadata_paths and scope["method"] == "GET":
            await respond(send, 200, self.auth.metadata)
        elif self._two_endpoints is not None and path in self._two_endpoints.paths:
            who = None if self.auth is None else await self._who(headers)
            await self._two_endpoints.serve(path, scope, headers, who, receive, send)
        else:
            raise Refused(404, f"there is nothing here; MCP is at {self._path}")

    def _read(self, given: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
        """Headers by name; those that are there twice are joined. Raises `Refused` for those that must not be."""
        if len(given) > _HEADERS or sum(len(name) + len(value) for name, value in given) > self._head_limit:
            raise Refused(431, f"there are more than {_HEADERS} headers or {self._head_limit} bytes of them")
        joined: dict[bytes, bytes] = {}
        for name, value in given:
            if name in joined and is_single(name):
                raise Refused(400, f"the header {name.decode('latin-1')} is there twice")
            said = value.strip(b" \t")
            joined[name] = joined[name] + b", " + said if name in joined else said
        return joined

    # POST

    async def _post(
        self,
        scope: Mapping[str, Any],
        headers: Mapping[bytes, bytes],
        who: Principal | None,
        receive: Receive,
        send: Send,
    ) -> None:
        body = await self.read(headers, receive)
        said = headers.get(b"mcp-protocol-version")
        if said is not None:
            revision = said.decode("latin-1")
            if revision in self.service.revisions:
                self._note_usual(scope, is_modern=said == _DIALECT)
            post = self._post_stateless if is_modern(revision) else self._post_older
            await post(headers, who, body, receive, send)
        elif VERSION.encode() in body and has_version(body):
            await StatelessExchange(self.modern, headers, who, send, {}).run(body, receive)
        else:
            await self._post_older(headers, who, body, receive, send)

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The body of a POST. Raises `Refused`, or `Left`."""
        if not is_json(headers.get(b"content-type", b"")):
            raise Refused(415, "Content-Type: application/json is what is taken")
        return await read_body(headers, receive, self._body_limit)

    async def _post_stateless(
        self, headers: Mapping[bytes, bytes], who: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        name = None if who is None else who.name
        tools = self.tools.of(name)
        if tools is None and b"tools/call" in headers.get(b"mcp-method", b""):
            tools = await self.tools.learn(self.modern, name)
        await StatelessExchange(self.modern, headers, who, send, tools or {}).run(body, receive)

    async def _post_older(
        self, headers: Mapping[bytes, bytes], who: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        if not self.service.legacy:
            await StatelessExchange(self.modern, headers, who, send, {}).run(body, receive)
        elif not self._has_sessions:
            await self._post_without_session(headers, who, body, receive, send)
        else:
            await self.sessions.post(headers, who, body, receive, send)

    async def _post_without_session(
        self, headers: Mapping[bytes, bytes], who: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        frame = examine(body)
        is_first = isinstance(frame, Frame) and frame.method == "initialize"
        said = headers.get(b"mcp-protocol-version", UNSAID.encode()).decode("latin-1")
        if not is_first and said not in self.service.legacy:
            raise Refused(400, f"MCP-Protocol-Version: {said[:50]!a} is not served")
        revision = None if is_first else said
        engine = OlderStateless(self, revision)
        await OlderStatelessExchange(engine, headers, who, send).run(body, receive)

    def resumed(self, name: str) -> None:
        """A stream that is kept goes on on another connection."""
        stream = self._kept.get(name)
        if stream is not None:
            stream.detach()

    async def pump(self, stream: EventStream, first: bytes, receive: Receive) -> None:
        """Send a stream until it ends, or the client leaves."""

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            stream.detach()

        watching = self.later(watch())
        try:
            await stream.pump(first)
        finally:
            watching.cancel()

    async def unavailable(self, send: Send, text: str) -> None:
        """Say that something cannot be had just now."""
        await respond(send, 503, error_bytes(None, INVALID_REQUEST, text)[:-1], RETRY_SOON)

    # Streams

    def stream(self, send: Send, kept: Kept | None = None, session: str | None = None) -> EventStream | None:
        """A new stream of events; None if there are too many. `session` is kept alive by it."""
        if len(self._streams) >= self._most_streams:
            return None
        if kept is None:
            stream = EventStream(send, self._high_water)
        else:
            stream = self._kept[kept.name] = KeptStream(send, self._high_water, kept, self.retry, self.later)
        self._streams[stream] = session
        self._quiet.clear()
        stream.hear_end = self.stream_ended
        return stream

    def first_event(self, revision: str, id: str) -> bytes:
        """The event without data after which a stream can be resumed before its first message; or nothing."""
        return event_bytes(b"", id=id, retry=self.retry) if takes_empty_events(revision) else b""

    def stream_ended(self, stream: EventStream) -> None:
        """Forget a stream."""
        self._streams.pop(stream, None)
        if isinstance(stream, KeptStream):
            self._kept.pop(stream.name, None)
        if not self._streams:
            self._quiet.set()

    async def _tick(self) -> None:
        """Now and then, show that streams are alive, and that their sessions are in use."""
        while True:
            await asyncio.sleep(self._keep_alive)
            for stream, session in list(self._streams.items()):
                stream.ping()
                try:
                    if session is not None and await self.store.load(session) is None:
                        stream.end()
                except ConnectionError as error:
                    self.report(Report(Kind.BROKEN, f"the store cannot be reached: {error}", error=error))

    def nonce(self) -> str:
        """A short name that nothing else of this application has, on whatever worker."""
        return f"{self.store.worker}-{next(self._numbers)}"

    # News

    def listen(self, engine: HttpEngine) -> Callable[[], None]:
        """Have an engine hear of changes; call what is returned to stop."""
        self._listening[engine] = None
        return lambda: (self._listening.pop(engine, None), None)[1]

    def _changed(self, change: Change, uri: str | None) -> None:
        """A handler has published a change, in whatever thread: every worker should hear of it."""
        self.loop.call_soon_threadsafe(lambda: self.later(self.publish("change", change, uri)))

    async def publish(self, kind: str, *what: Any) -> None:
        """Tell all workers."""
        await self.store.publish(msgspec.json.encode(News(kind, list(what))))

    async def tell(self, worker: str, kind: str, *what: Any) -> None:
        """Tell one worker."""
        await self.store.tell(worker, msgspec.json.encode(News(kind, list(what))))

    def _hear(self, number: int | None, data: bytes) -> None:
        news = msgspec.json.decode(data, type=News)
        self.number = number or self.number
        self._hearing[news.kind](*news.what)

    def _hear_change(self, change: Change, uri: str | None) -> None:
        if change == "tools":
            self.tools.forget()
        for engine in list(self._listening):
            if isinstance(engine, SessionEngine):
                engine.hear_news(self.number, change, uri)
            else:
                engine.subscriptions.publish(change, uri)

    def _hear_post(self, session: str, body: str, principal: str | None) -> None:
        if self._two_endpoints is not None:
            self._two_endpoints.deliver(session, body.encode(), principal)

    # Reporting and the like

    def report(self, report: Report) -> None:
        """Tell whoever takes the reports; what that raises is its own affair."""
        try:
            self.service.on_report(report)
        except Exception:
            _log.exception("on_report failed")

    def later(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something beside the requests."""

        def ended(task: asyncio.Task[Any]) -> None:
            self._background.discard(task)
            work.close()  # it may have been cancelled before its first step

        task: asyncio.Task[Any] = self.loop.create_task(self._guarded(work))
        self._background.add(task)
        task.add_done_callback(ended)
        return task

    async def _guarded(self, work: Any) -> None:
        try:
            await work
        except Exception as error:
            self.report(Report(Kind.BROKEN, f"{error!r}", error=error))


# Checking options


def _check_limits(**limits: float) -> None:
    for option, value in limits.items():
        if not value > 0:
            raise UsageError(f"{option} must be positive, not {value:g}")


def _check_workers(sealer: Sealer, store: Store, *, has_sessions: bool) -> None:
    """What one worker has sealed, another has to open; and what one knows of sessions, others have to know."""
    several = _more_workers()
    if (several or store.is_shared) and not sealer.is_shared:
        why = several or "a shared store"
        raise UsageError(f"with {why}, all workers need one key: give each of them sealer=Sealer(key)")
    if several and has_sessions and not store.is_shared:
        raise UsageError(
            f"with {several}, sessions of older revisions need a shared store, such as store=RedisStore(url); "
            "or do without them, with sessions=False"
        )


def _more_workers() -> str | None:
    """What says that this process is one of several, as far as that can be known."""
    said = os.environ.get("WEB_CONCURRENCY", "1")
    if said.isdigit() and int(said) > 1:
        return f"WEB_CONCURRENCY={said}"
    found = re.search(r"\0(--workers|-w)[=\0]?([0-9]+)\0", "\0".join(["", *sys.argv, ""]))
    if found is not None and int(found[2]) > 1:
        return f"{found[1]} {found[2]}"
    return None
