"""Limits on what one peer can make this process keep or do.

A server and a client take `limits=Limits(...)`. Every limit has its unit in its name or its description, and a peer
that reaches one gets an answer, or a diagnostic, that names it. `docs/limits.md` has the table.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from typedmcp.errors import UsageError

__all__ = ["DEFAULT_LIMITS", "Limits"]

_KIB = 1 << 10
_MIB = 1 << 20


class Limits(Struct, frozen=True, kw_only=True):  # a dataclass of this size adds 6.5 % to the imports of `serve`
    """The limits of a server or a client. Raises `UsageError` for a limit below 1."""

    # Both sides
    message_bytes: int = 64 * _MIB
    """Bytes of one message on a connection of lines, and of one event or response that a client reads over HTTP."""
    batch_messages: int = 1000
    """Messages in one batch (2025-03-26)."""
    input_rounds: int = 10
    """Input requests of a server within one call, in rounds."""

    # Servers, on every transport
    requests_in_flight: int = 65_536
    """Requests that one connection, session or stateless application handles at a time."""
    threads: int = 32
    """Threads for handlers that block."""
    resource_subscriptions: int = 10_000
    """Resources that one listener or session is subscribed to."""

    # Servers over HTTP
    http_body_bytes: int = 4 * _MIB
    """Bytes of the body of one request. More is answered with 413."""
    http_header_bytes: int = 64 * _KIB
    """Bytes of all headers of one request. More is answered with 431."""
    http_headers: int = 128
    """Headers of one request. More is answered with 431."""
    http_streams: int = 10_000
    """Responses of one application that are open event streams. More are answered with 503."""
    http_stream_buffer_bytes: int = 256 * _KIB
    """Bytes that are queued in one event stream before it counts as congested."""
    session_client_bytes: int = 64 * _KIB
    """Bytes of the client's description of itself that a session keeps. More is answered with 413."""
    sse_queue_bytes: int = _MIB
    """Bytes of posted messages that wait in one connection of 2024-11-05. More POSTs wait for their turn."""

    # Clients
    list_pages: int = 10_000
    """Pages of one list. A longer list counts as endless."""
    cache_bytes: int = 8 * _MIB
    """Bytes of cached results. 1 keeps none."""
    waiting_notifications: int = 10_000
    """Notifications that wait for callbacks. More are dropped and reported."""
    server_requests_in_flight: int = 256
    """Requests of a legacy server that callbacks answer at a time."""
    http_calls_in_flight: int = 256
    """Calls of one HTTP client in progress at a time. More wait for their turn."""
    http_redirects: int = 5
    """Requests in a row that a server answers with a redirect. More raise `HttpStatusError`."""
    http_response_head_bytes: int = 128 * _KIB
    """Bytes of the head of one response, and of its trailers. More end the connection."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            if type(value) is not int or value < 1:
                raise UsageError(f"limits: {name} must be an integer of at least 1, not {value!r}")


DEFAULT_LIMITS: Final = Limits()
"""The limits of a server or client that is given none."""
