"""Serving a handler: over standard input and output, or over any transport."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from typedmcp.errors import UsageError
from typedmcp.service import Service
from typedmcp.session import ServerSession
from typedmcp.transports import Transport

__all__ = ["serve", "serve_async"]


def serve(handler: object, **options: Any) -> None:
    """Serve a handler over standard input and output, until the client closes or the process is told to end.

    `handler` is a `Service`, or an object that becomes one with `options` (`name`, `version`, `instructions`, …).
    Standard output belongs to the protocol: what anything else prints goes to standard error. SIGTERM and SIGINT end
    it gracefully: nothing more is read, open requests get `grace` seconds. Uses uvloop where that is installed.
    """
    service = _service(handler, options)
    _check_descriptors()
    _run(_serve_stdio(service), service.grace)


async def serve_async(handler: object, transport: Transport, **options: Any) -> None:
    """Serve a handler over a transport, until that ends. Cancel it to end at once.

    `handler` is a `Service`, or an object that becomes one with `options`.
    """
    await ServerSession(_service(handler, options), transport).run()


def _service(handler: object, options: dict[str, Any]) -> Service:
    if not isinstance(handler, Service):
        return Service(handler, **options)
    if options:
        raise TypeError(f"a Service has its options already: {', '.join(options)}")
    return handler


async def _serve_stdio(service: Service) -> None:
    from typedmcp.transports.stdio import stdio

    async with stdio() as transport:
        session = ServerSession(service, transport)
        if threading.current_thread() is threading.main_thread():  # others cannot have signal handlers
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, session.stop)
        await session.run()


def _check_descriptors() -> None:
    """Raises `UsageError` where standard input or output is closed. A closed standard error becomes the null device."""
    for descriptor, name in enumerate(("standard input", "standard output")):
        try:
            os.fstat(descriptor)
        except OSError as error:
            raise UsageError(f"{name} is closed: there is nothing to serve on") from error
    try:
        os.fstat(2)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _run(main: Coroutine[Any, Any, None], grace: float) -> None:
    """Like `asyncio.Runner`, which would wait for ever for a task that takes no end."""
    loop = loop_factory()()
    try:
        loop.run_until_complete(main)
    finally:
        try:
            if tasks := asyncio.all_tasks(loop):
                for task in tasks:
                    task.cancel()
                loop.run_until_complete(asyncio.wait(tasks, timeout=grace))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes an event loop: uvloop's where that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
