"""Serve a handler: over standard input and output, over HTTP, or over any transport."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, ForwardRef, Literal, Unpack

from typedmcp.errors import UsageError, missing_extra
from typedmcp.protocol.option_checks import check_integer, option_names, unknown_option
from typedmcp.server.config import CANCELLATION_SHARE, ServerConfig, ServerOptions, as_config
from typedmcp.server.connection import ServerConnection
from typedmcp.transports import Transport, missing_members
from typedmcp.transports.concurrency import is_in_event_loop, new_event_loop
from typedmcp.transports.stdio import stdio

if TYPE_CHECKING:
    from typedmcp.server.http.asgi import AsgiOptions
else:
    AsgiOptions = ForwardRef("AsgiOptions", module="typedmcp.server.http.asgi")  # for `inspect.signature`

__all__ = ["serve", "serve_async"]

_HOST: Final = "127.0.0.1"
_PORT: Final = 8000
_MAX_PORT: Final = 65_535
_ALL_INTERFACES: Final = ("0.0.0.0", "::", "")  # noqa: S104  # clients do not use these as names

_TERMINAL_HINT: Final = (
    "serving MCP over standard input and output, for a client that starts this command. To call the server yourself:\n"
    "typedmcp inspect FILE. To serve over HTTP: typedmcp run FILE --transport http. Ctrl-D ends it.\n"
)

_log = logging.getLogger("typedmcp")


def serve(
    handler: object,
    transport: Literal["stdio", "http"] = "stdio",
    *,
    host: str | None = None,
    port: int | None = None,
    **options: Unpack[AsgiOptions],
) -> None:
    """Serve a handler over standard input and output or over HTTP, until the client or a signal ends it.

    `handler` is a `ServerConfig`, or an object that becomes one with `options`; `ServerOptions` has them. Over HTTP it
    may also be an application that `asgi` has made. SIGTERM and SIGINT end the server gracefully: it reads nothing
    more, and open requests get `grace` seconds before they are cancelled. The first signal also cancels a lifespan that
    is still being entered, a second one a lifespan that is still being left. The event loop is uvloop's, if that is
    installed.

    "stdio" also ends when the client closes its side. Standard output belongs to the protocol: everything else that is
    printed goes to standard error. "http" serves at `host` (127.0.0.1) and `port` (8000) with uvicorn, which the extra
    `http` installs, and also takes the options of `asgi`.

    Raises `UsageError` for options that make no sense, and if the transport is not available.
    """
    if transport == "http":
        server, grace = _http_server(handler, host, port, options)
        _run(server.serve(), grace)
    elif transport == "stdio":
        _reject_http_options(host, port, options)
        config = as_config(handler, options)
        _check_descriptors()
        if os.isatty(0):
            sys.stderr.write(_TERMINAL_HINT)
        _run(_serve_stdio(config), config.connection_grace * CANCELLATION_SHARE)
    else:
        raise UsageError(f"transport must be 'stdio' or 'http', not {_describe(transport)}")


async def serve_async(
    handler: object,
    transport: Transport | Literal["stdio", "http"] = "stdio",
    *,
    host: str | None = None,
    port: int | None = None,
    **options: Unpack[AsgiOptions],
) -> None:
    """Serve a handler in this event loop: over standard input and output, over a transport, or over HTTP.

    It ends when the client closes its side or the transport ends. Cancel the call to end at once: signals are left to
    the program. Options and exceptions are those of `serve`.
    """
    if transport == "http":
        await _http_server(handler, host, port, options)[0].serve()
        return
    _reject_http_options(host, port, options)
    config = as_config(handler, options)
    if transport == "stdio":
        async with stdio() as stream:
            await ServerConnection(config, stream).run()
    elif missing := missing_members(transport):
        raise UsageError(f"transport must be a Transport, 'stdio' or 'http', not {_describe(transport, *missing)}")
    else:
        await ServerConnection(config, transport).run()


def _describe(transport: object, *missing: str) -> str:
    """Describe what is no transport. The official SDK has other names for HTTP."""
    if not isinstance(transport, str):
        return f"{type(transport).__name__}, which lacks: {', '.join(missing)}"
    others = {"streamable-http": "'http' serves it", "sse": "'http' with sse_path=\"/sse\" serves it"}
    return f"{transport!r}{f': {others[transport]}' if transport in others else ''}"


def _reject_http_options(host: str | None, port: int | None, options: Mapping[str, object]) -> None:
    """Raise `UsageError` for an option of HTTP, or for an unknown one, where a server is not served over HTTP."""
    address = [name for name, value in (("host", host), ("port", port)) if value is not None]
    unknown = [*address, *(name for name in options if name not in option_names(ServerOptions))]
    if unknown:
        _reject_unknown_option(unknown)
        raise UsageError(f'{" and ".join(unknown)}: for HTTP only: run("http", …) or serve(…, "http", …)')


def _reject_unknown_option(names: Iterable[str]) -> None:
    """Raise `UsageError` for the first option that `serve` does not have."""
    from typedmcp.server.http.asgi import AsgiOptions  # loads much that other transports do not need

    known = ["host", "port", *option_names(AsgiOptions)]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(unknown_option(unknown[0], known, " of run and serve"))


def _http_server(handler: object, host: str | None, port: int | None, options: AsgiOptions) -> tuple[Any, float]:
    """Return a uvicorn server that is ready to run, and the seconds that it may take to end."""
    host, port = _HOST if host is None else host, _PORT if port is None else port
    from typedmcp.server.http.asgi import AsgiApp, asgi
    from typedmcp.server.http.auth import LOOPBACK

    _reject_unknown_option(options)
    check_integer("port", port)
    if not 0 <= port <= _MAX_PORT:
        raise UsageError(f"port must be from 0 to {_MAX_PORT}, not {port}")
    try:
        serving: Any = import_module("typedmcp_http")
    except ImportError as error:
        raise UsageError(f"{missing_extra('serving HTTP', 'http')} ({error})") from error
    if isinstance(handler, AsgiApp):
        as_config(handler.config, options)  # it takes none
        return serving.UvicornServer(handler, host, port), handler.config.grace
    if host in _ALL_INTERFACES and "hosts" not in options:
        text = "%s: requests to other hosts than %s get status 421; pass hosts=[…], or --allowed-host, with their names"
        _log.warning(text, host or "all interfaces", ", ".join(LOOPBACK))
    elif host not in LOOPBACK:
        options.setdefault("hosts", [*LOOPBACK, f"[{host}]" if ":" in host else host])
    app = asgi(handler, **options)
    return serving.UvicornServer(app, host, port), app.config.grace


async def _serve_stdio(config: ServerConfig) -> None:
    async with stdio() as transport:
        connection = ServerConnection(config, transport)

        def stop() -> None:
            if connection.is_stopping:
                config.lifespans.interrupt()
            connection.stop()

        if threading.current_thread() is threading.main_thread():  # other threads cannot set signal handlers
            for number in (signal.SIGTERM, signal.SIGINT):
                _on_signal(number, stop)
        await connection.run()


def _on_signal(number: int, function: Callable[[], None]) -> None:
    """Call a function in the event loop when a signal arrives."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(number, function)
    except NotImplementedError:  # event loops on Windows
        signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(function))


def _check_descriptors() -> None:
    """Raise `UsageError` if standard input or output is closed; open the null device for a closed standard error."""
    for descriptor, name in enumerate(("standard input", "standard output")):
        try:
            os.fstat(descriptor)
        except OSError as error:
            raise UsageError(f"{name} is closed: serving over stdio needs it") from error
    try:
        os.fstat(2)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _run(main: Coroutine[Any, Any, None], grace: float) -> None:
    """Run a coroutine like `asyncio.Runner`, but give the remaining tasks no more than `grace` seconds to end."""
    if is_in_event_loop():
        main.close()
        raise UsageError("an event loop is running already: await typedmcp.serve_async there")
    loop = new_event_loop()
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
