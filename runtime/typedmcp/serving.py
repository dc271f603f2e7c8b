"""Serving a handler: over standard input and output, over HTTP, or over any transport."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal

from typedmcp.errors import UsageError
from typedmcp.service import Service
from typedmcp.session import ServerSession
from typedmcp.transports import Transport

__all__ = ["serve", "serve_async"]

_HOST: Final = "127.0.0.1"
_PORT: Final = 8000
_LAST_PORT: Final = 65_535


def serve(
    handler: object,
    transport: Literal["stdio", "http"] = "stdio",
    *,
    host: str | None = None,
    port: int | None = None,
    **options: Any,
) -> None:
    """Serve a handler over standard input and output or over HTTP, until it is told to end.

    `handler` is a `Service`, or an object that becomes one with `options` (`name`, `version`, `instructions`, …). Uses
    uvloop where that is installed. SIGTERM and SIGINT end it gracefully: nothing more is read, open requests get
    `grace` seconds. The first also gives up a lifespan that takes long to begin, and a second one that takes long to
    end.

    "stdio" ends when the client closes it, too. Standard output belongs to the protocol: what anything else prints
    goes to standard error. "http" serves at `host` (127.0.0.1) and `port` (8000), under uvicorn, with the extra `http`;
    `options` may then be those of `asgi`, too. Raises `UsageError` where that is not possible.
    """
    if transport == "http":
        server, grace = _http_server(handler, host, port, options)
        _run(server.serve(), grace)
    elif transport == "stdio":
        _check_no_address(host, port)
        service = _service(handler, options)
        _check_descriptors()
        _run(_serve_stdio(service), service.grace)
    else:
        raise UsageError(f"no transport {transport!r} to serve on; there are stdio and http")


async def serve_async(
    handler: object,
    transport: Transport | Literal["http"],
    *,
    host: str | None = None,
    port: int | None = None,
    **options: Any,
) -> None:
    """Serve a handler over a transport, until that ends, or over HTTP. Cancel it to end at once.

    The options are those of `serve`.
    """
    if transport == "http":
        await _http_server(handler, host, port, options)[0].serve()
    else:
        _check_no_address(host, port)
        await ServerSession(_service(handler, options), transport).run()


def _check_no_address(host: str | None, port: int | None) -> None:
    if host is not None or port is not None:
        raise UsageError('host and port are for HTTP: serve(…, "http")')


def _http_server(handler: object, host: str | None, port: int | None, options: dict[str, Any]) -> tuple[Any, float]:
    """A server that is ready to run, and how many seconds it may take to end."""
    host, port = _HOST if host is None else host, _PORT if port is None else port
    from typedmcp.http.access import LOOPBACK
    from typedmcp.http.asgi import asgi

    if not 0 <= port <= _LAST_PORT:
        raise UsageError(f"a port is a number from 0 to {_LAST_PORT}, not {port}")
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

        def stop() -> None:
            if session.ending.is_set():
                service.running.interrupt()
            session.stop()

        if threading.current_thread() is threading.main_thread():  # others cannot have signal handlers
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stop)
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
    if _is_running():
        main.close()
        raise UsageError("an event loop is running already: await typedmcp.serve_async there")
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


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes an event loop: uvloop's where that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
