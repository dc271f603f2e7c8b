"""The connection to a server: opening it, negotiating a revision, reconnecting and closing it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from typedmcp.client.connection.negotiation import ClientIdentity, is_modern_error, negotiate
from typedmcp.client.connection.options import URL_OPTIONS, ConnectOptions
from typedmcp.client.connection.targets import (
    Target,
    can_reopen,
    describe_target,
    is_process,
    is_url,
    open_target,
    resolve_target,
    target_key,
)
from typedmcp.client.incoming.handler import IncomingMessageHandler
from typedmcp.client.requests.encoder import RequestEncoder
from typedmcp.client.requests.param_headers import ParamHeaders
from typedmcp.client.results.icons import drop_unsafe_icons_of
from typedmcp.client.results.server_description import ServerDescription
from typedmcp.client.session.session import ClientSession
from typedmcp.client.session.stream import StreamSession
from typedmcp.errors import (
    ConnectionLostError,
    Error,
    HttpStatusError,
    ProtocolError,
    RemoteError,
    RequestTimeoutError,
    UsageError,
    missing_extra,
)
from typedmcp.frames import ObservedTransport, OnFrame, Sender
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.notifications import LogLevel
from typedmcp.revisions.capabilities import undeclared_methods
from typedmcp.revisions.features import DIALECT, FEATURES
from typedmcp.transports import Transport
from typedmcp.transports.redaction import redact_url

if TYPE_CHECKING:
    from typedmcp.client.http.endpoint import Endpoint
    from typedmcp.protocol.extensions import Extension

__all__ = ["KNOWN_SECONDS", "STABLE_SECONDS", "ConnectionManager"]

STABLE_SECONDS: Final = 30.0
"""Seconds after which the next restart or resumed subscription does not count as a repetition."""

_MAX_RESTART_DELAY: Final = 5.0
"""The maximum number of seconds that a restart waits."""

_FIRST_PLANNED_STATUS: Final = 64
"""The first exit status with which a program says why it ended: `sysexits.h`, and shells that find no command."""

_LEGACY_SSE_STATUSES: Final = (400, 404, 405)
"""Statuses with which a server of HTTP with SSE rejects a POST to the URL of its event stream."""

_MAX_KNOWN_SERVERS: Final = 256
"""Servers whose revision is remembered."""

KNOWN_SECONDS: Final = 600.0
"""Seconds for which the revision of a server is remembered: afterwards it may have been replaced by a newer one."""


class _KnownServer(NamedTuple):
    revision: str
    is_legacy_sse: bool
    expires: float
    """The time of the monotonic clock, in seconds, at which the entry counts no longer."""


known_servers: dict[str, _KnownServer] = {}
"""The way in which each target was reached last time, so that the next connection needs fewer attempts."""


class ConnectionManager:
    """Keeps a session with a server: opens it on demand, and reopens it after it has ended if that is allowed.

    `on_new_session` is called before each session, to drop the state of the last one, and `on_new_credentials` after a
    change of the access token.
    """

    def __init__(
        self,
        target: Target,
        identity: ClientIdentity,
        incoming: IncomingMessageHandler,
        on_new_session: Callable[[], None],
        on_new_credentials: Callable[[], None],
        options: ConnectOptions,
    ) -> None:
        self.timeout: float | None = options.get("timeout", 60.0)
        self.max_time: float | None = options.get("max_time", 600.0)
        self.limits: Limits = options.get("limits", DEFAULT_LIMITS)
        self.session: ClientSession | None = None
        """The current session, which may have ended."""
        self.encoder: RequestEncoder = RequestEncoder(DIALECT, {})
        self.param_headers: ParamHeaders | None = None
        """The parameters in headers, for modern servers over HTTP."""
        self.checks_capabilities: bool = options.get("check_capabilities", True)
        self.undeclared: Mapping[str, str] = {}
        """The methods of a legacy server that need a capability which it has not declared, each with that."""
        self.is_closed: bool = False
        self.is_strict: bool = options.get("strict", False)
        default_level: LogLevel | None = None if options.get("on_log") is None else "debug"
        self.log_level: LogLevel | None = options.get("log_level") or default_level
        self._target = target = resolve_target(target)
        self._identity = identity
        self._incoming = incoming
        self._on_new_session = on_new_session
        self._probe = options.get("probe", 5.0)
        self._name_params = identity.callbacks.name_params
        self._can_restart = options.get("restart")
        self._on_frame = _frame_callback(options, incoming)
        self._telemetry = identity.callbacks.telemetry
        if self._can_restart and not can_reopen(target):
            raise UsageError("restart: a transport cannot be opened again; restart needs a command or an address")
        self._endpoint = _open_endpoint(target, options, self.limits)
        if self._endpoint is not None:
            self._endpoint.on_new_credentials = on_new_credentials
            self._endpoint.on_frame = self._on_frame
        self._server: ServerDescription | None = None
        self._opening: asyncio.Lock = asyncio.Lock()
        self._starts: list[float] = []
        """The times of the last restarts, and of starts that failed."""

    @property
    def is_described(self) -> bool:
        """True once the server has described itself."""
        return self._server is not None

    @property
    def server(self) -> ServerDescription:
        """The description of the server. Raises `UsageError` before the first session."""
        if self._server is None:
            raise UsageError("the client is not open; enter it with `async with`, or await `open()`")
        return self._server

    @property
    def reconnects(self) -> int | None:
        """The number of attempts to resume a broken stream. None if the target is not a URL."""
        return None if self._endpoint is None else self._endpoint.options.reconnects

    async def connect(self) -> ClientSession:
        """Return the session; open one if necessary. Raises `ConnectionLostError` if it must not be reopened."""
        session = self.session
        if session is not None and not session.has_ended:
            return session
        async with self._opening:
            session = self.session
            if session is not None and not session.has_ended:
                return session
            if self.is_closed:
                raise _closed_error()
            if session is not None and not self.can_reconnect(session):
                raise session.end_error()
            return await self._reconnect(session)

    def can_reconnect(self, ended: ClientSession) -> bool:
        """Return whether another session may follow one that has ended."""
        if self._can_restart is None and self._server is not None:
            # A modern server has no session that its end could lose.
            return ended.is_renewable or (is_process(self._target) and FEATURES[self._server.revision].is_modern)
        return bool(self._can_restart) or ended.is_renewable

    def check_extension(self, extension: Extension, method: str) -> None:
        """Raise `UsageError` for a method of an extension that the server has not declared."""
        server = self.server
        if not self.checks_capabilities:
            return
        if server.revision not in extension.revisions:
            text = f"{method}: the server speaks {server.revision}, on which {extension.identifier} cannot be used"
            raise UsageError(text)
        if not extension.is_declared(server.capabilities):
            text = f"{method}: the server has not declared the extension {extension.identifier}"
            raise UsageError(f"{text}; connect with `check_capabilities=False` to send it all the same")

    def check_declared(self, method: str) -> None:
        """Raise `UsageError` for a method of a legacy server that has not declared the capability for it."""
        if (name := self.undeclared.get(method)) is not None:
            text = f"{method}: the server has not declared the capability {name}"
            raise UsageError(f"{text}; connect with `check_capabilities=False` to send it all the same")

    async def close(self) -> None:
        """End the session, and close all connections."""
        for session in (self.session, self._incoming.session):  # the second may be about to be negotiated
            if session is not None:
                await session.close()
        if self._endpoint is not None:
            self._endpoint.close()

    async def set_log_level(self, level: LogLevel) -> None:
        """Set the lowest level of log messages that the server sends."""
        session = await self.connect()
        self.check_declared("logging/setLevel")
        self.log_level = level
        revision = self.server.revision
        if FEATURES[revision].is_modern:  # every request carries the level
            self.encoder = RequestEncoder(revision, self._identity.meta(revision, level))
        else:
            await self._send_log_level(session, level)

    # Opening

    async def _reconnect(self, previous: ClientSession | None) -> ClientSession:
        if previous is not None:
            if not previous.is_renewable:
                text = f"{previous.end_error()}; connecting again"
                self._incoming.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text))
            await previous.close()
        if previous is not None or self._endpoint is None:
            await self._wait_before_restart()
        if previous is not None:
            self._starts.append(asyncio.get_running_loop().time())
        self._on_new_session()
        has_choice = self._identity.modern and self._identity.legacy
        key = target_key(self._target) if has_choice else None
        try:
            session, server = await self._open_session(None if key is None else _recall(key))
        except Error:
            if previous is None:  # otherwise it has been counted
                self._starts.append(asyncio.get_running_loop().time())
            raise
        if key is not None:
            _remember(key, server.revision, self._endpoint is not None and session.param_headers is None)
        self._incoming.revision = server.revision
        is_modern = FEATURES[server.revision].is_modern
        meta = self._identity.meta(server.revision, self.log_level) if is_modern else None
        self._server, self.encoder, self.session = server, RequestEncoder(server.revision, meta), session
        self.param_headers = session.param_headers if is_modern else None
        is_checked = self.checks_capabilities and not is_modern
        self.undeclared = undeclared_methods(server.capabilities, server.revision) if is_checked else {}
        if server.info is not None and server.info.icons:
            method = "server/discover" if is_modern else "initialize"
            drop_unsafe_icons_of([server.info], method, self._incoming.report)
        if not is_modern and self.log_level is not None and server.capabilities.logging is not None:
            await self._request_log_level(session, self.log_level)
        return session

    async def _open_session(self, known: _KnownServer | None) -> tuple[ClientSession, ServerDescription]:
        last_revision = None if known is None else known.revision
        if self._endpoint is None:
            return await self._open_stream(last_revision)
        if (self._endpoint.options.sse or (known is not None and known.is_legacy_sse)) and self._identity.legacy:
            try:
                return await self._open_legacy_sse(self._endpoint)
            except (HttpStatusError, ProtocolError):
                pass  # the server has changed, or the option is wrong
        return await self._open_http(self._endpoint, last_revision)

    async def _open_stream(self, last_revision: str | None) -> tuple[ClientSession, ServerDescription]:
        """Open a session over a transport. If `server/discover` ends the server, start it again without it."""
        transport = await self._open_transport()
        try:
            return await self._negotiate(StreamSession(transport, self._incoming, self.limits), last_revision)
        except RequestTimeoutError:
            raise
        except ConnectionLostError:
            if not self._can_initialize_instead(transport, last_revision):
                raise
        transport = await self._open_transport()
        session = StreamSession(transport, self._incoming, self.limits)
        return await self._negotiate(session, self._identity.legacy[0])

    def _can_initialize_instead(self, transport: Transport, last_revision: str | None) -> bool:
        """Return whether `server/discover` may have ended the server, so that it may work without."""
        was_initialized = last_revision is not None and FEATURES[last_revision].has_handshake
        has_choice = self._identity.modern and self._identity.legacy and not was_initialized
        if not has_choice or self.is_closed or not can_reopen(self._target):
            return False
        status: int | None = getattr(transport, "exit_status", None)
        text = "the server ended after server/discover; it is started again and initialized without"
        has_crashed = status is None or 0 < status < _FIRST_PLANNED_STATUS
        return has_crashed and self._incoming.tolerate(text, "server/discover")

    async def _open_http(
        self, endpoint: Endpoint, last_revision: str | None
    ) -> tuple[ClientSession, ServerDescription]:
        """Open a session over Streamable HTTP. If the server rejects the handshake, try HTTP with SSE."""
        from typedmcp.client.http.session import HttpSession

        session = HttpSession(endpoint, self._incoming, self._name_params)
        try:
            return await self._negotiate(session, last_revision)
        except (RemoteError, HttpStatusError) as error:
            is_modern = isinstance(error, RemoteError) and is_modern_error(error)
            if session.initialize_status not in _LEGACY_SSE_STATUSES or is_modern:
                raise
            try:
                return await self._open_legacy_sse(endpoint)
            except Error as other:
                raise error from other

    async def _open_legacy_sse(self, endpoint: Endpoint) -> tuple[ClientSession, ServerDescription]:
        from typedmcp.client.http.legacy_sse import LegacySseTransport

        try:
            async with asyncio.timeout(self.timeout):
                transport = await LegacySseTransport.open(endpoint, self._incoming.tolerate)
        except TimeoutError:
            raise ConnectionLostError(f"{endpoint.url}: no event stream within {self.timeout:g} s") from None
        session = StreamSession(transport, self._incoming, self.limits)
        session.is_renewable = True
        return await self._negotiate(session, self._identity.legacy[-1])

    async def _negotiate(
        self, session: ClientSession, last_revision: str | None
    ) -> tuple[ClientSession, ServerDescription]:
        self._incoming.session, self._incoming.revision = session, None
        if self._telemetry is not None:
            from typedmcp.client.session.observation import ClientObservation  # loaded where it is used

            session.observe(ClientObservation(session, self._telemetry, self._incoming))
        try:
            server = await negotiate(session, self._identity, last_revision, self.timeout or 60.0, self._probe)
            if self.is_closed:
                raise _closed_error()
        except BaseException:
            await session.close()
            if self._endpoint is not None:
                self._endpoint.close_idle()
            await self._incoming.close(asyncio.current_task())
            raise
        return session, server

    async def _open_transport(self) -> Transport:
        try:
            async with asyncio.timeout(self.timeout):
                transport = await open_target(self._target)
        except TimeoutError:
            text = f"{describe_target(self._target)}: no connection within {self.timeout:g} s"
            raise ConnectionLostError(text) from None
        if self.is_closed:
            await transport.close()
            raise _closed_error()
        if self._on_frame is not None:
            return ObservedTransport(transport, self._on_frame, self.limits.message_bytes)
        return transport

    async def _wait_before_restart(self) -> None:
        """Wait longer with each restart, and each start that failed, within a short time."""
        now = asyncio.get_running_loop().time()
        self._starts = [start for start in self._starts if start > now - STABLE_SECONDS][-10:]
        if self._starts:
            await asyncio.sleep(min(0.1 * 2 ** len(self._starts), _MAX_RESTART_DELAY))
        if self.is_closed:
            raise _closed_error()

    # The log level of legacy servers

    async def _request_log_level(self, session: ClientSession, level: LogLevel) -> None:
        """Set the log level. If the server rejects the request, continue without."""
        try:
            await self._send_log_level(session, level)
        except RemoteError as error:
            diagnostic = Diagnostic(DiagnosticKind.INVALID_DATA, str(error), "logging/setLevel", error=error)
            self._incoming.report(diagnostic)

    async def _send_log_level(self, session: ClientSession, level: LogLevel) -> None:
        call = session.start_call("logging/setLevel", timeout=self.timeout, latest=self.max_time)
        await session.exchange(call, {"level": level})


def _frame_callback(options: ConnectOptions, incoming: IncomingMessageHandler) -> OnFrame | None:
    """Return the callback for each message: that of the option, of the sink, or both."""
    on_frame, record = options.get("on_frame"), options.get("record")
    if record is None:
        return on_frame
    from typedmcp.client.session.observation import SessionInfo  # loaded where it is used

    recorded = record.open(SessionInfo(incoming))
    return on_frame if recorded is None else recorded if on_frame is None else _both(recorded, on_frame)


def _both(first: OnFrame, second: OnFrame) -> OnFrame:
    def on_each(sender: Sender, data: bytes) -> None:
        first(sender, data)
        second(sender, data)

    return on_each


def _closed_error() -> ConnectionLostError:
    return ConnectionLostError("the client has been closed")


def _recall(key: str) -> _KnownServer | None:
    """Return what is remembered of a server, unless that has expired."""
    known = known_servers.get(key)
    return known if known is not None and time.monotonic() < known.expires else None


def _remember(key: str, revision: str, is_legacy_sse: bool) -> None:
    """Remember how a server was reached. An entry that still counts keeps its end, so that it is checked at times."""
    known = _recall(key)
    if len(known_servers) >= _MAX_KNOWN_SERVERS:
        known_servers.clear()
    expires = time.monotonic() + KNOWN_SECONDS if known is None else known.expires
    known_servers[key] = _KnownServer(revision, is_legacy_sse, expires)


def _open_endpoint(target: Target, options: ConnectOptions, limits: Limits) -> Endpoint | None:
    """Return the endpoint of a URL, or None for other targets. Raises `UsageError` for options that do not apply."""
    given: dict[str, Any] = {name: value for name, value in options.items() if name in URL_OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    if not is_url(target):
        if given:
            raise UsageError(f"{', '.join(given)}: only for URLs")
        return None
    try:
        from typedmcp.client.http.endpoint import Endpoint, HttpOptions
    except ImportError as error:
        raise UsageError(f"{redact_url(target)}: {missing_extra('a client of a URL', 'http')}") from error
    return Endpoint(target, HttpOptions(**given), limits)
