"""The shared state of an HTTP application: store, worker messages, event streams, tasks, diagnostics."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

import msgspec

from typedmcp.errors import UsageError
from typedmcp.protocol.budgets import STREAM_BYTES, ClientKey, Hold
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.notifications import Change
from typedmcp.protocol.sse import encode_event
from typedmcp.revisions.features import FEATURES
from typedmcp.server.config import ServerConfig
from typedmcp.server.engine import Engine
from typedmcp.server.http.auth import Auth
from typedmcp.server.http.messages import Receive, Send, wait_for_disconnect
from typedmcp.server.http.streams import EventStream, ResumableStream, StreamLog, WaitingStream
from typedmcp.server.state_token import StateSigner
from typedmcp.server.store import Store
from typedmcp.transports.concurrency import FairLimit, ThreadLimiter, limit_time
from typedmcp.transports.eager import EagerTasks

__all__ = ["AppState", "ChangeListener", "WaitingRequests", "WorkerMessage", "check_shared_state"]

_STORE_REPORT_PAUSE = 60.0
"""Seconds between two reports that the store is full: only the store knows how much it holds."""


class WorkerMessage(msgspec.Struct, array_like=True):
    """A message from one worker to another, or to all."""

    kind: str
    """The name of the handler in `AppState.message_handlers`."""
    arguments: list[Any]


class ChangeListener(Protocol):
    """A session that delivers changes to clients."""

    def on_change(self, number: int, change: Change, uri: str | None) -> None:
        """Deliver a change, which was published with this number."""
        ...


_MOMENT: Final = 0.02
"""Seconds after which a request is watched. Most handlers that wait have ended before."""


class WaitingRequests:
    """Calls a function for each request that waits for a moment. All requests share one timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._requests: dict[Any, tuple[float, Callable[[Any, Receive], None], Receive]] = {}
        """When each request is due, and its function, in the order of time."""
        self._has_timer = False

    def add(self, request: Any, on_wait: Callable[[Any, Receive], None], receive: Receive) -> None:
        """Call a function, with the request and `receive`, unless the request is removed within a moment."""
        due = self._loop.time() + _MOMENT
        self._requests[request] = due, on_wait, receive
        if not self._has_timer:
            self._has_timer = True
            self._loop.call_at(due, self._call_due)

    def remove(self, request: Any) -> None:
        """Remove a request, which has ended."""
        self._requests.pop(request, None)

    def _call_due(self) -> None:
        self._has_timer = False
        now = self._loop.time()
        for request, (due, on_wait, receive) in list(self._requests.items()):
            if due > now:
                self._has_timer = True
                self._loop.call_at(due, self._call_due)
                return
            del self._requests[request]
            on_wait(request, receive)


class AppState:
    """The state of one HTTP application on one worker, as its sessions and endpoints see it.

    `retry` is in milliseconds, `keep_alive` in seconds.
    """

    loop: asyncio.AbstractEventLoop
    """The event loop in which the application is open."""
    waiting: WaitingRequests
    """The requests whose handlers have waited for less than a moment."""
    eager_tasks: EagerTasks | None = None
    """Starts the tasks of requests that need no parsing; None while the application is not open."""
    engine: Engine
    """Serves the functions of the server to all sessions."""
    large_bodies: FairLimit
    """The slot in which large bodies are decoded, one at a time."""

    def __init__(self, config: ServerConfig, store: Store, auth: Auth | None, *, keep_alive: float, retry: int) -> None:
        self.config: ServerConfig = config
        self.report: Callable[[Diagnostic], None] = config.report
        self.store: Store = store
        self.auth: Auth | None = auth
        self.retry: int = retry
        self.last_number: int = 0
        """The number of the last message that was published to all workers."""
        self.message_handlers: dict[str, Callable[..., None]] = {}
        """The functions that handle worker messages, by kind."""
        self.streams: dict[EventStream, str | None] = {}
        """The open event streams, each with the session that it keeps alive."""
        self._resumable: dict[str, ResumableStream] = {}
        """The open streams whose events are stored, by name."""
        self._has_reported_streams = False
        self._next_store_report = -math.inf
        self.keep_alive: float = keep_alive
        self._listeners: dict[ChangeListener, None] = {}
        self._names = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()

    # Lifecycle

    async def open(self) -> None:
        """Enter the lifespan, open the store, and begin to deliver changes."""
        threads = self.config.limits.threads
        limiter = ThreadLimiter(threads, threads - threads // 4)
        self.engine = Engine(self.config, threads=limiter, use_once=self.store.use_once)
        self.large_bodies = FairLimit(1)
        self.waiting = WaitingRequests(self.loop)
        self._no_streams = asyncio.Event()
        self._no_streams.set()
        await self.config.lifespans.enter()
        await self.store.open(self._on_message)
        self.eager_tasks = EagerTasks(self.loop)
        self._unsubscribe = self.config.changes.listen(self._publish_change, self.loop)
        self.spawn(self._keep_streams_alive())

    def stop_listening(self) -> None:
        """Stop publishing the changes of this worker's handlers."""
        self._unsubscribe()

    async def close(self) -> None:
        """Wait for open streams, cancel tasks, close the store, and leave the lifespan."""
        if self.eager_tasks is not None:
            self.eager_tasks.close()
            self.eager_tasks = None
        await limit_time(self.config.grace, self._no_streams.wait())
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            _, unended = await asyncio.wait(tasks, timeout=self.config.grace)
            self.config.report_unended(unended, self.config.grace)
        await self.store.close()
        await self.config.lifespans.leave()

    # Event streams

    def open_stream(
        self, send: Send, client: ClientKey, log: StreamLog | None = None, session: str | None = None
    ) -> EventStream | None:
        """Open an event stream for a client; None if a limit is reached.

        With `log`, its events are stored. The session `session` does not expire while the stream is open.
        """
        hold = Hold(self.config.budgets.streams, client)
        if not self._may_open_stream() or not hold.take(STREAM_BYTES):
            return None
        buffer = self.config.limits.http_stream_buffer_bytes
        if log is None:
            stream = EventStream(send, buffer, hold)
        else:
            kind = ResumableStream if log.is_immediate else WaitingStream
            stream = kind(send, buffer, hold, log, self.retry)
            self._resumable[log.name] = stream
        self.streams[stream] = session
        self._no_streams.clear()
        stream.on_ended = self.forget_stream
        return stream

    def _may_open_stream(self) -> bool:
        """Return whether there may be one more stream, and report the first one too many."""
        limit, count = self.config.limits.http_streams, len(self.streams)
        if count >= limit and not self._has_reported_streams:
            self._has_reported_streams = True
            text = f"http_streams: {limit} event streams are open; more get status 503"
            self.report(Diagnostic(DiagnosticKind.LIMIT_REACHED, text))
        elif count <= limit // 2:
            self._has_reported_streams = False
        return count < limit

    def forget_stream(self, stream: EventStream) -> None:
        """Remove a stream that has ended."""
        stream.hold.close()
        self.streams.pop(stream, None)
        if isinstance(stream, ResumableStream):
            self._resumable.pop(stream.name, None)
        if not self.streams:
            self._no_streams.set()

    def detach_stream(self, name: str) -> None:
        """Close the connection of a stored stream, since its client has resumed it on another one."""
        if (stream := self._resumable.get(name)) is not None:
            stream.detach()

    async def pump(self, stream: EventStream, receive: Receive, expires: float | None = None) -> None:
        """Send a stream until it ends, the client disconnects, or its credentials expire, in seconds since 1970."""

        async def watch() -> None:
            await wait_for_disconnect(receive)
            stream.detach()

        watching = self.spawn(watch())
        expiry = None if expires is None else self.loop.call_later(max(0.0, expires - time.time()), stream.end)
        try:
            await stream.pump()
        finally:
            watching.cancel()
            if expiry is not None:
                expiry.cancel()

    def first_event(self, revision: str, id: str) -> bytes:
        """Return the event without data that makes a stream resumable from its start, if the revision has it."""
        return encode_event(b"", id=id, retry=self.retry) if FEATURES[revision].has_empty_events else b""

    def unique_name(self) -> str:
        """Return a short name that is unique among the workers of the store."""
        return f"{self.store.worker}-{next(self._names)}"

    async def _keep_streams_alive(self) -> None:
        """Send comments in idle streams, and keep their sessions from expiring, until cancelled."""
        while True:
            await asyncio.sleep(self.keep_alive)
            for stream, session in list(self.streams.items()):
                stream.ping()
                try:
                    if session is not None and await self.store.load_session(session) is None:
                        stream.end()
                except ConnectionError as error:
                    self.report_unreachable_store(error)

    # Worker messages

    @property
    def worker(self) -> str:
        """The name of this worker."""
        return self.store.worker

    def listen(self, listener: ChangeListener) -> Callable[[], None]:
        """Deliver changes to a listener. Return the function that stops it."""
        self._listeners[listener] = None
        return lambda: (self._listeners.pop(listener, None), None)[1]

    def on_change(self, change: Change, uri: str | None) -> None:
        """Deliver a change to all listeners."""
        for listener in list(self._listeners):
            listener.on_change(self.last_number, change, uri)

    async def publish(self, kind: str, *arguments: Any) -> None:
        """Send a message to all workers, this one included."""
        await self.store.publish(msgspec.json.encode(WorkerMessage(kind, list(arguments))))

    async def send_to(self, worker: str, kind: str, *arguments: Any) -> None:
        """Send a message to one worker."""
        await self.store.send(worker, msgspec.json.encode(WorkerMessage(kind, list(arguments))))

    def _publish_change(self, change: Change, uri: str | None) -> None:
        """Publish a change that a handler made to all workers."""
        self.spawn(self.publish("change", change, uri))

    def _on_message(self, number: int | None, data: bytes) -> None:
        message = msgspec.json.decode(data, type=WorkerMessage)
        self.last_number = number or self.last_number
        self.message_handlers[message.kind](*message.arguments)

    # Diagnostics and tasks

    def report_unreachable_store(self, error: ConnectionError) -> None:
        """Report that the store cannot be reached."""
        self.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, f"the store cannot be reached: {error}", error=error))

    def report_full_store(self, text: str) -> None:
        """Report that a limit of the store is reached, once in a while."""
        now = self.loop.time()
        if now >= self._next_store_report:
            self._next_store_report = now + _STORE_REPORT_PAUSE
            self.report(Diagnostic(DiagnosticKind.LIMIT_REACHED, text))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in a task that is cancelled when the application closes."""

        def on_done(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            work.close()  # the task may have been cancelled before its first step

        task: asyncio.Task[Any] = self.loop.create_task(self._run_reporting(work))
        self._tasks.add(task)
        task.add_done_callback(on_done)
        return task

    async def _run_reporting(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as error:
            self.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, f"{error!r}", error=error))


def check_shared_state(state_signer: StateSigner, store: Store, *, has_sessions: bool) -> str | None:
    """Return what several workers lack: a shared key, or the shared store they need. None if nothing is missing.

    A worker must verify state that another worker has signed, and find sessions that another worker has begun. The
    lifespan should fail with this text. Servers start a worker again and again that cannot even be loaded.
    Raises `UsageError` for a shared store without a shared key in a single worker.
    """
    count, missing = _count_workers(), list[str]()
    if (count > 1 or store.is_shared) and not state_signer.is_shared:
        missing.append("the same key: state_signer=StateSigner(key)")
    if count > 1 and not store.is_shared and (has_sessions or state_signer.single_use):
        use, remedy = ("sessions of legacy revisions", ", or sessions=False") if has_sessions else ("single use", "")
        missing.append(f"the same store, for {use}: store=typedmcp_redis.RedisStore(url){remedy}")
    why = f"{count} workers" if count > 1 else "a shared store"
    text = f"with {why}, pass to each worker {'; and '.join(missing)}" if missing else None
    if text is not None and count <= 1:
        raise UsageError(text)
    return text


def _count_workers() -> int:
    """Return how many workers there are by the settings of the server that is loading the application, if one is."""
    count, frame = 1, inspect.currentframe()
    while frame is not None:
        package, names = str(frame.f_globals.get("__name__")).partition(".")[0], frame.f_locals
        if package in ("uvicorn", "gunicorn", "hypercorn", "granian"):
            from multiprocessing import parent_process  # which these servers use

            owner: Any = names.get("self", names.get("config"))
            found = [getattr(owner, "workers", 1), getattr(owner, "num_workers", 1), names.get("worker_id", 1)]
            found.append(getattr(getattr(owner, "cfg", None), "workers", 1))
            # All but gunicorn, which forks, ignore the setting in a process without a supervisor, and when reloading.
            if package == "gunicorn" or (parent_process() is not None and not getattr(owner, "should_reload", False)):
                count = max([count, *(each for each in found if isinstance(each, int))])
        frame = frame.f_back
    return count
