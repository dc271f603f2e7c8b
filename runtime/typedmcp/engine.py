"""What is between the messages of clients and a handler, whatever carries them: reading, calling, answering.

A subclass says where messages go and what is known of the client: `typedmcp.session` for a connection that carries
lines, `typedmcp.http` for requests of HTTP. Messages come in one at a time, through `start`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from types import CoroutineType, coroutine
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET

from mcpspec._support.errors import MethodNotFoundError
from mcpspec._support.objects import is_object
from typedmcp import dialect
from typedmcp.backends import as_model, as_struct, plain
from typedmcp.changes import Change
from typedmcp.codec import Codec, Entry, Notification, Response, codec_for, encode_into, error_bytes, unknown
from typedmcp.context import Context
from typedmcp.dispatch import is_awaitable, runs_in_thread
from typedmcp.edge.convert import Lost
from typedmcp.edge.notices import older_notice
from typedmcp.edge.revisions import DIALECT, has_batches
from typedmcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    DecodeError,
    RemoteError,
    UnsupportedVersion,
    in_params,
)
from typedmcp.facts import Facts, FactsCache, own_meta
from typedmcp.handshake import Handshake
from typedmcp.inputs import InputRequested, Inputs, is_input_required
from typedmcp.meta import VERSION
from typedmcp.peer import Kind, Peer, Report
from typedmcp.service import Service
from typedmcp.subscriptions import Subscriptions
from typedmcp.threads import Threads
from typedmcp.wire import Bad, Batch, Frame, Oversize, RequestId, envelope, examine

__all__ = ["BatchAnswer", "Channel", "Engine", "Started", "awaited", "resumed"]

D = dialect.structs

Started: TypeAlias = "tuple[Context, Coroutine[Any, Any, Any]] | None"
"""A handler that is under way, to be awaited and answered; None where a message is done with."""

T = TypeVar("T")

_log = logging.getLogger("typedmcp")

_ABSENT: Any = object()
_MetaType = D.RequestMetaObject
_Coroutine: Any = CoroutineType
_new_meta: Any = _MetaType.__new__


class Channel(Protocol):
    """Where the answers to what came in one piece go: a batch, or a request of HTTP."""

    @property
    def principal(self) -> str | None:
        """Who the client was authenticated as, if it was."""
        ...

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers that it came with, their names in lower case."""
        ...

    def check(self, entry: Entry, params: Any) -> None:
        """Raise what is to be answered instead, where a message is not what was said of it outside of it."""
        ...

    def opened(self) -> None:
        """One more answer is going to come."""
        ...

    def reply(self, line: bytes, code: int | None) -> None:
        """An answer came; `code` is that of an error."""
        ...

    def refuse(self, line: bytes, code: int) -> None:
        """The error came with which a message is answered that nothing was done about."""
        ...

    def dropped(self) -> None:
        """One of the answers is not going to come."""
        ...

    def tell(self, ctx: Context, line: bytes) -> bool:
        """A message of a request that is no answer. False if it cannot go out."""
        ...

    def hang_up(self, retry: float) -> None:
        """Let go of the client, who comes back after so many seconds, where that is possible."""
        ...


class BatchAnswer:
    """Collects the answers to a batch, which go out in one frame."""

    __slots__ = ("_answers", "_engine", "_open", "parent", "principal")

    def __init__(self, engine: Engine, parent: Channel | None) -> None:
        self.parent: Channel | None = parent
        self.principal: str | None = engine.principal if parent is None else parent.principal
        self._engine = engine
        self._answers: list[bytes] = []
        self._open = 1
        if parent is not None:
            parent.opened()

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers that the batch came with."""
        return {} if self.parent is None else self.parent.request_headers

    def check(self, entry: Entry, params: Any) -> None:
        """What was said of the batch outside of it says nothing of its messages."""

    def opened(self) -> None:
        """One more answer is going to come."""
        self._open += 1

    def reply(self, line: bytes, code: int | None) -> None:  # noqa: ARG002  # each answer has its own
        """An answer came."""
        self._answers.append(line[:-1])
        self.dropped()

    def refuse(self, line: bytes, code: int) -> None:
        """The error came for a message that nothing was done about."""
        self.opened()
        self.reply(line, code)

    def dropped(self) -> None:
        """One less is open; the last one sends what there is."""
        self._open -= 1
        if self._open:
            return
        if self._answers:
            self._engine.reply(self.parent, b"[" + b",".join(self._answers) + b"]\n")
        elif self.parent is not None:
            self.parent.dropped()

    def tell(self, ctx: Context, line: bytes) -> bool:
        """Goes ahead of the answers."""
        return self.parent is not None and self.parent.tell(ctx, line)

    def hang_up(self, retry: float) -> None:
        """Let go of the client."""
        if self.parent is not None:
            self.parent.hang_up(retry)


class Engine:
    """Takes the messages of one client, or of many without sessions, and answers them.

    `principal` is who the client was authenticated as, if it was.
    """

    def __init__(self, service: Service, *, principal: str | None = None, threads: Threads | None = None) -> None:
        self.service: Service = service
        self.principal: str | None = principal
        self.peer: Peer = Peer()
        self.in_flight: dict[Any, Any] = self.peer.in_flight
        self.inputs: Inputs = Inputs(self)
        self.subscriptions: Subscriptions = Subscriptions(self)
        self.thread: int = threading.get_ident()
        self.ending: asyncio.Event = asyncio.Event()
        """Set when nothing more is read."""
        self.ended: bool = False
        """Set when nothing more is sent."""
        self.handshake: Handshake = Handshake(service)
        self.facts: FactsCache = FactsCache(self._check_version)
        self._known_facts = self.facts.known
        self.tasks: set[asyncio.Task[Any]] = set()
        self._threads = threads or Threads(service.threads)
        self._modern = codec_for(DIALECT, service.codec)
        self._codec: Codec = self._modern
        self._functions = {**self._own(), **service.functions, "cancelled": self._cancelled}
        self._special = {method.handler for method in dialect.methods.METHODS.values() if method.kind == "notification"}
        """Handlers that the hot path leaves to the slow one: notifications, and those that run in threads."""
        self._threaded = {name for name, function in service.functions.items() if runs_in_thread(function)}
        self._special |= {"initialized", "roots_list_changed", "task_status", "fallback", *self._threaded}

    # What a subclass does its own way

    can_ask: bool = True
    """Whether clients of older revisions can be asked something."""

    def tell(self, ctx: Context | None, line: bytes) -> bool:
        """Send a message that is no answer: of a request, or of none. False if it cannot go out."""
        raise NotImplementedError

    def reply(self, channel: Channel | None, line: bytes, code: int | None = None) -> None:
        """Send an answer; `code` is that of an error."""
        raise NotImplementedError

    def is_congested(self, ctx: Context | None) -> bool:
        """Whether the client does not read what it is sent."""
        raise NotImplementedError

    async def drain(self, ctx: Context | None) -> None:
        """Wait until it does."""
        raise NotImplementedError

    def drain_later(self, ctx: Context | None) -> None:
        """Tell of what was held back as soon as it does."""
        raise NotImplementedError

    def keep(self, fields: Mapping[str, str | None]) -> None:
        """Remember something of an older session, where that outlives its connection; None to forget it."""

    def call_id(self, number: int) -> RequestId:
        """The id of a request to the client, of which this end knows the number."""
        return number

    def begin(self, ctx: Context) -> bool:
        """A request is in flight from now on. False if one of that id is: this one must not be answered."""
        if not self.peer.begin(cast(RequestId, ctx.id), ctx):
            return False
        if ctx.channel is not None:
            ctx.channel.opened()
        return True

    def end(self, ctx: Context) -> bool:
        """A request is to be answered. False if it must not be, since it was cancelled."""
        return self.peer.end(cast(RequestId, ctx.id))

    def is_noted(self, ctx: Context) -> bool:
        """Whether a request is noted as in flight."""
        return self.in_flight.get(ctx.id) is ctx

    def note(self, ctx: Context) -> None:
        """A request turns out to take its time."""
        if ctx.id is not None and not self.is_noted(ctx):
            self.begin(ctx)

    def spawn(self, ctx: Context, answer: Coroutine[Any, Any, Any]) -> None:
        """Answer a request from a task of its own."""

        def ended(task: asyncio.Task[None]) -> None:
            self.tasks.discard(task)
            answer.close()  # it may have been cancelled before its first step

        ctx.task = asyncio.get_running_loop().create_task(self._finish(ctx, answer), context=self._task_context())
        self.tasks.add(ctx.task)
        ctx.task.add_done_callback(ended)

    def _task_context(self) -> contextvars.Context:
        return contextvars.copy_context()

    async def _finish(self, ctx: Context, answer: Awaitable[Any]) -> None:
        """Wait for a handler, and answer."""
        try:
            result = await answer
        except BaseException as error:
            self.failed(ctx, error)
        else:
            self.answer(ctx, result)

    def from_thread(self, ctx: Context, tell: Callable[[], None]) -> None:
        """Do something in the loop's thread, and wait in this one until the peer keeps up."""

        async def told() -> None:
            tell()
            if self.is_congested(ctx):
                await self.drain(ctx)

        asyncio.run_coroutine_threadsafe(told(), self.loop).result()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that everything but threaded handlers runs in."""
        raise NotImplementedError

    # Sending

    def send(self, ctx: Context | None, message: msgspec.Struct) -> bool:
        """Send a message that is no answer. False if it cannot go out.

        Raises `TypeError` or `ValueError` where it cannot be encoded.
        """
        if self.ended:
            return False
        line = bytearray()
        encode_into(message, line)
        return self.tell(ctx, bytes(line))

    def notify(self, ctx: Context | None, method: str, params: Any) -> None:
        """Send a notification, of a request or of none, as its wire has it."""
        if ctx is not None and (ctx.cancelled or ctx.ended):
            return
        session = self.facts.session
        revision = ctx.revision if ctx is not None else DIALECT if session is None else session.revision
        lost: Lost = []
        self.send(ctx, Notification("2.0", method, older_notice(method, params, revision, lost)))
        self.report_lost(lost, method, revision)

    def send_result(self, ctx: Context, encoded: Any) -> None:
        """Send the result of a request, if it is still wanted."""
        if ctx.id is None or ctx.cancelled or not self.end(ctx):
            return
        ctx.ended = True
        line = bytearray()
        try:
            encode_into(Response("2.0", ctx.id, encoded), line)
        except Exception as error:
            self._internal(ctx, error)
        else:
            self.reply(ctx.channel, bytes(line))

    # Reading

    def start(self, line: bytes | Oversize, channel: Channel | None = None) -> Started:
        """Take a message in, the fast way where it is as it should be.

        A request is noted as in flight only once it has to wait for something: nobody could ask before.
        """
        codec = self._codec
        try:
            message = codec.decode(line)
            entry = codec.forms[type(message)]
            params = message.params
            raw = getattr(params, "meta", UNSET)
            if raw is UNSET:
                facts = self.facts.session
            else:
                said = bytes(raw)
                facts = self._known_facts.get(said) or self.facts.of(said)
            if channel is not None:
                channel.check(entry, params)
        except (msgspec.MsgspecError, ValueError, RecursionError, TypeError, RemoteError):
            return self._look(line, channel)
        if facts is None or facts.is_modern is not (codec is self._modern) or not entry.is_request:
            return self._look(line, channel)  # which also sees an id that a notification has
        function, id, busy = self._functions.get(entry.handler), message.id, self.in_flight
        if function is None or entry.handler in self._special or id in busy or len(busy) >= self.service.in_flight:
            return self._call(entry, id, params, facts, line, channel)  # type: ignore[arg-type]
        meta = _new_meta(_MetaType)
        meta |= facts.meta
        ctx = Context(self, entry, id, facts, meta, line, channel)  # type: ignore[arg-type]
        try:
            ctx.params = params = entry.up(params, meta)
        except DecodeError as error:
            return self._refuse_params(ctx, error)
        try:
            if entry.takes_input and (
                params.request_state.__class__ is str or params.input_responses.__class__ is dict
            ):
                return self._call(entry, id, message.params, facts, line, channel)  # type: ignore[arg-type]
            answer = function(params, ctx)
        except BaseException as error:
            self.note(ctx)
            self.failed(ctx, error)
            return None
        if type(answer) is _Coroutine:
            return ctx, answer
        return self._other_answer(ctx, answer)

    def _refuse_params(self, ctx: Context, error: DecodeError) -> Started:
        fault = in_params(error)
        self.note(ctx)
        self._refuse(ctx, fault.code, fault.message, fault.data)
        return None

    def _other_answer(self, ctx: Context, answer: object) -> Started:
        """A plain handler's result, or something to be awaited that is no coroutine."""
        if type(answer) is _Coroutine:
            return ctx, cast("Coroutine[Any, Any, Any]", answer)
        if is_awaitable(answer):
            return ctx, awaited(answer)
        self.answer_at_once(ctx, answer)
        return None

    def answer_at_once(self, ctx: Context, result: object) -> None:
        """`answer`, for a handler that did not wait: the hot path's second half."""
        lost: Lost = []
        line = self.encoded_at_once(ctx, result, lost)
        if line is None:
            self.note(ctx)
            self.answer(ctx, result)
            return
        ctx.ended = True
        self.reply(ctx.channel, bytes(line))
        if lost:
            self.report_lost(lost, ctx.method, ctx.revision)

    def encoded_at_once(self, ctx: Context, result: object, lost: Lost) -> bytearray | None:
        """The answer as a line, where nothing is odd about it."""
        convert = ctx.entry.downs.get(type(result), _ABSENT)
        if convert is _ABSENT or ctx.id is None or self.is_noted(ctx):
            return None
        line = bytearray()
        try:
            encoded = result if convert is None else convert(result, lost)
            if ctx.facts.is_modern:
                encoded = self.service.named(encoded)
            encode_into(Response("2.0", ctx.id, encoded), line)
        except Exception:
            return None
        return line

    def _call(
        self, entry: Entry, id: RequestId | None, params: Any, facts: Facts, line: bytes, channel: Channel | None
    ) -> Started:
        """Call the handler of a message that is not as simple as most."""
        meta = own_meta(facts)
        ctx = Context(self, entry, id, facts, meta, line, channel)
        if id is not None:
            if not self.begin(ctx):
                self._taken(channel, entry.method, id)
                return None
            if len(self.in_flight) > self.service.in_flight:
                text = f"more than {self.service.in_flight} requests in flight"
                self._refuse(ctx, INTERNAL_ERROR, text)
                return None
        elif len(self.tasks) > self.service.in_flight:
            text = f"more than {self.service.in_flight} messages are being handled"
            self.report(Report(Kind.REFUSED, text, entry.method))
            return None
        try:
            function = self._functions.get(entry.handler)
            if function is None or entry.handler == "fallback":
                return self._unhandled(ctx)
            try:
                ctx.params = params = entry.up(params, meta)
            except DecodeError as error:
                return self._refuse_params(ctx, error)
            if entry.takes_input:
                self.inputs.begin(ctx, params)
            answer = self.enter(ctx, params)
        except BaseException as error:
            self.failed(ctx, error)
            return None
        return self._other_answer(ctx, answer)

    def enter(self, ctx: Context, *args: Any) -> Any:
        """Enter the handler's method for a request: what it gives may have to be awaited."""
        function: Callable[..., Any] = self._functions[ctx.entry.handler]
        if ctx.entry.handler in self._threaded:
            return self._threads.run(function, *args, ctx)
        return function(*args, ctx)

    async def run_in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """What a function gives that blocks, in one of the threads of this server."""
        return await self._threads.run(function, *args)

    def _unhandled(self, ctx: Context) -> Started:
        """A method that the handler does not have: its fallback gets the parameters as they came."""
        fallback = self._functions.get("fallback")
        if fallback is None:
            self._refuse(ctx, METHOD_NOT_FOUND, f"method not found: {ctx.method}")
            return None
        ctx.entry = unknown(ctx.method, is_request=ctx.entry.is_request)
        ctx.params = _raw_params(ctx.raw)
        return self._other_answer(ctx, self.enter(ctx, ctx.method, ctx.params))

    # The slow look

    def _look(self, line: bytes | Oversize, channel: Channel | None) -> Started:
        """Find out what a line is that the fast way did not take."""
        found = examine(line)
        if found is None:
            self.unanswered(channel, PARSE_ERROR, "there is nothing but white space")
            return None
        if isinstance(found, Batch):
            return self._batch(found, channel)
        return self._frame(found, line if isinstance(line, bytes) else line.head, channel)

    def _frame(self, found: Frame | Bad, line: bytes, channel: Channel | None) -> Started:
        if isinstance(found, Bad):
            self.report(Report(Kind.MALFORMED, found.reason, id=found.id))
            if not found.answer:
                self.unanswered(channel, found.code, found.reason)
            elif not self._is_taken(channel, found.id, None):
                self._send_error(found.id, found.code, found.reason, channel=channel)
            return None
        if found.method is None:
            self.answered(found, channel)
            return None
        if self._is_taken(channel, found.id, found.method):
            return None
        try:
            return self._message(found, line, channel)
        except RecursionError:
            self._refuse_frame(found, PARSE_ERROR, "nested too deeply", None, channel)
        except DecodeError as error:
            fault = in_params(error)
            self._refuse_frame(found, fault.code, fault.message, fault.data, channel)
        except RemoteError as error:
            self._refuse_frame(found, error.code, error.message, error.data, channel)
        return None

    def _is_taken(self, channel: Channel | None, id: RequestId | None, method: str | None) -> bool:
        """Whether a request with this id is in flight: an answer to another one would end it."""
        if id is None or id not in self.in_flight:
            return False
        self._taken(channel, method, id)
        return True

    def _taken(self, channel: Channel | None, method: str | None, id: RequestId) -> None:
        text = "a request with this id is in flight"
        self.report(Report(Kind.DUPLICATE, text, method, id))
        self.unanswered(channel, INVALID_REQUEST, text)

    def _refuse_frame(self, frame: Frame, code: int, text: str, data: Any, channel: Channel | None) -> None:
        if frame.id is not None:
            self._send_error(frame.id, code, text, data, channel=channel)
        else:
            kind = Kind.UNKNOWN if code == METHOD_NOT_FOUND else Kind.REFUSED
            self.report(Report(kind, text, frame.method, params=frame.value.get("params")))
            if kind is Kind.REFUSED:
                self.unanswered(channel, code, text)

    def unanswered(self, channel: Channel | None, code: int, text: str) -> None:
        """Something was refused that JSON-RPC has no answer for; a carrier may have one of its own."""

    def answered(self, frame: Frame, channel: Channel | None) -> None:  # noqa: ARG002
        """The client answers a request of this end."""
        self.inputs.answered(frame.id, frame)

    def admit(self, frame: Frame, channel: Channel | None) -> None:
        """Raise what is to be answered instead, where a message is not what was said of it outside of it."""

    def _message(self, frame: Frame, line: bytes, channel: Channel | None) -> Started:
        """A request or notification whose envelope is right: find its era, then what is wrong with it."""
        self.admit(frame, channel)
        params: dict[str, Any] = frame.value.get("params", {})
        meta: Any = params.get("_meta", {})
        if not is_object(meta):
            raise DecodeError("_meta", "expected object")
        modern = VERSION in meta and self.service.speaks_dialect  # to others it says nothing
        if not modern and self.handshake.takes(frame):
            return self._shake(frame, channel)
        if modern or (self.facts.session is not None and meta):
            facts = self._facts_of(meta)
        elif self.facts.session is not None:
            facts = self.facts.session
        elif frame.id is None:
            facts = _nobody()
        else:
            raise self.without_facts(frame, has_meta="_meta" in params)
        codec = self._modern if facts.is_modern else codec_for(facts.revision, self.service.codec)
        return self._typed(frame, codec, facts, line or msgspec.json.encode(frame.value), channel)

    def _facts_of(self, meta: dict[str, Any]) -> Facts:
        try:
            return self.facts.of(msgspec.json.encode(meta))
        except DecodeError as error:
            separator = "" if error.path.startswith("[") or not error.path else "."
            raise DecodeError(f"_meta{separator}{error.path}", error.reason) from error

    def without_facts(self, frame: Frame, *, has_meta: bool) -> RemoteError:
        """Why a request is refused that is neither a modern one nor part of an older session."""
        known = frame.method in self._modern.entries or any(
            frame.method in codec_for(revision).entries for revision in self.service.legacy
        )
        if not known and "fallback" not in self._functions:
            return RemoteError(METHOD_NOT_FOUND, f"method not found: {frame.method}")
        path = f'params._meta["{VERSION}"]' if has_meta else "params._meta"
        return RemoteError(INVALID_PARAMS, f"{path}: required, but missing; no initialize came before", {"path": path})

    def _typed(self, frame: Frame, codec: Codec, facts: Facts, line: bytes, channel: Channel | None) -> Started:
        entry_name = str(frame.method)
        entry = codec.entries.get(entry_name)
        if entry is None:
            if "fallback" not in self._functions:
                raise RemoteError(METHOD_NOT_FOUND, f"method not found: {frame.method}")
            return self._call(
                unknown(entry_name, is_request=frame.id is not None), frame.id, UNSET, facts, line, channel
            )
        if entry.is_request != (frame.id is not None):
            wanted = "a request and needs an id" if entry.is_request else "a notification and has no id"
            raise RemoteError(INVALID_REQUEST, f"{frame.method} is {wanted}")
        try:
            message = codec.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            codec.check(entry.method, frame.value.get("params", {}))
            line = msgspec.json.encode(frame.value)  # of several members with one name the last counts
            try:
                message = codec.decode(line)
            except (msgspec.MsgspecError, ValueError) as error:
                raise RemoteError(INVALID_PARAMS, str(error)) from error
        return self._call(entry, frame.id, message.params, facts, line, channel)

    def _shake(self, frame: Frame, channel: Channel | None) -> Started:
        """A part of the handshake."""
        if frame.id is None:
            facts = self.handshake.notice(frame)
            if facts is not None:
                self.begin_legacy(facts)
            else:
                text = f"{frame.method} before the session is open"
                self.report(Report(Kind.UNKNOWN, text, frame.method))
                self.unanswered(channel, INVALID_REQUEST, text)
            return None
        lost: Lost = []
        if isinstance(channel, BatchAnswer):
            raise RemoteError(INVALID_REQUEST, f"{frame.method} must not be part of a batch")
        result = self.handshake.answer(frame, lost)
        line = bytearray()
        encode_into(Response("2.0", frame.id, result), line)
        self.reply(channel, bytes(line))
        self.report_lost(lost, str(frame.method), getattr(result, "protocol_version", ""))
        return None

    def begin_legacy(self, facts: Facts) -> None:
        """The handshake is complete: from now on lines are of this revision."""
        self.facts.session = facts
        self.facts.clear()
        self._codec = codec_for(facts.revision, self.service.codec)
        self.subscriptions.begin_legacy()

    def _check_version(self, meta: D.RequestMetaObject) -> None:
        if meta.protocol_version != DIALECT or not self.service.speaks_dialect:
            raise UnsupportedVersion(meta.protocol_version, self.service.revisions)

    def _batch(self, found: Batch, channel: Channel | None) -> Started:
        session = self.facts.session
        if session is None or not has_batches(session.revision) or not found.items:
            reason = "an empty batch" if not found.items else "batches are not part of this protocol revision"
            return self._frame(Bad(INVALID_REQUEST, reason), b"", channel)
        if len(found.items) > self.service.batch:
            reason = f"a batch of {len(found.items)} messages, which may have {self.service.batch}"
            return self._frame(Bad(INVALID_REQUEST, reason), b"", channel)
        batch = BatchAnswer(self, channel)
        for item in found.items:
            started = self._frame(envelope(item), b"", batch)
            if started is not None:
                self.spawn(*started)
        batch.dropped()
        return None

    # Answering

    def answer(self, ctx: Context, result: Any) -> None:
        """Answer a request with what its handler returned."""
        if ctx.id is None:
            return
        if is_input_required(result):
            self.inputs.answer(ctx, result)
            return
        lost: Lost = []
        try:
            encoded = ctx.entry.down(result, lost)
            if ctx.is_modern:
                encoded = self.service.named(encoded)
        except Exception as error:
            self.failed(ctx, error)
            return
        self.send_result(ctx, encoded)
        if lost:
            self.report_lost(lost, ctx.method, ctx.revision)

    def failed(self, ctx: Context, error: BaseException) -> None:
        """Answer a request whose handler raised."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        try:
            self._failed(ctx, error)
        except Exception as broken:  # an error that cannot be answered with: nothing was sent yet
            if ctx.id is not None:
                self.end(ctx)
            self._internal(ctx, broken)

    def _failed(self, ctx: Context, error: BaseException) -> None:
        requests = _requested(error)
        if requests is not None:
            wanted = D.InputRequiredResult(result_type="input_required", input_requests=requests)
            self.inputs.answer(ctx, wanted)
        elif ctx.cancelled:
            pass  # the id is no longer this request's
        elif self.ended:
            self._abandon(ctx)
        elif ctx.id is None:
            self.report(Report(Kind.FAILED, f"the handler of {ctx.method} failed", ctx.method, error=error))
        elif isinstance(error, RemoteError):
            self._refuse(ctx, error.wire_code(ctx.revision), error.message, error.data)
        elif isinstance(error, MethodNotFoundError):
            self._refuse(ctx, METHOD_NOT_FOUND, str(error))
        elif self.end(ctx):
            self._internal(ctx, error)

    def _internal(self, ctx: Context, error: BaseException) -> None:
        """Something of ours is broken. The client learns that, and whoever takes the reports learns what."""
        text = f"internal error in {ctx.method}"
        ctx.ended = True
        if ctx.id is not None:
            self._send_error(ctx.id, INTERNAL_ERROR, text, channel=ctx.channel, opened=True)
        self.report(Report(Kind.FAILED, f"{text}: {_text_of(error)}", ctx.method, ctx.id, error=error))

    def _refuse(self, ctx: Context, code: int, text: str, data: Any = None) -> None:
        if ctx.id is not None and self.end(ctx):
            self._send_error(ctx.id, code, text, data, channel=ctx.channel, opened=True)
            ctx.ended = True

    def _abandon(self, ctx: Context) -> None:
        """A request ends without an answer."""
        if ctx.id is not None and self.end(ctx) and ctx.channel is not None:
            ctx.channel.dropped()

    def _send_error(
        self,
        id: RequestId | None,
        code: int,
        text: str,
        data: Any = None,
        *,
        channel: Channel | None,
        opened: bool = False,
    ) -> None:
        """Send an error. `opened` says that the channel, if any, waits for this answer."""
        line = error_bytes(id, code, text, data)
        if channel is not None and not opened:
            channel.refuse(line, code)
        else:
            self.reply(channel, line, code)

    # What the runtime does itself

    def _own(self) -> dict[str, Callable[[Any, Context], Any]]:
        def nothing(_params: Any, _ctx: Context) -> dict[str, Any]:
            return {}

        return {
            "ping": nothing,
            "initialized": nothing,
            "initialize": self._initialize_again,
            "discover": self._discover,
            "set_level": self._set_level,
            "subscriptions_listen": self.subscriptions.listen,
            "subscribe": self.subscriptions.subscribe,
            "unsubscribe": self.subscriptions.unsubscribe,
            "progress": self._event,
            "roots_list_changed": self._event,
            "task_status": self._event,
        }

    def _initialize_again(self, _params: Any, _ctx: Context) -> None:
        raise RemoteError(INVALID_REQUEST, "initialize: there was one before")

    def _discover(self, _params: Any, _ctx: Context) -> Any:
        result = D.DiscoverResult(
            supported_versions=self.service.revisions,
            capabilities=self.service.capabilities,
            result_type="complete",
            cache_scope="public",
            ttl_ms=0,
        )
        if self.service.instructions is not None:
            result.instructions = self.service.instructions
        return result if self.service.codec == "msgspec" else as_model(result)

    def _set_level(self, params: Any, _ctx: Context) -> dict[str, Any]:
        if self.facts.session is not None:
            self.facts.session.log_level = params.level
            self.facts.clear()
            self.keep({"level": params.level})
        return {}

    def _cancelled(self, params: Any, ctx: Context) -> Any:
        id = as_struct(params).request_id
        if id is UNSET or not self.cancel(id):
            self.report(Report(Kind.UNKNOWN, "what was cancelled is not in flight", ctx.method, params=plain(params)))
        heard = self.service.functions.get("cancelled")
        return None if heard is None else heard(params, ctx)

    def cancel(self, id: RequestId) -> bool:
        """The client gave a request up. False if there is none of that id."""
        other = self.peer.cancelled(id)
        if other is None:
            return False
        other.cancelled = True
        if other.channel is not None:
            other.channel.dropped()
        if other.task is not None:
            other.task.cancel()
        return True

    def _event(self, params: Any, ctx: Context) -> None:
        self.report(Report(Kind.EVENT, f"{ctx.method} from the client", ctx.method, params=plain(params)))

    # Reporting

    def unheard_log(self, ctx: Context, level: str, data: Any) -> None:
        """Nobody asked for log messages: whoever takes the reports may still want them."""
        self.report(Report(Kind.LOG, f"{level}: {data}", ctx.method, ctx.id, data))

    def listen(self) -> Callable[[], None]:
        """Begin to hear of changes; call what is returned to stop."""
        return self.service.changes.listen(self.hear)

    def hear(self, change: Change, uri: str | None) -> None:
        """A change was published, in whatever thread."""
        if threading.get_ident() == self.thread:
            self.subscriptions.publish(change, uri)
        elif not self.ended:
            self.loop.call_soon_threadsafe(self.subscriptions.publish, change, uri)

    def report(self, report: Report) -> None:
        """Tell whoever takes the reports; what that raises is its own affair."""
        try:
            self.service.on_report(report)
        except Exception:
            _log.exception("on_report failed")

    def report_lost(self, lost: Lost, method: str, revision: str) -> None:
        """Say what the peer's revision does not have."""
        if lost:
            self.report(Report(Kind.LOST, f"{', '.join(lost)}: not in {revision}", method, params=list(lost)))


def _text_of(error: BaseException) -> str:
    """What an exception says; it may be broken itself."""
    try:
        return repr(error)
    except Exception:
        return f"a {type(error).__name__} that cannot be printed"


def _requested(error: BaseException) -> dict[str, Any] | None:
    """The input that was asked for where a handler ended with that, in a task group perhaps."""
    if isinstance(error, InputRequested):
        return error.requests
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        found = [_requested(one) for one in group.exceptions]
        if all(requests is not None for requests in found):
            return {key: request for requests in found if requests for key, request in requests.items()}
    return None


def _nobody() -> Facts:
    """The client of a modern notification, which need not say whose it is."""
    return Facts(DIALECT, _MetaType(protocol_version=DIALECT, client_capabilities=D.ClientCapabilities()))


async def awaited(answer: Awaitable[Any]) -> Any:
    """Something to wait for as a coroutine."""
    return await answer


@coroutine
def resumed(handler: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """What `await handler` does after its first step, which gave what it waits for."""
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:
            step: Callable[[Any], Any] = handler.throw
            argument = error
        else:
            step, argument = handler.send, sent
        try:
            waits_for = step(argument)
        except StopIteration as stop:
            return stop.value


class _Params(msgspec.Struct):
    params: dict[str, Any] = {}


_raw = msgspec.json.Decoder(_Params).decode


def _raw_params(line: bytes) -> dict[str, Any]:
    """The parameters of a line, as plain JSON."""
    return _raw(line).params
