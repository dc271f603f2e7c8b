"""A session over HTTP: every message is a request of its own, and its answer the response to that.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http

A call is made in the task that waits for it, with no queue and no task between. Older revisions have more: a session
with an id, a stream of what the server says on its own, and streams that are resumed where they broke.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET, Raw

from typedmcp.client.endpoint import Endpoint, lines, shortened
from typedmcp.client.http1 import Response
from typedmcp.client.mirror import Mirror
from typedmcp.client.session import Listener, Pending, Session, SessionLost
from typedmcp.codec import Notification, encode_into, error_bytes
from typedmcp.codec import Response as Answer
from typedmcp.edge.revisions import is_modern
from typedmcp.errors import (
    ConnectionLost,
    Error,
    HttpStatusError,
    ProtocolError,
    RemoteError,
    RequestTimeout,
    ServerBusy,
)
from typedmcp.http.headers import EVENT_ID, SESSION, VERSION
from typedmcp.http.sse import Event, EventParser
from typedmcp.peer import Call, Kind, Report
from typedmcp.wire import RequestId

__all__ = ["HttpSession"]

_POST = b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
_GET = b"accept: text/event-stream\r\n"

_CALLS = 256
"""How many calls are under way at a time; more wait for their turn. Streams that listen do not count."""

_FIRST_WAIT = 0.5
"""Seconds until a stream is asked for again, where the server did not say; twice as many each time that fails."""

_SHORTEST_WAIT = 0.1
"""Seconds that are waited in any case, whatever the server says."""

_LONGEST_WAIT = 30.0

_CALM = 10.0
"""Seconds after which the end of a stream is no failure."""

_OPENING = 1.0
"""Seconds that a server has to open the stream of what it says on its own, before calls are made."""

_GOODBYE = 2.0
"""Seconds that the end of a session may take."""

_SMALL = 1 << 16
"""How much is read of what means nothing."""

_SEEN = 1024
"""How many ids of events are remembered, to notice what comes again."""

_HARMLESS = frozenset(
    {
        "server/discover", "initialize", "ping", "tools/list", "prompts/list", "resources/list",
        "resources/templates/list", "resources/read", "prompts/get", "completion/complete", "logging/setLevel",
        "resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
    }
)  # fmt: skip
"""What may be sent twice where the first one met a connection that was about to close."""


class _Stream:
    """A stream of events of an older revision, over all connections that it takes."""

    def __init__(self) -> None:
        self.last: str | None = None
        """After which event it goes on."""
        self.retry: float | None = None
        """How many seconds the server wants it not to be asked for."""
        self.failures = 0
        """How often in a row nothing came of asking."""
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._before: frozenset[str] = frozenset()

    def reopened(self) -> None:
        """From now on what came before may come again."""
        self._before = frozenset(self._seen)

    def is_news(self, event: Event) -> bool:
        """Note an event. Whether it is there for the first time."""
        if event.retry is not None:
            self.retry = event.retry / 1000
        if event.id is not None:
            if event.id in self._before:
                return False
            self.last = event.id or None
            self._seen[event.id] = None
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
        self.failures = 0
        return True

    def refused(self, error: HttpStatusError) -> None:
        """Note when to come back. Raises the error where the answer is not going to be another one."""
        if error.status < 500 and error.status != 429:
            raise error
        if isinstance(error, ServerBusy) and error.retry_after is not None:
            self.retry = error.retry_after

    def wait(self) -> float:
        """How many seconds to wait before it is asked for."""
        grown = min(_FIRST_WAIT * 2 ** max(0, self.failures - 1), _LONGEST_WAIT)
        return grown if self.retry is None else max(self.retry, grown if self.failures > 1 else _SHORTEST_WAIT)


class HttpSession(Session):
    """A session with the server at a URL. `limit` is the longest message in bytes."""

    renewable: bool = True

    def __init__(self, endpoint: Endpoint, listener: Listener, *, limit: int) -> None:
        super().__init__(listener)
        self._mirror = Mirror()
        self.mirror: Mirror | None = self._mirror
        self.endpoint: Endpoint = endpoint
        self.shaken: int | None = None
        """The status that `initialize` was refused with, if it was."""
        self._limit = limit
        self._revision: str | None = None
        self._older = _POST
        """The headers of requests on older wires."""
        self._id: str | None = None
        self._lost: Error | None = None
        self._hears = asyncio.Event()
        """Set when the server has answered whether it tells of its own."""
        self._slots = asyncio.Semaphore(_CALLS)
        self._tasks: set[asyncio.Task[None]] = set()

    # Calling

    async def exchange(self, call: Call, params: Any) -> Raw:
        """Make a call, and read what comes until its answer is there. See `Session.exchange`."""
        pending: Pending = call.owner
        try:
            body = _encoded(Notification("2.0", call.method, params, call.id))
            async with asyncio.timeout_at(call.deadline) as pending.timer:
                if call.method == "subscriptions/listen":
                    return await self._call(call, params, body)
                async with self._slots:
                    return await self._call(call, params, body)
        except asyncio.CancelledError:
            self._tell_cancelled(call, "nobody waits for it any more")
            raise
        except TimeoutError as error:
            if pending.timer is None or not pending.timer.expired():
                raise self.endpoint.lost(error).of_call(call.method, call.id) from error
            self._tell_cancelled(call, "it took too long")
            raise RequestTimeout(call.allowed or 0.0).of_call(call.method, call.id) from None
        except OSError as error:
            raise self.endpoint.lost(error).of_call(call.method, call.id) from error
        except Error as error:
            raise error if error.method is not None else error.of_call(call.method, call.id)  # noqa: B904
        finally:
            self.peer.cancel(call.id)

    async def _call(self, call: Call, params: Any, body: bytes) -> Raw:
        head = self._head(call.method, params)
        known = self._id
        response = await self.endpoint.send("POST", head, body, again=call.method in _HARMLESS)
        try:
            if response.status == 404 and known is not None and not self._speaks_modern(call.method):
                raise self._gone()
            if call.method == "initialize":
                self._begun(response)
            kind = _content_type(response)
            if response.status == 200 and kind == "application/json":
                return self._result(call, await self._body(response))
            if response.status == 200 and kind == "text/event-stream":
                return await self._stream(call, response)
            return await self._other(call, response, kind)
        finally:
            response.close()

    def _head(self, method: str, params: Any) -> bytes:
        if self._speaks_modern(method):
            return _POST + lines(self._mirror.headers(method, params))
        return _POST if method == "initialize" else self._older

    def _speaks_modern(self, method: str) -> bool:
        if self._revision is None:
            return method == "server/discover"
        return is_modern(self._revision)

    async def _body(self, response: Response) -> bytes:
        coding = response.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise ProtocolError(f"the answer is encoded ({coding}), which nobody asked for")
        try:
            return await response.body(self._limit)
        except ValueError as error:
            raise ProtocolError(str(error)) from None

    def _result(self, call: Call, body: bytes) -> Raw:
        """The result in a body that is JSON: one message, or a batch of 2025-03-26."""
        self._take(body)
        pending: Pending = call.owner
        if not pending.answer.done():
            _raise_error_of(body)
        return pending.answer.result()

    async def _other(self, call: Call, response: Response, kind: str) -> Raw:
        """What else a server may answer: an error with a status of its own, or that the answer comes elsewhere."""
        if response.status == 202:
            pending: Pending = call.owner
            return await pending.answer
        if response.status < 300:
            raise ProtocolError(f"the answer is {kind or 'nothing'}, expected application/json or text/event-stream")
        if call.method == "initialize":
            self.shaken = response.status
        busy = response.status in (429, 503) and "retry-after" in response.headers
        if kind != "application/json" or busy:
            raise await self.endpoint.refusal(response)
        body = await self._body(response)
        try:
            _raise_error_of(body)  # whatever id it has, it is about this call
        except ProtocolError:
            raise await self.endpoint.refusal(response, shortened(body)) from None

    # Streams

    async def _stream(self, call: Call, response: Response) -> Raw:
        """Read events until the answer has come; on older wires over several connections, if need be."""
        pending: Pending = call.owner
        stream = _Stream()
        while True:
            broken: OSError | None = None
            try:
                await self._events(response, stream, pending.answer)
            except OSError as error:
                broken = error
            finally:
                response.close()
            if pending.answer.done():
                return pending.answer.result()
            if stream.last is None or self._speaks_modern(call.method):
                raise ConnectionLost(f"the stream ended before the answer came{_because(broken)}") from broken
            response = await self._resumed(stream, broken)

    async def _resumed(self, stream: _Stream, broken: OSError | None) -> Response:
        """The rest of a stream that a call waits for, as soon as it can be had."""
        because: Exception | None = broken
        while True:
            stream.failures += 1
            if stream.failures > self.endpoint.options.reconnects:
                raise ConnectionLost(f"the stream ended, and was not resumed{_because(because)}") from because
            await asyncio.sleep(stream.wait())
            try:
                return await self._get(stream)
            except HttpStatusError as error:
                stream.refused(error)
                because = error
            except OSError as error:
                because = error

    async def _events(self, response: Response, stream: _Stream, until: asyncio.Future[Raw] | None) -> None:
        """Take in what a stream says: up to its end, or to an answer."""
        parser = EventParser(self._limit)
        while until is None or not until.done():
            data = await response.read()
            if not data:
                return
            for event in parser.feed(data):
                if stream.is_news(event) and event.data and event.event == "message":
                    self._take(event.data)

    async def _get(self, stream: _Stream) -> Response:
        """Ask for a stream, from where it broke. Raises `HttpStatusError` and `SessionLost`."""
        head = self._older.replace(_POST, _GET)
        if stream.last is not None and stream.last.isprintable():
            head += b"%b: %b\r\n" % (EVENT_ID.encode(), stream.last.encode())
        response = await self.endpoint.send("GET", head, again=True)
        if response.status == 200 and _content_type(response) == "text/event-stream":
            stream.reopened()
            return response
        if response.status == 404 and self._id is not None:
            response.close()
            raise self._gone()
        raise await self.endpoint.refusal(response)

    async def _listen(self) -> None:
        """Hear what an older server says on its own, as long as it offers that."""
        stream = _Stream()
        try:
            while stream.failures <= self.endpoint.options.reconnects:
                began = self._loop.time()
                await self._listen_once(stream)
                stream.failures = 1 if self._loop.time() - began > _CALM else stream.failures + 1
                await asyncio.sleep(stream.wait())
            self._report_end("it ends again and again")
        except SessionLost:
            pass
        except HttpStatusError as error:
            if error.status != 405:
                self._report_end(str(error))
        except Error as error:
            self._report_end(str(error))

    async def _listen_once(self, stream: _Stream) -> None:
        try:
            try:
                response = await self._get(stream)
            finally:
                self._hears.set()
            try:
                await self._events(response, stream, None)
            finally:
                response.close()
        except HttpStatusError as error:
            stream.refused(error)
        except OSError:
            pass  # it is asked for again

    def _report_end(self, reason: str) -> None:
        text = f"there is no stream of what the server says on its own: {reason}"
        self._listener.report(Report(Kind.BROKEN, text))

    # The session of an older revision

    def _begun(self, response: Response) -> None:
        id = response.headers.get(SESSION)
        if response.status == 200 and id:
            self._id = id

    def _gone(self) -> Error:
        """The server forgot the session. Calls that are under way learn it by themselves, or get their answers."""
        lost = SessionLost("the server does not know the session any more")
        if not self.ended:
            self.ended, self._lost, self._id = True, lost, None
            self._listener.lost()
            self.over.set()
        return lost

    async def settle(self, revision: str, *, handshake: bool) -> None:
        """From now on requests are made as the revision has them; after a handshake the server is told so."""
        self._revision = revision
        if not handshake:
            return
        headers = {VERSION: revision, **({SESSION: self._id} if self._id is not None else {})}
        self._older = _POST + lines(headers)
        await self.tell("notifications/initialized")
        self._spawn(self._listen())
        with suppress(TimeoutError):  # then nothing that it says is missed; but some keep quiet until they have news
            await asyncio.wait_for(self._hears.wait(), _OPENING)

    # What needs no answer

    def forget(self, method: str, params: Any, timeout: float) -> None:
        """Send a call whose answer nobody waits for."""
        self._spawn(self._forgotten(self.begin(method, timeout=timeout), params))

    async def _forgotten(self, call: Call, params: Any) -> None:
        try:
            await self.exchange(call, params)
        except Error as error:
            self._listener.report(Report(Kind.FAILED, str(error), call.method, call.id, error=error))

    def notify(self, method: str, params: Any = UNSET) -> None:
        """Send a notification."""
        self._post(_encoded(Notification("2.0", method, params)), method)

    async def tell(self, method: str) -> None:
        """Send a notification, and wait until the server has it."""
        await self._told(_encoded(Notification("2.0", method)), method)

    def answer(self, id: RequestId, result: Any) -> None:
        """Answer a request of the server's."""
        self._post(_encoded(Answer("2.0", id, result)), "an answer")

    def refuse(self, id: RequestId, code: int, message: str, data: Any = None) -> None:
        """Answer a request of the server's with an error."""
        self._post(error_bytes(id, code, message, data), "an answer")

    @property
    def congested(self) -> bool:
        """Never: what the server does not take has a connection of its own, and its time."""
        return False

    def _tell_cancelled(self, call: Call, reason: str) -> None:
        """On modern wires the end of the response says so, and it has ended."""
        modern = self._speaks_modern(call.method)
        if not modern and call.method != "initialize" and not self.ended and self._revision is not None:
            self.notify("notifications/cancelled", {"requestId": call.id, "reason": reason})

    def _post(self, body: bytes, what: str) -> None:
        if not self.ended:
            self._spawn(self._told(body, what))

    async def _told(self, body: bytes, what: str) -> None:
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                await self._send(body)
        except (Error, OSError) as error:
            self._listener.report(Report(Kind.FAILED, f"{what} did not reach the server: {error}", error=error))

    async def _send(self, body: bytes) -> None:
        """Send what is accepted without an answer."""
        response = await self.endpoint.send("POST", self._older, body)
        if response.status >= 300:
            raise await self.endpoint.refusal(response)
        try:
            await response.body(_SMALL)  # nothing that is needed, but then the connection can be used again
        except ValueError:
            pass
        finally:
            response.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._worked)

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:  # what a callback raised, such as the one that gives tokens
            self._listener.report(Report(Kind.FAILED, f"what nobody waits for failed: {error!r}", error=error))

    # Ending

    def loss(self) -> Error:
        """The error of a call after the end."""
        return ConnectionLost("the session has ended") if self._lost is None else self._lost

    async def _close(self) -> None:
        self.ended: bool = True
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._lost is None:  # otherwise calls that are under way may still get their answers
            await self._say_goodbye()
            self._fail_all()

    async def _say_goodbye(self) -> None:
        """End the session at the server, if that can be done soon."""
        if self._id is None:
            return
        try:
            async with asyncio.timeout(_GOODBYE):
                response = await self.endpoint.send("DELETE", self._older.removeprefix(_POST))
                response.close()
        except (OSError, Error):
            pass  # it forgets it by itself


class _Refusal(msgspec.Struct):
    error: dict[str, Any]


_error_in = msgspec.json.Decoder(_Refusal).decode


def _raise_error_of(body: bytes) -> NoReturn:
    """An error that names no call is about the one that was made; anything else is no answer to it."""
    try:
        error = _error_in(body).error
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ProtocolError(f"the answer is none to this call: {shortened(body)[:200]}") from None
    raise RemoteError.of_wire(error)


def _encoded(message: msgspec.Struct) -> bytes:
    made = bytearray()
    encode_into(message, made)
    return bytes(made)


def _content_type(response: Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _because(error: BaseException | None) -> str:
    return "" if error is None else f": {error}"
