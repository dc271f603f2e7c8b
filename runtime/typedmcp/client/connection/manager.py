"""The connection to a server: opening it, negotiating a revision, reconnecting and closing it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from typedmcp.client.connection.negotiation import ClientIdentity
from typedmcp.client.connection.opening import SessionOpener, closed_error
from typedmcp.client.connection.targets import Target, is_process
from typedmcp.client.incoming.handler import IncomingMessageHandler
from typedmcp.client.options import ConnectOptions
from typedmcp.client.requests.encoder import RequestEncoder
from typedmcp.client.requests.heads import RequestHeads
from typedmcp.client.results.icons import drop_unsafe_icons_of
from typedmcp.client.results.server_description import ServerDescription
from typedmcp.client.session.session import ClientSession
from typedmcp.errors import Error, RemoteError, UsageError
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.protocol.diagnostics import Diagnostic, DiagnosticKind
from typedmcp.protocol.notifications import LogLevel
from typedmcp.revisions.capabilities import undeclared_methods
from typedmcp.revisions.features import DIALECT, FEATURES

if TYPE_CHECKING:
    from typedmcp.protocol.extensions import Extension

__all__ = ["STABLE_SECONDS", "ConnectionManager"]

STABLE_SECONDS: Final = 30.0
"""Seconds after which the next restart or resumed subscription does not count as a repetition."""

_MAX_RESTART_DELAY: Final = 5.0
"""The maximum number of seconds that a restart waits."""


class ConnectionManager:
    """Keeps a session with a server: opens it on demand, and reopens it after it has ended if that is allowed.

    Each call reads here what belongs to the current session, without a detour: that is why this class has more
    attributes than others. `on_new_session` is called before each session, to drop the state of the last one, and
    `on_new_credentials` after a change of the access token.
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
        self.heads: RequestHeads | None = None
        """The parameters in headers, for modern servers over HTTP."""
        self.checks_capabilities: bool = options.get("check_capabilities", True)
        self.undeclared: Mapping[str, str] = {}
        """The methods that need a capability which the server has not declared, each with that."""
        default_level: LogLevel | None = None if options.get("on_log") is None else "debug"
        self.log_level: LogLevel | None = options.get("log_level") or default_level
        self._on_new_session = on_new_session
        self._can_restart = options.get("restart")
        self._opener = SessionOpener(target, identity, incoming, options)
        if (endpoint := self._opener.endpoint) is not None:
            endpoint.on_new_credentials = on_new_credentials
        self._server: ServerDescription | None = None
        self._opening: asyncio.Lock = asyncio.Lock()
        self._starts: list[float] = []
        """The times of the last restarts, and of starts that failed."""

    @property
    def is_closed(self) -> bool:
        """True once the client is closed or closing."""
        return self._opener.is_closed

    @property
    def server(self) -> ServerDescription:
        """The description of the server. Raises `UsageError` before the first session."""
        if self._server is None:
            raise UsageError("the client is not open; enter it with `async with`, or await `open()`")
        return self._server

    @property
    def reconnects(self) -> int | None:
        """The number of attempts to resume a broken stream. None if the target is not a URL."""
        endpoint = self._opener.endpoint
        return None if endpoint is None else endpoint.options.reconnects

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
                raise closed_error()
            if session is not None and not self.can_reconnect(session):
                raise session.end_error()
            return await self._reconnect(session)

    def can_reconnect(self, ended: ClientSession) -> bool:
        """Return whether another session may follow one that has ended."""
        if self._can_restart is None and self._server is not None:
            # A modern server has no session that its end could lose.
            return ended.is_renewable or (is_process(self._opener.target) and FEATURES[self._server.revision].is_modern)
        return bool(self._can_restart) or ended.is_renewable

    def has_declared(self, extension: Extension) -> bool:
        """Return whether the server has declared an extension."""
        return self._server is not None and extension.is_declared(self._server.capabilities)

    def check_extension(self, extension: Extension, method: str) -> None:
        """Raise `UsageError` for a method of an extension that the server has not declared."""
        server = self.server
        if not self.checks_capabilities:
            return
        if server.revision not in extension.revisions:
            text = f"{method}: the server speaks {server.revision}, on which {extension.identifier} cannot be used"
            raise UsageError(text)
        if not self.has_declared(extension):
            text = f"{method}: the server has not declared the extension {extension.identifier}"
            raise UsageError(f"{text}; connect with `check_capabilities=False` to send it all the same")

    def check_declared(self, method: str) -> None:
        """Raise `UsageError` for a method if the server has not declared the capability for it."""
        if (name := self.undeclared.get(method)) is not None:
            text = f"{method}: the server has not declared the capability {name}"
            raise UsageError(f"{text}; connect with `check_capabilities=False` to send it all the same")

    def begin_close(self) -> None:
        """Open no session any more."""
        self._opener.is_closed = True

    async def close(self) -> None:
        """End the session, and close all connections."""
        for session in (self.session, self._opener.incoming.session):  # the second may be about to be negotiated
            if session is not None:
                await session.close()
        if self._opener.endpoint is not None:
            self._opener.endpoint.pool.close()

    async def set_log_level(self, level: LogLevel) -> None:
        """Set the lowest level of log messages that the server sends."""
        session = await self.connect()
        self.check_declared("logging/setLevel")
        self.log_level = level
        revision = self.server.revision
        if FEATURES[revision].is_modern:  # every request carries the level
            self.encoder = RequestEncoder(revision, self._opener.identity.meta(revision, level))
        else:
            await self._send_log_level(session, level)

    # Opening

    async def _reconnect(self, previous: ClientSession | None) -> ClientSession:
        if previous is not None:
            if not previous.is_renewable:
                text = f"{previous.end_error()}; connecting again"
                self._opener.incoming.report(Diagnostic(DiagnosticKind.CONNECTION_ERROR, text))
            await previous.close()
        if previous is not None or self._opener.endpoint is None:
            await self._wait_before_restart()
        if previous is not None:
            self._starts.append(asyncio.get_running_loop().time())
        self._on_new_session()
        try:
            session, server = await self._opener.open()
        except Error:
            if previous is None:  # otherwise it has been counted
                self._starts.append(asyncio.get_running_loop().time())
            raise
        self._opener.incoming.revision = server.revision
        is_modern = FEATURES[server.revision].is_modern
        meta = self._opener.identity.meta(server.revision, self.log_level) if is_modern else None
        self._server, self.encoder, self.session = server, RequestEncoder(server.revision, meta), session
        self.heads = session.heads if is_modern else None
        if self.checks_capabilities:
            self.undeclared = undeclared_methods(server.capabilities, server.revision)
        if server.info is not None and server.info.icons:
            method = "server/discover" if is_modern else "initialize"
            drop_unsafe_icons_of([server.info], method, self._opener.incoming.report)
        if not is_modern and self.log_level is not None and server.capabilities.logging is not None:
            await self._request_log_level(session, self.log_level)
        return session

    async def _wait_before_restart(self) -> None:
        """Wait longer with each restart, and each start that failed, within a short time."""
        now = asyncio.get_running_loop().time()
        self._starts = [start for start in self._starts if start > now - STABLE_SECONDS][-10:]
        if self._starts:
            await asyncio.sleep(min(0.1 * 2 ** len(self._starts), _MAX_RESTART_DELAY))
        if self.is_closed:
            raise closed_error()

    # The log level of legacy servers

    async def _request_log_level(self, session: ClientSession, level: LogLevel) -> None:
        """Set the log level. If the server rejects the request, continue without."""
        try:
            await self._send_log_level(session, level)
        except RemoteError as error:
            diagnostic = Diagnostic(DiagnosticKind.INVALID_DATA, str(error), "logging/setLevel", error=error)
            self._opener.incoming.report(diagnostic)

    async def _send_log_level(self, session: ClientSession, level: LogLevel) -> None:
        call = session.start_call("logging/setLevel", timeout=self.timeout, latest=self.max_time)
        await session.exchange(call, {"level": level})
