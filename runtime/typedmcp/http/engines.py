"""What serves requests of HTTP: without sessions, as newer revisions have it, and in the sessions of older ones."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Coroutine, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcpspec._support.objects import LARGE, is_object
from mcpspec._support.structs import from_builtins, may_have_lost, to_builtins
from typedmcp import dialect
from typedmcp.changes import Change
from typedmcp.codec import Entry, Response, codec_for, encoder
from typedmcp.context import Context
from typedmcp.dispatch import is_awaitable
from typedmcp.edge.convert import Lost
from typedmcp.edge.revisions import SUPPORTED
from typedmcp.engine import BatchAnswer, Channel, Engine, awaited
from typedmcp.errors import INVALID_REQUEST, HeaderMismatch, MethodNotFound, RemoteError, UnsupportedVersion
from typedmcp.facts import Facts
from typedmcp.http import headers as names
from typedmcp.http.exchange import exchange_of
from typedmcp.http.streams import EventStream
from typedmcp.meta import VERSION
from typedmcp.peer import Kind, Report
from typedmcp.subscriptions import URI
from typedmcp.wire import Frame, RequestId

if TYPE_CHECKING:
    from typedmcp.http.asgi import App
    from typedmcp.http.exchange import Exchange

__all__ = ["HttpEngine", "OlderStateless", "SessionEngine", "Stateless"]

D = dialect.structs

_encode = encoder.encode
_NOTHING = 2
"""The length of an object without members."""
_NAMES = 256
"""How many names are remembered that headers said,"""
_LONGEST_NAME = 128
"""and of how many bytes at most."""
_MetaType = D.RequestMetaObject
_new_meta: Any = _MetaType.__new__


class HttpEngine(Engine):
    """An engine whose answers go to the requests that they answer."""

    # What `Stateless` has, where headers say what bodies say.
    _plain: dict[bytes, str]
    """Names that headers said as they are."""
    _readers: dict[bytes, tuple[Callable[[Any], Any], Entry]]
    """What reads the requests of a method, by its header: faster than what reads those of all."""
    _whole: bytes
    """A whole answer, to be made of its id and of its result but for the brace at the end."""

    def __init__(self, app: App) -> None:
        super().__init__(app.service, threads=app.threads)
        self.app: App = app
        self._most = app.service.in_flight
        self._copiers = app.service.copiers
        self._simple = {name: function for name, function in self._functions.items() if name not in self._special}

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the application runs in."""
        return self.app.loop

    def tell(self, ctx: Context | None, line: bytes) -> bool:
        """Send a message ahead of the answer to a request."""
        return ctx is not None and ctx.channel is not None and ctx.channel.tell(ctx, line)

    def reply(self, channel: Channel | None, line: bytes, code: int | None = None) -> None:
        """Send an answer."""
        if channel is not None:
            channel.reply(line, code)

    def at_once(self, body: bytes, exchange: Exchange, said: bytes | None, name: bytes = b"") -> bytes | None:  # noqa: C901  # see below
        """`exchange.take(body)`, in one piece: the hot path of HTTP. What is not as simple as most goes there.

        `said` and `name` are what headers say of the body, where they have to. Between two system calls everything here
        is run from cold caches, so that each function that is called, and each object that is made, costs several times
        of what it does in a loop.
        """
        codec, in_flight = self._codec, self.in_flight
        try:
            if said is None:
                message = codec.decode(body)
                entry = codec.forms[message.__class__]
            else:
                decode, entry = self._readers.get(said) or self._reader(said)
                message = decode(body)
                if entry.names is not None:
                    value = getattr(message.params, entry.names)
                    if value in exchange.tools or (self._plain.get(name) != value and not self._is_plain(name, value)):
                        return exchange.take(body)
            params, id = message.params, message.id
            raw = getattr(params, "meta", UNSET)
            if raw is UNSET:
                facts: Any = self.facts.session
            else:
                text = b"%b" % raw  # which is the fastest way to its bytes
                facts = self._known_facts.get(text) or self.facts.of(text)
            function = self._simple[entry.handler]
            if facts.is_modern is not (codec is self._modern) or id in in_flight or len(in_flight) >= self._most:
                return exchange.take(body)
            meta = _new_meta(_MetaType)
            meta |= facts.meta
            ctx = Context(self, entry, id, facts, meta, body, exchange)
            ctx.params = params = entry.up(params, meta)
            if entry.takes_input and (
                params.request_state.__class__ is str or params.input_responses.__class__ is dict
            ):
                return exchange.take(body)
        except (LookupError, AttributeError, ValueError, RecursionError, TypeError, RemoteError):
            return exchange.take(body)
        try:
            answer = function(params, ctx)
            if answer.__class__ is CoroutineType:
                waits_for = answer.send(None)
                exchange.wait_for(ctx, answer, waits_for)
                return None
            if is_awaitable(answer):
                return self._go_on(ctx, awaited(answer), exchange)
        except StopIteration as stop:
            answer = stop.value
        except BaseException as error:
            self.note(ctx)
            self.failed(ctx, error)
            return None
        if said is None or exchange.stream is not None:
            return self._answer_now(ctx, answer, exchange)
        try:
            if answer.meta is not UNSET or answer.__class__ not in self._copiers or id.__class__ is not int:
                return self._answer_now(ctx, answer, exchange)
            encoded = _encode(answer)
            line: bytes = self._whole % (id, len(encoded) - 1, encoded)
            # Of all ways to look for a word in a short text `rpartition` is the fastest.
            is_lossy = encoded.rpartition(b"null")[1] if len(encoded) <= LARGE else may_have_lost(encoded, answer)
            if is_lossy or encoded.find(b"\n") >= 0 or len(encoded) <= _NOTHING:
                return self._answer_now(ctx, answer, exchange)
        except Exception:
            return self._answer_now(ctx, answer, exchange)
        ctx.ended = True
        return line

    def _reader(self, said: bytes) -> tuple[Callable[[Any], Any], Entry]:
        reader = self._readers[said] = self._codec.reader(said.decode())
        return reader

    def _is_plain(self, name: bytes, value: str) -> bool:
        """`headers.is_plain`. Names are few, so they are remembered."""
        if not names.is_plain(name, value):
            return False
        if len(self._plain) >= _NAMES:
            self._plain.clear()
        if len(name) <= _LONGEST_NAME:
            self._plain[name] = value
        return True

    def _go_on(self, ctx: Context, handling: Any, exchange: Exchange) -> bytes | None:
        """Make the first step of something that a handler returned and that is no coroutine."""
        try:
            exchange.wait_for(ctx, handling, handling.send(None))
        except StopIteration as stop:
            return self._answer_now(ctx, stop.value, exchange)
        except BaseException as error:
            self.note(ctx)
            self.failed(ctx, error)
        return None

    def _answer_now(self, ctx: Context, result: Any, exchange: Exchange) -> bytes | None:
        """The answer of a handler that did not wait, if the response is nothing else."""
        lost: Lost = []
        try:
            convert = ctx.entry.downs[result.__class__]
            encoded = result if convert is None else convert(result, lost)
            if ctx.facts.is_modern:
                encoded = self.service.named(encoded)
            line = _encode(Response("2.0", ctx.id, encoded))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            is_lossy = line.rpartition(b"null")[1] if len(line) <= LARGE else may_have_lost(line, encoded)
            if is_lossy or line.find(b"\n") >= 0:  # for which `in` takes three times as long
                raise ValueError("perhaps NaN, or JSON that was encoded already")
        except Exception:
            self.note(ctx)
            self.answer(ctx, result)
            return None
        ctx.ended = True
        if lost:
            self.report_lost(lost, ctx.method, ctx.revision)
        return exchange.reply_at_once(line)

    def answer_at_once(self, ctx: Context, result: object) -> None:
        """`answer`, for a handler that did not wait."""
        channel: Any = ctx.channel
        if ctx.id is None or channel.__class__ is BatchAnswer or self.is_noted(ctx):
            super().answer_at_once(ctx, result)
        else:
            self._answer_now(ctx, result, channel)

    def _stream(self, ctx: Context | None) -> EventStream | None:
        exchange = None if ctx is None else exchange_of(ctx.channel)
        return None if exchange is None else exchange.stream

    def is_congested(self, ctx: Context | None) -> bool:
        """Whether the client does not read what it is sent."""
        stream = self._stream(ctx)
        return stream is not None and stream.is_congested

    async def drain(self, ctx: Context | None) -> None:
        """Wait until it does."""
        stream = self._stream(ctx)
        if stream is not None:
            await stream.drain()

    def drain_later(self, ctx: Context | None) -> None:
        """Tell of what was held back as soon as it does."""
        stream = self._stream(ctx)
        if stream is not None:
            stream.hear_drained = self.subscriptions.resume

    def unanswered(self, channel: Channel | None, code: int, text: str) -> None:
        """Something was refused that JSON-RPC has no answer for; HTTP has."""
        exchange = exchange_of(channel)
        if exchange is not None and exchange is channel:
            exchange.refused = (code, text)

    def listen(self) -> Callable[[], None]:
        """Begin to hear of changes, which come through the application's store."""
        return self.app.listen(self)


class Stateless(HttpEngine):
    """Serves requests of clients that have no sessions: each is alone, whatever its id."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.handshake.done = True  # what one client says must mean nothing for another
        self._plain, self._readers = {}, {}
        meta = bytes(app.service.alone).replace(b"%", b"%%")
        self._whole = b'{"jsonrpc":"2.0","id":%d,"result":%.*b,"_meta":' + meta + b"}}"

    def begin(self, ctx: Context) -> bool:
        """A request is in flight from now on."""
        self.in_flight[ctx] = ctx
        if ctx.channel is not None:
            ctx.channel.opened()
        return True

    def end(self, ctx: Context) -> bool:
        """A request is to be answered."""
        return self.in_flight.pop(ctx, None) is not None

    def without_facts(self, frame: Frame, *, has_meta: bool) -> RemoteError:
        """Methods that only older revisions have are as unknown as any."""
        if frame.method not in self._modern.entries:
            return MethodNotFound(str(frame.method))
        return super().without_facts(frame, has_meta=has_meta)

    def is_noted(self, ctx: Context) -> bool:
        """Whether a request is noted as in flight."""
        return ctx in self.in_flight

    def answered(self, frame: Frame, channel: Channel | None) -> None:
        """Nobody was asked anything."""
        text = "an answer to nothing: there are no requests to clients on this revision"
        self.report(Report(Kind.STRAY, text, id=frame.id, params=frame.value))
        self.unanswered(channel, INVALID_REQUEST, text)

    def admit(self, frame: Frame, channel: Channel | None) -> None:
        """Headers have to say what the body says. Raises `HeaderMismatch`, or `UnsupportedVersion`."""
        exchange = exchange_of(channel)
        assert exchange is not None
        _check_version(exchange.headers, frame, self.service.revisions)
        if frame.id is not None:
            _check_method(exchange.headers, str(frame.method), frame.value.get("params", {}))
            exchange.check_arguments(frame)


def _check_version(headers: Mapping[bytes, bytes], frame: Frame, served: list[str]) -> None:
    said = headers.get(b"mcp-protocol-version")
    if said is None and frame.method == "initialize":  # a client of an older revision, which should learn why
        raise UnsupportedVersion(str(frame.value.get("params", {}).get("protocolVersion")), served)
    if said is None:
        raise HeaderMismatch("MCP-Protocol-Version: required, but missing")
    version = names.text_of(said)
    params: Any = frame.value.get("params", {})
    meta: Any = params.get("_meta", {})
    inside = meta.get(VERSION, version) if is_object(meta) else version
    if inside != version:
        raise HeaderMismatch(f"MCP-Protocol-Version is {version!r}, the body says {inside!r}")
    if version not in served or version not in SUPPORTED:
        raise UnsupportedVersion(version, served)


def _check_method(headers: Mapping[bytes, bytes], method: str, params: Mapping[str, Any]) -> None:
    _compare("Mcp-Method", headers.get(b"mcp-method"), method, coded=False)
    member = names.NAMED.get(method)
    if member is not None and isinstance(params.get(member), str):
        _compare("Mcp-Name", headers.get(b"mcp-name"), params[member], coded=True)


def _compare(name: str, header: bytes | None, value: str, *, coded: bool) -> None:
    if header is None:
        raise HeaderMismatch(f"{name}: required, but missing")
    text = names.text_of(header)
    if coded:
        try:
            text = names.decode_value(text)
        except ValueError as error:
            raise HeaderMismatch(f"{name}: {error}") from error
    if text != value:
        raise HeaderMismatch(f"{name} is {text!r}, the body says {value!r}")


class OlderStateless(Stateless):
    """Serves an older revision without sessions: nothing is known of clients, and nothing can be asked of them."""

    can_ask = False

    def __init__(self, app: App, revision: str | None) -> None:
        super().__init__(app)
        self.handshake.done = revision is not None
        if revision is not None:
            meta = D.RequestMetaObject(protocol_version=revision, client_capabilities=D.ClientCapabilities())
            self.facts.session = Facts(revision, meta)
            self._codec = codec_for(revision, self.service.codec)

    def admit(self, frame: Frame, channel: Channel | None) -> None:  # noqa: ARG002
        """A body must not be of another revision than its headers. Raises `HeaderMismatch`."""
        _check_older(frame)

    def begin_legacy(self, facts: Facts) -> None:
        """The handshake leaves nothing behind."""


def _check_older(frame: Frame) -> None:
    params: Any = frame.value.get("params", {})
    meta: Any = params.get("_meta", {})
    if is_object(meta) and VERSION in meta:
        raise HeaderMismatch(f"the body says {VERSION}: {meta[VERSION]!r}, the headers an older revision")


class SessionEngine(HttpEngine):
    """Serves one session of an older revision, as far as it comes to this worker.

    What has to be known of it elsewhere is in the store: `fields` is what was read from there.
    """

    def __init__(self, app: App, id: str) -> None:
        super().__init__(app)
        self.id: str = id
        self.fields: dict[str, str] = {}
        self.standalone: EventStream | None = None
        """The stream for what belongs to no request."""
        self.heard: int = 0
        """The number of the last news that it had."""
        self._telling: int | None = None
        """The number of the news that are told just now."""
        self.todo: list[Coroutine[Any, Any, Any]] = []
        """What has to be done before anything is answered."""
        self._nonce = app.nonce()
        self._kept_at = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nothing would be lost with this object."""
        return not (self.in_flight or self.peer.pending or self.tasks or self.standalone or self.todo)

    @property
    def revision(self) -> str:
        """The revision that was agreed on."""
        return self.handshake.agreed.revision if self.handshake.agreed is not None else ""

    # What is kept

    def opening(self) -> dict[str, str]:
        """The fields of a session that was just agreed on."""
        facts = self.handshake.agreed
        assert facts is not None
        client = {"revision": facts.revision, "meta": to_builtins(facts.meta)}
        self.fields = {"client": msgspec.json.encode(client).decode(), "level": facts.log_level or ""}
        return self.fields

    def refresh(self, fields: dict[str, str], read_at: float) -> None:
        """Take in what others have changed. `read_at` is when it was asked for: meanwhile it may be outdated."""
        if fields == self.fields or read_at < self._kept_at:
            return
        self.fields = fields
        client = msgspec.json.decode(fields["client"])
        facts = Facts(client["revision"], from_builtins(client["meta"], D.RequestMetaObject))
        facts.log_level = fields.get("level")
        self.handshake.agreed, self.handshake.done = facts, "ready" in fields
        self._codec = codec_for(facts.revision, self.service.codec)
        self.facts.session = facts if self.handshake.done else None
        self.facts.clear()
        self.subscriptions.uris.clear()
        self.subscriptions.uris.update(name.removeprefix(URI) for name in fields if name.startswith(URI))

    def begin_legacy(self, facts: Facts) -> None:
        """The handshake is complete. Whoever wants to hear of changes opens a stream for that."""
        self.facts.session = facts
        self.facts.clear()
        self._codec = codec_for(facts.revision, self.service.codec)
        self.keep({"ready": ""})

    def keep(self, fields: Mapping[str, str | None]) -> None:
        """Have all workers know something of the session."""
        self._kept_at = math.inf
        for name, value in fields.items():
            if value is None:
                self.fields.pop(name, None)
            else:
                self.fields[name] = value
        self.todo.append(self.app.store.change(self.id, fields))
        elsewhere = self.fields.get("stream")
        if elsewhere not in (None, self.app.store.worker):
            self.todo.append(self.app.tell(str(elsewhere), "refresh", self.id))

    async def settle(self) -> None:
        """Do what has to be done."""
        while self.todo:
            await self.todo.pop(0)
        if self._kept_at == math.inf:
            self._kept_at = self.loop.time()

    # Messages

    def admit(self, frame: Frame, channel: Channel | None) -> None:  # noqa: ARG002
        """A session's messages are of its revision. Raises `HeaderMismatch`."""
        _check_older(frame)

    def _stream(self, ctx: Context | None) -> EventStream | None:
        return self.standalone if ctx is None else super()._stream(ctx)

    def tell(self, ctx: Context | None, line: bytes) -> bool:
        """Send a message, of a request or on the stream for all others."""
        if ctx is not None:
            return super().tell(ctx, line)
        id = None if self._telling is None else f"{STANDALONE}.{self._telling}"
        return self.standalone is not None and self.standalone.put(line[:-1], id)

    def call_id(self, number: int) -> RequestId:
        """An id that leads the answer to the worker that waits for it."""
        return f"{self.app.store.worker}.{self._nonce}.{number}"

    def answered(self, frame: Frame, channel: Channel | None) -> None:  # noqa: ARG002
        """The client answers a request of this worker's, or of another's."""
        worker, _, rest = str(frame.id).partition(".")
        nonce, _, number = rest.partition(".")
        if worker == self.app.store.worker and nonce == self._nonce and _NUMBER.fullmatch(number):
            self.inputs.answered(int(number), frame)
        elif self.app.store.is_shared and worker != self.app.store.worker and _ELSEWHERE.fullmatch(rest):
            self.todo.append(self.app.tell(worker, "answer", self.id, frame.id, frame.value))
        else:
            self.report(Report(Kind.STRAY, "an answer to nothing", id=frame.id, params=frame.value))

    def cancel(self, id: RequestId) -> bool:
        """The client gave a request up, which may be another worker's."""
        if super().cancel(id):
            return True
        if not self.app.store.is_shared or len(str(id)) > _LONGEST_ID:
            return False
        self.todo.append(self.app.publish("cancel", self.id, id))
        return True

    # Listening

    def begin_standalone(self, stream: EventStream) -> None:
        """From now on this is the stream for what belongs to no request; the one before it ends."""
        if self.standalone is not None:
            self.standalone.end()
        self.standalone = stream
        self.subscriptions.close()
        self.subscriptions.begin_legacy()

    def end_standalone(self, stream: EventStream) -> None:
        """The client has left it."""
        if self.standalone is stream:
            self.standalone = None
            self.subscriptions.close()

    def hear_news(self, number: int, change: Change, uri: str | None) -> None:
        """A change was published; those that were replayed are known.

        It is told with its number. What is told later, or for safety's sake, has none: who breaks off there hears it
        again.
        """
        if number > self.heard:
            self.heard = self._telling = number
            try:
                self.subscriptions.publish(change, uri)
            finally:
                self._telling = None

    def close(self) -> None:
        """The session is over."""
        self.ended = True
        for id in list(self.in_flight):
            super().cancel(id)
        if self.standalone is not None:
            self.standalone.end()
        self.subscriptions.close()


_LONGEST_ID = 256
"""How long the id of a request may be that other workers are told of."""
_NUMBER = re.compile("[0-9]{1,15}")
_ELSEWHERE = re.compile(r"[0-9a-zA-Z]{1,40}-[0-9]{1,15}\.[0-9]{1,15}")

STANDALONE = "all"
"""The name of the stream for what belongs to no request, in the ids of its events."""
