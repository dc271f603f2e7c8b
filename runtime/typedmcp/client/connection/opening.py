"""Opening a session: with a target that is known or not, over the transport that it needs, in the newest revision."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from typedmcp.client.connection.negotiation import ClientIdentity, is_modern_error, negotiate
from typedmcp.client.connection.targets import (
    Target,
    can_reopen,
    describe_target,
    is_url,
    open_target,
    resolve_target,
    target_key,
)
from typedmcp.client.incoming.handler import IncomingMessageHandler
from typedmcp.client.options import URL_OPTIONS, ConnectOptions
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
from typedmcp.frames import ObservedTransport, OnFrame, open_sink
from typedmcp.limits import DEFAULT_LIMITS, Limits
from typedmcp.revisions.features import FEATURES
from typedmcp.transports import Transport
from typedmcp.transports.redaction import redact_url
from typedmcp.transports.stderr_text import ProbeNoise

if TYPE_CHECKING:
    from typedmcp.client.http.endpoint import Endpoint

__all__ = ["KNOWN_SECONDS", "SessionOpener", "closed_error", "known_servers"]

T = TypeVar("T")

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


class SessionOpener:
    """Opens sessions with one target, and negotiates their revisions."""

    def __init__(
        self, target: Target, identity: ClientIdentity, incoming: IncomingMessageHandler, options: ConnectOptions
    ) -> None:
        self.target: Target = resolve_target(target)
        self.identity: ClientIdentity = identity
        self.incoming: IncomingMessageHandler = incoming
        self.is_closed: bool = False
        """True once no session may be opened any more."""
        self._limits = options.get("limits", DEFAULT_LIMITS)
        self._timeout = options.get("timeout", 60.0)
        self._probe = options.get("probe", 5.0)
        self._change_error = options.get("change_error")
        self._on_frame = _frame_callback(options, incoming, self._limits)
        if options.get("restart") and not can_reopen(self.target):
            raise UsageError("restart: a transport cannot be opened again; restart needs a command or an address")
        self.endpoint: Endpoint | None = _open_endpoint(self.target, options, self._limits)
        """The URL, if that is the target."""
        if self.endpoint is not None:
            self.endpoint.on_frame, self.endpoint.credentials.tolerate = self._on_frame, incoming.tolerate

    async def open(self) -> tuple[ClientSession, ServerDescription]:
        """Open a session in the way that worked last time, if there is a choice.

        Raises the errors of `open_target`, `negotiate` and calls, and `ConnectionLostError` if the client is closed.
        """
        key = target_key(self.target) if self._has_choice else None
        try:
            session, server = await self._open_session(None if key is None else _recall(key))
        except Error as error:
            if self._change_error is None:
                raise
            raise self._change_error(error) from None
        if key is not None:
            _remember(key, server.revision, self.endpoint is not None and session.heads is None)
        return session, server

    @property
    def _has_choice(self) -> bool:
        """True if the server decides whether there is a handshake."""
        return bool(self.identity.modern and self.identity.legacy)

    async def _open_session(self, known: _KnownServer | None) -> tuple[ClientSession, ServerDescription]:
        last_revision = None if known is None else known.revision
        if self.endpoint is None:
            return await self._open_stream(last_revision)
        if (self.endpoint.options.sse or (known is not None and known.is_legacy_sse)) and self.identity.legacy:
            try:
                return await self._open_legacy_sse(self.endpoint)
            except (HttpStatusError, ProtocolError):
                pass  # the server has changed, or the option is wrong
        return await self._open_http(self.endpoint, last_revision)

    async def _open_stream(self, last_revision: str | None) -> tuple[ClientSession, ServerDescription]:
        """Open a session over a transport. If `server/discover` ends the server, start it again without it."""
        noise = ProbeNoise("server/discover") if self._has_choice and not _has_handshake(last_revision) else None
        transport = await self._open_transport(noise)
        revision: str | None = None
        try:
            opened = await self._negotiate(StreamSession(transport, self.incoming, self._limits), last_revision)
            revision = opened[1].revision if _has_handshake(opened[1].revision) else None
            return opened
        except RequestTimeoutError:
            raise
        except ConnectionLostError:
            if not self._can_initialize_instead(transport, last_revision):
                raise
        finally:
            if noise is not None:
                noise.end(revision)
        transport = await self._open_transport()
        session = StreamSession(transport, self.incoming, self._limits)
        return await self._negotiate(session, self.identity.legacy[0])

    def _can_initialize_instead(self, transport: Transport, last_revision: str | None) -> bool:
        """Return whether `server/discover` may have ended the server, so that it may work without."""
        if not self._has_choice or _has_handshake(last_revision) or self.is_closed or not can_reopen(self.target):
            return False
        status: int | None = getattr(transport, "exit_status", None)
        text = "the server ended after server/discover; it is started again and initialized without"
        has_crashed = status is None or 0 < status < _FIRST_PLANNED_STATUS
        has_read: bool = getattr(transport, "has_read", True)  # a server that fails at import did not
        return has_crashed and has_read and self.incoming.tolerate(text, "server/discover")

    async def _open_http(
        self, endpoint: Endpoint, last_revision: str | None
    ) -> tuple[ClientSession, ServerDescription]:
        """Open a session over Streamable HTTP. If the server rejects the handshake, try HTTP with SSE."""
        from typedmcp.client.http.session import HttpSession

        session = HttpSession(endpoint, self.incoming, self.identity.callbacks.name_params)
        try:
            return await self._negotiate(session, last_revision)
        except (RemoteError, HttpStatusError) as error:
            is_modern = isinstance(error, RemoteError) and is_modern_error(error)
            if session.initialize_status not in _LEGACY_SSE_STATUSES or is_modern:
                raise
            return await self._open_legacy_sse(endpoint, error)

    async def _open_legacy_sse(
        self, endpoint: Endpoint, refusal: Error | None = None
    ) -> tuple[ClientSession, ServerDescription]:
        """Connect over HTTP with SSE. `refusal` is the error of Streamable HTTP, which counts without a stream."""
        from typedmcp.client.http.legacy_sse import LegacySseTransport

        opening = LegacySseTransport.open(endpoint, self.incoming.tolerate)
        try:
            transport = await self._in_time(opening, f"{endpoint.url}: no event stream")
        except (HttpStatusError, ConnectionLostError) as error:  # a wrong event stream says more than the refusal
            raise (refusal or error) from (None if refusal is None else error)
        session = StreamSession(transport, self.incoming, self._limits)
        session.is_renewable = True
        return await self._negotiate(session, self.identity.legacy[-1])

    async def _negotiate(
        self, session: ClientSession, last_revision: str | None
    ) -> tuple[ClientSession, ServerDescription]:
        self.incoming.session, self.incoming.revision = session, None
        if (telemetry := self.identity.callbacks.telemetry) is not None:
            from typedmcp.client.session.observation import observe_session  # loaded where it is used

            observe_session(session, telemetry, self.incoming)
        if self._change_error is not None:
            from typedmcp.client.session.observation import change_errors

            change_errors(session, self._change_error)
        try:
            server = await negotiate(session, self.identity, last_revision, self._timeout or 60.0, self._probe)
            if self.is_closed:
                raise closed_error()
        except BaseException:
            await session.close()
            if self.endpoint is not None:
                self.endpoint.pool.close_idle()
            await self.incoming.running.close(asyncio.current_task())
            raise
        return session, server

    async def _open_transport(self, noise: ProbeNoise | None = None) -> Transport:
        opening = open_target(self.target, noise)
        transport = await self._in_time(opening, f"{describe_target(self.target)}: no connection")
        if self.is_closed:
            await transport.close()
            raise closed_error()
        if self._on_frame is not None:
            return ObservedTransport(transport, self._on_frame, self._limits.message_bytes)
        return transport

    async def _in_time(self, opening: Awaitable[T], failure: str) -> T:
        try:
            async with asyncio.timeout(self._timeout):
                return await opening
        except TimeoutError:
            raise ConnectionLostError(f"{failure} within {self._timeout:g} s") from None


def closed_error() -> ConnectionLostError:
    """Return the error for a client that has been closed."""
    return ConnectionLostError("the client has been closed")


def _has_handshake(revision: str | None) -> bool:
    return revision is not None and FEATURES[revision].has_handshake


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


def _frame_callback(options: ConnectOptions, incoming: IncomingMessageHandler, limits: Limits) -> OnFrame | None:
    """Return the function for each message, by the options `on_frame` and `record`."""
    sink = open_sink(options.get("record"), limits, options.get("on_frame"))
    if sink is None:
        return None
    from typedmcp.client.session.observation import SessionInfo  # loaded where it is used

    return sink.open(SessionInfo(incoming))


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
