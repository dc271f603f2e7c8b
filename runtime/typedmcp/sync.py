"""The blocking client, for scripts and notebooks.

It runs the async client in an event loop of its own, in one thread for all blocking clients of a process. Plain
callbacks run in threads, so they may block, and may use the client. Each method takes its signature and documentation
from the method of `typedmcp.Client` that it runs.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from mcpspec.support.methods import Method
from typedmcp import client as async_client
from typedmcp import dialect
from typedmcp.client import Arguments, CallOptions, ChangeEvent, Client, ConnectOptions, ServerDescription, Target
from typedmcp.errors import UsageError
from typedmcp.protocol.guesses import guessed
from typedmcp.satellites import satellite_names
from typedmcp.transports.concurrency import is_awaitable, new_event_loop, run_in_daemon_thread

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = [
    "BlockingClient", "SyncClient", "SyncSubscription", "blocking", "blocking_iterator", "connect", "in_loop",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


D = dialect.structs
A = ParamSpec("A")
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_EXIT_TIMEOUT: Final = 10.0
"""Seconds for the end of clients that are open at the end of the process, and of interrupted calls."""


class _AsyncClient(Protocol):
    """A client of one server, or of several, that a blocking client runs."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


C = TypeVar("C", bound=_AsyncClient)


class EventLoopThread:
    """An event loop in a thread, in which other threads run coroutines."""

    def __init__(self) -> None:
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="typedmcp", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. An interrupt cancels it, and is raised after it has ended."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise UsageError("a blocking call in the client's own event loop would wait for itself; use `await` there")
        if not self._thread.is_alive():
            coroutine.close()
            raise UsageError("the client belongs to the process that this one was forked from; connect again")
        # Like a `concurrent.futures.Future` at half the cost: the lock is held until the coroutine has ended.
        tasks: list[asyncio.Task[T]] = []
        end_lock = threading.Lock()
        end_lock.acquire()

        def start() -> None:
            tasks.append(self._loop.create_task(coroutine))
            tasks[0].add_done_callback(lambda _: end_lock.release())

        self._loop.call_soon_threadsafe(start)
        try:
            end_lock.acquire()
        except BaseException:  # KeyboardInterrupt
            if not tasks or not tasks[0].done():
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                end_lock.acquire(timeout=_EXIT_TIMEOUT)
            raise
        return tasks[0].result()

    def end(self, closing: Coroutine[Any, Any, object], *, wait: bool = True) -> None:
        """Run a coroutine that closes something. A fork has nothing to close: that belongs to its parent."""
        if not self._thread.is_alive():
            closing.close()
        elif wait:
            self.run(closing)
        else:
            asyncio.run_coroutine_threadsafe(closing, self._loop)


_lock = threading.Lock()
_shared_thread: EventLoopThread | None = None
_open_clients: weakref.WeakSet[BlockingClient[Any]] = weakref.WeakSet()


def _get_shared_thread() -> EventLoopThread:
    global _shared_thread
    with _lock:
        if _shared_thread is None:
            _shared_thread = EventLoopThread()
            atexit.register(_close_all)
        return _shared_thread


def _close_all() -> None:
    """Close the open clients at the end of the process, so that child processes are shut down."""
    clients = list(_open_clients)
    if clients and _shared_thread is not None:
        with suppress(Exception):
            _shared_thread.run(_close_together(clients))
    _open_clients.clear()


async def _close_together(clients: list[BlockingClient[Any]]) -> None:
    closing = [asyncio.create_task(client.async_client.close()) for client in clients]
    await asyncio.wait(closing, timeout=_EXIT_TIMEOUT)


def _after_fork() -> None:
    """Drop the thread and the clients, which belong to the parent process."""
    global _lock, _shared_thread
    _lock, _shared_thread = threading.Lock(), None
    _open_clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# Callbacks in threads

_CALLBACKS: Final = ("sample", "elicit", "elicit_url", "roots", "on_log", "on_progress", "auth")


def _with_threads(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options whose plain callbacks run in threads."""
    return {
        name: _run_in_thread(value) if name in _CALLBACKS and callable(value) else value
        for name, value in options.items()
    }


def _run_in_thread(callback: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(callback):
        return callback

    async def call(*args: Any) -> Any:
        returned = await run_in_daemon_thread(callback, *args)
        return await returned if is_awaitable(returned) else returned

    return call


# Blocking methods


class BlockingClient(Generic[C]):
    """Runs the methods of an async client, or of a group of them, in the event loop of a thread.

    It is also for libraries: `blocking`, `blocking_iterator` and `in_loop` make the methods of a class that is derived
    from it, `call_tool` among them.
    """

    def __init__(self, make: Callable[..., C], options: Mapping[str, Any]) -> None:
        self.loop_thread: EventLoopThread = _get_shared_thread()

        async def make_in_loop() -> C:
            return make(**_with_threads(options))

        self.async_client: C = self.loop_thread.run(make_in_loop())
        """The async client. It belongs to the event loop of `loop_thread`."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self in _open_clients:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)
            self.loop_thread.end(self.async_client.close(), wait=False)

    def open(self) -> None:
        """Connect, unless that is done already, like `open` of the async client."""
        _open_clients.add(self)
        try:
            self.loop_thread.run(self.async_client.open())
        except UsageError:  # nothing is open
            _open_clients.discard(self)
            raise

    def close(self) -> None:
        """End the connection. Open calls fail, and child processes are shut down. May be called from any thread."""
        self.loop_thread.end(self.async_client.close())
        _open_clients.discard(self)

    def run(
        self, function: Callable[Concatenate[C, A], Coroutine[Any, Any, R]], /, *args: A.args, **kwargs: A.kwargs
    ) -> R:
        """Run an async function that takes an async client, and return its result: `client.run(tools_for, "openai")`.

        It runs in the event loop of the client, with further arguments as they are given.
        """
        return self.loop_thread.run(function(self.async_client, *args, **_with_threads(kwargs)))

    # Overloads do not pass through `blocking`, so those of the methods that have some are repeated for type checkers.

    if TYPE_CHECKING:

        @overload
        def call_tool(
            self,
            name: str,
            arguments: Arguments | None = None,
            *,
            result_type: None = None,
            raise_on_error: bool = False,
            **options: Unpack[CallOptions],
        ) -> D.CallToolResult: ...

        @overload
        def call_tool(
            self,
            name: str,
            arguments: Arguments | None = None,
            *,
            result_type: TypeForm[T],
            raise_on_error: bool = False,
            **options: Unpack[CallOptions],
        ) -> T: ...

        def call_tool(self, *args: Any, **options: Any) -> Any: ...

    else:
        locals().update(guessed("BlockingClient", "call_for", "tasks", "tools_for"))


def blocking(
    method: Callable[Concatenate[C, A], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[BlockingClient[C], A], R]:
    """Make a method of a `BlockingClient` from an async method, and wait for its result."""

    @wraps(method)
    def call(self: BlockingClient[C], /, *args: A.args, **kwargs: A.kwargs) -> R:
        return self.loop_thread.run(method(self.async_client, *args, **_with_threads(kwargs)))

    return call


def in_loop(method: Callable[Concatenate[C, A], R]) -> Callable[Concatenate[BlockingClient[C], A], R]:
    """Make a method of a `BlockingClient` that runs a plain method in the event loop."""

    @wraps(method)
    def call(self: BlockingClient[C], /, *args: A.args, **kwargs: A.kwargs) -> R:
        async def run() -> R:
            return method(self.async_client, *args, **kwargs)

        return self.loop_thread.run(run())

    return call


def blocking_iterator(
    method: Callable[Concatenate[C, A], AsyncIterator[T]],
) -> Callable[Concatenate[BlockingClient[C], A], Iterator[T]]:
    """Make a method of a `BlockingClient` that returns an iterator, from one that returns an async iterator."""

    @wraps(method)
    def call(self: BlockingClient[C], /, *args: A.args, **kwargs: A.kwargs) -> Iterator[T]:
        return _iterate(self.loop_thread, method(self.async_client, *args, **_with_threads(kwargs)))

    return call


def _iterate(loop_thread: EventLoopThread, items: AsyncIterator[T]) -> Iterator[T]:
    end = object()

    async def get_next() -> Any:
        return await anext(items, end)

    while (item := loop_thread.run(get_next())) is not end:
        yield item


def _subscribing(
    method: Callable[Concatenate[Client, A], async_client.Subscription],
) -> Callable[Concatenate[SyncClient, A], SyncSubscription]:
    subscribe = in_loop(method)

    @wraps(method)
    def call(self: SyncClient, /, *args: A.args, **kwargs: A.kwargs) -> SyncSubscription:
        return SyncSubscription(self.loop_thread, subscribe(self, *args, **kwargs))

    return call


def connect(target: Target, **options: Unpack[ConnectOptions]) -> SyncClient:
    """Return a blocking client for a server. Enter it with `with`, or use `open()` and `close()`.

    Takes the targets and options of `typedmcp.connect`.
    """
    return SyncClient(target, options)


class SyncClient(BlockingClient[Client]):
    """A blocking client of one server, with the methods of `typedmcp.Client`. `typedmcp.sync.connect` makes it.

    Several threads may use it at once. Ctrl-C ends a call that waits, and cancels it at the server.
    """

    def __init__(self, target: Target, options: ConnectOptions) -> None:
        super().__init__(partial(async_client.connect, target), options)

    @property
    def server(self) -> ServerDescription:
        """The description of the server, as in `Client.server`."""
        return self.async_client.server

    @property
    def revision(self) -> str:
        """The negotiated protocol revision, as in `Client.revision`."""
        return self.async_client.revision

    @property
    def is_connected(self) -> bool:
        """True while the client has a session that calls can use, as in `Client.is_connected`."""
        return self.async_client.is_connected

    if TYPE_CHECKING:

        @overload
        def send(
            self, method: Method[P, R], params: P | Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
        ) -> R: ...

        @overload
        def send(self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]) -> Any: ...

        def send(self, *args: Any, **options: Any) -> Any: ...

    else:
        send = blocking(Client.send)
        call_tool = blocking(Client.call_tool)

    # In an installed package, type checkers infer the types of attributes only if they are `Final`.

    send_raw: Final = blocking(Client.send_raw)
    notify: Final = blocking(Client.notify)
    report: Final = in_loop(Client.report)
    list_tools: Final = blocking(Client.list_tools)
    list_resources: Final = blocking(Client.list_resources)
    list_resource_templates: Final = blocking(Client.list_resource_templates)
    list_prompts: Final = blocking(Client.list_prompts)
    read_resource: Final = blocking(Client.read_resource)
    get_prompt: Final = blocking(Client.get_prompt)
    complete: Final = blocking(Client.complete)
    ping: Final = blocking(Client.ping)
    set_log_level: Final = blocking(Client.set_log_level)
    notify_roots_changed: Final = blocking(Client.notify_roots_changed)

    tools: Final = blocking_iterator(Client.tools)
    resources: Final = blocking_iterator(Client.resources)
    resource_templates: Final = blocking_iterator(Client.resource_templates)
    prompts: Final = blocking_iterator(Client.prompts)

    listen: Final = _subscribing(Client.listen)
    """Subscribe to changes: `with client.listen(tools=True) as changes: for change in changes: ...`."""


class SyncSubscription:
    """An iterator over changes, which waits for each. Enter it with `with`, which also ends it."""

    def __init__(self, loop_thread: EventLoopThread, subscription: async_client.Subscription) -> None:
        self._loop_thread = loop_thread
        self._subscription = subscription

    def __enter__(self) -> SyncSubscription:
        self._loop_thread.run(self._subscription.__aenter__())
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> SyncSubscription:
        return self

    def __next__(self) -> ChangeEvent:
        """Wait for the next change, as `Subscription.__anext__` does."""
        return next(_iterate(self._loop_thread, self._subscription))

    def close(self) -> None:
        """End the subscription. May be called again."""
        self._loop_thread.end(self._subscription.close())


if not TYPE_CHECKING:  # with `__getattr__`, type checkers would accept every name
    __getattr__ = satellite_names(__name__, ("SyncClientGroup", "connect_all"), "hosts.sync")
