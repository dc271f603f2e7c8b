"""The observer of a client's session, which sees messages and the connection, and never the session itself."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Raw

from typedmcp.client.session.session import ClientSession, Exchange, Notify, SessionListener
from typedmcp.observers import ClientObserver, Instrumentation, MessageInfo, MetaMembers, Network
from typedmcp.protocol.diagnostics import Diagnostic
from typedmcp.protocol.framing import RequestId
from typedmcp.protocol.observation import add_to_meta, is_known_method, read_meta
from typedmcp.protocol.pending import Call

__all__ = ["ClientObservation", "Negotiated", "SessionInfo"]

_PORTS = {"https": 443, "http": 80}


class Negotiated(Protocol):
    """The current session of a client, and the result of its negotiation once that has ended."""

    session: ClientSession | None
    revision: str | None


class ClientObservation:
    """Passes the messages of a session through its observer."""

    def __init__(self, session: ClientSession, instrumentation: Instrumentation, negotiated: Negotiated) -> None:
        self._negotiated = negotiated
        self._observer: ClientObserver = instrumentation.observe_session(SessionInfo(negotiated, session))

    def around_exchange(self, exchange: Exchange) -> Exchange:
        """Return a function that sends a request and observes it."""

        def observed(call: Call, params: Any) -> Coroutine[Any, Any, Raw]:
            def send(members: MetaMembers) -> Coroutine[Any, Any, Raw]:
                return exchange(call, add_to_meta(params, members))

            return self._observer.on_call(call.method, call.id, params, send)

        return observed

    def around_notify(self, notify: Notify) -> Notify:
        """Return a function that sends a notification and observes it."""

        def observed(method: str, params: Any = None) -> None:
            self._observer.on_notify(method, lambda members: notify(method, add_to_meta(params, members)))

        return observed

    def around_listener(self, listener: SessionListener) -> SessionListener:
        """Return a listener that observes messages of the server, and the end of the session."""
        return _ObservedListener(self._observer, self._negotiated, listener)


class _ObservedListener:
    """Passes the messages of a server to the listener of the session, through an observer."""

    def __init__(self, observer: ClientObserver, negotiated: Negotiated, listener: SessionListener) -> None:
        self._observer = observer
        self._negotiated = negotiated
        self._listener = listener
        self.is_strict: bool = listener.is_strict
        """True if messages that break the specification harmlessly are rejected."""
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

    def report(self, diagnostic: Diagnostic) -> None:
        """Handle a diagnostic."""
        self._listener.report(diagnostic)

    def tolerate(self, text: str, method: str | None = None) -> bool:
        """Report that a message breaks the specification harmlessly. Return False if it must be rejected instead."""
        return self._listener.tolerate(text, method)

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
