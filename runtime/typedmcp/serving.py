"""Serving a handler: over standard input and output, over HTTP, or over any transport."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from typedmcp.errors import UsageError
from typedmcp.service import Service
from typedmcp.session import ServerSession
from typedmcp.transports import Transport

__all__ = ["serve", "serve_async"]


def serve(
    handler: object,
    transport: Literal["stdio", "http"] = "stdio",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    **options: Any,
) -> None:
    """Serve a handler over standard input and output or over HTTP, until it is told to end.

    `handler` is a `Service`, or an object that becomes one with `options` (`name`, `version`, `instructions`, …). Uses
    uvloop where that is installed. SIGTERM and SIGINT end it gracefully: nothing more is read, open requests get
    `grace` seconds.

    "stdio" ends when the client closes it, too. Standard output belongs to the protocol: what anything else prints
    goes to standard error. "http" serves at `host` and `port`, under uvicorn, with the extra `http`; `options` may then
    be those of `asgi`, too. Raises `UsageError` where that is not possible.
    """
    if transport == "http":
        server, grace = _http_server(handler, host, port, options)
        _run(server.serve(), grace)
    elif transport == "stdio":
        service = _service(handler, options)
        _check_descriptors()
        _run(_serve_stdio(service), service.grace)
    else:
        raise UsageError(f"no transport {transport!r} to serve on; there are stdio and http")


async def serve_async(
    handler: object,
    transport: Transport | Literal["http"],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    **options: Any,
) -> None:
    """Serve a handler over a transport, until that ends, or over HTTP. Cancel it to end at once.

    The options are those of `serve`.
    """
    if transport == "http":
        await _http_server(handler, host, port, options)[0].serve()
    else:
        await ServerSession(_service(handler, options), transport).run()


def _http_server(handler: object, host: str, port: int, options: dict[str, Any]) -> tuple[Any, float]:
    """A server that is ready to run, and how many seconds it may take to end."""
    from typedmcp.http.access import LOOPBACK
    from typedmcp.http.asgi import asgi

    try:
        from typedmcp.http.server import server_of
    except ImportError as error:
        raise UsageError(f"serving HTTP needs the extra http: pip install 'typedmcp[http]' ({error})") from error
    if host not in ("0.0.0.0", "::", *LOOPBACK):  # noqa: S104  # which are no names that clients use
        options.setdefault("hosts", [*LOOPBACK, host])
    app = asgi(handler, **options)
    return server_of(app, host, port), app.service.grace


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
