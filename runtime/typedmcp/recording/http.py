"""Recording of an ASGI application: the bodies of its requests and responses, without their headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

from typedmcp.limits import Limits
from typedmcp.protocol.sse import EventParser
from typedmcp.recording.frames import report_received
from typedmcp.recording.recorder import RecordedConnection, Recorder

__all__ = ["HttpRecorder"]

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]

_SESSION: Final = b"mcp-session-id"
_MAX_SESSIONS: Final = 10_000
"""Sessions whose connection is remembered. The oldest is forgotten, and its messages begin another connection."""


class HttpRecorder:
    """Records the exchanges of an application. A session is one connection; a request without one is its own."""

    def __init__(self, recorder: Recorder, limits: Limits) -> None:
        self._recorder = recorder
        self._limits = limits
        self._sessions: dict[bytes, RecordedConnection] = {}

    def wrap(self, headers: Iterable[tuple[bytes, bytes]], receive: _Receive, send: _Send) -> tuple[_Receive, _Send]:
        """Return `receive` and `send` of one request, which record what passes through them."""
        session = _find(headers, _SESSION)
        recorded = self._sessions.get(session) or self._recorder.start_connection()
        exchange = _RecordedExchange(recorded, self._limits.message_bytes, receive, send, self._remember)
        return exchange.receive, exchange.send

    def _remember(self, session: bytes, recorded: RecordedConnection) -> None:
        if session not in self._sessions:
            if len(self._sessions) >= _MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[session] = recorded


class _RecordedExchange:
    """One request and its response. Rejected requests whose body is not read are not recorded."""

    def __init__(
        self,
        recorded: RecordedConnection,
        limit: int,
        receive: _Receive,
        send: _Send,
        remember: Callable[[bytes, RecordedConnection], None],
    ) -> None:
        self._recorded = recorded
        self._limit = limit
        self._receive = receive
        self._send = send
        self._remember = remember
        self._request: list[bytes] = []
        self._response: list[bytes] = []
        self._events: EventParser | None = None
        self._is_json = False

    async def receive(self) -> _Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._request.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._report("client", self._request)
        return message

    async def send(self, message: _Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._add(message.get("body", b""), is_last=not message.get("more_body", False))
        await self._send(message)

    def _begin(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        headers = [*headers]
        content_type = _find(headers, b"content-type").partition(b";")[0]
        self._is_json = content_type == b"application/json"
        self._events = EventParser(self._limit) if content_type == b"text/event-stream" else None
        if session := _find(headers, _SESSION):
            self._remember(session, self._recorded)

    def _add(self, data: bytes, *, is_last: bool) -> None:
        if self._events is not None:
            for event in self._events.feed(data):
                if event.data:
                    report_received(event.data, self._recorded)
        elif self._is_json:
            self._response.append(data)
            if is_last:
                self._report("server", self._response)

    def _report(self, sender: Any, parts: list[bytes]) -> None:
        data = b"".join(parts)
        parts.clear()
        if data:
            self._recorded(sender, data)


def _find(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return next((value for key, value in headers if key.lower() == name), b"")
