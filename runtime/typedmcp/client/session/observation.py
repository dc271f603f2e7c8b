"""The observer of a client's session, which sees messages and the connection, and never the session itself."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Raw

from typedmcp.client.session.reader import SessionListener
from typedmcp.client.session.session import ClientSession
from typedmcp.errors import Error
from typedmcp.observers import ClientObserver, Instrumentation, MessageInfo, MetaMembers, Network
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.observation import add_to_meta, is_known_method, read_meta
from typedmcp.protocol.pending import Call

__all__ = ["Negotiated", "SessionInfo", "change_errors", "observe_session"]

_PORTS = {"https": 443, "http": 80}


class Negotiated(Protocol):
    """The current session of a client, and the result of its negotiation once that has ended."""

    session: ClientSession | None
    revision: str | None


def observe_session(session: ClientSession, instrumentation: Instrumentation, negotiated: Negotiated) -> None:
    """Pass requests, notifications and messages of the server through the observer of a session.

    It replaces the methods of this session alone, so that sessions without an observer have no code for it.
    """
    observer = instrumentation.observe_session(SessionInfo(negotiated, session))
    exchange, send_notification = session.exchange, session.notify

    def observed_exchange(call: Call, params: Any) -> Coroutine[Any, Any, Raw]:
        def send(members: MetaMembers) -> Coroutine[Any, Any, Raw]:
            return exchange(call, add_to_meta(params, members))

        return observer.on_call(call.method, call.id, params, send)

    def notify(method: str, params: Any = None) -> None:
        observer.on_notify(method, lambda members: send_notification(method, add_to_meta(params, members)))

    session.exchange, session.notify = observed_exchange, notify  # type: ignore[method-assign]
    session.direct = None  # only `exchange` is observed
    session.reader.listener = _ObservedListener(observer, negotiated, session.reader.listener)


def change_errors(session: ClientSession, change: Callable[[Error], Error]) -> None:
    """Let the calls of a session raise what this function makes of their errors."""
    exchange, end_error = session.exchange, session.end_error

    async def changed_exchange(call: Call, params: Any) -> Raw:
        try:
            return await exchange(call, params)
        except Error as error:
            raise change(error) from None

    session.exchange, session.end_error = changed_exchange, lambda: change(end_error())  # type: ignore[method-assign]
    session.direct = None  # only `exchange` changes errors


class _ObservedListener:
    """Passes the messages of a server to the listener of the session, through an observer."""

    def __init__(self, observer: ClientObserver, negotiated: Negotiated, listener: SessionListener) -> None:
        self._observer = observer
        self._negotiated = negotiated
        self._listener = listener
        self.is_strict: bool = listener.is_strict
        """True if messages that break the specification harmlessly are rejected."""
        self.report = listener.report
        self.tolerate = listener.tolerate
        self._has_ended = False

    def on_notification(self, method: str, params: bytes, call: Call | None) -> None:
        """Handle a notification."""
        self._observer.on_receive(
            self._received(None, method, params),
            None if call is None else call.id,
            lambda: self._listener.on_notification(method, params, call),
        )

    def on_request(self, id: RequestId, method: str, params: bytes) -> None:
        """Handle a request of the server."""
        self._observer.on_receive(
            self._received(id, method, params), None, lambda: self._listener.on_request(id, method, params)
        )

    def _received(self, id: RequestId | None, method: str, params: bytes) -> MessageInfo:
        return MessageInfo(method, id, read_meta(params), is_known_method(method, self._negotiated.revision))

    def on_disconnect(self) -> None:
        """Handle the end of the session, which is observed once."""
        if not self._has_ended:
            self._has_ended = True
            self._observer.on_end()
        self._listener.on_disconnect()


class SessionInfo:
    """A session of a client, by default always the current one, as a `ConnectionInfo`."""

    def __init__(self, negotiated: Negotiated, session: ClientSession | None = None) -> None:
        self._negotiated = negotiated
        self._own = session

    @property
    def _session(self) -> ClientSession | None:
        return self._own or self._negotiated.session

    @property
    def id(self) -> str | None:
        return None if self._session is None else self._session.session_id

    @property
    def network(self) -> Network | None:
        return None if self._session is None else self._session.network

    @property
    def address(self) -> tuple[str, int] | None:
        with suppress(ValueError):
            parts = urlsplit(self._session.url or "" if self._session else "")
            if parts.hostname is not None:
                return parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
        return None

    @property
    def revision(self) -> str | None:
        return self._negotiated.revision
