"""Serving a handler: over standard input and output, or over any transport."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

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
    _run(_serve_stdio(_service(handler, options)))


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
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, session.stop)
        await session.run()


def _run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
