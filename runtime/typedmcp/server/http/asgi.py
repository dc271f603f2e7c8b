"""The ASGI application that serves a handler over HTTP.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import get_running_loop
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Unpack

from typedmcp.errors import UsageError
from typedmcp.limits import Limits
from typedmcp.protocol.budgets import Hold
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.framing import Frame, classify
from typedmcp.protocol.meta import VERSION
from typedmcp.protocol.notifications import Change
from typedmcp.protocol.option_checks import check_integer, check_seconds, option_names, unknown_option
from typedmcp.revisions.features import DEFAULT_HTTP_REVISION, is_modern
from typedmcp.server.config import CANCELLATION_SHARE, ServerConfig, ServerOptions, as_config
from typedmcp.server.http.access_log import ACCESS_LOG, AccessLogEntry, log_rejection
from typedmcp.server.http.auth import LOOPBACK, AllowedHosts, Auth
from typedmcp.server.http.channel import HttpChannel
from typedmcp.server.http.cors import Cors, with_headers
from typedmcp.server.http.header_cache import HeaderTemplate
from typedmcp.server.http.header_checks import UNKNOWN_PARAMS
from typedmcp.server.http.legacy_sse import LegacySse
from typedmcp.server.http.messages import (
    JSON_HEADER,
    LARGE_BODY_BYTES,
    REQUEST_SCOPE,
    RETRY_LATER,
    ClientDisconnect,
    Headers,
    HTTPException,
    RawHeaders,
    Receive,
    Scope,
    Send,
    WriteNow,
    accepts,
    body_too_deep,
    check_accept,
    check_length,
    check_mirrors,
    client_of,
    client_of_principal,
    has_version,
    join_headers,
    path_of,
    read_json_body,
    read_rest,
    respond,
    respond_unavailable,
)  # fmt: skip
from typedmcp.server.http.post import Post
from typedmcp.server.http.sessions import Sessions
from typedmcp.server.http.signals import on_end_signal
from typedmcp.server.http.state import AppState, check_shared_state
from typedmcp.server.http.stateless import StatelessSession, legacy_target
from typedmcp.server.http.streams import STREAM_HEADERS
from typedmcp.server.http.tool_headers import ToolHeaders
from typedmcp.server.principal import Principal
from typedmcp.server.store import Store
from typedmcp.server.store.memory import MemoryStore
from typedmcp_schemas.nesting import is_too_deep

__all__ = [
    "JSON_HEADER", "STREAM_HEADERS", "AsgiApp", "AsgiOptions", "HeaderTemplate", "RawHeaders", "Receive", "Scope",
    "Send", "WriteNow", "asgi", "client_of",
]  # fmt: skip


class AsgiOptions(ServerOptions, total=False):
    """The options of `asgi` and `serve(…, "http")`: those of `ServerConfig`, and those of the ASGI application."""

    path: str
    """The path of the endpoint; "/mcp" by default."""
    sse_path: str | None
    """The path of the event stream of 2024-11-05; by default that revision's transport is not served."""
    messages_path: str
    """The path to post messages to on 2024-11-05; "/messages" by default."""
    hosts: Iterable[str]
    """The hosts to accept in the header `Host`; by default those of the loopback interface."""
    origins: Iterable[str]
    """The origins of web pages to accept, in addition to those of `hosts`; none by default. These pages may also read
    the responses (CORS)."""
    auth: Auth | None
    """Requires a bearer token of every request."""
    sessions: bool
    """False serves legacy revisions without sessions; True by default."""
    store: Store | None
    """Keeps sessions and events; in memory by default."""
    keep_alive: float
    """Seconds after which an idle event stream gets a comment that keeps it open; 15 by default."""
    retry: int
    """Milliseconds after which clients should reconnect to a broken stream; 1000 by default."""


_SERVER_OPTIONS = option_names(ServerOptions)

_CLOSE = [(b"connection", b"close")]
_MEDIA = (b"application/json", b"text/event-stream")
"""The types of responses to a POST."""
_TEMPLATES = 8
"""Header templates that are kept: every client library has one or two."""


def asgi(handler: object, **options: Unpack[AsgiOptions]) -> AsgiApp:
    """Return an ASGI application that serves a handler over HTTP, to clients of all revisions.

    `handler` is a `ServerConfig`, or an object from which one is made with the options that `ServerConfig` has. The
    other options are those of `AsgiApp`. Raises `UsageError` for options that contradict each other.
    """
    known = option_names(AsgiOptions)
    if unknown := [name for name in options if name not in known]:
        raise UsageError(unknown_option(unknown[0], known, " of asgi"))
    config_options: Any = {name: value for name, value in options.items() if name in _SERVER_OPTIONS}
    app_options: dict[str, Any] = {name: value for name, value in options.items() if name not in _SERVER_OPTIONS}
    return AsgiApp(as_config(handler, config_options), **app_options)


class AsgiApp:
    """An ASGI application for one `ServerConfig`. Raises `UsageError` for options that contradict each other.

    `path` is the path of the endpoint. With `sse_path`, clients of 2024-11-05 are served, too: they open an event
    stream there and post messages to `messages_path`. `hosts` and `origins` are the values to accept in `Host` and
    `Origin`; by default those of the loopback interface. Pages of `origins` may read the responses (CORS). `auth`
    requires a bearer token of every request. `sessions=False` serves legacy revisions without sessions: such clients
    can neither be asked for input nor be notified of changes. `store` keeps sessions and events, by default in memory.
    An idle event stream gets a comment every `keep_alive` seconds. Clients reconnect to a broken stream after `retry`
    milliseconds.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        path: str = "/mcp",
        sse_path: str | None = None,
        messages_path: str = "/messages",
        hosts: Iterable[str] = LOOPBACK,
        origins: Iterable[str] = (),
        auth: Auth | None = None,
        sessions: bool = True,
        store: Store | None = None,
        keep_alive: float = 15.0,
        retry: int = 1000,
    ) -> None:
        for each in (path, sse_path or "/", messages_path):
            if not each.startswith("/"):
                raise UsageError(f"a path must begin with a slash: use '/{each}'")
        check_seconds("keep_alive", keep_alive, is_positive=True)
        if auth is not None and not callable(getattr(auth, "principal", None)):
            raise UsageError(f"auth must be Auth(verify) or StaticTokens({{token: Principal()}}), not {type(auth)}")
        if isinstance(store, str):
            raise UsageError("store must be a Store, such as typedmcp_redis.RedisStore(url), not a string")
        check_integer("retry", retry)
        store = MemoryStore() if store is None else store
        has_sessions = sessions and bool(config.legacy_revisions)
        self._refusal = check_shared_state(config.state_signer, store, has_sessions=has_sessions)
        self.config: ServerConfig = config
        self.state: AppState = AppState(config, store, auth, keep_alive=keep_alive, retry=retry)
        self.sessions: Sessions = Sessions(self.state)
        self.path: str = path.rstrip("/") or "/"
        """The path of the endpoint."""
        self.routes: Mapping[str, Callable[[Send], Awaitable[None]]] = {}
        """What answers GET requests to other paths, without a check of host and token: probes use addresses."""
        self._allowed_hosts = AllowedHosts(hosts, origins)
        self._cors = Cors(self._allowed_hosts.origins)
        self._auth = auth
        self._has_sessions = sessions
        self._limits: Limits = config.limits
        self._small_body = min(config.limits.http_body_bytes, LARGE_BODY_BYTES)
        self._long_digits = len(str(config.limits.http_body_bytes))
        """The number of digits at which a length may be beyond the limit."""
        self._templates: list[HeaderTemplate] = []
        """The headers of requests that passed all checks before their bodies, the newest first."""
        self._tools: ToolHeaders = ToolHeaders(config)
        self._is_open = False
        self._is_stopping = True
        self._opening: asyncio.Lock | None = None
        self._legacy_sse = None if sse_path is None else LegacySse(self.state, sse_path, messages_path)
        if self._legacy_sse is not None and self.path in self._legacy_sse.paths:
            raise UsageError(f"path, sse_path and messages_path must differ: {self.path}")
        self.state.message_handlers.update(self._message_handlers())
        if store.is_shared:
            config.workers = self.state

    def _message_handlers(self) -> dict[str, Any]:
        handlers: dict[str, Any] = {
            "change": self._on_change,
            "stream resumed": self.state.detach_stream,
            **self.sessions.message_handlers(),
        }
        if self._legacy_sse is not None:
            handlers["message posted"] = self._legacy_sse.on_message_posted
        return handlers

    def _on_change(self, change: Change, uri: str | None) -> None:
        if change == "tools":
            self._tools.forget()
        self.state.on_change(change, uri)

    def limits_in_use(self) -> dict[str, int]:
        """Return how much of the application's limits is in use, by their names: for metrics."""
        calls = sum(len(stored.session.in_flight) for stored in self.sessions.loaded.values())
        return {
            **self.config.budgets.in_use(),
            "http_streams": len(self.state.streams),
            "requests_in_flight": calls + (len(self.stateless.session.in_flight) if self._is_open else 0),
        }

    # Lifecycle

    async def open(self) -> None:
        """Open the application. The first request does so if the server does not run the lifespan."""
        if self._refusal is not None:
            raise UsageError(self._refusal)
        loop = asyncio.get_running_loop()
        if self._opening is None or self.state.loop is not loop:  # an earlier loop has ended without a shutdown
            self._is_open, self._opening = False, asyncio.Lock()
            self.state.streams.clear()
            self.sessions.forget_all()
        self.state.loop = loop
        async with self._opening:
            if self._is_open:
                return
            await self.state.open()
            self._tools.listen()
            self.stateless: StatelessSession = StatelessSession(self.state)
            self._stateless = {self.stateless.revision.encode(): self.stateless}
            self._ignore_signals = on_end_signal(partial(loop.call_soon_threadsafe, self.stop))
            self._is_open, self._is_stopping = True, False

    async def close(self) -> None:
        """Close the application: end subscriptions and sessions, then wait for open streams."""
        if not self._is_open:
            return
        self._is_open = False
        self._ignore_signals()
        self.state.stop_listening()
        self._tools.stop_listening()
        self.stop()
        running = self._handler_tasks()
        for stored in [*self.sessions.loaded.values()]:
            stored.close()
        await self._wait_for_cancelled(running)
        await self.state.close()

    def _handler_tasks(self) -> set[asyncio.Task[Any]]:
        """Return the tasks of the handlers that wait."""
        sessions = [self.stateless.session, *(stored.session for stored in self.sessions.loaded.values())]
        found = (ctx.task for session in sessions for ctx in session.in_flight.values())
        return {task for task in found if task is not None}

    async def _wait_for_cancelled(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Wait for handlers that were cancelled, by us or by the ASGI server. Report those that do not end."""
        if cancelled := [task for task in tasks if task.cancelling() and not task.done()]:
            seconds = self.config.grace * CANCELLATION_SHARE
            _, unended = await asyncio.wait(cancelled, timeout=seconds)
            self.config.report_unended(unended, seconds)

    def stop(self) -> None:
        """Prepare for the end, before a server waits for its connections: end what only waits, and limit the rest.

        Streams that wait for changes end, and so do questions to clients, whose answers would come over new
        connections. Calls get `grace` seconds before they are cancelled, and their clients get error -31503. The
        application does so itself when a server handles SIGINT or SIGTERM in this process. Further calls do nothing.
        """
        if self._is_stopping:
            return
        self._is_stopping = True
        for stateless in self._stateless.values():
            stateless.session.closing.set()
        for stored in self.sessions.loaded.values():
            stored.outlet.end()
            stored.session.questions.fail_all("the server is stopping")
        if self._legacy_sse is not None:
            self._legacy_sse.end()
        self.state.loop.call_later(self.config.grace, self._cancel_calls)

    def _cancel_calls(self) -> None:
        for task in self._handler_tasks():
            task.cancel()

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncGenerator[None]:
        """Open the application, and close it at the end: the lifespan for a framework in which it is mounted."""
        await self.open()
        try:
            yield
        finally:
            await self.close()

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        text = None
        try:
            await self.open()
        except Exception as error:
            text = f"the server cannot start: {type(error).__name__}: {error}"
            cause = None if isinstance(error, UsageError) else error  # such an error says what to do
            self.state.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, error=cause))
        if text is not None:  # hypercorn raises then, and would show the error above as the context
            await send({"type": "lifespan.startup.failed", "message": text})
            return
        await send({"type": "lifespan.startup.complete"})
        try:
            await receive()
        except asyncio.CancelledError:  # after a second Ctrl-C, uvicorn does not wait
            return
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    # Requests

    async def __call__(  # a further coroutine for a step would cost more than most steps
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve one request, or run the lifespan."""
        if scope["type"] != "http" or (self.routes and scope["method"] == "GET" and scope["path"] in self.routes):
            await self._serve_other(scope, receive, send)
            return
        entry: AccessLogEntry | None = None
        if ACCESS_LOG.isEnabledFor(logging.INFO):
            entry = AccessLogEntry(scope, receive, send)
            receive, send = entry.receive, entry.send
        try:
            if not self._is_open or self.state.loop is not get_running_loop():
                await self.open()
            template = self.find_template(scope)
            if template is not None:
                if template.response_headers:
                    send = with_headers(send, template.response_headers)
                await self._post_checked(template, scope, receive, send)
                return
            joined = join_headers(scope["headers"], self._limits)
            send = with_headers(send, self._cors.response_headers(joined))
            await self._serve(scope, joined, receive, send)
        except (ClientDisconnect, HTTPException, ConnectionError) as error:
            await self._respond_error(error, scope, receive, send)
        finally:
            if entry is not None:
                entry.write()

    # Requests of which a server has the bytes

    def find_template(self, scope: Scope, length: int = 0) -> HeaderTemplate | None:
        """Return the template that a request matches; None for one whose body has too large a length."""
        if scope["method"] == "POST" and length <= self._small_body:
            for template in self._templates:
                if template.matches(scope, scope["headers"]):
                    return template
        return None

    def can_serve_known(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return whether the application is open in a loop, and nobody reads its access log."""
        tasks = self.state.eager_tasks
        return tasks is not None and tasks.loop is loop and not ACCESS_LOG.isEnabledFor(logging.INFO)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Run a coroutine, which must not raise, in a task that begins at once. Return the task if it waits."""
        assert self.state.eager_tasks is not None
        return self.state.eager_tasks.start(work)

    async def serve_known(
        self, template: HeaderTemplate, scope: Scope, receive: Receive, send: Send, body: bytes, write: WriteNow
    ) -> None:
        """Serve a POST whose headers match a template, and whose body is complete.

        `write` sends whole responses, and `send` all others.
        """
        try:
            if template.response_headers:
                send = with_headers(send, template.response_headers)
            principal = None if self._auth is None else await self._authenticate(dict(scope["headers"]), scope)
            await self._serve_checked(template, scope, principal, body, receive, send, write)
        except (ClientDisconnect, HTTPException, ConnectionError) as error:
            await self._respond_error(error, scope, receive, send)

    async def _respond_error(self, error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request that cannot be served, unless its client has disconnected."""
        if isinstance(error, HTTPException):
            log_rejection(scope, error)
            # On HTTP/1 the server would otherwise read the rest of a body that is too long.
            closes = error.status == 413 and scope.get("http_version", "1.1") < "2"
            headers = [*error.headers, *(_CLOSE if closes else ())]
            await respond(send, error.status, error.body, headers, error.on_frame, receive=receive if closes else None)
        elif isinstance(error, ConnectionError):
            self.state.report_unreachable_store(error)
            await respond_unavailable(send, "the server's store is unreachable: try again later")

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
        else:
            await self.routes[scope["path"]](send)

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Check a request that matches no template, and serve it."""
        REQUEST_SCOPE.set(scope)
        self._allowed_hosts.check(headers)
        if scope["method"] == "OPTIONS" and (preflight := self._cors.preflight_headers(headers)):
            await respond(send, 204, b"", preflight)
            return
        path = path_of(scope)
        if path != self.path:
            await self._serve_elsewhere(path, scope, headers, receive, send)
            return
        principal = await self._authenticate(headers, scope)
        method = scope["method"]
        if method == "POST":
            self._check_accept(headers)
            await self._post(scope, headers, principal, receive, send)
        elif method in ("GET", "DELETE") and self.config.legacy_revisions and self._has_sessions:
            await (self.sessions.get if method == "GET" else self.sessions.delete)(headers, principal, receive, send)
        else:
            raise self._method_not_allowed(method)

    def _check_accept(self, headers: Headers) -> None:
        """Raise `HTTPException` unless the client of a POST accepts JSON or event streams. It should accept both."""
        missing = [each for each in _MEDIA if not accepts(headers, each)]
        if self.config.strict or len(missing) > 1:
            check_accept(headers, *_MEDIA)
        for each in missing:
            text = f"the header Accept lacks {each.decode()}: responses can only have the other form"
            self.state.report(Diagnostic(DiagnosticKind.TOLERATED, text))

    async def _serve_elsewhere(self, path: str, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Serve a request to a path other than the endpoint's. Raises `HTTPException`."""
        if self._auth is not None and path in self._auth.metadata_paths and scope["method"] == "GET":
            await respond(send, 200, self._auth.metadata)
        elif self._legacy_sse is not None and path in self._legacy_sse.paths:
            await self._legacy_sse.serve(path, scope, headers, await self._authenticate(headers, scope), receive, send)
        else:
            raise HTTPException(404, self._describe_endpoint(path, scope))

    def _describe_endpoint(self, path: str, scope: Scope) -> str:
        """Return the error for a path that is not found: where the endpoint is, and how to move it in a mount."""
        root = scope.get("root_path", "").rstrip("/")
        text = f"not found: the MCP endpoint is at {(root + self.path).rstrip('/') or '/'}"
        return f'{text}; asgi(…, path="/") puts it at {root}/' if root and path == "/" else text

    async def _authenticate(self, headers: Headers, scope: Scope) -> Principal | None:
        """Return the principal of a request. Raises `HTTPException` for missing or invalid credentials."""
        if self._auth is None:
            return None
        if b"access_token=" in scope.get("query_string", b""):
            raise HTTPException(400, "an access token is not accepted in the query: send it as a header")
        REQUEST_SCOPE.set(scope)  # verifiers have shares for clients
        try:
            return await self._auth.principal(headers, scope.get("root_path", ""), scope["method"])
        except HTTPException:
            raise
        except Exception as error:
            text = f"credentials cannot be checked: {error!r}"
            self.state.report(Diagnostic(DiagnosticKind.INTERNAL_ERROR, text, error=error))
            raise HTTPException(503, "credentials cannot be checked: try again later", RETRY_LATER) from error

    def _method_not_allowed(self, method: str) -> HTTPException:
        allowed = "GET, POST, DELETE" if self.config.legacy_revisions and self._has_sessions else "POST"
        return HTTPException(405, f"{method} is not allowed; allowed: {allowed}", [(b"allow", allowed.encode())])

    # POST

    async def _post_checked(self, template: HeaderTemplate, scope: Scope, receive: Receive, send: Send) -> None:
        """Read and serve a POST whose headers match those of an earlier one: the hot path."""
        headers: RawHeaders = scope["headers"]
        principal = None if self._auth is None else await self._authenticate(dict(headers), scope)
        limit = self._limits.http_body_bytes
        if template.length_at >= 0 and len(headers[template.length_at][1]) >= self._long_digits:
            check_length(headers[template.length_at][1], limit)
        message = await receive()
        body = message.get("body", b"")
        if message["type"] != "http.request" or message.get("more_body") or len(body) > self._small_body:
            REQUEST_SCOPE.set(scope)
            with self._hold(principal) as hold:
                body = await read_rest(message, receive, self._limits, hold)
                if len(body) > LARGE_BODY_BYTES:
                    await self._post_body(template, dict(headers), principal, body, receive, send)
                    return
        del message
        await self._serve_checked(template, scope, principal, body, receive, send, None)

    async def _serve_checked(
        self,
        template: HeaderTemplate,
        scope: Scope,
        principal: Principal | None,
        body: bytes,
        receive: Receive,
        send: Send,
        write: WriteNow | None,
    ) -> None:
        """Serve a POST whose headers match those of an earlier one, and whose body is not large."""
        headers: RawHeaders = scope["headers"]
        if is_too_deep(body, self._limits.message_depth):
            raise body_too_deep(body, self._limits)
        stored = None
        if template.session_at >= 0 and self._has_sessions:
            stored = await self.sessions.load(headers[template.session_at][1], principal)
            channel = HttpChannel(stored.target, headers, principal, send, UNKNOWN_PARAMS, scope, write=write)
        elif template.method_at >= 0 and (
            not self._tools.has_params
            or (headers[template.name_at][1] if template.name_at >= 0 else None) in self._tools.plain_names(principal)
            or headers[template.method_at][1].find(b"tools/call") < 0  # `in` would cost 2,000 instructions more
        ):
            stateless = self._stateless.get(template.version) or self._session_for(template.version)
            method = headers[template.method_at][1]
            name = headers[template.name_at][1] if template.name_at >= 0 else None
            channel = HttpChannel(stateless.target, headers, principal, send, (), scope, method, name, write)
        else:
            REQUEST_SCOPE.set(scope)
            await self._post_body(template, dict(headers), principal, body, receive, send)
            return
        suspended = channel.target.calls.begin(body, channel)
        del body  # a handler that waits, such as a listener, may not need it
        line = channel.line
        if (
            line is None or channel.code is not None or channel.stream is not None or len(line) > LARGE_BODY_BYTES
            or (stored is not None and stored.unsaved)
        ):  # fmt: skip
            await Post(channel, receive, stored).finish(suspended)
        elif write is None or not write(line):
            await respond(send, 200, line)

    def _hold(self, principal: Principal | None) -> Hold:
        """Return the bytes that the body of a request holds of its client's budget: none, unless it is large."""
        return Hold(self.config.budgets.calls, client_of_principal(principal))

    async def _post_body(
        self,
        template: HeaderTemplate,
        headers: Headers,
        principal: Principal | None,
        body: bytes,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a POST whose body does not take the hot path."""
        post = self._post_modern if template.is_modern else self._post_legacy
        await post(headers, principal, body, receive, send)

    async def _post(
        self, scope: Scope, headers: Headers, principal: Principal | None, receive: Receive, send: Send
    ) -> None:
        with self._hold(principal) as hold:
            body = await read_json_body(headers, receive, self._limits, hold)
            try:
                check_mirrors(scope["headers"], body)
                await self._serve_body(scope, headers, principal, body, receive, send)
            except HTTPException as error:
                if error.on_frame is None:
                    self._report_rejected(body, error)
                raise

    def _report_rejected(self, body: bytes, error: HTTPException) -> None:
        """Report a message that reached no session to the sink for frames, as a connection of its own."""
        error.on_frame = self.stateless.session.open_frames()
        if error.on_frame is not None:
            error.on_frame("client", body)

    async def _serve_body(
        self, scope: Scope, headers: Headers, principal: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        """Serve a POST that has been read and matches no template."""
        version = headers.get(b"mcp-protocol-version")
        revision = None if version is None else version.decode("latin-1")
        # The hot path reports no frames, so that it need not ask whether there is a sink for them.
        is_usual = self.config.record is None and accepts(headers, b"application/json")
        if version is not None and revision in self.config.revisions and is_usual:
            self._remember_template(scope, version)
        post = self._post_modern if revision is not None and is_modern(revision) else self._post_legacy
        await post(headers, principal, body, receive, send)

    def _remember_template(self, scope: Scope, version: bytes) -> None:
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        names = {name for name, _ in headers}
        if len(names) == len(headers) and not any(value != value.strip() for _, value in headers):
            limit, revision = self._limits.http_header_bytes, version.decode()
            template = HeaderTemplate(scope, [*headers], limit, version, is_modern=is_modern(revision))
            template.response_headers = self._cors.response_headers(dict(headers))
            self._templates.insert(0, template)
            del self._templates[_TEMPLATES:]

    async def _post_modern(
        self, headers: Headers, principal: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        channel = HttpChannel(self._session_for(headers[b"mcp-protocol-version"]).target, headers, principal, send)
        await self._tools.prepare(channel, body)
        await Post(channel, receive).run(body)

    def _session_for(self, version: bytes) -> StatelessSession:
        """Return the session of a modern revision, or of the newest one, which rejects revisions not served."""
        found = self._stateless.get(version)
        if found is None and (revision := version.decode("latin-1")) in self.config.modern_revisions:
            found = self._stateless[version] = StatelessSession(
                self.state, revision, in_flight=self.stateless.session.in_flight
            )
        return found or self.stateless

    async def _post_legacy(
        self, headers: Headers, principal: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        is_mismatch = VERSION.encode() in body and has_version(body)  # the body names a revision, the headers do not
        if is_mismatch or not self.config.legacy_revisions:
            await Post(HttpChannel(self.stateless.target, headers, principal, send), receive).run(body)
        elif not self._has_sessions:
            await self._post_without_session(headers, principal, body, receive, send)
        else:
            await self.sessions.post(headers, principal, body, receive, send)

    async def _post_without_session(
        self, headers: Headers, principal: Principal | None, body: bytes, receive: Receive, send: Send
    ) -> None:
        frame = classify(body)
        is_handshake = isinstance(frame, Frame) and frame.method == "initialize"
        revision = headers.get(b"mcp-protocol-version", DEFAULT_HTTP_REVISION.encode()).decode("latin-1")
        if not is_handshake and revision not in self.config.legacy_revisions:
            raise HTTPException(400, f"MCP-Protocol-Version: {revision[:50]!a} is not served")
        target = legacy_target(self.state, None if is_handshake else revision)
        await Post(HttpChannel(target, headers, principal, send), receive).run(body)
