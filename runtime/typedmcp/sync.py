"""The client, blocking: for scripts and notebooks.

The same client, which runs in an event loop of its own, in a thread that all blocking clients of a process share. Plain
callbacks are called in threads, so they may block too, and may use the client.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast, overload

from mcpspec._support.methods import Method
from typedmcp import client as _async
from typedmcp import dialect
from typedmcp.client import CallOptions, Changed, Target
from typedmcp.context import LogLevel
from typedmcp.dispatch import is_awaitable
from typedmcp.errors import UsageError
from typedmcp.threads import in_daemon

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from typedmcp.client.arguments import Arguments

__all__ = ["Client", "Subscription", "connect"]

D = dialect.structs
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_CLOSE_AT_EXIT = 10.0
"""Seconds that clients which were left open have at the end of the process."""


class Portal:
    """An event loop in a thread, in which coroutines are run from others."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="typedmcp", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it. Interrupted, it is cancelled, and has ended when this raises."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise UsageError("a blocking call within the client's own event loop would wait for itself")
        if not self._thread.is_alive():
            coroutine.close()
            raise UsageError("the client belongs to the process that this one was forked from: connect anew")
        work = _Work(coroutine)
        self._loop.call_soon_threadsafe(work.start)
        try:
            work.ended.acquire()
        except BaseException:  # KeyboardInterrupt
            if not work.is_done:
                self._loop.call_soon_threadsafe(work.cancel)
                work.ended.acquire(timeout=_CLOSE_AT_EXIT)
            raise
        return work.result()

    def forget(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine that nobody waits for."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        else:
            coroutine.close()


class _Work(Generic[T]):
    """A coroutine that another thread waits for. `concurrent.futures` does the same, at twice the price."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None
        self.ended: threading.Lock = threading.Lock()
        """Free when it has ended."""
        self.ended.acquire()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._task is not None and self._task.done()

    def start(self) -> None:
        """Begin, in the loop's thread."""
        self._task = asyncio.get_running_loop().create_task(self._coroutine)
        self._task.add_done_callback(lambda _: self.ended.release())

    def cancel(self) -> None:
        """Give it up, in the loop's thread."""
        if self._task is not None:
            self._task.cancel()

    def result(self) -> T:
        """What came of it."""
        assert self._task is not None
        return self._task.result()


def _new_loop() -> asyncio.AbstractEventLoop:
    from typedmcp.serving import loop_factory

    return loop_factory()()


_lock = threading.Lock()
_shared: Portal | None = None
_open: weakref.WeakSet[Client] = weakref.WeakSet()


def _portal() -> Portal:
    global _shared
    with _lock:
        if _shared is None:
            _shared = Portal()
            atexit.register(_close_all)
        return _shared


def _close_all() -> None:
    """Children are shut down in good order even where nobody closed their client."""
    clients = list(_open)
    if clients and _shared is not None:
        with suppress(Exception):
            _shared.run(_close_together(clients))
    _open.clear()


async def _close_together(clients: list[Client]) -> None:
    closing = [asyncio.create_task(client.engine.close()) for client in clients]
    await asyncio.wait(closing, timeout=_CLOSE_AT_EXIT)


def _after_fork() -> None:
    """The thread of the loop stays behind in the parent, and so do the clients."""
    global _lock, _shared
    _lock, _shared = threading.Lock(), None
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _in_threads(options: dict[str, Any]) -> dict[str, Any]:
    """Options whose plain callbacks run in threads."""
    return {
        name: _threaded(value) if name in _CALLBACKS and callable(value) else value for name, value in options.items()
    }


_CALLBACKS = ("sample", "elicit", "roots", "on_log", "on_progress", "auth")


def _quick(options: CallOptions) -> CallOptions:
    """The options of a call, with a callback that may block."""
    if options.get("on_progress") is None:
        return options
    return cast(CallOptions, _in_threads(cast("dict[str, Any]", options)))


def _threaded(callback: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(callback):
        return callback

    async def call(*args: Any) -> Any:
        given = await in_daemon(callback, *args)
        return await given if is_awaitable(given) else given

    return call


def connect(target: Target, **options: Any) -> Client:
    """A blocking client, to be entered with `with`, or opened with `open()` and closed with `close()`.

    Takes what `typedmcp.connect` takes.
    """
    return Client(target, options)


class Client:
    """A connection to a server, blocking. Has the methods of `typedmcp.Client`, which say what they do and raise.

    It may be used from several threads at once. Ctrl-C ends a call that waits, and tells the server so.
    """

    def __init__(self, target: Target, options: dict[str, Any]) -> None:
        self.portal: Portal = _portal()
        self.engine: _async.Client = self.portal.run(_made(target, _in_threads(options)))
        """The async client, which belongs to the portal's event loop."""

    def __enter__(self) -> Client:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self in _open:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)
            self.portal.forget(self.engine.close())

    def open(self) -> None:
        """Connect and agree on a revision. Where it is open already, nothing is done."""
        _open.add(self)
        self.portal.run(self.engine.open())

    def close(self) -> None:
        """End the connection: open calls fail, a child is shut down. From any thread; twice is once."""
        self.portal.run(self.engine.close())
        _open.discard(self)

    @property
    def server(self) -> _async.Server:
        """What is known of the server: revision, capabilities, name, instructions."""
        return self.engine.server

    @property
    def revision(self) -> str:
        """The protocol revision that is spoken, such as `2025-11-25`."""
        return self.engine.revision

    @overload
    def send(
        self, method: Method[P, R], params: P | Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> R: ...

    @overload
    def send(self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]) -> Any: ...

    def send(self, method: Any, params: Any = None, **options: Unpack[CallOptions]) -> Any:
        """Call a method by its record, such as `methods.TOOLS_CALL`, or by its name."""
        return self.portal.run(self.engine.send(method, params, **_quick(options)))

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

    def call_tool(
        self,
        name: str,
        arguments: Arguments | None = None,
        *,
        result_type: Any = None,
        raise_on_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a tool, with what it gives as it came or, with `result_type`, as that type."""
        call = self.engine.call_tool(
            name, arguments, result_type=result_type, raise_on_error=raise_on_error, **_quick(options)
        )
        return self.portal.run(call)

    def list_tools(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListToolsResult:
        """One page of the tools."""
        return self.portal.run(self.engine.list_tools(cursor, **_quick(options)))

    def list_resources(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListResourcesResult:
        """One page of the resources."""
        return self.portal.run(self.engine.list_resources(cursor, **_quick(options)))

    def list_resource_templates(
        self, cursor: str | None = None, **options: Unpack[CallOptions]
    ) -> D.ListResourceTemplatesResult:
        """One page of the resource templates."""
        return self.portal.run(self.engine.list_resource_templates(cursor, **_quick(options)))

    def list_prompts(self, cursor: str | None = None, **options: Unpack[CallOptions]) -> D.ListPromptsResult:
        """One page of the prompts."""
        return self.portal.run(self.engine.list_prompts(cursor, **_quick(options)))

    def read_resource(self, uri: str, **options: Unpack[CallOptions]) -> D.ReadResourceResult:
        """What is at a URI."""
        return self.portal.run(self.engine.read_resource(uri, **_quick(options)))

    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> D.GetPromptResult:
        """A prompt, with its arguments in it."""
        return self.portal.run(self.engine.get_prompt(name, arguments, **_quick(options)))

    def complete(
        self,
        ref: D.PromptReference | D.ResourceTemplateReference,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> D.CompleteResult:
        """How an argument of a prompt or template could go on."""
        return self.portal.run(self.engine.complete(ref, argument, value, context, **_quick(options)))

    def ping(self, **options: Unpack[CallOptions]) -> None:
        """See whether the server answers."""
        self.portal.run(self.engine.ping(**_quick(options)))

    def set_log_level(self, level: LogLevel) -> None:
        """Hear log messages from this level up."""
        self.portal.run(self.engine.set_log_level(level))

    def roots_changed(self) -> None:
        """Tell an older server that `roots` gives others now."""
        self.portal.run(self.engine.roots_changed())

    def tools(self, **options: Unpack[CallOptions]) -> Iterator[D.Tool]:
        """All tools, page by page as they are needed."""
        return _iterate(self.portal, self.engine.tools(**_quick(options)))

    def resources(self, **options: Unpack[CallOptions]) -> Iterator[D.Resource]:
        """All resources, page by page as they are needed."""
        return _iterate(self.portal, self.engine.resources(**_quick(options)))

    def resource_templates(self, **options: Unpack[CallOptions]) -> Iterator[D.ResourceTemplate]:
        """All resource templates, page by page as they are needed."""
        return _iterate(self.portal, self.engine.resource_templates(**_quick(options)))

    def prompts(self, **options: Unpack[CallOptions]) -> Iterator[D.Prompt]:
        """All prompts, page by page as they are needed."""
        return _iterate(self.portal, self.engine.prompts(**_quick(options)))

    def listen(
        self, *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Iterable[str] = ()
    ) -> Subscription:
        """Hear of what changes: `with client.listen(tools=True) as changes: for changed in changes: ...`."""

        async def made() -> _async.Subscription:
            return self.engine.listen(tools=tools, prompts=prompts, resources=resources, uris=uris)

        return Subscription(self.portal, self.portal.run(made()))


def _iterate(portal: Portal, pages: AsyncIterator[T]) -> Iterator[T]:
    end = object()

    async def step() -> Any:
        return await anext(pages, end)

    while (item := portal.run(step())) is not end:
        yield item


async def _made(target: Target, options: dict[str, Any]) -> _async.Client:
    return _async.connect(target, **options)


class Subscription:
    """What changes, as an iterator that waits; to be entered with `with`, which ends it too."""

    def __init__(self, portal: Portal, subscription: _async.Subscription) -> None:
        self._portal = portal
        self._subscription = subscription

    def __enter__(self) -> Subscription:
        self._portal.run(self._subscription.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Changed:
        """The next change."""
        end = object()

        async def step() -> Any:
            return await anext(self._subscription, end)

        changed = self._portal.run(step())
        if changed is end:
            raise StopIteration
        return cast(Changed, changed)

    def close(self) -> None:
        """Stop listening. Twice is once."""
        self._portal.run(self._subscription.close())
