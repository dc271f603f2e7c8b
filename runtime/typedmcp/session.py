"""One connection of a server: lines in, handlers called, lines out.

The hot path is `_work`: a worker task reads, decodes, calls the handler and awaits it in place, so that a handler
which does not wait costs no task. Where one does wait, its worker becomes the handler's own task, and another worker
takes over the reading.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import CoroutineType, coroutine
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET

from mcpspec._support.errors import MethodNotFoundError
from mcpspec._support.objects import is_object
from typedmcp import dialect
from typedmcp.backends import as_model, as_struct, plain
from typedmcp.changes import Change
from typedmcp.codec import Codec, Entry, Notification, Response, codec_for, encode_into, encoder, error_bytes, unknown
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
    ConnectionLost,
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
from typedmcp.transports import Transport
from typedmcp.wire import Bad, Batch, Frame, Framer, Oversize, RequestId, envelope, examine

__all__ = ["ServerSession"]

D = dialect.structs

Started: TypeAlias = "tuple[Context, Coroutine[Any, Any, Any]] | None"
"""A handler that is under way, to be awaited and answered; None where a line is done with."""

_log = logging.getLogger("typedmcp")

_encode_into = encoder.encode_into
_EARLY = 4096
"""How many bytes of answers are collected before they are sent: the peer works on them while the rest is made."""
_ABSENT: Any = object()
_MetaType = D.RequestMetaObject
_Coroutine: Any = CoroutineType
_new_meta: Any = _MetaType.__new__


class _BatchAnswer:
    """Collects the answers to a batch, which go out in one frame."""

    __slots__ = ("answers", "open")

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.open = 1


class ServerSession:
    """Serves one connection until it ends.

    `principal` is who the client was authenticated as, if it was.
    """

    def __init__(self, service: Service, transport: Transport, *, principal: str | None = None) -> None:
        self.service: Service = service
        self.principal: str | None = principal
        self.peer: Peer = Peer()
        self._in_flight = self.peer.in_flight
        self.inputs: Inputs = Inputs(self)
        self.subscriptions: Subscriptions = Subscriptions(self)
        self.thread: int = threading.get_ident()
        self.ending: asyncio.Event = asyncio.Event()
        """Set when nothing more is read."""
        self._handshake = Handshake(service)
        self._facts = FactsCache(self._check_version)
        self._known_facts = self._facts.known
        self._transport = transport
        self._framer = Framer(service.limit)
        self._lines: deque[bytes | Oversize] = deque()
        self._out = bytearray()
        self._line = bytearray()
        self._flushing = False
        self._worker: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._entered: Any = None
        """The context of the handler that was entered last."""
        self._ended = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads = Threads(service.threads)
        self._modern = codec_for(DIALECT, service.codec)
        self._codec: Codec = self._modern
        self._functions = {**self._own(), **service.functions, "cancelled": self._cancelled}
        self._special = {method.handler for method in dialect.methods.METHODS.values() if method.kind == "notification"}
        """Handlers that the hot path leaves to the slow one: notifications, and those that run in threads."""
        self._threaded = {name for name, function in service.functions.items() if runs_in_thread(function)}
        self._special |= {"initialized", "roots_list_changed", "task_status", "fallback", *self._threaded}

    # Running

    async def run(self) -> None:
        """Serve until the peer closes, then let open requests finish, for `grace` seconds at most."""
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self._hire()
        try:
            await self._finished
            self.ending.set()
            self._lose_calls()
            if self._tasks:
                await asyncio.wait(set(self._tasks), timeout=self.service.grace)
        finally:
            await self._close()

    def stop(self) -> None:
        """End the connection from this side: nothing more is read, open requests may finish."""
        self.ending.set()
        if not self._finished.done():
            self._finished.set_result(None)
        if self._worker is not None:
            self._worker.cancel()

    async def _close(self) -> None:
        self._flush()
        self._ended = True
        self.ending.set()
        self.subscriptions.close()
        for ctx in list(self._in_flight.values()):
            ctx.cancelled = True  # which is all that a handler in a thread can see
        self._lose_calls()
        self.peer.close()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self.service.grace)
        try:
            await asyncio.wait_for(self._transport.close(), self.service.grace)
        except TimeoutError:
            self.report(Report(Kind.BROKEN, "the connection ended before the client had read everything"))

    def _lose_calls(self) -> None:
        """Nothing is read any more, so nothing that was asked can be answered."""
        for call in list(self.peer.pending.values()):
            self.peer.cancel(call.id)
            if not call.owner.done():
                call.owner.set_exception(ConnectionLost("the connection ended").of_call(call.method, call.id))
                call.owner.exception()  # it may be that nobody waits any more

    def _hire(self) -> None:
        """A new worker."""
        self._worker = self._loop.create_task(self._work(), context=self._context.copy())
        self._tasks.add(self._worker)
        self._worker.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._finished.done():
            return
        if error is not None:
            self._finished.set_exception(error)
        elif task is self._worker and task.cancelled() and not self.ending.is_set():
            self._hire()  # a handler that did not wait has cancelled the task it was in
        elif task is self._worker:
            self._finished.set_result(None)

    async def _work(self) -> None:
        clean = contextvars.copy_context()
        while True:
            while self._lines:
                if self._transport.congested:
                    await self.drain()
                self._flushing = True  # at the end of these lines, or when this task waits
                handling = self._handle_lines(clean)
                try:
                    waits_for = handling.send(None)
                except StopIteration:
                    pass
                else:
                    # A handler waits. It keeps this task, and the next lines get one of their own.
                    self._note(self._entered)
                    self._entered.task = asyncio.current_task()
                    self._hire()
                    await _resumed(handling, waits_for)
                    return
                if _differs(clean):
                    # What a handler left in the context of this task is none of the next one's business.
                    self._hire()
                    return
            self._flush()
            if not await self._read_more():
                return

    async def _handle_lines(self, clean: contextvars.Context) -> None:
        """Take lines in and answer them, up to the first handler that waits for something."""
        lines, transport = self._lines, self._transport
        while lines and not transport.congested:
            started = self._start(lines.popleft())
            if started is None:
                if _differs(clean):
                    return
                continue
            self._entered, answer = started
            ctx = self._entered
            try:
                result = await answer
            except BaseException as error:
                if ctx.task is None:
                    self._note(ctx)
                self.failed(ctx, error)
            else:
                if ctx.task is None:
                    self._answer_at_once(ctx, result)
                else:
                    self.answer(ctx, result)
            if ctx.task is not None or _differs(clean):
                return

    async def _finish(self, ctx: Context, answer: Awaitable[Any]) -> None:
        """Wait for a handler, and answer."""
        try:
            result = await answer
        except BaseException as error:
            self.failed(ctx, error)
        else:
            self.answer(ctx, result)

    async def _read_more(self) -> bool:
        """Wait for more lines. False at the end of the stream."""
        if self.ending.is_set():
            return False
        try:
            data = await self._transport.read()
        except OSError as error:
            self.report(Report(Kind.BROKEN, f"the connection broke: {error}", error=error))
            data = b""
        self._lines.extend(self._framer.feed(data) if data else self._framer.end())
        return bool(data) or bool(self._lines)

    def spawn(self, ctx: Context, answer: Coroutine[Any, Any, Any]) -> None:
        """Answer a request from a task of its own."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            answer.close()  # it may have been cancelled before its first step

        ctx.task = self._loop.create_task(self._finish(ctx, answer), context=self._context.copy())
        self._tasks.add(ctx.task)
        ctx.task.add_done_callback(ended)

    # Writing

    @property
    def congested(self) -> bool:
        """Whether the peer does not read what it is sent."""
        return self._transport.congested

    async def drain(self) -> None:
        """Wait until it does."""
        self._flush()
        await self._transport.drain()
        self.subscriptions.resume()

    def drain_later(self) -> None:
        """Tell of what was held back as soon as it does."""
        if self._draining is None or self._draining.done():
            self._draining = self._loop.create_task(self.drain(), context=self._context.copy())
            self._tasks.add(self._draining)
            self._draining.add_done_callback(self._tasks.discard)

    def from_thread(self, tell: Callable[[], None]) -> None:
        """Do something in the loop's thread, and wait in this one until the peer keeps up."""

        async def told() -> None:
            tell()
            if self.congested:
                await self.drain()

        asyncio.run_coroutine_threadsafe(told(), self._loop).result()

    def send(self, message: msgspec.Struct) -> None:
        """Send a message. Raises `TypeError` or `ValueError` where it cannot be encoded."""
        if not self._ended:
            encode_into(message, self._out)
            self._schedule_flush()

    def notify(self, ctx: Context | None, method: str, params: Any, *, modern: bool = False) -> None:
        """Send a notification: of a request, or of a listener, as the wire of that has it."""
        if ctx is not None and (ctx.cancelled or ctx.ended):
            return
        session = self._facts.session
        revision = ctx.revision if ctx is not None else DIALECT if modern or session is None else session.revision
        lost: Lost = []
        self.send(Notification("2.0", method, older_notice(method, params, revision, lost)))
        self.report_lost(lost, method, revision)

    def send_result(self, ctx: Context, encoded: Any) -> None:
        """Send the result of a request, if it is still wanted."""
        if ctx.id is None or ctx.cancelled or not self.peer.end(ctx.id):
            return
        response = Response("2.0", ctx.id, encoded)
        ctx.ended = True
        try:
            if ctx.batch is None:
                encode_into(response, self._out)
                self._schedule_flush()
            else:
                part = bytearray()
                encode_into(response, part)
                self._add_to_batch(ctx.batch, bytes(part))
        except Exception as error:
            self._internal(ctx, error)

    def _flush(self) -> None:
        self._flushing = False
        if self._out:
            self._write()

    def _write(self) -> None:
        data = bytes(self._out)
        self._out.clear()
        try:
            self._transport.write(data)
        except OSError as error:
            self.report(Report(Kind.BROKEN, f"the connection broke: {error}", error=error))
            self.stop()

    def _schedule_flush(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    # Reading

    def _start(self, line: bytes | Oversize) -> Started:
        """Take a line in, the fast way where it is as it should be.

        A request is noted as in flight only once it has to wait for something: nobody could ask before.
        """
        codec = self._codec
        try:
            message = codec.decode(line)
            entry = codec.forms[type(message)]
            params = message.params
            raw = getattr(params, "meta", UNSET)
            if raw is UNSET:
                facts = self._facts.session
            else:
                said = bytes(raw)
                facts = self._known_facts.get(said) or self._facts.of(said)
        except (msgspec.MsgspecError, ValueError, RecursionError, TypeError, RemoteError):
            return self._look(line)
        if facts is None or facts.is_modern is not (codec is self._modern) or not entry.is_request:
            return self._look(line)  # which also sees an id that a notification has
        function = self._functions.get(entry.handler)
        if function is None or entry.handler in self._special:
            return self._call(entry, message.id if entry.is_request else None, params, facts, line)  # type: ignore[arg-type]
        id = message.id
        if id in self._in_flight or len(self._in_flight) >= self.service.in_flight:
            return self._call(entry, id, params, facts, line)  # type: ignore[arg-type]
        meta = _new_meta(_MetaType)
        meta.update(facts.meta)
        ctx = Context(self, entry, id, facts, meta, line)  # type: ignore[arg-type]
        try:
            ctx.params = params = entry.up(params, meta)
        except DecodeError as error:
            return self._refuse_params(ctx, error)
        try:
            if entry.takes_input and (
                params.request_state.__class__ is str or params.input_responses.__class__ is dict
            ):
                return self._call(entry, id, message.params, facts, line)  # type: ignore[arg-type]
            answer = function(params, ctx)
        except BaseException as error:
            self._note(ctx)
            self.failed(ctx, error)
            return None
        if type(answer) is _Coroutine:
            return ctx, answer
        return self._other_answer(ctx, answer)

    def _refuse_params(self, ctx: Context, error: DecodeError) -> Started:
        fault = in_params(error)
        self._note(ctx)
        self._refuse(ctx, fault.code, fault.message, fault.data)
        return None

    def _other_answer(self, ctx: Context, answer: object) -> Started:
        """A plain handler's result, or something to be awaited that is no coroutine."""
        if type(answer) is _Coroutine:
            return ctx, cast("Coroutine[Any, Any, Any]", answer)
        if is_awaitable(answer):
            return ctx, _awaited(answer)
        self._answer_at_once(ctx, answer)
        return None

    def _note(self, ctx: Context) -> None:
        """A request is in flight from now on."""
        if ctx.id is not None:
            self._in_flight.setdefault(ctx.id, ctx)

    def _answer_at_once(self, ctx: Context, result: object) -> None:
        """`answer`, for a handler that did not wait: the hot path's second half."""
        entry, id = ctx.entry, ctx.id
        convert = entry.downs.get(type(result), _ABSENT)
        if convert is _ABSENT or id is None or ctx.batch is not None or id in self._in_flight:
            self._note(ctx)
            self.answer(ctx, result)
            return
        lost: Lost = []
        line, out = self._line, self._out
        try:
            encoded = result if convert is None else convert(result, lost)
            if ctx.facts.is_modern:
                encoded = self.service.named(encoded)
            _encode_into(Response("2.0", id, encoded), line)
            if b"null" in line or b"\n" in line:
                raise ValueError("perhaps NaN, or JSON that was encoded already")
        except Exception:
            self._note(ctx)
            self.answer(ctx, result)
            return
        ctx.ended = True
        line += b"\n"
        out += line
        if lost:
            self.report_lost(lost, entry.method, ctx.revision)
        if len(out) > _EARLY:
            self._write()
        elif not self._flushing:
            self._schedule_flush()

    def _call(
        self, entry: Entry, id: RequestId | None, params: Any, facts: Facts, line: bytes, batch: Any = None
    ) -> Started:
        """Call the handler of a message that is not as simple as most."""
        meta = own_meta(facts)
        ctx = Context(self, entry, id, facts, meta, line)
        if id is not None:
            ctx.batch = batch
            if not self.peer.begin(id, ctx):
                self.report(Report(Kind.DUPLICATE, "a request with this id is in flight", entry.method, id))
                return None
            if batch is not None:
                batch.open += 1
            if len(self._in_flight) > self.service.in_flight:
                text = f"more than {self.service.in_flight} requests in flight"
                self._refuse(ctx, INTERNAL_ERROR, text)
                return None
        elif len(self._tasks) > self.service.in_flight:
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

    def _look(self, line: bytes | Oversize) -> Started:
        """Find out what a line is that the fast way did not take."""
        found = examine(line)
        if found is None:
            return None
        if isinstance(found, Batch):
            return self._batch(found)
        return self._frame(found, line if isinstance(line, bytes) else line.head, None)

    def _frame(self, found: Frame | Bad, line: bytes, batch: Any) -> Started:
        if isinstance(found, Bad):
            self.report(Report(Kind.MALFORMED, found.reason, id=found.id))
            if found.answer and not self._is_taken(found.id, None):
                self._send_error(found.id, found.code, found.reason, batch=batch)
            return None
        if found.method is None:
            self.inputs.answered(found)
            return None
        if self._is_taken(found.id, found.method):
            return None
        try:
            return self._message(found, line, batch)
        except RecursionError:
            self._refuse_frame(found, PARSE_ERROR, "nested too deeply", None, batch)
        except DecodeError as error:
            fault = in_params(error)
            self._refuse_frame(found, fault.code, fault.message, fault.data, batch)
        except RemoteError as error:
            self._refuse_frame(found, error.code, error.message, error.data, batch)
        return None

    def _is_taken(self, id: RequestId | None, method: str | None) -> bool:
        """Whether a request with this id is in flight: an answer to another one would end it."""
        if id is None or id not in self._in_flight:
            return False
        self.report(Report(Kind.DUPLICATE, "a request with this id is in flight", method, id))
        return True

    def _refuse_frame(self, frame: Frame, code: int, text: str, data: Any, batch: Any) -> None:
        if frame.id is not None:
            self._send_error(frame.id, code, text, data, batch=batch)
        else:
            kind = Kind.UNKNOWN if code == METHOD_NOT_FOUND else Kind.REFUSED
            self.report(Report(kind, text, frame.method, params=frame.value.get("params")))

    def _message(self, frame: Frame, line: bytes, batch: Any) -> Started:
        """A request or notification whose envelope is right: find its era, then what is wrong with it."""
        params: dict[str, Any] = frame.value.get("params", {})
        meta: Any = params.get("_meta", {})
        if not is_object(meta):
            raise DecodeError("_meta", "expected object")
        modern = VERSION in meta and self.service.speaks_dialect  # to others it says nothing
        if not modern and self._handshake.takes(frame):
            return self._shake(frame, batch)
        if modern or (self._facts.session is not None and meta):
            facts = self._facts_of(meta)
        elif self._facts.session is not None:
            facts = self._facts.session
        elif frame.id is None:
            facts = _nobody()
        else:
            raise self._without_facts(frame, "_meta" in params)
        codec = self._modern if facts.is_modern else codec_for(facts.revision, self.service.codec)
        return self._typed(frame, codec, facts, line if batch is None else msgspec.json.encode(frame.value), batch)

    def _facts_of(self, meta: dict[str, Any]) -> Facts:
        try:
            return self._facts.of(msgspec.json.encode(meta))
        except DecodeError as error:
            separator = "" if error.path.startswith("[") or not error.path else "."
            raise DecodeError(f"_meta{separator}{error.path}", error.reason) from error

    def _without_facts(self, frame: Frame, has_meta: bool) -> RemoteError:
        """Why a request is refused that is neither a modern one nor part of an older session."""
        known = frame.method in self._modern.entries or any(
            frame.method in codec_for(revision).entries for revision in self.service.legacy
        )
        if not known and "fallback" not in self._functions:
            return RemoteError(METHOD_NOT_FOUND, f"method not found: {frame.method}")
        path = f'params._meta["{VERSION}"]' if has_meta else "params._meta"
        return RemoteError(INVALID_PARAMS, f"{path}: required, but missing; no initialize came before", {"path": path})

    def _typed(self, frame: Frame, codec: Codec, facts: Facts, line: bytes, batch: Any) -> Started:
        entry_name = str(frame.method)
        entry = codec.entries.get(entry_name)
        if entry is None:
            if "fallback" not in self._functions:
                raise RemoteError(METHOD_NOT_FOUND, f"method not found: {frame.method}")
            return self._call(unknown(entry_name, is_request=frame.id is not None), frame.id, UNSET, facts, line, batch)
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
        return self._call(entry, frame.id, message.params, facts, line, batch)

    def _shake(self, frame: Frame, batch: Any) -> Started:
        """A part of the handshake."""
        if frame.id is None:
            facts = self._handshake.notice(frame)
            if facts is not None:
                self._begin_legacy(facts)
            else:
                self.report(Report(Kind.UNKNOWN, f"{frame.method} before the session is open", frame.method))
            return None
        lost: Lost = []
        if batch is not None:
            raise RemoteError(INVALID_REQUEST, f"{frame.method} must not be part of a batch")
        result = self._handshake.answer(frame, lost)
        self.send(Response("2.0", frame.id, result))
        self.report_lost(lost, str(frame.method), getattr(result, "protocol_version", ""))
        return None

    def _begin_legacy(self, facts: Facts) -> None:
        """The handshake is complete: from now on lines are of this revision."""
        self._facts.session = facts
        self._facts.clear()
        self._codec = codec_for(facts.revision, self.service.codec)
        self.subscriptions.begin_legacy()

    def _check_version(self, meta: D.RequestMetaObject) -> None:
        if meta.protocol_version != DIALECT or not self.service.speaks_dialect:
            raise UnsupportedVersion(meta.protocol_version, self.service.revisions)

    def _batch(self, found: Batch) -> Started:
        session = self._facts.session
        if session is None or not has_batches(session.revision) or not found.items:
            reason = "an empty batch" if not found.items else "batches are not part of this protocol revision"
            return self._frame(Bad(INVALID_REQUEST, reason), b"", None)
        if len(found.items) > self.service.batch:
            reason = f"a batch of {len(found.items)} messages, which may have {self.service.batch}"
            return self._frame(Bad(INVALID_REQUEST, reason), b"", None)
        batch = _BatchAnswer()
        for item in found.items:
            started = self._frame(envelope(item), b"", batch)
            if started is not None:
                self.spawn(*started)
        self._close_batch(batch)
        return None

    def _add_to_batch(self, batch: _BatchAnswer, line: bytes) -> None:
        batch.answers.append(line[:-1])
        self._close_batch(batch)

    def _close_batch(self, batch: _BatchAnswer) -> None:
        batch.open -= 1
        if not batch.open and batch.answers:
            self._out += b"[" + b",".join(batch.answers) + b"]\n"
            self._schedule_flush()

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
                self.peer.end(ctx.id)
            self._internal(ctx, broken)

    def _failed(self, ctx: Context, error: BaseException) -> None:
        requests = _requested(error)
        if requests is not None:
            wanted = D.InputRequiredResult(result_type="input_required", input_requests=requests)
            self.inputs.answer(ctx, wanted)
        elif ctx.cancelled:
            pass  # the id is no longer this request's
        elif self._ended:
            if ctx.id is not None:
                self.peer.end(ctx.id)
        elif ctx.id is None:
            self.report(Report(Kind.FAILED, f"the handler of {ctx.method} failed", ctx.method, error=error))
        elif isinstance(error, RemoteError):
            self._refuse(ctx, error.wire_code(ctx.revision), error.message, error.data)
        elif isinstance(error, MethodNotFoundError):
            self._refuse(ctx, METHOD_NOT_FOUND, str(error))
        elif self.peer.end(ctx.id):
            self._internal(ctx, error)

    def _internal(self, ctx: Context, error: BaseException) -> None:
        """Something of ours is broken. The client learns that, and whoever takes the reports learns what."""
        text = f"internal error in {ctx.method}"
        ctx.ended = True
        if ctx.id is not None:
            self._send_error(ctx.id, INTERNAL_ERROR, text, batch=ctx.batch, opened=True)
        self.report(Report(Kind.FAILED, f"{text}: {_text_of(error)}", ctx.method, ctx.id, error=error))

    def _refuse(self, ctx: Context, code: int, text: str, data: Any = None) -> None:
        if ctx.id is not None and self.peer.end(ctx.id):
            self._send_error(ctx.id, code, text, data, batch=ctx.batch, opened=True)
            ctx.ended = True

    def _send_error(
        self,
        id: RequestId | None,
        code: int,
        text: str,
        data: Any = None,
        *,
        batch: _BatchAnswer | None = None,
        opened: bool = False,
    ) -> None:
        """Send an error. `opened` says that the batch, if any, waits for this answer."""
        line = error_bytes(id, code, text, data)
        if batch is not None:
            batch.open += not opened
            self._add_to_batch(batch, line)
        else:
            self._out += line
            self._schedule_flush()

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
        if self._facts.session is not None:
            self._facts.session.log_level = params.level
            self._facts.clear()
        return {}

    def _cancelled(self, params: Any, ctx: Context) -> Any:
        id = as_struct(params).request_id
        other = None if id is UNSET else self.peer.cancelled(id)
        if other is None:
            self.report(Report(Kind.UNKNOWN, "what was cancelled is not in flight", ctx.method, params=plain(params)))
        else:
            other.cancelled = True
            if other.batch is not None:
                self._close_batch(other.batch)
            if other.task is not None:
                other.task.cancel()
        heard = self.service.functions.get("cancelled")
        return None if heard is None else heard(params, ctx)

    def _event(self, params: Any, ctx: Context) -> None:
        self.report(Report(Kind.EVENT, f"{ctx.method} from the client", ctx.method, params=plain(params)))

    # Reporting

    def unheard_log(self, ctx: Context, level: str, data: Any) -> None:
        """Nobody asked for log messages: whoever takes the reports may still want them."""
        self.report(Report(Kind.LOG, f"{level}: {data}", ctx.method, ctx.id, data))

    def hear(self, change: Change, uri: str | None) -> None:
        """A change was published, in whatever thread."""
        if threading.get_ident() == self.thread:
            self.subscriptions.publish(change, uri)
        elif not self._ended:
            self._loop.call_soon_threadsafe(self.subscriptions.publish, change, uri)

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


def _differs(clean: contextvars.Context) -> bool:
    """Whether something was left in the context of this task."""
    try:
        return contextvars.copy_context() != clean
    except Exception:  # values that cannot be compared
        return True


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


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


@coroutine
def _resumed(handler: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
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
