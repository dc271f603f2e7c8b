"""The protocol class for uvicorn that serves the usual POST from its bytes.

For each request, uvicorn's own class parses the head, describes it in a scope, and runs the application in a task with
`receive` and `send`, whose messages it checks. That costs more than the call of a small tool itself. Here, a POST whose
head is known byte for byte (known_heads.py), and whose body comes with it or in the next piece, goes straight to the
application; a response that is complete at once goes straight to the transport. Everything else is left to uvicorn:
other requests, other responses, timeouts, limits, TLS, shutdown.

Both ways have one `RequestResponseCycle` for a request in progress. So uvicorn sees it, and requests that the client
pipelines wait for it. A handler has one task from its first step to its last.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from uvicorn.config import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.protocols.utils import get_client_addr, get_path_with_query_string

from typedmcp.server.http.asgi import JSON_HEADER, STREAM_HEADERS, AsgiApp, Scope
from typedmcp_http.known_heads import KnownHead, KnownHeads, encode_headers

__all__ = ["HttpProtocol"]

_JSON: Final = b"%b" + encode_headers([JSON_HEADER, (b"content-length", b"%d")]) + b"%b\r\n%b"
"""A response: the headers that all have, the length, further headers, and the body."""
_STREAM: Final = b"%b" + encode_headers(STREAM_HEADERS) + b"%btransfer-encoding: chunked\r\n\r\n"
"""The head of a stream of events: the headers that all have, and further ones."""

_MEANINGFUL: Final = frozenset((b"connection", b"content-length", b"transfer-encoding"))
"""Headers of responses that uvicorn acts on."""
_LATER: Final = 0 if sys.version_info >= (3, 12) else 100
"""Requests after one whose handler has waited whose tasks begin in the next turn of the loop: on Python 3.11, a task
that begins at once takes more if it waits, and theirs probably do."""
_heads: Final[WeakKeyDictionary[Config, KnownHeads]] = WeakKeyDictionary()
"""The heads that each server knows."""


class HttpProtocol(HttpToolsProtocol):
    """Serves the usual POST of an application of this library from its bytes, and everything else as uvicorn does."""

    scope: Any
    cycle: RequestResponseCycle
    _mcp: AsgiApp | None = None
    """The application, if there is no middleware around it."""
    _heads: KnownHeads
    _known: KnownHead | None = None
    """The head of the last request that took the short way, and its scope on this connection."""
    _known_scope: Scope
    _spare: RequestResponseCycle | None = None
    """A cycle that nobody waits for, since its request has been served. It can serve another one."""
    _defaults: list[tuple[bytes, bytes]] | None = None
    """uvicorn's own headers, such as `Date`, and the beginning of a response that they give."""
    _beginning: bytes = b""
    _held: tuple[KnownHead, bytes] | None = None
    """A known head whose body has not come yet, and its bytes."""
    _new_head: tuple[RequestResponseCycle | None, bytes] = (None, b"")
    """A head that came alone, and its request: it can be remembered once the body has come."""
    _idle_since: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Find out whether the application is one of this library."""
        super().connection_made(transport)
        config: Any = self.config
        app: Any = config.loaded_app
        if type(app) is ProxyHeadersMiddleware:  # it acts on headers that no known head has
            app = app.app
        # A class that derives from the application may do more when it is called.
        if isinstance(app, AsgiApp) and type(app).__call__ is AsgiApp.__call__ and _is_usual(self.config):
            self._mcp, self._heads = app, _heads.setdefault(self.config, KnownHeads())

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what refers to the connection, so that it is freed at once."""
        super().connection_lost(exc)
        self._spare = self._held = None
        self._new_head = None, b""
        if self.cycle:
            self.cycle.on_response = _do_nothing

    # Requests

    def data_received(self, data: bytes) -> None:
        """Serve a request whose head is known and whose body is complete, or give the bytes to uvicorn's parser."""
        app = self._mcp
        if app is None:
            super().data_received(data)
            return
        if self._held is not None:
            self._receive_body(app, data)
            return
        end = data.find(b"\r\n\r\n") + 4
        known = self._heads.by_bytes.get(data[:end])
        if known is not None and self._is_between_requests() and app.can_serve_known(self.loop):
            length = len(data) - end
            if length == known.length:
                self._serve_known(app, known, data[end:])
                return
            if not length:  # many clients send head and body one after the other
                self._held = known, data
                return
        before, (cycle, head) = self.cycle, self._new_head
        is_head = known is None and self._is_between_requests()  # else the head may have begun before
        self._new_head = None, b""
        super().data_received(data)
        if is_head and self.cycle is not before:
            if len(data) == end and self.cycle.more_body:
                self._new_head = self.cycle, data
            else:
                self._learn(data[:end], data[end:])
        elif cycle is not None and self.cycle is cycle:
            self._learn(head, data)

    def _receive_body(self, app: AsgiApp, data: bytes) -> None:
        """Serve the request whose known head has come, if this is its body, or give both to uvicorn's parser."""
        assert self._held is not None
        (known, head), self._held = self._held, None
        if len(data) == known.length and app.can_serve_known(self.loop):
            self._serve_known(app, known, data)
        else:
            super().data_received(head)
            super().data_received(data)

    def shutdown(self) -> None:
        """Answer the request that has begun, and close the connection."""
        if self._held is not None:
            head, self._held = self._held[1], None
            super().data_received(head)
        super().shutdown()

    def _is_between_requests(self) -> bool:
        """Return whether the last request has been read and answered, and the parser has begun no other."""
        cycle = self.cycle
        if not cycle:
            return not self.scope
        return (
            cycle.response_complete
            and not cycle.more_body
            and self.scope is cycle.scope
            and not self.transport.is_closing()
        )

    def _learn(self, head: bytes, body: bytes) -> None:
        """Remember the head of a request that has arrived, if its headers match a template."""
        cycle, scope = self.cycle, self.scope
        assert self._mcp is not None
        if (
            cycle.scope is scope
            and not cycle.more_body
            and bytes(cycle.body) == body
            and cycle.keep_alive
            and scope["http_version"] == "1.1"
            and not scope["query_string"]
        ):
            found: Any = scope  # a `TypedDict`
            template = self._mcp.find_template(found, len(body))
            if template is not None:
                self._heads.remember(head, KnownHead(template, found, len(body)))

    def _serve_known(self, app: AsgiApp, known: KnownHead, body: bytes) -> None:
        if known is not self._known:
            self._known = known
            own = {"client": self.client, "server": self.server, "scheme": self.scheme, "state": self.app_state.copy()}
            self._known_scope = {**known.scope, **own}
        scope: Any = self._known_scope
        cycle, self._spare = self._spare or self._new_cycle(scope), None
        cycle.scope, cycle.default_headers = scope, self.server_state.default_headers
        cycle.response_started = cycle.response_complete = False
        self.scope, self.cycle = scope, cycle
        work = self._run(app, cycle, known, body)
        if known.later:
            known.later -= 1
            task = self.loop.create_task(work)
        else:
            begun = app.start(work)
            if begun is None:
                return
            task, known.later = begun, _LATER
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _new_cycle(self, scope: Any) -> RequestResponseCycle:
        cycle = RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        return cycle

    async def _run(self, app: AsgiApp, cycle: RequestResponseCycle, known: KnownHead, body: bytes) -> None:
        """Serve a request. Let uvicorn end one that gets no response."""
        scope: Any = cycle.scope
        receive: Any = cycle.receive
        send: Any = cycle.send
        try:
            await app.serve_known(known.template, scope, receive, send, body, partial(self._respond, cycle, known))
        except BaseException as error:
            await cycle.run_asgi(partial(_end, [error]))
        else:
            if cycle.response_complete:
                if cycle.chunked_encoding is not None:
                    cycle.chunked_encoding = None
                    cycle.message_event.clear()
                self._spare = cycle
            elif not cycle.disconnected:
                await cycle.run_asgi(partial(_end, []))

    # Responses

    def _respond(
        self, cycle: RequestResponseCycle, known: KnownHead, body: bytes, *, is_stream: bool = False, more: bool = False
    ) -> bool:
        """Send a response with status 200, or a part of a stream. False if it waits for the client, or is the last."""
        if cycle.disconnected:
            return True
        if self.flow.write_paused or not cycle.keep_alive:
            return False
        head = b"" if cycle.response_started else self._begin(cycle)
        if is_stream:
            cycle.chunked_encoding = True
            if head:
                head = _STREAM % (head, known.extra)
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self.transport.write(b"%b%b%b" % (head, chunk, b"" if more else b"0\r\n\r\n"))
            if more:
                return True
            cycle.message_event.set()
        else:
            self.transport.write(_JSON % (head, len(body), known.extra, body))
        cycle.response_complete = True
        self.on_response_complete()
        return True

    def _begin(self, cycle: RequestResponseCycle) -> bytes:
        """Return the beginning of a response, and write the access log."""
        cycle.response_started = True
        if self.server_state.default_headers is not self._defaults:
            self._defaults = self.server_state.default_headers
            self._beginning = b"HTTP/1.1 200 OK\r\n" + encode_headers(self._defaults)
        if self.access_log:
            path, client = get_path_with_query_string(cycle.scope), get_client_addr(cycle.scope)
            self.access_logger.info('%s - "%s %s HTTP/%s" %d', client, "POST", path, "1.1", 200)
        return self._beginning

    # A timer for idle connections is neither cancelled nor started by each request, which would take 7 % of the
    # instructions: it looks at the time when it ends.

    def on_response_complete(self) -> None:
        """Begin the next request of a pipeline, or wait for one."""
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None or self.pipeline or self.transport.is_closing():
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for long enough."""
        self.timeout_keep_alive_task = None
        if self.transport.is_closing() or self._held or (self.cycle and not self.cycle.response_complete):
            return  # the end of a request starts the timer again
        remaining = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if remaining > 0:
            self.timeout_keep_alive_task = self.loop.call_later(remaining, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()


def _is_usual(config: Config) -> bool:
    """Return whether the configuration asks for nothing that this class leaves out: limits, contexts, some headers."""
    if config.limit_concurrency is not None or getattr(config, "reset_contextvars", False):
        return False
    return not any(
        name in _MEANINGFUL or HEADER_RE.search(name) or HEADER_VALUE_RE.search(value)
        for name, value in config.encoded_headers
    )


def _do_nothing() -> None: ...


async def _end(errors: list[BaseException], *_: object) -> None:
    """End a request as the application did: with an exception, which nothing here refers to then, or without one."""
    if errors:
        raise errors.pop()
